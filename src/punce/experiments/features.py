"""Rows that are features of frozen encoders: ``cifar10@lite0+mobilenetv2`` is CIFAR-10 as two encoders see it.

The files are those that ``benchmarks/frozen_features.py`` writes; PUNCE_FEATURES names their folder. Each is checked
against the sha256 in the JSON beside it. Features are standardised and brought to 256 whitened principal directions,
learned from training rows without labels; the result is kept in the folder.

The encoders were trained on ImageNet *with labels*: what is measured here is not learned from CIFAR-10 alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.data import load
from punce.datasets.dataset import Dataset, Part
from punce.errors import InputError
from punce.models.portfolio.directions import MOST, Directions
from punce.storage.files import file_sha256, replacing

VARIABLE = "PUNCE_FEATURES"
UPSTREAM = {"lite0": "EfficientNet-Lite0", "mobilenetv2": "MobileNetV2"}
"""Encoders by the names of their files; all trained on ImageNet with its labels."""

_MARK = "@"
_VERSION = 1  # of how features become rows: raise it, and what is kept in the folder is made again

Floats = npt.NDArray[np.float32]


def is_features(source: str) -> bool:
    """Whether the source names features of frozen encoders."""
    return _MARK in source


def base_of(source: str) -> str:
    """The benchmark set behind a source."""
    return source.partition(_MARK)[0]


def upstream(source: str) -> str | None:
    """What a reader must know of the encoders behind a source; None for a set as it is."""
    if not is_features(source):
        return None
    names = " and ".join(UPSTREAM.get(name, name) for name in _encoders(source))
    return f"frozen {names} features (ImageNet labels)"


def row_shape() -> tuple[int, ...]:
    """The shape of a row of features."""
    return (MOST,)


def load_features(source: str) -> Dataset:
    """Both parts of a source, with true labels of the benchmark set behind it."""
    labels, folder = load(base_of(source), download=False), require_features(source)
    abouts = [_about(folder, name) for name in _encoders(source)]
    key = hashlib.sha256(json.dumps([_VERSION, abouts], sort_keys=True).encode()).hexdigest()[:16]
    kept = folder / f"{source}-{key}.npy"
    rows, n = _read(kept), len(labels.train)
    if rows is None:
        rows = _projected(folder, abouts)
        with replacing(kept) as temporary, temporary.open("wb") as file:
            np.save(file, rows)
    if len(rows) != n + len(labels.test):
        raise InputError(f"{kept} has {len(rows)} rows instead of {n + len(labels.test)}; it is not of this data set")
    parts = (Part(part, truth.y_true) for part, truth in ((rows[:n], labels.train), (rows[n:], labels.test)))
    return Dataset(source, "embedding", labels.positive, *parts)


def _read(kept: Path) -> Floats | None:
    """What an earlier cell kept; None where there is nothing, or nothing that can be read: it is computed again."""
    try:
        rows: Floats = np.load(kept, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return rows


def require_features(source: str) -> Path:
    """The folder that holds the files of a source; refuses with what to do if one is missing."""
    folder = Path(os.environ.get(VARIABLE, "").strip() or ".")
    for name in _encoders(source):
        if not (folder / f"{name}.json").is_file():
            raise InputError(
                f"{source} needs {name}.json and its features in the folder that {VARIABLE} names (now: {folder}); "
                f"make them with: python benchmarks/frozen_features.py FOLDER --encoder {name}"
            )
    return folder


def _encoders(source: str) -> list[str]:
    return source.partition(_MARK)[2].split("+")


def _about(folder: Path, name: str) -> dict[str, Any]:
    """What the JSON of an encoder says; its files are where it says, and nowhere else."""
    path = folder / f"{name}.json"
    try:
        about = json.loads(path.read_bytes())
        files = {part: about["files"][f"{name}_{part}.npy"] for part in ("train", "test")}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path} does not describe features: {error!r}; make them again") from error
    return {"name": name, "weights": about.get("weights_sha256"), "pixels": about.get("pixels"), "files": files}


def _projected(folder: Path, abouts: list[dict[str, Any]]) -> Floats:
    """All rows, training rows first, along whitened directions. Shape: (n, 256)."""
    both = [[_checked(folder / f"{a['name']}_{part}.npy", a["files"][part]) for a in abouts] for part in _PARTS]
    train, test = (np.concatenate(part, axis=1) for part in both)
    mean, spread = train.mean(axis=0), np.maximum(train.std(axis=0), 1e-6)
    train, test = (train - mean) / spread, (test - mean) / spread
    directions = Directions.fit(train, seed=0)
    train, test = directions(train), directions(test)
    rows: Floats = np.concatenate([train, test]) / np.maximum(train.std(axis=0), 1e-6)
    return rows


_PARTS = ("train", "test")


def _checked(path: Path, sha256: str) -> Floats:
    """An array whose file has this sha256."""
    try:
        found = file_sha256(path)
        features: Floats = np.load(path, allow_pickle=False).astype(np.float32, copy=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if found != sha256:
        raise InputError(f"{path} has the sha256 {found[:12]}…, its JSON says {str(sha256)[:12]}…; make it again")
    return features

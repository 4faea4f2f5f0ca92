"""The rows of a cell: a benchmark set or generated images, a fixed part of them, and the labels drawn for a seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.data import PUSample, biased_propensity, load, simulate_pnu, simulate_pu
from punce.datasets.dataset import Dataset, Part, TrueLabels
from punce.errors import InputError
from punce.experiments.cell import DataSpec
from punce.experiments.features import is_features, load_features
from punce.labels import POSITIVE, UNLABELLED

GENERATED = "shapes"
_PART_SEED = 20_261_116  # which rows a smaller part takes; frozen like RandomState's stream
_SIDE = 12  # pixels


@dataclass(frozen=True)
class ImageRows:
    """Images of both parts, uint8 (n, C, H, W), with true labels that only simulation and evaluation may see."""

    X: Tensor
    y_true: TrueLabels
    X_test: Tensor
    y_test: TrueLabels


@lru_cache(maxsize=1)  # cells that follow each other mostly use the same rows; older sets are let go
def load_rows(source: str, n_train: int | None, n_test: int | None, positive_share: float | None = None) -> ImageRows:
    """The rows of a source; missing files are not fetched, because many cells would fetch them at once."""
    dataset = _dataset(source)
    parts = _part(dataset.train, n_train), _part(dataset.test, n_test)
    train, test = (part if positive_share is None else _with_share(part, positive_share) for part in parts)
    return ImageRows(torch.from_numpy(train.X), train.y_true, torch.from_numpy(test.X), test.y_true)


def _dataset(source: str) -> Dataset:
    if source == GENERATED:
        return generated_shapes()
    return load_features(source) if is_features(source) else load(source, download=False)


def draw_labels(spec: DataSpec, rows: ImageRows, seed: int) -> PUSample:
    """The labelled set of this seed: the same for pretraining and for everything after."""
    if spec.setting == "pnu":
        return simulate_pnu(rows.y_true, spec.n_labelled, seed)
    propensity = None
    if spec.label_bias:
        brightness = rows.X.flatten(1).float().mean(1).double().numpy()
        propensity = biased_propensity(brightness, spec.label_bias)
    n_wrong = round(spec.label_noise * spec.n_labelled)
    sample = simulate_pu(rows.y_true, spec.n_labelled - n_wrong, spec.scenario, seed, propensity)
    return _with_wrong_labels(sample, rows.y_true, n_wrong) if n_wrong else sample


def _with_wrong_labels(sample: PUSample, y_true: TrueLabels, n_wrong: int) -> PUSample:
    """The sample with so many unlabelled negatives labelled as positives, and the prior of what stays unlabelled."""
    is_negative = (y_true[sample.rows] == 0) & (sample.labels == UNLABELLED)
    # Another stream than that of the labels: the right labels stay nested over numbers of labels.
    chosen = np.random.RandomState([sample.seed, 1]).permutation(np.flatnonzero(is_negative))[:n_wrong]
    labels = sample.labels.copy()
    labels[chosen] = POSITIVE
    prior = float((y_true[sample.rows][labels == UNLABELLED] == 1).mean())
    return replace(sample, labels=labels, prior=prior)


def _part(part: Part, size: int | None) -> Part:
    if size is None or size >= len(part):
        return part
    chosen = np.sort(np.random.RandomState(_PART_SEED).permutation(len(part))[:size])
    return Part(part.X[chosen], part.y_true[chosen])


def _with_share(part: Part, share: float) -> Part:
    """All negatives, and as many positives as make up this share."""
    positives, negatives = (np.flatnonzero(part.y_true == value) for value in (1, 0))
    wanted = round(share / (1 - share) * len(negatives))
    if not 0 < share < 1 or wanted > len(positives):
        raise InputError(f"positive_share {share:g} needs {wanted} positives, and the part has {len(positives)}")
    kept = np.random.RandomState(_PART_SEED).permutation(positives)[:wanted]
    chosen = np.sort(np.concatenate([kept, negatives]))
    return Part(part.X[chosen], part.y_true[chosen])


def generated_shapes() -> Dataset:
    """Colour images of a bar (positive) or a ring (negative) on noise; for tests, learnable in seconds."""
    random = np.random.RandomState(0)
    return Dataset(GENERATED, "image", "bars", _draw_shapes(600, random), _draw_shapes(300, random))


def _draw_shapes(size: int, random: np.random.RandomState) -> Part:
    y_true = (random.random_sample(size) < 0.4).astype(np.int8)
    grid = np.arange(_SIDE)
    # A margin of three pixels: every ring is whole, so that its shape alone tells the class.
    centre = random.uniform(3, _SIDE - 4, size=(size, 2, 1, 1))
    down, across = grid[None, :, None] - centre[:, 0], grid[None, None, :] - centre[:, 1]
    is_bar = (np.abs(down) < 1.2) & (np.abs(across) < 4)
    is_ring = np.abs(np.hypot(down, across) - 2.5) < 0.8
    mask: npt.NDArray[Any] = np.where(y_true[:, None, None] == 1, is_bar, is_ring)
    colour = random.uniform(90, 230, size=(size, 3, 1, 1))
    noise = random.uniform(0, 90, size=(size, 3, _SIDE, _SIDE))
    pixels = np.where(mask[:, None], colour, noise)
    return Part(np.rint(pixels).astype(np.uint8), y_true)

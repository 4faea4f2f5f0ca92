"""The rows of a cell: a benchmark set or generated pictures, a fixed part of them, and the labels drawn for a seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.data import PUSample, biased_propensity, load, simulate_pnu, simulate_pu
from punce.datasets.dataset import Dataset, Part, TrueLabels
from punce.experiments.cell import DataSpec

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
def load_rows(source: str, n_train: int | None, n_test: int | None) -> ImageRows:
    """The rows of a source; missing files are not fetched, because many cells would fetch them at once."""
    dataset = generated_shapes() if source == GENERATED else load(source, download=False)
    train, test = _part(dataset.train, n_train), _part(dataset.test, n_test)
    return ImageRows(torch.from_numpy(train.X), train.y_true, torch.from_numpy(test.X), test.y_true)


def draw_labels(spec: DataSpec, rows: ImageRows, seed: int) -> PUSample:
    """The labelled set of this seed: the same for pretraining and for everything after."""
    if spec.setting == "pnu":
        return simulate_pnu(rows.y_true, spec.n_labelled, seed)
    propensity = None
    if spec.label_bias:
        brightness = rows.X.flatten(1).float().mean(1).double().numpy()
        propensity = biased_propensity(brightness, spec.label_bias)
    return simulate_pu(rows.y_true, spec.n_labelled, spec.scenario, seed, propensity)


def _part(part: Part, size: int | None) -> Part:
    if size is None or size >= len(part):
        return part
    chosen = np.sort(np.random.RandomState(_PART_SEED).permutation(len(part))[:size])
    return Part(part.X[chosen], part.y_true[chosen])


def generated_shapes() -> Dataset:
    """Colour pictures of a bar (positive) or a ring (negative) on noise; for tests, learnable in seconds."""
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

"""A table with a known answer: numbers, a skewed column, categories, missing values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from punce.data import simulate_pu


@dataclass(frozen=True)
class Problem:
    values: np.ndarray
    categorical: np.ndarray
    labels: np.ndarray
    y: np.ndarray
    prior: float


def problem(n: int, n_labelled: int, seed: int, share: float = 0.4, missing: float = 0.05) -> Problem:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(np.int8)
    numbers = rng.normal(size=(n, 4)) + np.outer(y, [1.5, 1.0, 0.5, 0.0])
    numbers[:, 1] = np.exp(numbers[:, 1])
    codes = np.where(y == 1, rng.integers(0, 4, n), rng.integers(2, 8, n))
    values = np.column_stack([numbers, codes]).astype(np.float32)
    values[rng.random(values.shape) < missing] = np.nan
    sample = simulate_pu(y, n_labelled, seed=seed)
    return Problem(values, np.array([False] * 4 + [True]), sample.labels, y, sample.prior)

"""Rows whose share of positives is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression


@dataclass(frozen=True)
class Mixture:
    """X (n, d), labels (n,), the true share among the unlabelled rows, and who is positive."""

    X: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int8]
    share: float
    is_positive: npt.NDArray[np.bool_]


def gaussians(share: float, n_p: int = 300, n_u: int = 600, *, gap: float = 6.0, d: int = 2, seed: int = 0) -> Mixture:
    """Two unit Gaussians `gap` apart along the first axis; labelled rows are a random sample of the positives."""
    rng = np.random.default_rng(seed)
    hidden = round(share * n_u)
    is_positive = np.r_[np.ones(n_p + hidden, bool), np.zeros(n_u - hidden, bool)]
    labels = np.r_[np.ones(n_p, np.int8), np.zeros(n_u, np.int8)]
    X = rng.normal(size=(n_p + n_u, d))
    X[:, 0] += gap * is_positive
    order = rng.permutation(n_p + n_u)
    return Mixture(X[order], labels[order], hidden / n_u, is_positive[order])


def fast_classifier() -> LogisticRegression:
    """A P-vs-U model that is fitted in a millisecond."""
    return LogisticRegression()

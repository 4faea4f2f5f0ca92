"""The catalogue of heads on features. Each learns from labelled and unlabelled rows and becomes arrays that score.

Add a head: one function from a :class:`HeadProblem` to a :class:`Head`, and one line in :data:`HEADS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.columns.stored import StoredArrays
from punce.models.portfolio.ridge import Ridge

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class HeadProblem:
    """What a head learns from. `truths` is the known class (1 or −1) of rows that are not labelled, else 0.

    Shape: x (n, D) on comparable scales; is_p (n,); truths (n,); counts (n,), how much each row counts.
    """

    x: Values
    is_p: Flags
    truths: npt.NDArray[np.int8]
    counts: Floats
    prior: float
    seed: int

    @property
    def balanced(self) -> Floats:
        """Weights of the rows in which labelled and other rows sum to one half each. Shape: (n,)."""
        weights = np.empty(len(self.is_p))
        for group in (self.is_p, ~self.is_p):
            own = self.counts[group]
            own = own if own.any() else np.ones_like(own)
            weights[group] = 0.5 * own / own.sum()
        return weights

    @property
    def hard_targets(self) -> Flags:
        """Labelled rows and those known to be positive."""
        return self.is_p | (self.truths > 0)


@dataclass(frozen=True)
class Linear(StoredArrays):
    """Shape: weight (D,), bias (1,)."""

    weight: Values
    bias: Values

    def score(self, x: Values) -> Floats:
        """Shape: (n, D) -> (n,)."""
        scores: Floats = (x @ self.weight + self.bias).astype(np.float64)
        return scores


Head = Linear


def self_consistent(problem: HeadProblem) -> Head:
    """Ridge regression whose targets agree with its own left-out scores; penalty and whitening chosen by them."""
    weights, found = problem.balanced, []
    spread = np.maximum(problem.x.std(axis=0).astype(np.float64), 1e-6)
    for whitened in _WHITENED:
        scale = spread**-whitened
        found.append((Ridge(problem.x * scale, weights, problem.is_p, problem.truths), scale))
    ridge, scale = max(found, key=lambda pair: pair[0].auc)
    weight, bias = ridge.solved(problem.prior)
    return _linear(weight * scale, bias)


def logistic(penalty: float) -> Callable[[HeadProblem], Head]:
    """Labelled against all other rows, both groups weighing the same."""

    def fitted(problem: HeadProblem) -> Head:
        from sklearn.linear_model import LogisticRegression

        # scikit-learn's C multiplies the sum over rows; weights that sum to 1 make it the same for any number of rows.
        model = LogisticRegression(C=1.0 / penalty, max_iter=200, tol=1e-3)
        model.fit(problem.x, problem.hard_targets, problem.balanced)
        return _linear(model.coef_[0], float(model.intercept_[0]))

    return fitted


def _linear(weight: npt.NDArray[Any], bias: float) -> Linear:
    return Linear(weight.astype(np.float32), np.array([bias], dtype=np.float32))


_WHITENED = (0.0, 0.5, 1.0)  # exponents of the inverse spread of a direction: 0 as it is, 1 all directions alike

HEADS: dict[str, Callable[[HeadProblem], Head]] = {
    "self_consistent": self_consistent,
    "logistic": logistic(1e-2),
    "logistic, strong penalty": logistic(1e-1),
}

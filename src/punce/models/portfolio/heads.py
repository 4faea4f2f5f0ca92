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
from punce.judging.ranking import auc_between
from punce.models.portfolio.ridge import STEEPNESS, TINY, Ridge, chances

_WHITENED = (0.0, 0.5, 1.0)  # exponents of the inverse spread of a direction: 0 as it is, 1 all directions alike
_PENALTIES = (0.003, 0.03, 0.1, 0.3, 1.0, 3.0)
_INNER_FOLDS = 3

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class HeadProblem:
    """What a head learns from. `truths` is the known class (1 or −1) of rows that are not labelled, else 0.

    Shape: x (n, D) on comparable scales, or sparse; is_p (n,); truths (n,); counts (n,), how much each row counts.
    """

    x: Any
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

    def score(self, x: Any) -> Floats:
        """Shape: (n, D) -> (n,)."""
        scores: Floats = np.asarray(x @ self.weight + self.bias, dtype=np.float64)
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


def logistic(problem: HeadProblem) -> Head:
    """Labelled against all other rows, both groups weighing the same; the penalty chosen inside the training rows."""
    return _logistic(problem.x, problem.hard_targets, problem.balanced, _chosen_penalty(problem)[0])


def weighted_logistic(problem: HeadProblem) -> Head:
    """Logistic regression on soft labels: every unlabelled row counts as positive with its chance, else as negative.

    The chances come from scores that did not see the row (Elkan & Noto 2008 with out-of-fold scores), and their mean
    is the prior.
    """
    penalty, left_out = _chosen_penalty(problem)
    target, unknown = problem.hard_targets.astype(np.float64), ~problem.is_p & (problem.truths == 0)
    if unknown.any():
        target[unknown] = chances(
            STEEPNESS * left_out[unknown] / max(float(left_out[unknown].std()), TINY), problem.prior
        )
    twice, weights = np.concatenate([target > 0, np.zeros(len(target), dtype=bool)]), problem.balanced
    both = np.concatenate([weights * target, weights * (1.0 - target)])
    kept = both > 0
    rows = np.tile(np.arange(len(target)), 2)[kept]
    return _logistic(problem.x[rows], twice[kept], both[kept], penalty)


def _chosen_penalty(problem: HeadProblem) -> tuple[float, Floats]:
    """The penalty whose scores of rows left out rank labelled rows highest, and those scores. Shape: (n,)."""
    found = [(penalty, _left_out(problem, penalty)) for penalty in _PENALTIES]
    is_p = problem.is_p
    return max(found, key=lambda pair: auc_between(pair[1][is_p], pair[1][~is_p]))


def _left_out(problem: HeadProblem, penalty: float) -> Floats:
    """Scores of every row by regressions on the other folds, each centred: their biases differ."""
    folds, scores = np.empty(len(problem.is_p), dtype=np.intp), np.empty(len(problem.is_p))
    for group in (problem.is_p, ~problem.is_p):
        rows = np.random.default_rng(problem.seed).permutation(np.flatnonzero(group))
        folds[rows] = np.arange(len(rows)) % _INNER_FOLDS
    targets, weights = problem.hard_targets, problem.balanced
    for k in range(_INNER_FOLDS):
        inside = folds == k
        rest = ~inside if targets[~inside].any() else np.ones(len(inside), dtype=bool)  # a single labelled row
        head = _logistic(problem.x[rest], targets[rest], weights[rest] / weights[rest].sum(), penalty)
        own = head.score(problem.x[inside])
        scores[inside] = own - np.median(own)
    return scores


def _logistic(x: Any, target: Flags, weights: Floats, penalty: float) -> Head:
    from sklearn.linear_model import LogisticRegression

    # scikit-learn's C multiplies the sum over rows; weights that sum to 1 make it the same for any number of rows.
    model = LogisticRegression(C=1.0 / penalty, max_iter=200, tol=1e-3).fit(x, target, weights)
    return _linear(model.coef_[0], float(model.intercept_[0]))


def _linear(weight: npt.NDArray[Any], bias: float) -> Linear:
    return Linear(weight.astype(np.float32), np.array([bias], dtype=np.float32))


HEADS: dict[str, Callable[[HeadProblem], Head]] = {
    "self_consistent": self_consistent,
    "logistic": logistic,
    "weighted_logistic": weighted_logistic,
}
SPARSE = ("logistic", "weighted_logistic")
"""Heads that take word counts as a sparse matrix."""

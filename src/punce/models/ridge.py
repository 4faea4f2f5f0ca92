"""Self-consistent ridge regression: unlabelled rows' targets agree with the scores they get when left out.

A ridge regression of labelled (target 1) against unlabelled rows (target 0), both groups weighing one half. Scores of
rows left out one at a time have a closed form, so that penalties are compared by the AUC of labelled against unlabelled
rows without any further fit. Then, a few times, the unlabelled rows' targets become the probabilities that their own
left-out scores give them, shifted so that their mean is the prior. In-sample scores would confirm themselves.

Shapes: n rows, M features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from punce.judging.ranking import auc_between

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)  # in units of the largest eigenvalue
_ROUNDS = 4
STEEPNESS = 3.0  # log-odds that one standard deviation of the unlabelled rows' scores stands for
_LEAST_FREE = 1e-3  # of 1 − leverage: a row that decides its own score alone has no score without itself
TINY = 1e-12  # where all rows are alike


class _Spectrum:
    """Weighted ridge regressions of one set of rows on their features, for any target and penalty.

    Shape: features (n, M), weights (n,) with sum 1.
    """

    def __init__(self, features: Floats, weights: Floats) -> None:
        self._weights = weights
        self._mean = weights @ features
        features = features - self._mean
        values, self._vectors = np.linalg.eigh(features.T @ (weights[:, None] * features))
        self._rotated = features @ self._vectors
        values = np.maximum(values, 0.0)
        self.inverses = [1.0 / (values + ridge * max(float(values[-1]), TINY)) for ridge in RIDGES]
        """One for each penalty. Shape: (M,)."""

    def plane(self, target: Floats, inverse: Floats) -> tuple[Floats, float]:
        """Weight and bias on the features. Shape: (n,), (M,) -> (M,)."""
        weight = self._vectors @ self._solution(target, inverse)
        return weight, float(self._weights @ target - self._mean @ weight)

    def left_out(self, target: Floats, inverse: Floats) -> Floats:
        """Every row's score by the regression on all others, up to a constant. Shape: (n,) -> (n,)."""
        leverage = self._weights * ((self._rotated**2) @ inverse)
        centred = target - self._weights @ target
        scores = self._rotated @ self._solution(target, inverse)
        left_out: Floats = (scores - leverage * centred) / np.maximum(1.0 - leverage, _LEAST_FREE)
        return left_out

    def error(self, target: Floats, inverse: Floats) -> float:
        """Mean squared error of the scores of rows left out."""
        centred = target - self._weights @ target
        return float(self._weights @ (self.left_out(target, inverse) - centred) ** 2)

    def _solution(self, target: Floats, inverse: Floats) -> Floats:
        centred = target - self._weights @ target
        solution: Floats = inverse * (self._rotated.T @ (self._weights * centred))
        return solution


class Ridge:
    """Ridge regression on given features; `auc` is that of the best penalty.

    Shape: features (n, M), weights (n,) with sum 1, is_p (n,), truths (n,) of {1, 0, −1}.
    """

    def __init__(self, features: Floats, weights: Floats, is_p: Flags, truths: npt.NDArray[np.int8]) -> None:
        self._is_known = is_p | (truths != 0)
        self._start = (is_p | (truths > 0)).astype(np.float64)
        self._on = _Spectrum(features, weights)
        self.auc, self._inverse = -1.0, self._on.inverses[0]
        for inverse in self._on.inverses:
            left_out = self._on.left_out(self._start, inverse)
            auc = auc_between(left_out[is_p], left_out[~is_p])
            if auc > self.auc:
                self.auc, self._inverse = auc, inverse

    def solved(self, prior: float) -> tuple[Floats, float]:
        """Weight and bias on the features, the unknown rows' targets agreeing with their own left-out scores."""
        target, unknown = self._start.copy(), ~self._is_known
        for _ in range(_ROUNDS if unknown.any() else 0):
            scores = self._on.left_out(target, self._inverse)[unknown]
            target[unknown] = chances(STEEPNESS * scores / max(float(scores.std()), TINY), prior)
        return self._on.plane(target, self._inverse)


class Plane(NamedTuple):
    """A ridge regression and the squared error of rows left out. Shape: weight (M,)."""

    weight: Floats
    bias: float
    error: float


def regressed(features: Floats, target: Floats, weights: Floats) -> Plane:
    """The regression on given targets, with the penalty under which rows left out come nearest to theirs.

    Shape: features (n, M), target (n,), weights (n,) with sum 1.
    """
    on = _Spectrum(features, weights)
    errors = [on.error(target, inverse) for inverse in on.inverses]
    best = int(np.argmin(errors))
    return Plane(*on.plane(target, on.inverses[best]), errors[best])


def chances(scores: Floats, prior: float) -> Floats:
    """σ(score + shift), with the shift that makes their mean the prior."""
    from scipy.optimize import brentq
    from scipy.special import expit

    most = float(np.abs(scores).max()) + 40.0
    shift = brentq(lambda by: float(expit(scores + by).mean()) - prior, -most, most)
    shifted: Floats = expit(scores + shift)
    return shifted

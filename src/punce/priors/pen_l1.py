"""pen-L1 (Christoffel, Niu & Sugiyama, 2016, "Class-prior Estimation for Learning from Positive and Unlabeled Data").

π is the largest θ for which θ·p_P stays below p_U everywhere. "Everywhere" is tested with Gaussian bumps φ_l >= 0:
b_l(θ) = θ·mean_P φ_l − mean_U φ_l must not be positive. The penalised L1 divergence of their Sect. 4 is then

    penL1(θ) = (1/λ) Σ_l max(0, b_l)·b_l − θ + 1,        θ in [0, 1],

convex in θ; its minimiser is where the slope 2/λ·Σ_l max(0, b_l)·mean_P φ_l reaches 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from punce.priors.features import Float
from punce.priors.result import RawEstimate, bisect, bound_of, require_at_least
from punce.priors.sample import PriorEstimator, Sample

Indices = npt.NDArray[np.intp]

_NOISE = 0.3989
"""E max(0, N(0, 1)) = 1/√(2π)."""
_WIDTHS = (0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.7, 1.0)
"""Of a bump, in units of the median distance to a centre."""
_FOLDS = 5
_GRID = np.linspace(0.05, 1.0, 20)  # of θ, for the choice of the width only


class Means(NamedTuple):
    """Means of the bumps over labelled and unlabelled rows, with the sampling variances. Shape: (L,) each."""

    p: Float
    u: Float
    var_p: Float
    var_u: Float


@dataclass(frozen=True)
class PenL1(PriorEstimator):
    """Bumps sit on random rows of both groups; at most `most_rows` rows a side are used, and that is announced.

    The bumps' width is chosen by cross-validation: the b_l > 0 found on four folds must be found again on the fifth.
    The held-out objective is proportional to 1/λ for every λ, so cross-validating λ as well would always end at an
    end of its grid; instead λ is set from the sampling variance, so that noise alone, averaged, does not hold θ
    below the true share. The interval is the 5th to 95th percentile of `bootstrap` resamples.
    """

    has_classifier = False

    centres: int = 200
    most_rows: int = 4000
    bootstrap: int = 50

    def __post_init__(self) -> None:
        require_at_least(self, centres=1, most_rows=2, bootstrap=1)

    def estimate(self, sample: Sample, rng: np.random.Generator) -> RawEstimate:
        """The share of positives among the unlabelled rows of `sample`."""
        points, n_p, notes = sample.points(rng, self.most_rows)
        distances = self._squared_distances(points, n_p, rng)
        width, p, u = _best_width(distances, n_p, rng)
        value = _minimiser(_means(p, u))
        values = [_minimiser(_means(_redraw(p, rng), _redraw(u, rng))) for _ in range(self.bootstrap)]
        diagnostics = {"width_in_medians": width, "centres": distances.shape[1]}
        return RawEstimate.resampled(value, values, diagnostics, bound_of(value, 1e-6), notes)

    def _squared_distances(self, points: Float, n_p: int, rng: np.random.Generator) -> Float:
        """Squared distance of every row to every centre, in units of their median. Shape (n, L)."""
        half = self.centres // 2
        from_p = rng.permutation(n_p)[:half]
        from_u = n_p + rng.permutation(len(points) - n_p)[: self.centres - len(from_p)]
        squared = cdist(points, points[np.concatenate([from_p, from_u])], "sqeuclidean")
        median = float(np.median(squared))
        return squared / (median if median > 0 else 1.0)


def _best_width(squared: Float, n_p: int, rng: np.random.Generator) -> tuple[float, Float, Float]:
    fold = rng.permutation(len(squared)) % _FOLDS
    best: tuple[float, float, Float, Float] | None = None
    for width in _WIDTHS:
        bumps = np.exp(-squared / (2.0 * width * width))
        p, u = bumps[:n_p], bumps[n_p:]
        loss = _held_out_loss(p, u, fold[:n_p], fold[n_p:])
        if best is None or loss < best[0]:
            best = (loss, width, p, u)
    assert best is not None
    return best[1:]


def _held_out_loss(p: Float, u: Float, fold_p: Indices, fold_u: Indices) -> float:
    """½|b⁺|² − b⁺·b̃ over a grid of θ, b⁺ from the training folds, b̃ from the held-out one, per unit of |b̃|²."""
    loss = size = 0.0
    for k in range(_FOLDS):
        # A handful of rows can leave a side of a fold empty; such a fold says nothing.
        if not ((fold_p == k).any() and (fold_u == k).any() and (fold_p != k).any() and (fold_u != k).any()):
            continue
        b = _violations(p[fold_p != k].mean(axis=0), u[fold_u != k].mean(axis=0))
        held_out = _violations(p[fold_p == k].mean(axis=0), u[fold_u == k].mean(axis=0))
        positive = np.maximum(b, 0.0)
        loss += float(0.5 * (positive**2).sum() - (positive * held_out).sum())
        size += float((held_out**2).sum())
    return loss / size if size > 0 else 0.0


def _violations(p: Float, u: Float) -> Float:
    return np.asarray(_GRID[:, None] * p[None, :] - u[None, :], dtype=np.float64)


def _means(p: Float, u: Float) -> Means:
    return Means(p.mean(axis=0), u.mean(axis=0), p.var(axis=0) / len(p), u.var(axis=0) / len(u))


def _minimiser(means: Means) -> float:
    """The θ at which the penalty's slope reaches 1; λ and θ are settled together in a few rounds."""
    theta = 0.5
    for _ in range(10):
        noise = np.sqrt(theta**2 * means.var_p + means.var_u)
        penalty = 2.0 * _NOISE * float(noise @ means.p)
        theta = _where_slope_is(penalty, means)
    return theta


def _where_slope_is(penalty: float, means: Means) -> float:
    """Solve 2·Σ max(0, θ·p_l − u_l)·p_l = λ by bisection: the left side grows with θ."""

    def is_below(theta: float) -> bool:
        return 2.0 * float(np.maximum(theta * means.p - means.u, 0.0) @ means.p) < penalty

    return 1.0 if is_below(1.0) else 0.5 * sum(bisect(is_below, 1.0, 40))


def _redraw(rows: Float, rng: np.random.Generator) -> Float:
    return rows[rng.integers(0, len(rows), len(rows))]

"""KM1 and KM2 (Ramaswamy, Scott & Tewari, 2016, "Mixture Proportion Estimation via Kernel Embedding of
Distributions").

With kernel mean embeddings μ_U, μ_P, the point λμ_U + (1−λ)μ_P is the embedding of a distribution, hence inside the
hull of the sample's embeddings, up to λ* = 1/(1−π), and leaves it beyond. d(λ), its distance to the hull (their
C_S-distance), is convex; π is read off where its slope passes a threshold: KM1's is 1/√min(n_P, n_U), KM2's is
0.8·(slope at the start) + 0.2·‖μ_U − μ_P‖.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from punce.priors.features import Float, Float32
from punce.priors.result import Z_90, RawEstimate, bisect, bound_of, require_at_least
from punce.priors.sample import PriorEstimator, Sample

_CEILING = 0.98
"""Largest share searched (λ = 50). The usual λ <= 8 cannot answer more than 0.875."""
_HALVINGS = 8  # to 0.004, far below the method's own error
_WIDTHS = np.logspace(-1, 1, 5)  # multiples of the median distance
_START = 1.05  # the λ at which the slope "at the start" is measured; at 1 the distance is 0
_ITERATIONS = 200
_ACCURACY = 1e-3  # of a projection after so many iterations, in units of ‖μ_U − μ_P‖
_RESAMPLED_ROWS = 300  # a side: the spread over subsets is rescaled to the full sample


class Embedded(NamedTuple):
    """Rows in a finite piece of the kernel's feature space. Shape: points (n, r), mean_p (r,), mean_u (r,)."""

    points: Float
    mean_p: Float
    mean_u: Float
    n_p: int

    def target(self, lam: float) -> Float:
        """λμ_U + (1−λ)μ_P."""
        return lam * self.mean_u + (1.0 - lam) * self.mean_p


@dataclass(frozen=True)
class KM2(PriorEstimator):
    """Slope threshold 0.8·(slope at the start) + 0.2·‖μ_U − μ_P‖.

    At most `most_rows` rows a side (announced), features standardised and projected to 50 components. The Gaussian
    kernel's width is the one that maximises ‖μ_U − μ_P‖, as in the paper; the kernel is represented by `rank`
    Nyström features, so that a projection onto the hull costs O(n·rank) a step. The slope of d is exact (the
    envelope theorem), no difference quotient.

    The interval rescales the spread over `resamples` random subsets; it knows nothing of the method's bias, which
    dominates when features are many or noisy.
    """

    has_classifier = False

    most_rows: int = 2000
    rank: int = 200
    resamples: int = 6

    def __post_init__(self) -> None:
        require_at_least(self, most_rows=2, rank=1, resamples=2)

    def estimate(self, sample: Sample, rng: np.random.Generator) -> RawEstimate:
        """The share of positives among the unlabelled rows of `sample`."""
        points, n_p, notes = sample.points(rng, self.most_rows)
        p, u = points[:n_p], points[n_p:]
        width = _best_width(p, u, rng)
        if not _distinguishable(p, u, width, rng):
            # Then every share is possible; by definition π is the largest of them.
            return RawEstimate(1.0, 0.0, 1.0, {"kernel_width": width, "distinguishable": False}, "upper", notes)
        value, diagnostics = self._share(p, u, width, rng)
        half = self._half_width(p, u, width, rng)
        low, high = max(0.0, value - half), min(1.0, value + half)
        tolerance = _CEILING / 2**_HALVINGS
        bound = bound_of(value, tolerance, _CEILING - tolerance)
        return RawEstimate(value, low, high, {**diagnostics, "kernel_width": width}, bound, notes)

    def threshold(self, embedded: Embedded, start_slope: float) -> float:
        """The slope at which d(λ) is said to have left the hull."""
        return 0.8 * start_slope + 0.2 * float(np.linalg.norm(embedded.mean_u - embedded.mean_p))

    def _share(self, p: Float, u: Float, width: float, rng: np.random.Generator) -> tuple[float, dict[str, float]]:
        embedded = _embed(p, u, width, self.rank, rng)
        slope = _slopes(embedded)
        start = slope(_START)[1] / (_START - 1.0)
        threshold = self.threshold(embedded, start)
        # d is convex, so its slope passes the threshold once.
        low, high = bisect(lambda share: slope(1.0 / (1.0 - share))[0] <= threshold, _CEILING, _HALVINGS)
        return 0.5 * (low + high), {"threshold": threshold, "start_slope": start}

    def _half_width(self, p: Float, u: Float, width: float, rng: np.random.Generator) -> float:
        m_p, m_u = (min(_RESAMPLED_ROWS, max(2, len(side) // 2)) for side in (p, u))
        values = [
            self._share(rng.permutation(p)[:m_p], rng.permutation(u)[:m_u], width, rng)[0]
            for _ in range(self.resamples)
        ]
        # Subsets without replacement vary by √(1/m − 1/n); the full sample by √(1/n).
        # The smaller side decides: most of the noise is its own.
        n, m = min(len(p), len(u)), min(m_p, m_u)
        shrink = math.sqrt(m / max(1, n - m))
        return Z_90 * float(np.std(values, ddof=1)) * min(1.0, shrink)


@dataclass(frozen=True)
class KM1(KM2):
    """Slope threshold 1/√min(n_P, n_U)."""

    def threshold(self, embedded: Embedded, start_slope: float) -> float:
        """1/√min(n_P, n_U), or KM2's where the slope could hardly reach that: it stays below ‖μ_U − μ_P‖."""
        distance = float(np.linalg.norm(embedded.mean_u - embedded.mean_p))
        plain = 1.0 / math.sqrt(min(embedded.n_p, len(embedded.points) - embedded.n_p))
        return plain if plain <= 0.9 * distance else super().threshold(embedded, start_slope)


def _best_width(p: Float, u: Float, rng: np.random.Generator) -> float:
    """The multiple of the median distance that maximises ‖μ_U − μ_P‖, judged on at most 500 rows a side.

    The unbiased estimate of the squared distance is compared. The biased one counts every row's similarity to
    itself, which grows as kernels narrow and would pick the narrowest whenever labelled rows are few.
    """
    p, u = rng.permutation(p)[:500], rng.permutation(u)[:500]
    within_p, within_u, between = (cdist(a, b, "sqeuclidean") for a, b in ((p, p), (u, u), (p, u)))
    median = math.sqrt(float(np.median(between))) or 1.0

    def distance(multiple: float) -> float:
        scale = 2.0 * (multiple * median) ** 2
        pp, uu, pu = (np.exp(-squared / scale) for squared in (within_p, within_u, between))
        return _off_diagonal_mean(pp) + _off_diagonal_mean(uu) - 2.0 * float(pu.mean())

    return max((float(w) for w in _WIDTHS), key=distance) * median


def _off_diagonal_mean(kernel: Float) -> float:
    n = len(kernel)
    return float(kernel.sum() - n) / (n * (n - 1)) if n > 1 else 0.0


def _distinguishable(p: Float, u: Float, width: float, rng: np.random.Generator) -> bool:
    """A permutation test at the 5 % level of μ_P = μ_U, on at most 500 rows a side."""
    p, u = rng.permutation(p)[:500], rng.permutation(u)[:500]
    kernel = _gaussian(both := np.concatenate([p, u]), both, width)
    signs = np.concatenate([np.full(len(p), -1.0 / len(p)), np.full(len(u), 1.0 / len(u))])
    shuffled = rng.permuted(np.tile(signs, (19, 1)), axis=1)
    return bool(float(signs @ kernel @ signs) > float(((shuffled @ kernel) * shuffled).sum(axis=1).max()))


def _embed(p: Float, u: Float, width: float, rank: int, rng: np.random.Generator) -> Embedded:
    """Nyström features on random landmarks, half from each side."""
    from_p = min(len(p), max(rank // 2, rank - len(u)))
    landmarks = np.concatenate([rng.permutation(p)[:from_p], rng.permutation(u)[: rank - from_p]])
    kernel = _gaussian(landmarks, landmarks, width)
    values, vectors = np.linalg.eigh(kernel)
    # Directions that the landmarks hardly span would be divided by rounding noise.
    kept = values > 1e-8 * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept])
    points = _gaussian(np.concatenate([p, u]), landmarks, width) @ basis
    return Embedded(points, points[: len(p)].mean(axis=0), points[len(p) :].mean(axis=0), len(p))


def _gaussian(a: Float, b: Float, width: float) -> Float:
    return np.asarray(np.exp(-cdist(a, b, "sqeuclidean") / (2.0 * width * width)), dtype=np.float64)


def _slopes(embedded: Embedded) -> Callable[[float], tuple[float, float]]:
    """A function λ -> (d'(λ), d(λ)); each call starts from the weights of the last."""
    direction = embedded.mean_u - embedded.mean_p
    inside = _ACCURACY * float(np.linalg.norm(direction))
    points = embedded.points.astype(np.float32)
    step = 1.0 / float(np.linalg.norm(points.T @ points, 2))
    # Start at the weights of μ_U itself, the exact answer at λ = 1.
    weights = np.zeros(len(points), dtype=np.float32)
    weights[embedded.n_p :] = 1.0 / (len(weights) - embedded.n_p)

    def slope(lam: float) -> tuple[float, float]:
        nonlocal weights
        weights = _project(points, embedded.target(lam).astype(np.float32), weights, step)
        residual = embedded.target(lam) - weights.astype(np.float64) @ embedded.points
        distance = float(np.linalg.norm(residual))
        # Closer than the projection's own accuracy counts as inside, where the slope is 0.
        return (float(residual @ direction) / distance if distance > inside else 0.0), distance

    return slope


def _project(points: Float32, target: Float32, weights: Float32, step: float) -> Float32:
    """Nearest point of the hull to `target` by accelerated projected gradient with restarts; returns its weights."""
    ahead, momentum = weights, 1.0
    for _ in range(_ITERATIONS):
        gradient = points @ (ahead @ points - target)
        updated = _on_simplex(np.asarray(ahead - np.float32(step) * gradient, dtype=np.float32))
        if float((ahead - updated) @ (updated - weights)) > 0:  # momentum points uphill: restart it
            momentum = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        ahead = updated + np.float32((momentum - 1.0) / following) * (updated - weights)
        weights, momentum = updated, following
    return weights


def _on_simplex(v: Float32) -> Float32:
    """Euclidean projection onto {w >= 0, Σw = 1}."""
    ordered = np.sort(v)[::-1]
    excess = np.cumsum(ordered, dtype=np.float64) - 1.0
    ranks = np.arange(1, len(v) + 1)
    last = int(np.flatnonzero(ordered - excess / ranks > 0)[-1])
    return np.asarray(np.maximum(v - np.float32(excess[last] / (last + 1)), 0), dtype=np.float32)

"""DEDPUL: difference of estimated densities (Ivanov, 2020, "DEDPUL: Difference-of-Estimated-Densities-based PU
Learning").

Held-out P-vs-U scores reduce the rows to one dimension; there the densities f_P and f_U are estimated, their ratio
r = f_P/f_U is made monotone, and P(y=1|x) = min(1, α·r(x)) for a share α. Up to the true share the mean of these
posteriors over the unlabelled rows equals α; beyond it posteriors saturate at 1 and fall behind:
D(α) = α − mean_U min(1, α·r) leaves zero there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter1d
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression

from punce.errors import InputError
from punce.priors.features import Float
from punce.priors.result import RawEstimate, bisect, bound_of, require_at_least, require_one_of
from punce.priors.sample import PriorEstimator, Sample, Scores

_CELLS = 401
_SHARES = np.linspace(0.0, 1.0, 101)
_LAG = 5  # steps of the second difference: neighbours alone would follow the noise of the densities
_EM_STEP = 0.01
_SHARE_RULES = ("elbow", "em")
_EXTREME_RANK = 1e-4  # ranks 0 and 1 have infinite quantiles


class Densities(NamedTuple):
    """Rows per cell of a common grid over the transformed scores. Shape: p (k,), u (k,); width of a cell."""

    p: npt.NDArray[np.int64]
    u: npt.NDArray[np.int64]
    width: float


@dataclass(frozen=True)
class DEDPUL(PriorEstimator):
    """Also gives posteriors: ``diagnostics["posteriors"]`` holds P(y=1|x) of the unlabelled rows in row order.

    Scores are first mapped to normal quantiles of the balanced mixture of both groups, so any increasing map of them
    gives the same answer. `share` picks α from D:

    - ``"elbow"``: where D bends most (the paper's second-difference rule): where most rows saturate at once;
    - ``"em"``: expectation-maximisation from α = 1 until a step changes it by less than 0.01.

    The elbow had about a tenth less error than EM in benchmarks/priors.py, and a third less where the classes separate;
    both are in the diagnostics. The interval is the 5th to 95th percentile over `bootstrap` resamples of the scores.
    """

    reads = "scores"

    share: Literal["elbow", "em"] = "elbow"
    bandwidth: float = 1.06
    """Multiple of σ·n_P^(−1/5) (Silverman); one kernel for both densities, so that its blur cancels in the ratio."""
    bootstrap: int = 50

    def __post_init__(self) -> None:
        require_one_of("share", self.share, _SHARE_RULES)
        require_at_least(self, bootstrap=1)
        if self.bandwidth <= 0:
            raise InputError(f"DEDPUL needs bandwidth > 0, got {self.bandwidth}")

    def estimate(self, sample: Sample, rng: np.random.Generator) -> RawEstimate:
        """The share of positives among the unlabelled rows of `sample`, and their posteriors."""
        p, u = normal_quantiles(sample.scores)
        smoothing = self._smoothing(p)
        grid, cell_of_u = _grid(p, u, 3.0 * smoothing)
        ratio = _density_ratio(grid, smoothing)
        values = {"elbow": _elbow(ratio, grid.u), "em": _em(ratio, grid.u)}
        value = values[self.share]
        diagnostics: dict[str, Any] = {
            **{f"{name}_value": found for name, found in values.items()},
            "posteriors": posteriors(ratio, grid.u, value)[cell_of_u],
            "bandwidth": smoothing,
        }
        resampled = [self._resampled(grid, smoothing, rng) for _ in range(self.bootstrap)]
        return RawEstimate.resampled(value, resampled, diagnostics, bound_of(value, 0.005, 0.995), sample.scores.notes)

    def _smoothing(self, p: Float) -> float:
        quartiles = np.quantile(p, [0.25, 0.75])
        spread = min(float(p.std()), float(quartiles[1] - quartiles[0]) / 1.34) or float(p.std())
        return float(max(self.bandwidth * spread * len(p) ** -0.2, 0.03))

    def _resampled(self, grid: Densities, smoothing: float, rng: np.random.Generator) -> float:
        drawn = Densities(_redraw(grid.p, rng), _redraw(grid.u, rng), grid.width)
        ratio = _density_ratio(drawn, smoothing)
        return _elbow(ratio, drawn.u) if self.share == "elbow" else _em(ratio, drawn.u)


def normal_quantiles(scores: Scores) -> tuple[Float, Float]:
    """Scores as Φ⁻¹ of their mean rank among the labelled and among the unlabelled rows; both groups weigh the same."""
    sorted_p, sorted_u = np.sort(scores.p), np.sort(scores.u)

    def quantile(values: Float) -> Float:
        rank = 0.5 * (_mid_rank(values, sorted_p) + _mid_rank(values, sorted_u))
        return np.asarray(norm.ppf(np.clip(rank, _EXTREME_RANK, 1.0 - _EXTREME_RANK)), dtype=np.float64)

    return quantile(scores.p), quantile(scores.u)


def posteriors(ratio: Float, u: npt.NDArray[np.int64], share: float) -> Float:
    """P(y=1) per cell: min(1, a·r) with `a` such that the mean over the unlabelled rows is `share`. Shape (k,)."""
    weights = u / u.sum()

    def is_below(a: float) -> bool:
        return float(weights @ np.minimum(1.0, a * ratio)) < share

    high = 1.0
    while is_below(high) and high < 1e9:  # bounded: where the ratio is 0, no factor reaches the share
        high *= 2.0
    return np.minimum(1.0, bisect(is_below, high, 60)[1] * ratio)


def _mid_rank(values: Float, reference: Float) -> Float:
    at_most = np.searchsorted(reference, values, side="right")
    below = np.searchsorted(reference, values, side="left")
    return np.asarray(0.5 * (at_most + below) / len(reference), dtype=np.float64)


def _grid(p: Float, u: Float, margin: float) -> tuple[Densities, npt.NDArray[np.intp]]:
    low = min(p.min(), u.min()) - margin
    width = (max(p.max(), u.max()) + margin - low) / (_CELLS - 1)
    cell_p, cell_u = (np.rint((t - low) / width).astype(np.intp) for t in (p, u))
    counts = [np.bincount(cells, minlength=_CELLS).astype(np.int64) for cells in (cell_p, cell_u)]
    return Densities(counts[0], counts[1], float(width)), cell_u


def _density_ratio(grid: Densities, smoothing: float) -> Float:
    """Monotone f_P/f_U per cell; the weights of the isotonic fit are where rows actually are."""
    sigma = smoothing / grid.width
    f_p, f_u = (gaussian_filter1d(cells / cells.sum(), sigma, mode="constant") for cells in (grid.p, grid.u))
    # Bounded: where f_U is 0 up to rounding, the ratio says only "far above".
    raw = np.minimum(f_p / np.maximum(f_u, 1e-12), 1e4)
    fitted = IsotonicRegression().fit_transform(np.arange(_CELLS), raw, sample_weight=f_p + f_u + 1e-12)
    return np.asarray(fitted, dtype=np.float64)


def _elbow(ratio: Float, u: npt.NDArray[np.int64]) -> float:
    d = _SHARES - np.minimum(1.0, _SHARES[:, None] * ratio[None, :]) @ (u / u.sum())  # D(α), shape (101,)
    # Beyond α = 1 nothing is defined; D continued by its last slope lets an elbow lie close to 1.
    beyond = d[-1] + (d[-1] - d[-2]) * np.arange(1, _LAG + 1)
    extended = np.concatenate([np.zeros(_LAG), d, beyond])
    bend = extended[2 * _LAG :] - 2.0 * extended[_LAG:-_LAG] + extended[: -2 * _LAG]
    return 1.0 if bend.max() <= 1e-9 else float(_SHARES[int(bend.argmax())])


def _em(ratio: Float, u: npt.NDArray[np.int64]) -> float:
    weights = u / u.sum()
    share = 1.0
    for _ in range(1000):
        updated = float(weights @ np.minimum(1.0, share * ratio))
        if abs(share - updated) < _EM_STEP:
            break
        share = updated
    return min(1.0, share)


def _redraw(cells: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    return rng.multinomial(int(cells.sum()), cells / cells.sum())

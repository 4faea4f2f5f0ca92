"""Best bin estimation (Garg et al., 2021, "Mixture Proportion Estimation and PU Learning: A Modern Approach").

For every threshold c, the share of unlabelled rows above it is q_U(c) >= π·q_P(c), so the ratio q_U/q_P is an upper
bound of π, and it is tight where everything above c is positive. BBE (their Algorithm 1) takes the ratio at the
threshold with the smallest *upper confidence bound* of the ratio, which keeps it away from thresholds that so few rows
pass that the ratio is noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from punce.errors import InputError
from punce.priors.features import Float
from punce.priors.result import Z_90, RawEstimate, bound_of, require_at_least, require_one_of
from punce.priors.sample import PriorEstimator, Sample, Scores
from punce.priors.score_counts import Above, ScoreCounts, count, wilson

_PENALTIES = ("wilson", "hoeffding")


@dataclass(frozen=True)
class BBE(PriorEstimator):
    """Reads scores only by rank: any increasing map of them gives the same answer.

    `penalty` is the confidence bound that chooses the threshold:

    - ``"wilson"``: upper Wilson bound of q_U over lower Wilson bound of q_P, at `z` standard errors. It shrinks where
      shares are small, so small priors are not drowned by a bound made for shares near one half.
    - ``"hoeffding"``: the paper's q_U/q_P + (1+γ)(√(ln(4/δ)/2n_P) + √(ln(4/δ)/2n_U))/q_P, γ = 0.01, δ = `delta`.

    The interval is the 5th to 95th percentile over `bootstrap` resamples, each choosing its threshold anew, widened
    to the Wilson interval at the chosen threshold. It is asymmetric: down for thresholds that a little more
    data would have preferred, up for the sampling noise of the labelled rows. It cannot show that *no* threshold
    isolates positives (overlapping classes): then even `low` may be too high.
    """

    reads = "scores"

    penalty: Literal["wilson", "hoeffding"] = "wilson"
    z: float = 3.5
    delta: float = 0.1
    bootstrap: int = 200

    def __post_init__(self) -> None:
        require_one_of("penalty", self.penalty, _PENALTIES)
        require_at_least(self, bootstrap=1)
        if self.z <= 0 or not 0 < self.delta < 1:
            raise InputError(f"BBE needs z > 0 and 0 < delta < 1, got {self.z}, {self.delta}")
        idle = "delta" if self.penalty == "wilson" else "z"
        if getattr(self, idle) != getattr(BBE, idle):
            raise InputError(f"{idle}={getattr(self, idle)} has no effect with penalty={self.penalty!r}; leave it out")

    def estimate(self, sample: Sample, rng: np.random.Generator) -> RawEstimate:
        """The share of positives among the unlabelled rows of `sample`."""
        return self.from_scores(sample.scores, rng)

    def from_scores(self, scores: Scores, rng: np.random.Generator) -> RawEstimate:
        """The estimate from held-out scores alone."""
        counts = count(scores)
        best = int(self._choose(counts.above, counts))
        value = float(_ratio(counts.above, counts)[best])
        low, high = self._interval(counts, best, rng)
        diagnostics = {
            "threshold": float(counts.thresholds[best]),
            "labelled_above": float(counts.above.p[best] / counts.n_p),
            "unlabelled_above": float(counts.above.u[best] / counts.n_u),
            "thresholds": len(counts.thresholds),
        }
        return RawEstimate(value, min(low, value), max(high, value), diagnostics, bound_of(value), scores.notes)

    def _interval(self, counts: ScoreCounts, best: int, rng: np.random.Generator) -> tuple[float, float]:
        # Each resample chooses its own threshold: the choice is part of the noise.
        drawn = counts.resampled(rng, self.bootstrap)
        chosen = self._choose(drawn, counts)[:, None]
        values = np.take_along_axis(_ratio(drawn, counts), chosen, axis=1)
        low, high = np.quantile(values, [0.05, 0.95])
        above = counts.above
        wilson_low = _wilson_ratio(above, counts, Z_90, -1)[best]
        wilson_high = _wilson_ratio(above, counts, Z_90, 1)[best]
        # Wilson's lower bound of a share of nothing is 0 up to rounding, which may fall below 0.
        return float(max(0.0, min(low, wilson_low))), float(min(1.0, max(high, wilson_high)))

    def _choose(self, above: Above, counts: ScoreCounts) -> npt.NDArray[np.intp]:
        """Index of the threshold with the smallest upper bound of the ratio. Shape: (..., k) -> (...)."""
        if self.penalty == "wilson":
            return np.asarray(_wilson_ratio(above, counts, self.z, 1).argmin(axis=-1))
        slack = 1.01 * sum(math.sqrt(math.log(4 / self.delta) / (2 * n)) for n in (counts.n_p, counts.n_u))
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = (above.u / counts.n_u + slack) / (above.p / counts.n_p)
        return np.asarray(np.where(above.p > 0, bound, np.inf).argmin(axis=-1))


def _wilson_ratio(above: Above, counts: ScoreCounts, z: float, side: int) -> Float:
    u = wilson(above.u, counts.n_u, z, side)
    p = wilson(above.p, counts.n_p, z, -side)
    # The lower bound of a share of nothing is 0 up to rounding.
    return np.where(above.p > 0, u / np.maximum(p, 1e-12), np.inf)


def _ratio(above: Above, counts: ScoreCounts) -> Float:
    """q_U / q_P, at most 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (above.u / counts.n_u) / (above.p / counts.n_p)
    return np.where(above.p > 0, np.minimum(ratio, 1.0), 1.0)

"""Elkan & Noto (2008): the label frequency as the mean probability of being labelled among the positives.

If labels are a random sample of the positives, g(x) = P(labelled | x) equals c·P(y=1 | x); where the classes do not
overlap, g is c on every positive, so c = E[g | labelled] (their estimator e1) and π = (n_P/n_U)(1 − c)/c. Overlap
makes g smaller on positives, c too small and the prior too large: read the value as an upper bound there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.isotonic import IsotonicRegression

from punce.priors.features import Float
from punce.priors.result import RawEstimate, require_at_least, share_of_label_frequency
from punce.priors.sample import PriorEstimator, Sample
from punce.priors.score_counts import ScoreCounts, count


@dataclass(frozen=True)
class ElkanNoto(PriorEstimator):
    """Isotonic regression calibrates the scores on one half of the rows; the positives of the other half are averaged.

    Calibration makes the answer independent of the score's scale: any increasing map gives the same result. The
    interval is the 5th to 95th percentile of `bootstrap` resamples.
    """

    reads = "scores"

    splits: int = 10
    bootstrap: int = 100

    def __post_init__(self) -> None:
        require_at_least(self, splits=1, bootstrap=1)

    def estimate(self, sample: Sample, rng: np.random.Generator) -> RawEstimate:
        """The share of positives among the unlabelled rows of `sample`."""
        counts = count(sample.scores)
        c = float(np.mean([_held_out_frequency(counts.p, counts.u, rng) for _ in range(self.splits)]))
        value, bound = share_of_label_frequency(c, counts.n_p, counts.n_u)
        resampled = [share_of_label_frequency(c_b, counts.n_p, counts.n_u)[0] for c_b in self._resampled(counts, rng)]
        diagnostics = {"mean_probability_on_positives": c}
        return RawEstimate.resampled(value, resampled, diagnostics, bound, sample.scores.notes)

    def _resampled(self, counts: ScoreCounts, rng: np.random.Generator) -> list[float]:
        p = rng.multinomial(counts.n_p, counts.p / counts.n_p, self.bootstrap)
        u = rng.multinomial(counts.n_u, counts.u / counts.n_u, self.bootstrap)
        return [_held_out_frequency(p_b, u_b, rng) for p_b, u_b in zip(p, u, strict=True)]


def _held_out_frequency(p: npt.NDArray[np.integer], u: npt.NDArray[np.integer], rng: np.random.Generator) -> float:
    """E[g | labelled] by halves: calibrate on one, average over the labelled rows of the other, and swap."""
    p = np.append(p, 0)  # the cell below every labelled row
    # Halving the counts of each cell at random is halving the rows, at the cost of the cells.
    first_p, first_u = rng.binomial(p, 0.5), rng.binomial(u, 0.5)
    halves = ((first_p, first_u), (p - first_p, u - first_u))
    total = 0.0
    for (fit_p, fit_u), (use_p, _) in (halves, halves[::-1]):
        total += float(_calibrated(fit_p, fit_u) @ use_p)
    return total / float(p.sum())


def _calibrated(p: npt.NDArray[np.integer], u: npt.NDArray[np.integer]) -> Float:
    """P(labelled | cell), falling from the top cell down; empty cells are interpolated."""
    weight = p + u
    seen = weight > 0
    if not seen.any():  # a half of a handful of rows can be empty
        return np.zeros(len(p))
    cells = np.arange(len(p), dtype=np.float64)
    model = IsotonicRegression(increasing=False, y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(cells[seen], p[seen] / weight[seen], sample_weight=weight[seen])
    return np.asarray(model.predict(cells), dtype=np.float64)

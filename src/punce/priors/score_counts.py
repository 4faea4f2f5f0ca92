"""How many labelled and unlabelled rows score above each threshold: all that rank-based estimators need.

Counts at no more than a thousand thresholds stand for the scores, so that a bootstrap over a million rows is a
multinomial draw over a thousand cells. Thresholds are labelled rows' own scores, picked by rank: any strictly
increasing map of the scores gives the same counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from punce.priors.features import Float
from punce.priors.sample import Scores

Counts = npt.NDArray[np.int64]
MAX_THRESHOLDS = 1000


class Above(NamedTuple):
    """Rows at or above each threshold, from the highest threshold down. Shape: (..., k) each."""

    p: Counts
    u: Counts


@dataclass(frozen=True)
class ScoreCounts:
    """Rows per cell between thresholds, from the top down.

    Shape: p (k,) labelled rows, u (k + 1,) unlabelled rows, the last cell below every threshold;
    thresholds (k,) decreasing.
    """

    p: Counts
    u: Counts
    thresholds: Float

    @property
    def n_p(self) -> int:
        """Labelled rows."""
        return int(self.p.sum())

    @property
    def n_u(self) -> int:
        """Unlabelled rows."""
        return int(self.u.sum())

    @property
    def above(self) -> Above:
        """The counts at or above each threshold."""
        return Above(np.cumsum(self.p), np.cumsum(self.u[:-1]))

    def resampled(self, rng: np.random.Generator, size: int) -> Above:
        """Counts above each threshold in `size` bootstrap samples of both groups. Shape: (size, k) each."""
        p = rng.multinomial(self.n_p, self.p / self.n_p, size)
        u = rng.multinomial(self.n_u, self.u / self.n_u, size)
        return Above(np.cumsum(p, axis=1), np.cumsum(u[:, :-1], axis=1))


def count(scores: Scores) -> ScoreCounts:
    """Sort once, keep every labelled score as a threshold or, if there are too many, evenly ranked ones."""
    # Labelled scores alone are candidates: between two of them q_P is constant and q_U only grows.
    p = np.sort(scores.p)[::-1]
    if len(p) > MAX_THRESHOLDS:
        ranks = np.ceil(np.arange(1, MAX_THRESHOLDS + 1) * len(p) / MAX_THRESHOLDS).astype(np.intp) - 1
        p = p[ranks]
    thresholds = np.unique(p)[::-1]
    return ScoreCounts(
        _cells(scores.p, thresholds)[:-1],  # the lowest threshold is the lowest labelled score: nothing lies below
        _cells(scores.u, thresholds),
        thresholds,
    )


def _cells(scores: Float, thresholds: Float) -> Counts:
    """Rows per cell. A million scores against a thousand thresholds: searching beats sorting them all."""
    below = len(thresholds) - np.searchsorted(thresholds[::-1], scores, side="right")
    return np.bincount(below, minlength=len(thresholds) + 1).astype(np.int64)


def wilson(successes: npt.NDArray[np.integer], trials: int, z: float, side: int) -> Float:
    """Wilson's score bound for a share, upper (side = 1) or lower (side = -1); sensible also at shares of 0 and 1."""
    share = successes / trials
    centre = share + z * z / (2 * trials)
    half = z * np.sqrt(share * (1 - share) / trials + z * z / (4.0 * trials * trials))
    return np.asarray((centre + side * half) / (1 + z * z / trials), dtype=np.float64)

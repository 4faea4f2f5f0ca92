"""A quick test of the assumption every estimator makes: the labelled rows are a random sample of the positives.

Look at the rows that score above the median labelled row. If classes are separable there, every unlabelled row among
them is a positive, and if labels were given at random, labelled and unlabelled ones are alike: the held-out P-vs-U
score must not rank one above the other. The test is the Mann-Whitney statistic of the scores inside that region.

What it detects: labelling that prefers some positives (easy cases, one hospital, one period): the score then learns
what was preferred and ranks labelled rows above hidden positives even at the top. What it cannot detect: positives of
a kind that is never labelled and lies far from the labelled ones; they look like negatives, in principle and to any
test. What it can mistake: strongly overlapping classes leave negatives in the region, which are ranked lower too. In
both cases the estimate needs a second look, so the warning names both.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from punce.priors.features import Float
from punce.priors.sample import Scores

_ONE_SIDED_1_PERCENT = 2.326
_WORTH_SAYING = 0.57
_LEAST_ROWS = 10


class TopRegion(NamedTuple):
    """How well the score still separates labelled from unlabelled rows above the median labelled row."""

    auc: float
    z: float

    @property
    def suspicious(self) -> bool:
        """More separable than chance at the 1 % level, and enough to matter."""
        return self.z > _ONE_SIDED_1_PERCENT and self.auc > _WORTH_SAYING


def top_region(scores: Scores) -> TopRegion | None:
    """The test; None when too few rows lie in the region to say anything."""
    median = np.median(scores.p)
    p, u = scores.p[scores.p >= median], scores.u[scores.u >= median]
    if min(len(p), len(u)) < _LEAST_ROWS:
        return None
    auc = area_under_curve(p, u)
    return TopRegion(auc, (auc - 0.5) / math.sqrt((len(p) + len(u) + 1) / (12.0 * len(p) * len(u))))


def area_under_curve(p: Float, u: Float) -> float:
    """P(labelled score > unlabelled score), ties count half."""
    ranks = rankdata(np.concatenate([p, u]))
    return float((ranks[: len(p)].sum() - len(p) * (len(p) + 1) / 2.0) / (len(p) * len(u)))

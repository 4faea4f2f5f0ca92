"""Warnings a person can act on: what was seen, what it may mean, what to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from punce.errors import number_of
from punce.priors.features import Float
from punce.priors.result import PriorEstimate, RawEstimate
from punce.priors.sample import EqualScoresError, Sample, Scores

FEW_POSITIVES = 30
WIDE_INTERVAL = 0.3
DISAGREEMENT = 0.15  # between the largest and the smallest estimate
_HARDLY_SEPARABLE = 0.55  # AUC
_ONE_SIDED_1_PERCENT = 2.326  # normal quantile
_WORTH_SAYING = 0.57  # AUC: among many rows a smaller one is significant too, but too weak to matter
_LEAST_ROWS = 10


def about_sample(sample: Sample) -> list[str]:
    """What holds whatever the method."""
    if sample.n_p >= FEW_POSITIVES:
        return []
    labelled = number_of(sample.n_p, "labelled positive", "labelled positives")
    return [
        f"only {labelled}: an estimate from fewer than {FEW_POSITIVES} is a guess; label more "
        "rows, or set the prior by hand if you know it"
    ]


def about_scores(sample: Sample) -> list[str]:
    """Whether the scores can carry an estimate, and whether the labelled rows look like a random sample."""
    try:
        scores = sample.scores
    except EqualScoresError:
        if sample.X is None:  # the scores were all that there is
            raise
        # methods that read features alone have an answer all the same
        return [
            "all scores are equal: they cannot show whether the features tell labelled from unlabelled rows, nor "
            "whether the labelled rows are a random sample; check a few rows by hand before you believe an estimate"
        ]
    cautions = []
    auc = area_under_curve(scores.p, scores.u)
    if auc < _HARDLY_SEPARABLE:
        cautions.append(
            f"held-out scores hardly rank labelled rows above unlabelled ones (AUC {auc:.2f}, chance is 0.50): either "
            "nearly every unlabelled row is positive, or the features say nothing about the class and the share cannot "
            "be known from them; check with a few rows labelled by hand, or give better features"
        )
    region = top_region(scores)
    if region is not None and region.suspicious:
        cautions.append(
            "the labelled rows may not be a random sample of the positives: even among the rows that look most "
            f"positive, labelled and unlabelled ones can be told apart (AUC {region.auc:.2f}, z {region.z:.1f}); "
            "if labelling preferred some kind of positive, the share is likely larger than estimated; if the classes "
            "overlap strongly, it may be smaller; leave out columns that only tell how rows were labelled, or label "
            "a random sample"
        )
    return cautions


def about_estimate(method: str, estimate: RawEstimate) -> list[str]:
    """What the estimate itself shows."""
    if estimate.reason:
        return [
            f"{method}: the share cannot be known from these rows: {estimate.reason}; check a few rows by hand, give "
            "better columns, or set the prior by hand if you know it"
        ]
    cautions = []
    if estimate.bound == "upper":
        cautions.append(
            f"{method}: the estimate {estimate.value:.2f} is the largest this method can give, so the data did not "
            "choose it: nearly all unlabelled rows are positive, or the method finds nothing that tells them from "
            "the labelled ones; compare the other methods (punce prior; method='all' in Python)"
        )
    if estimate.bound == "lower":
        cautions.append(
            f"{method}: the estimate {estimate.value:.2f} is the smallest this method can give: hardly any unlabelled "
            "row looks like the labelled ones; check that both come from the same source (units, period, "
            "preprocessing) before you believe it"
        )
    return cautions + about_width(method, estimate.low, estimate.high)


def about_width(method: str, low: float, high: float) -> list[str]:
    """Whether the interval is of use."""
    if high - low <= WIDE_INTERVAL:
        return []
    return [
        f"{method}: the 90 % interval of the share of positives, {low:.2f} to {high:.2f}, is too wide to plan with; "
        "more labelled positives or better features narrow it"
    ]


def about_agreement(estimates: Sequence[PriorEstimate], spread: float, who: str) -> list[str]:
    """Whether the estimators agree; `who` says which these are."""
    if len(estimates) < 2 or spread <= DISAGREEMENT:
        return []
    by_value = sorted(estimates, key=lambda estimate: estimate.value)
    low, high = by_value[0], by_value[-1]
    return [
        f"{who} disagree by {spread:.2f}: {low.method} says {low.value:.2f}, {high.method} "
        f"{high.value:.2f} (median {np.median([e.value for e in estimates]):.2f}); kernel and tree methods on raw "
        "features err most, so trust those on scores first (combined, roc, bbe, dedpul), and label a random sample of "
        "unlabelled rows by hand to settle it"
    ]


class TopRegion(NamedTuple):
    """How well the score still separates labelled from unlabelled rows above the median labelled row."""

    auc: float
    z: float

    @property
    def suspicious(self) -> bool:
        """More separable than chance at the 1 % level, and enough to matter."""
        return self.z > _ONE_SIDED_1_PERCENT and self.auc > _WORTH_SAYING


def top_region(scores: Scores) -> TopRegion | None:
    """A quick test whether the labelled rows are a random sample of the positives; None where too few rows allow it.

    Look at the rows that score above the median labelled row. If classes are separable there, every unlabelled row
    among them is a positive, and if labels were given at random, labelled and unlabelled ones are alike: the held-out
    P-vs-U score must not rank one above the other. The test is the Mann-Whitney statistic of the scores inside that
    region.

    What it detects: labelling that prefers some positives (easy cases, one hospital, one period): the score then
    learns what was preferred and ranks labelled rows above hidden positives even at the top. What it cannot detect:
    positives of a kind that is never labelled and lies far from the labelled ones; they look like negatives, in
    principle and to any test. What it can mistake: strongly overlapping classes leave negatives in the region, which
    are ranked lower too. In both cases the estimate needs a second look, so the warning names both.
    """
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

"""Warnings a person can act on: what was seen, what it may mean, what to do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from punce.priors.representative import area_under_curve, top_region
from punce.priors.result import Finding, PriorEstimate
from punce.priors.sample import Sample

FEW_POSITIVES = 30
WIDE_INTERVAL = 0.3
DISAGREEMENT = 0.15
_HARDLY_SEPARABLE = 0.55


def about_sample(sample: Sample) -> list[str]:
    """What holds whatever the method."""
    if sample.n_p >= FEW_POSITIVES:
        return []
    return [
        f"only {sample.n_p} labelled positives: an estimate from fewer than {FEW_POSITIVES} is a guess; label more "
        "rows, or set the prior by hand if you know it"
    ]


def about_scores(sample: Sample) -> list[str]:
    """Whether the scores can carry an estimate, and whether the labelled rows look like a random sample."""
    cautions = []
    auc = area_under_curve(sample.scores.p, sample.scores.u)
    if auc < _HARDLY_SEPARABLE:
        cautions.append(
            f"labelled and unlabelled rows look almost alike (held-out AUC {auc:.2f}): either nearly every unlabelled "
            "row is positive, or the features say nothing about the class and the share cannot be known from them; "
            "check with a few rows labelled by hand, or give better features"
        )
    region = top_region(sample.scores)
    if region is not None and region.suspicious:
        cautions.append(
            "the labelled rows may not be a random sample of the positives: even among the rows that look most "
            f"positive, labelled and unlabelled ones can be told apart (AUC {region.auc:.2f}, z {region.z:.1f}); "
            "if labelling preferred some kind of positive, the share is likely larger than estimated; if the classes "
            "overlap strongly, it may be smaller; leave out columns that only tell how rows were labelled, or label "
            "a random sample"
        )
    return cautions


def about_finding(method: str, finding: Finding) -> list[str]:
    """What the estimate itself gives away."""
    cautions = []
    if finding.bound == "upper":
        cautions.append(
            f"{method}: the estimate {finding.value:.2f} is the largest this method can give, so the data did not "
            "choose it: nearly all unlabelled rows are positive, or the method finds nothing that tells them from "
            "the labelled ones; compare method='all'"
        )
    if finding.bound == "lower":
        cautions.append(
            f"{method}: the estimate {finding.value:.2f} is the smallest this method can give: hardly any unlabelled "
            "row looks like the labelled ones; check that both come from the same source (units, period, "
            "preprocessing) before you believe it"
        )
    if finding.high - finding.low > WIDE_INTERVAL:
        cautions.append(
            f"{method}: the 90 % interval {finding.low:.2f} to {finding.high:.2f} is too wide to plan with; more "
            "labelled positives or better features narrow it"
        )
    return cautions


def about_agreement(estimates: Sequence[PriorEstimate], spread: float) -> list[str]:
    """Whether the estimators tell the same story."""
    if len(estimates) < 2 or spread <= DISAGREEMENT:
        return []
    by_value = sorted(estimates, key=lambda estimate: estimate.value)
    low, high = by_value[0], by_value[-1]
    return [
        f"the estimators disagree by {spread:.2f}: {low.method} says {low.value:.2f}, {high.method} "
        f"{high.value:.2f} (median {np.median([e.value for e in estimates]):.2f}); kernel and tree methods on raw "
        "features err most, so trust those on scores first (bbe, tedn, dedpul), and label a random sample of "
        "unlabelled rows by hand to settle it"
    ]

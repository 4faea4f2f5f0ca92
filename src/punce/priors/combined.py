"""One estimate from several learners, with an interval that holds how far they disagree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from punce.priors import roc
from punce.priors.features import Float
from punce.priors.learners import learned_scores
from punce.priors.result import RawEstimate, bound_of
from punce.priors.sample import PriorEstimator, Sample, split_scores

GRID = np.linspace(0.0, 1.0, 1001)
_LEAST_SD = 0.005  # a narrower distribution would silence the others
_USELESS = 0.2  # how probable it is beforehand that the columns say nothing about the class
_LEAST_LOG_EVIDENCE = 4.6  # ln 100: among rows without any signal at most one run in a hundred reaches it


@dataclass(frozen=True)
class Combined(PriorEstimator):
    """The default: the mean of a mixture of what :mod:`~punce.priors.roc` says on the scores of several learners.

    Each learner gives a distribution over the share. They are mixed with weights (AUC − ½)⁴/standard deviation, the AUC
    of positives against negatives by the shapes that fit: a learner that leaves the classes mixed counts little, and
    where learners disagree the mixture is wide. The interval is its 5th to 95th percentile. (BBE had a part in the
    mixture before. It is too large where classes overlap, and added nothing elsewhere.)

    Where the scores give hardly any evidence (less than 100 to 1) that labelled and unlabelled rows differ, the share
    cannot be known: useless columns and a share near 1 look the same. Then the interval is [0, 1], ``reason`` says
    so, and the value moves to the middle with the probability that the columns are useless. Exact copies of labelled
    rows are known positives: the share is at least theirs.
    """

    reads = "scores"

    def estimate(self, sample: Sample, rng: np.random.Generator) -> RawEstimate:
        """The share of positives among the unlabelled rows of `sample`; only the learners' folds are random."""
        found = {
            name: roc.posterior(split_scores(scores, sample.is_p)) for name, scores in learned_scores(sample).items()
        }
        evidence = list(found.values())[-1].log_evidence  # the last are the mean scores, which decide
        parts = {name: np.interp(GRID, roc.CELLS, np.r_[0.0, np.cumsum(own.mass)]) for name, own in found.items()}
        separations = [max(own.auc - 0.5, 0.0) ** 4 for own in found.values()]
        useless = _USELESS / (_USELESS + (1.0 - _USELESS) * math.exp(min(evidence, 100.0)))
        pooled = (1.0 - useless) * pool(list(parts.values()), separations) + useless * GRID
        value = max(_mean(pooled), sample.copies.share)
        low, high = _interval(pooled)
        reason = "" if evidence >= _LEAST_LOG_EVIDENCE else _cannot(evidence)
        diagnostics: dict[str, Any] = {
            "parts": {name: [_mean(cdf), *_interval(cdf)] for name, cdf in parts.items()},
            "log_evidence": evidence,
            "copies": sample.copies.share,
        }
        low, high = (0.0, 1.0) if reason else (low, high)
        return RawEstimate(
            value,
            max(low, sample.copies.share),
            max(high, value),
            diagnostics,
            bound_of(value),
            sample.scores.notes,
            reason,
        )


def pool(cdfs: list[Float], trust: list[float]) -> Float:
    """The mixture of distributions over GRID, weights trust/standard deviation. Shape: (k) of (1001,) -> (1001,)."""
    sds = []
    for cdf in cdfs:
        second_moment = 1.0 - 2.0 * float(np.trapezoid(GRID * cdf, GRID))  # E[x²] = 1 − 2∫x·F(x)dx on [0, 1]
        sds.append(max(second_moment - _mean(cdf) ** 2, _LEAST_SD**2) ** 0.5)
    weights = np.array(trust) / np.array(sds)
    return np.asarray(weights @ np.array(cdfs) / weights.sum(), dtype=np.float64)


def _mean(cdf: Float) -> float:
    return 1.0 - float(np.trapezoid(cdf, GRID))


def _interval(cdf: Float) -> tuple[float, float]:
    low, high = np.interp([0.05, 0.95], cdf, GRID)
    return float(low), float(high)


def _cannot(log_evidence: float) -> str:
    odds = f"{np.exp(log_evidence):.1g}" if log_evidence < 0 else f"{np.exp(log_evidence):.0f}"
    return (
        f"held-out scores do not tell labelled from unlabelled rows (odds of {odds} to 1 that they do, 100 to 1 are "
        "asked for): nearly all unlabelled rows may be positive, or the columns may say nothing about the class"
    )

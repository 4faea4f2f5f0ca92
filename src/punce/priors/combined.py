"""One estimate from several learners and two estimators, with an interval that holds how far they disagree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from punce.priors import roc
from punce.priors.bbe import BBE, Z_90
from punce.priors.features import Float
from punce.priors.learners import learned_scores
from punce.priors.result import RawEstimate, bound_of, require_at_least
from punce.priors.sample import PriorEstimator, Sample, Scores, split_scores

GRID = np.linspace(0.0, 1.0, 1001)
_LEAST_SD = 0.005  # a narrower distribution would silence the others
_USELESS = 0.2  # how probable it is beforehand that the columns say nothing about the class
_LEAST_LOG_EVIDENCE = 4.6  # ln 100: among rows without any signal at most one run in a hundred reaches it


@dataclass(frozen=True)
class Combined(PriorEstimator):
    """The default: the mean of a mixture of what BBE and ROC say on the scores of several learners.

    BBE rests on a region of positives only and is too large where there is none; ROC rests on the usual shapes of
    score distributions and needs no such region. Each is a distribution over the share. They are mixed with weights
    1/standard deviation: a learner that leaves the classes mixed is unsure and counts little, and where learners or
    estimators disagree the mixture is wide. The interval is its 5th to 95th percentile.

    Where the scores give hardly any evidence (less than 100 to 1) that labelled and unlabelled rows differ, the share
    cannot be known: useless columns and a share near 1 look the same. Then the interval is [0, 1], ``reason`` says
    so, and the value moves to the middle with the probability that the columns are useless. Exact copies of labelled
    rows are known positives: the share is at least theirs.
    """

    reads = "scores"

    bootstrap: int = 100
    """Resamples for the interval of each BBE."""

    def __post_init__(self) -> None:
        require_at_least(self, bootstrap=1)

    def estimate(self, sample: Sample, rng: np.random.Generator) -> RawEstimate:
        """The share of positives among the unlabelled rows of `sample`."""
        parts: dict[str, Float] = {}
        evidence = 0.0
        for name, scores in learned_scores(sample).items():
            held_out = split_scores(scores, sample.is_p)
            mass, evidence = roc.posterior(held_out)  # the last are the mean scores, which decide
            parts[f"{name}, roc"] = np.interp(GRID, roc.CELLS, np.r_[0.0, np.cumsum(mass)])
            parts[f"{name}, bbe"] = _bbe(held_out, self.bootstrap, rng)
        useless = _USELESS / (_USELESS + (1.0 - _USELESS) * math.exp(min(evidence, 100.0)))
        pooled = (1.0 - useless) * pool(list(parts.values())) + useless * GRID
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


def pool(cdfs: list[Float]) -> Float:
    """The mixture of distributions over GRID, with weights 1/standard deviation. Shape: (k) of (1001,) -> (1001,)."""
    sds = []
    for cdf in cdfs:
        second_moment = 1.0 - 2.0 * float(np.trapezoid(GRID * cdf, GRID))  # E[x²] = 1 − 2∫x·F(x)dx on [0, 1]
        sds.append(max(second_moment - _mean(cdf) ** 2, _LEAST_SD**2) ** 0.5)
    weights = 1.0 / np.array(sds)
    return np.asarray(weights @ np.array(cdfs) / weights.sum(), dtype=np.float64)


def _bbe(scores: Scores, bootstrap: int, rng: np.random.Generator) -> Float:
    """BBE's value and interval as a distribution: half a normal on either side of the value, cut to [0, 1]."""
    found = BBE(bootstrap=bootstrap).from_scores(scores, rng)
    end = np.where(found.value > GRID, found.value - found.low, found.high - found.value)
    cdf = ndtr((GRID - found.value) / (np.maximum(end, _LEAST_SD) / Z_90))
    return np.asarray((cdf - cdf[0]) / (cdf[-1] - cdf[0]), dtype=np.float64)


def _mean(cdf: Float) -> float:
    return 1.0 - float(np.trapezoid(cdf, GRID))


def _interval(cdf: Float) -> tuple[float, float]:
    low, high = np.interp([0.05, 0.95], cdf, GRID)
    return float(low), float(high)


def _cannot(log_evidence: float) -> str:
    odds = f"{np.exp(log_evidence):.1g}" if log_evidence < 0 else f"{np.exp(log_evidence):.0f}"
    return (
        "held-out scores do not tell labelled from unlabelled rows (evidence "
        f"{odds} to 1, 100 are asked for): nearly all unlabelled rows may be positive, or the columns may say nothing "
        "about the class"
    )

"""From scores of rows that no stage had seen to everything a fit says: prior, probabilities, threshold, quality."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from punce.judging.calibration import PUCalibrator
from punce.judging.metrics import PUMetrics, collapse_reason, pu_metrics
from punce.judging.thresholds import Rule, choose_threshold
from punce.judging.used_prior import combine, is_given, usable_interval, usable_prior
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.priors import PriorEstimate, estimate_prior
from punce.scenario import Scenario

Floats = npt.NDArray[np.float64]
_DISAGREE = 0.15  # difference of the two priors from which a person should be told
_CONFIDENCE = 0.9  # of every interval, like those of the prior estimators
_FEWEST_FOR_PRIOR = 3  # held-out labelled rows; from fewer a second estimate of the prior says nothing


@dataclass(frozen=True)
class Judgement:
    """`held_out` are the probabilities of the held-out labelled and unlabelled rows, which the page draws."""

    prior: PriorEstimate
    second_prior: PriorEstimate | None
    calibrator: PUCalibrator
    threshold: float
    held_out: dict[str, Floats]
    metrics: PUMetrics
    warnings: tuple[str, ...]


def judge(
    scores: Floats,
    labels: Labels,
    first: PriorEstimate,
    rule: Rule,
    *,
    labelled_share: float,
    scenario: Scenario,
    sees_more: bool,
    seed: int,
) -> Judgement:
    """Judge held-out `scores` (m,) with `labels` (m,); `labelled_share` is n_P/n of all rows.

    `sees_more` says whether the scores can tell rows apart that the first prior's model could not: only then does
    the second estimate of the prior, made on these scores, join the first.
    """
    p, u = scores[labels == POSITIVE], scores[labels == UNLABELLED]
    second = None
    if not is_given(first) and len(p) >= _FEWEST_FOR_PRIOR:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they repeat those of the first estimate
            second = estimate_prior(None, labels, scores=scores, random_state=seed, scenario=scenario)
    prior = combine(first, second if sees_more else None)
    value = usable_prior(prior)
    calibrator = PUCalibrator.fit(p, u, value)
    held_out = {"positive": calibrator.probability(p), "unlabelled": calibrator.probability(u)}
    threshold = choose_threshold(rule, held_out["positive"], held_out["unlabelled"], value)
    cut = np.nextafter(calibrator.score_at(threshold), -np.inf)  # predict says positive *at* the threshold
    metrics = pu_metrics(
        p,  # scores rank without the ties that probabilities can have
        u,
        value,
        threshold=cut,
        scenario=scenario,
        labelled_share=labelled_share,
        prior_interval=usable_interval(prior),
        confidence=_CONFIDENCE,
        random_state=seed,
    )
    noted = _about_priors(first, second)
    if reason := collapse_reason(p, u, cut):
        noted = (*noted, f"the classifier does not tell rows apart: {reason}")
    return Judgement(prior, second, calibrator, threshold, held_out, replace(metrics, threshold=threshold), noted)


def _about_priors(first: PriorEstimate, second: PriorEstimate | None) -> tuple[str, ...]:
    if second is None or abs(second.value - first.value) <= _DISAGREE:
        return ()
    return (
        f"the share of positives among the unlabelled rows is {first.value:.2f} by a first model and "
        f"{second.value:.2f} by the learned scores: treat both with care, or give prior= if you know it",
    )

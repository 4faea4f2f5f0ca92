"""From scores of rows that no stage had seen to everything a fit says: prior, probabilities, threshold, quality.

Nothing that is reported was used to choose. The held-out rows are dealt into folds; for each fold calibration and
threshold are made again from the other folds, and say which rows of the fold are called positive. Quality is counted
on these calls. The calibration and threshold that predict new rows are made from all held-out rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from punce.judging.calibration import PUCalibrator, with_share
from punce.judging.metrics import Calls, Flags, PUMetrics, pu_metrics
from punce.judging.ranking import collapse_reason
from punce.judging.thresholds import Rule, choose_threshold, shortfall
from punce.judging.used_prior import combine, is_given, usable_interval, usable_prior
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.priors import PriorEstimate, estimate_prior
from punce.scenario import Scenario, Target

Floats = npt.NDArray[np.float64]
_DISAGREE = 0.15  # difference of the two priors from which a person should be told
_CONFIDENCE = 0.9  # of every interval, like those of the prior estimators
_FEWEST_FOR_PRIOR = 3  # held-out labelled rows; from fewer a second estimate of the prior says nothing
_FOLDS = 5


@dataclass(frozen=True)
class Judgement:
    """`held_out` are cross-fitted probabilities of the held-out labelled and unlabelled rows, which the page draws."""

    prior: PriorEstimate
    second_prior: PriorEstimate | None
    calibrator: PUCalibrator
    threshold: float
    held_out: dict[str, Floats]
    metrics: PUMetrics
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Mix:
    """The rows that probabilities and calls are for: U with a `labelled_share` of rows like P among them.

    `prior` is the share of positives among U, `share` that among the rows of the mix.
    """

    prior: float
    labelled_share: float

    @property
    def share(self) -> float:
        """β + (1 − β)π."""
        return self.labelled_share + (1.0 - self.labelled_share) * self.prior


def judge(
    scores: Floats,
    labels: Labels,
    first: PriorEstimate,
    rule: Rule,
    *,
    labelled_share: float,
    scenario: Scenario,
    target: Target,
    sees_more: bool,
    seed: int,
) -> Judgement:
    """Judge held-out `scores` (m,) with `labels` (m,); `labelled_share` is n_P/n of all rows.

    `sees_more` says whether the scores can tell rows apart that the first prior's model could not: only then does
    the second estimate of the prior, made on these scores, join the first.
    """
    p, u = scores[labels == POSITIVE], scores[labels == UNLABELLED]
    second = _second_prior(scores, labels, first, scenario, seed)
    prior = combine(first, second if sees_more else None)
    is_population = target == "population" and scenario == "single_set"  # in case_control U is the population
    mix = Mix(usable_prior(prior), labelled_share if is_population else 0.0)
    calibrator, threshold = _decide(p, u, mix, rule)
    calls, held_out = cross_fitted(p, u, mix, rule, calibrator.method, seed)
    metrics = pu_metrics(
        p,  # scores rank without the ties that probabilities can have
        u,
        mix.prior,
        calls=calls,
        scenario=scenario,
        target=target,
        labelled_share=labelled_share,
        prior_interval=usable_interval(prior),
        unknown=prior.reason,
        confidence=_CONFIDENCE,
        random_state=seed,
    )
    noted = (
        *_about_priors(first, second),
        shortfall(rule, held_out["positive"], held_out["unlabelled"], mix.labelled_share),
    )
    cut = np.nextafter(calibrator.score_at(threshold), -np.inf)  # predict says positive *at* the threshold
    if not metrics.unknown and (reason := collapse_reason(p, u, cut)):  # unknown says it already, and more
        noted = (*noted, f"the classifier does not tell rows apart: {reason}")
    metrics = replace(metrics, threshold=threshold)
    return Judgement(prior, second, calibrator, threshold, held_out, metrics, tuple(filter(None, noted)))


def cross_fitted(p: Floats, u: Floats, mix: Mix, rule: Rule, method: str, seed: int) -> tuple[Calls, dict[str, Floats]]:
    """Calls and probabilities of every held-out row by a calibration and a threshold that did not see it."""
    of_p, of_u = np.zeros(len(p)), np.zeros(len(u))
    called_p, called_u, by_rule = np.zeros(len(p), dtype=bool), np.zeros(len(u), dtype=bool), []
    for in_p, in_u in _folds(len(p), len(u), seed):
        # The method of the whole: a fold short of the limit for isotonic regression must not choose another.
        # A single row cannot be left out: it is judged by itself, and its wide intervals say how little that is.
        rest_p, rest_u = (p, u) if in_p.all() or in_u.all() else (p[~in_p], u[~in_u])
        calibrator, threshold = _decide(rest_p, rest_u, mix, rule, method)
        of_p[in_p], of_u[in_u] = calibrator.probability(p[in_p]), calibrator.probability(u[in_u])
        called_p[in_p], called_u[in_u] = of_p[in_p] >= threshold, of_u[in_u] >= threshold
        cut = calibrator.score_at(threshold)
        by_rule.append([(p >= cut).mean(), (u >= cut).mean()])
    calls = Calls(called_p, called_u, with_share(of_u, mix.share, mix.prior), np.array(by_rule).T)
    return calls, {"positive": of_p, "unlabelled": of_u}


def _decide(p: Floats, u: Floats, mix: Mix, rule: Rule, method: str = "auto") -> tuple[PUCalibrator, float]:
    """Probabilities for the rows of the mix, and from which of them a row is called positive."""
    calibrator = PUCalibrator.fit(p, u, mix.prior, method).shifted(mix.share)  # type: ignore[arg-type]
    return calibrator, choose_threshold(rule, calibrator.probability(p), calibrator.probability(u), mix.labelled_share)


def _folds(n_p: int, n_u: int, seed: int) -> Iterator[tuple[Flags, Flags]]:
    """For each fold the rows of P and of U in it."""
    rng = np.random.default_rng(seed)
    n_folds = min(_FOLDS, n_p, n_u)
    of_p, of_u = (rng.permutation(n) % n_folds for n in (n_p, n_u))
    for k in range(n_folds):
        yield of_p == k, of_u == k


def _second_prior(
    scores: Floats, labels: Labels, first: PriorEstimate, scenario: Scenario, seed: int
) -> PriorEstimate | None:
    """The prior once more, from the learned scores; None where it was given or the rows are too few."""
    if is_given(first) or int((labels == POSITIVE).sum()) < _FEWEST_FOR_PRIOR:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they repeat those of the first estimate
        return estimate_prior(None, labels, scores=scores, random_state=seed, scenario=scenario)


def _about_priors(first: PriorEstimate, second: PriorEstimate | None) -> tuple[str, ...]:
    if second is None or abs(second.value - first.value) <= _DISAGREE:
        return ()
    return (
        f"the share of positives among the unlabelled rows is {first.value:.2f} by a first model and "
        f"{second.value:.2f} by the learned scores: treat both with care, or give prior= if you know it",
    )

"""From scores of rows that no stage had seen to everything a fit says: prior, probabilities, threshold, quality.

Nothing that is reported was used to choose. The held-out rows are dealt into folds; for each fold calibration and
threshold are made again from the other folds, and say which rows of the fold are called positive. Quality is counted
on these calls. The calibration and threshold that predict new rows are made from all held-out rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.judging.calibration import PUCalibrator, with_share
from punce.judging.calls import Calls, Flags
from punce.judging.estimates import CONFIDENCE
from punce.judging.labelling import (
    Features,
    LabellingCheck,
    about_groups,
    by_groups,
    check_labelling,
    widened,
    widened_prior,
)
from punce.judging.metrics import PUMetrics, pu_metrics
from punce.judging.ranking import collapse_reason, is_beyond_chance
from punce.judging.thresholds import Rule, choose_threshold, shortfall
from punce.judging.used_prior import (
    combine,
    contradiction,
    disagreement,
    is_given,
    prior_from_both,
    unsupported,
    usable_interval,
    usable_prior,
)
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels
from punce.priors import PriorEstimate, estimate_quietly
from punce.priors.sample import EqualScoresError
from punce.scenario import Scenario, Target

Floats = npt.NDArray[np.float64]
_DISAGREE = 0.15  # difference of the two priors from which a person should be told
_FEWEST_FOR_PRIOR = 3  # held-out labelled rows; from fewer a second estimate of the prior says nothing
_FOLDS = 5
_FEWEST_JUDGED = 10  # rows that people judged, held out, from which on they correct the probabilities


@dataclass(frozen=True)
class Judgement:
    """`held_out` are cross-fitted probabilities of the held-out labelled and unlabelled rows, which the page draws.

    `scores` are what it rests on: held-out scores of rows that stand for a random sample of the positives, and of the
    unlabelled ones.
    `second_prior` is the prior by the learned scores, `both_prior` that with the labelled negatives, if there are any.
    """

    prior: PriorEstimate
    second_prior: PriorEstimate | None
    both_prior: PriorEstimate | None
    calibrator: PUCalibrator
    threshold: float
    held_out: dict[str, Floats]
    scores: dict[str, Floats]
    metrics: PUMetrics
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class JudgedScores:
    """Held-out scores of rows that people judged, and their class: they correct probabilities that the labels bias.

    `places` are their numbers among the held-out unlabelled rows. Shape: (k,) each.
    """

    scores: Floats
    is_positive: Flags
    places: npt.NDArray[np.intp]

    @classmethod
    def of(cls, scores: Floats, codes: Labels, truths: Labels) -> JudgedScores | None:
        """The judged ones of these rows; None where they are too few. Shape: (m,) each."""
        is_u = codes == UNLABELLED
        places = np.flatnonzero(truths[is_u] != UNLABELLED)
        if len(places) < _FEWEST_JUDGED:
            return None
        return cls(scores[is_u][places], truths[is_u][places] == POSITIVE, places)

    def outside(self, part: Flags) -> JudgedScores:
        """The judged rows that are not in this part of the unlabelled rows. Shape: part (n_U,)."""
        kept = ~part[self.places]
        return JudgedScores(self.scores[kept], self.is_positive[kept], self.places[kept])


@dataclass(frozen=True)
class Mix:
    """The rows that probabilities and calls are for: U with shares of rows like P and like N among them.

    `prior` is the share of positives among U, `share` that among the rows of the mix. Where a person gave the prior
    (`is_given`), `judged` rows bend the probabilities around it; otherwise they are what it is known by.
    """

    prior: float
    labelled_share: float
    negative_share: float = 0.0
    judged: JudgedScores | None = None
    is_given: bool = False

    def without(self, part: Flags) -> Mix:
        """The mix as it is known without the verdicts on this part of the unlabelled rows. Shape: part (n_U,)."""
        return self if self.judged is None else replace(self, judged=self.judged.outside(part))

    @property
    def share(self) -> float:
        """β + (1 − β − γ)π."""
        return self.labelled_share + (1.0 - self.labelled_share - self.negative_share) * self.prior


def judge_fit(
    scores: Floats,
    codes: Labels,
    first: PriorEstimate,
    rule: Rule,
    *,
    labelling: str,
    features: Features | None,
    shares: tuple[float, float],
    are_directions: bool = False,
    **asked: Any,
) -> tuple[Judgement, LabellingCheck]:
    """Judge a fit, and check its labelling: wider intervals where the labelled rows are no random sample.

    `labelling` "biased" puts the group of rows around the labelled positives in their place; then labelled negatives
    need not be a random sample either, and nothing is counted on them. `codes` (m,) are of {1, 0, -1}, `shares` are
    n_P/n and n_N/n of all rows; `features` and `are_directions` are those of :func:`~.labelling.check_labelling`;
    `asked` goes to :func:`judge`.
    """
    rows, seed, is_biased = np.flatnonzero(codes != NEGATIVE), asked["seed"], labelling == "biased"
    own, labels = scores[rows], codes[rows]
    of = None if features is None else lambda some: features(rows[some])
    beta, gamma = shares
    if is_biased:
        by = (*by_groups(own, labels, first, asked["scenario"], of, seed), rule)
        asked |= {"sees_more": False}  # an estimate from the labels, taken as random, must not join that of the groups
    else:
        by = (scores, codes, first, rule)
    judged = judge(*by, labelled_share=beta, negative_share=gamma, **asked)
    called = judged.calibrator.probability(own) >= judged.threshold
    prior = first if is_biased else judged.prior  # what the labels say if they are taken as random
    known = {"features": of, "are_directions": are_directions, "labelled_share": beta, "seed": seed}
    check = check_labelling(own, labels, prior, called, **known)
    told = about_groups(check, are_directions) if is_biased else check.sentence  # empty where it does not fire
    wider = replace(
        judged,
        prior=widened_prior(judged.prior, check),
        metrics=widened(judged.metrics, check, always=is_biased),
        warnings=(*judged.warnings, *filter(None, [told])),
    )
    return wider, check


def judge(
    scores: Floats,
    labels: Labels,
    first: PriorEstimate,
    rule: Rule,
    *,
    labelled_share: float,
    negative_share: float = 0.0,
    scenario: Scenario,
    target: Target,
    sees_more: bool,
    seed: int,
    people: JudgedScores | None = None,
    has_all: bool = False,
) -> Judgement:
    """Judge held-out `scores` (m,) with `labels` (m,); the shares are n_P/n and n_N/n of all rows.

    `sees_more` says whether the scores can tell rows apart that the first prior's model could not: only then does
    the second estimate of the prior, made on these scores, join the first. `people` are rows that people judged.
    `has_all`: every unlabelled row is among the held-out ones, as in a table, whose scores are out of fold.
    """
    p, u, n = (scores[labels == kind] for kind in (POSITIVE, UNLABELLED, NEGATIVE))
    priors = _Priors.of(scores, labels, first, scenario, sees_more, seed)
    population = Mix(usable_prior(priors.used), labelled_share, negative_share)
    is_population = target == "population" and scenario == "single_set"  # in case_control U is the population
    mix = replace(
        population if is_population else Mix(population.prior, 0.0), judged=people, is_given=is_given(priors.used)
    )
    calibrator, threshold, _ = _decide(p, u, n, mix, rule)
    calls, held_out = cross_fitted(p, u, n, mix, rule, calibrator.method, seed)
    calls = replace(calls, at_hand=calibrator.probability(u) >= threshold, are_all=has_all)
    metrics = pu_metrics(
        p,  # scores rank without the ties that probabilities can have
        u,
        mix.prior,
        threshold=threshold,
        calls=calls,
        scenario=scenario,
        target=target,
        labelled_share=labelled_share,
        negative_scores=n if len(n) else None,
        negative_share=negative_share,
        prior_interval=usable_interval(priors.used),
        unknown=priors.used.reason,
        confidence=CONFIDENCE,
        random_state=seed,
    )
    noted = [*priors.notes(len(p)), _missed(rule, calibrator, (p, u, n), mix)]
    if not metrics.unknown:  # which says it already, and more
        # With few labelled rows and many positives among U, P against N shows what P against U cannot.
        by = (n, "labelled negatives") if metrics.basis == "pnu" else (u, "unlabelled ones")
        noted.append(_about_collapse(p, *by, calibrator, threshold))
    elif not priors.used.reason:  # that one is among the warnings of the prior
        noted.append(metrics.unknown)
    prior = priors.told(population if scenario == "single_set" else None, metrics.unknown)
    own, said = {"positive": p, "unlabelled": u}, tuple(filter(None, noted))
    return Judgement(prior, priors.second, priors.both, calibrator, threshold, held_out, own, metrics, said)


@dataclass(frozen=True)
class _Priors:
    """The estimates of the share that a judgement has: `learned` by the held-out scores, `both` by the negatives, too.

    `without` is the share without the labelled negatives, `used` that of everything.
    """

    first: PriorEstimate
    learned: PriorEstimate | None
    without: PriorEstimate
    both: PriorEstimate | None
    used: PriorEstimate

    @classmethod
    def of(
        cls, scores: Floats, labels: Labels, first: PriorEstimate, scenario: Scenario, sees_more: bool, seed: int
    ) -> _Priors:
        """From the arguments of :func:`judge`."""
        p, u, n = (scores[labels == kind] for kind in (POSITIVE, UNLABELLED, NEGATIVE))
        learned = _learned_prior(scores, labels, scenario, seed)
        without = combine(first, learned if sees_more else None)  # which leaves a given one as it is
        both = prior_from_both(p, u, n, without) if len(n) else None
        return cls(first, learned, without, both, combine(without, both))

    @property
    def second(self) -> PriorEstimate | None:
        """The learned one, where the first is an estimate as well."""
        return None if is_given(self.first) else self.learned

    def told(self, population: Mix | None, unknown: str) -> PriorEstimate:
        """The used one as a person is told of it. Labelled negatives are a part of the `population`, if it is one.

        What is `unknown` of the quality is so of the share: in the file of numbers it must not look like an estimate.
        """
        prior = self.used
        if population is not None and population.negative_share > 0:
            prior = replace(prior, population_prior=population.share)
        return unsupported(prior, unknown) if unknown else prior

    def notes(self, n_labelled: int) -> tuple[str, str]:
        """What to tell a person where they disagree; `n_labelled` is the number of held-out labelled rows."""
        return (
            contradiction(self.first, self.learned, n_labelled)
            if is_given(self.first)
            else _about_priors(self.first, self.second, self.without),
            "" if self.both is None else disagreement(self.without, self.both),
        )


def _about_collapse(p: Floats, others: Floats, who: str, calibrator: PUCalibrator, threshold: float) -> str:
    cut = np.nextafter(calibrator.score_at(threshold), -np.inf)  # predict says positive *at* the threshold
    reason = collapse_reason(p, others, float(cut), who)
    if reason and is_beyond_chance(p, others):
        return f"{reason} at the threshold of {threshold:.3f}, although the scores tell rows apart: choose another one"
    return f"the classifier does not tell rows apart: {reason}" if reason else ""


def _missed(rule: Rule, calibrator: PUCalibrator, groups: tuple[Floats, Floats, Floats], mix: Mix) -> str:
    """What the rule wanted and the rows that the threshold was chosen on do not give."""
    p, u, n = (calibrator.probability(own) for own in groups)
    return shortfall(rule, p, u, mix.labelled_share, n, mix.negative_share)


def cross_fitted(
    p: Floats, u: Floats, n: Floats, mix: Mix, rule: Rule, method: str, seed: int
) -> tuple[Calls, dict[str, Floats]]:
    """Calls and probabilities of every held-out row by a calibration and a threshold that did not see it."""
    groups = [p, u, n] if len(n) else [p, u]
    chances, called = [np.zeros(len(own)) for own in groups], [np.zeros(len(own), dtype=bool) for own in groups]
    by_rule, of_u = [], np.zeros(len(u))
    for inside in _folds([len(own) for own in groups], seed):
        # The method of the whole: a fold short of the limit for isotonic regression must not choose another.
        # A single row cannot be left out: it is judged by itself, and its wide intervals say how little that is.
        alone = any(part.all() for part in inside[:2])
        rest = groups if alone else [own[~part] for own, part in zip(groups, inside, strict=True)]
        known = mix if alone else mix.without(inside[1])
        calibrator, threshold, prior = _decide(rest[0], rest[1], rest[2] if len(n) else n, known, rule, method)
        for own, part, of, calls in zip(groups, inside, chances, called, strict=True):
            of[part] = calibrator.probability(own[part])
            calls[part] = of[part] >= threshold
        of_u[inside[1]] = with_share(chances[1][inside[1]], calibrator.prior, prior)
        cut = calibrator.score_at(threshold)
        by_rule.append([(own >= cut).mean() for own in groups])
    found = Calls(called[0], called[1], of_u, np.array(by_rule).T, called[2] if len(n) else None)
    return found, dict(zip(("positive", "unlabelled", "negative"), chances, strict=False))


def _decide(
    p: Floats, u: Floats, n: Floats, mix: Mix, rule: Rule, method: str = "auto"
) -> tuple[PUCalibrator, float, float]:
    """Probabilities for the rows of the mix, from which of them a row is called positive, and the prior of U."""
    calibrator = PUCalibrator.fit(p, u, mix.prior, method)  # type: ignore[arg-type]
    if mix.judged is not None:
        calibrator = calibrator.bent(mix.judged.scores, mix.judged.is_positive)
        if not mix.is_given:
            # The shift to the mix starts at what the probabilities of U now average to: from an estimate by biased
            # labels, far below that, it would move them a second time.
            mix = replace(mix, prior=float(calibrator.probability(u).mean()))
            calibrator = replace(calibrator, prior=mix.prior)
    calibrator = calibrator.shifted(mix.share)
    of_p, of_u, of_n = (calibrator.probability(own) for own in (p, u, n))
    threshold = choose_threshold(rule, of_p, of_u, mix.labelled_share, of_n, mix.negative_share)
    return calibrator, threshold, mix.prior


def _folds(sizes: list[int], seed: int) -> Iterator[list[Flags]]:
    """For each fold the rows of each group in it."""
    rng = np.random.default_rng(seed)
    n_folds = min(_FOLDS, *sizes[:2])
    folds = [rng.permutation(size) % n_folds for size in sizes]
    for k in range(n_folds):
        yield [of == k for of in folds]


def _learned_prior(scores: Floats, labels: Labels, scenario: Scenario, seed: int) -> PriorEstimate | None:
    """The prior by the learned scores; None where the rows are too few or all alike."""
    if int((labels == POSITIVE).sum()) < _FEWEST_FOR_PRIOR:
        return None
    scores, labels = scores[labels != NEGATIVE], labels[labels != NEGATIVE]
    with suppress(EqualScoresError):
        return estimate_quietly(None, labels, scores=scores, random_state=seed, scenario=scenario)
    return None


def _about_priors(first: PriorEstimate, second: PriorEstimate | None, used: PriorEstimate) -> str:
    """What to tell a person of two estimates of which one may not be known."""
    if used is second:
        return (
            "quick models before training could not tell the share of positives: it rests on the learned scores alone"
        )
    if second is None or first.reason or second.reason or abs(second.value - first.value) <= _DISAGREE:
        return ""
    return (
        f"the share of positives among the unlabelled rows is {first.value:.2f} by a first model and "
        f"{second.value:.2f} by the learned scores: treat both with care, or give prior= if you know it"
    )

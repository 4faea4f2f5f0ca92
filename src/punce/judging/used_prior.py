"""Which prior a fit rests on: the one that was given, or two estimates combined, kept from 0 and 1; and its JSON."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.judging.calibration import PUCalibrator
from punce.judging.estimates import squared_error
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels
from punce.priors import PriorEstimate, estimate_quietly, held_out_scores
from punce.priors.cautions import about_width
from punce.priors.result import Z_90
from punce.priors.sample import EqualScoresError, rows_of
from punce.scenario import Scenario, check_prior, label_frequency, population_prior
from punce.storage.json_tree import decode

Floats = npt.NDArray[np.float64]

FEWEST_LABELLED = 3  # one to learn from, one to choose with and one to hold out

GivenPrior = float | str | tuple[float, float, float]
"""What a person says of the prior: a number, "auto", or a number with its 90 % interval (value, low, high)."""
_GIVEN = "given"
_ASSUMED = 0.1
_NEAR = 1e-3  # an estimated prior is kept this far from 0 and 1, where every PU risk degenerates
_LEAST_WIDTH = 0.01  # of an interval: a narrower one would silence the other estimate
_FEWEST_OF_BOTH = 5  # labelled rows of a class, for its mean to have an error that can be known
_MOST_ERROR = 0.2  # of an estimate that says anything
_FAR = 3.0  # standard errors
_CONTRADICT = 3.0  # times the odds, between a given prior and the learned scores
_FEWEST_TO_CONTRADICT = 50  # held-out labelled rows: with fewer, intervals of shares near 0 can be far too narrow
_DOUBT = 1.0  # rows: ten labelled rows without a hit are no proof


def given_prior(value: float, labels: Labels, scenario: Scenario) -> PriorEstimate:
    """A prior that a person knows, in the form of an estimate without doubt."""
    n_p, n_u = int((labels == POSITIVE).sum()), int((labels == UNLABELLED).sum())
    return PriorEstimate(
        value=value,
        low=value,
        high=value,
        method=_GIVEN,
        diagnostics={},
        population_prior=population_prior(value, n_p, n_u, scenario),
        label_frequency=label_frequency(value, n_p, n_u),
        warnings=(),
    )


def assumed_prior(labels: Labels, scenario: Scenario) -> PriorEstimate:
    """The prior where the rows are too few to learn from some and hold out others: a low share, interval [0, 1].

    Low, because a prior that is too high calls rows positive that nothing speaks for.
    """
    n_p, n_u = int((labels == POSITIVE).sum()), int((labels == UNLABELLED).sum())
    reason = f"with {n_p:,} labelled and {n_u:,} unlabelled rows the share of positives cannot be estimated"
    wanted = f"at least {FEWEST_LABELLED} rows of both kinds (30 labelled ones for a number to trust)"
    if min(n_p, n_u) >= FEWEST_LABELLED:  # enough to try, and all scores were equal
        wanted = (
            "columns by which a quick model tells some rows from others, and 30 labelled rows for a number to trust"
        )
    advice = f"give prior= if you know it; an estimate needs {wanted}"
    return replace(
        given_prior(_ASSUMED, labels, scenario),
        low=0.0,
        high=1.0,
        method="assumed",
        warnings=(f"{reason}: {_ASSUMED} is assumed; {advice}",),
        reason=reason,
    )


def first_prior(
    X: Any, codes: Labels, prior: GivenPrior, scenario: Scenario, *, scores: Any = None, seed: int = 0
) -> PriorEstimate:
    """The prior before anything is learned: the given one, an estimate, or one assumed, with `reason`.

    `codes` of {1, 0, -1}; labelled negatives are no unlabelled rows and take no part. Its warnings are kept, not
    issued: after training there may be a better estimate.
    """
    rows = np.flatnonzero(codes != NEGATIVE)
    labels = codes[rows]
    n_labelled = int((labels == POSITIVE).sum())
    if isinstance(prior, tuple | list):
        value, low, high = map(float, prior)
        return replace(given_prior(value, labels, scenario), low=low, high=high)
    if prior != "auto":
        return given_prior(float(prior), labels, scenario)
    if min(n_labelled, len(labels) - n_labelled) < FEWEST_LABELLED:
        return assumed_prior(labels, scenario)
    if len(rows) < len(codes):
        X, scores = (None if part is None else rows_of(part, rows) for part in (X, scores))
    with suppress(EqualScoresError):
        return estimate_quietly(X, labels, scores=scores, random_state=seed, scenario=scenario)
    return assumed_prior(labels, scenario)  # quick models learn nothing from a dozen rows


def about_few_labelled(labels: Labels) -> str:
    """What to tell a person with hardly any labelled rows; empty where there are enough."""
    n_labelled = int((labels == POSITIVE).sum())
    if n_labelled >= FEWEST_LABELLED:
        return ""
    rows, them = ("1 labelled row", "it") if n_labelled == 1 else (f"{n_labelled} labelled rows", "them")
    return f"{rows}: the ranking is little more than nearness to {them}; label more rows before relying on it"


def is_given(prior: PriorEstimate) -> bool:
    """Whether a person gave it: then it is used as it is; without an interval it counts as known."""
    return prior.method == _GIVEN


def combine(first: PriorEstimate, second: PriorEstimate | None) -> PriorEstimate:
    """One estimate of two: weights 1/width², and an interval that also holds how far they disagree.

    Both rest on the same rows, so their errors go together: the interval does not shrink as that of two independent
    estimates would. Its half-widths are the weighted root mean squares of the distances to each one's own ends, so
    an estimate far from the other widens it. Scores that leave the classes mixed have a wide interval and little
    weight. The share is at least that of copies of labelled rows, which are known positives. What cannot be known (see
    `PriorEstimate.reason`) takes no part; a given prior is used as it is.
    """
    if second is None or second.reason or is_given(first):
        return first
    if first.reason:
        return second
    values, lows, highs = np.array([[e.value, e.low, e.high] for e in (first, second)]).T
    weights = 1.0 / np.maximum(highs - lows, _LEAST_WIDTH) ** 2
    weights /= weights.sum()
    value = float(weights @ values)
    below, above = (
        float(np.sqrt(weights @ (end**2 + (Z_90 * (values - value)) ** 2))) for end in (values - lows, highs - values)
    )
    least = float(first.diagnostics.get("copies", 0.0))
    value = max(value, least)
    return told_of_width(first.moved(value, max(least, value - below), min(1.0, value + above)), first)


def told_of_width(moved: PriorEstimate, before: PriorEstimate) -> PriorEstimate:
    """The estimate with the warnings of `before`, that of the width about the interval which it has now."""
    return replace(moved, warnings=(*_but_width(before), *about_width(moved.method, moved.low, moved.high)))


def unsupported(prior: PriorEstimate, reason: str) -> PriorEstimate:
    """An estimate that the learned scores do not bear out: it is assumed, and its interval says nothing."""
    return prior if is_given(prior) else replace(prior, reason=reason, warnings=_but_width(prior))


def _but_width(prior: PriorEstimate) -> tuple[str, ...]:
    """Its warnings without that of its interval."""
    about_interval = about_width(prior.method, prior.low, prior.high)
    return tuple(text for text in prior.warnings if text not in about_interval)


def prior_from_both(p: Floats, u: Floats, n: Floats, first: PriorEstimate) -> PriorEstimate:
    """The share of positives in U between the means of P and of N: π = (mean U − mean N)/(mean P − mean N).

    The means are of probabilities, which weigh a score by what it says of the class. It needs no gap between the
    classes, only that the labelled rows of both are random samples. 90 % interval by the delta method.
    Shape: held-out scores (n_P,), (n_U,), (n_N,).
    """
    calibrator = PUCalibrator.fit(p, u, usable_prior(first))
    p, u, n = (calibrator.probability(own) for own in (p, u, n))
    apart = float(p.mean() - n.mean())
    value = float(np.clip((u.mean() - n.mean()) / apart, 0.0, 1.0)) if apart > 0 else np.nan
    parts = ((p, value), (u, 1.0), (n, 1.0 - value))
    variance = sum(weight**2 * squared_error(own, _DOUBT) for own, weight in parts)
    error = np.sqrt(variance) / apart if apart > 0 else np.nan
    if min(len(p), len(n)) < _FEWEST_OF_BOTH or not error < _MOST_ERROR:
        reason = "the labelled negatives are too few or too near the positives to tell the share"
        return replace(first, reason=reason)
    low, high = max(0.0, value - Z_90 * error), min(1.0, value + Z_90 * error)
    # What follows from the share is computed where the counts of all rows are known.
    found = first.moved(value, low, high) if first.diagnostics else replace(first, value=value, low=low, high=high)
    return replace(found, method="labelled negatives", warnings=(), reason="", diagnostics={})


def prior_to_learn_with(first: PriorEstimate, X: Any, codes: Labels, seed: int) -> float:
    """The share of positives among unlabelled rows that a model is told: with enough labelled negatives, by them too.

    They are scored by a cheap model that took them for unlabelled rows.
    """
    if is_given(first) or (codes == NEGATIVE).sum() < _FEWEST_OF_BOTH:
        return usable_prior(first)
    scores = held_out_scores(X, (codes == POSITIVE).astype(np.int8), random_state=seed)
    p, u, n = (scores[codes == kind] for kind in (POSITIVE, UNLABELLED, NEGATIVE))
    return usable_prior(combine(first, prior_from_both(p, u, n, first)))


def disagreement(first: PriorEstimate, both: PriorEstimate) -> str:
    """What to tell a person where the estimate without negatives and that with them differ beyond chance."""
    errors = [max(e.high - e.low, _LEAST_WIDTH) / (2 * Z_90) for e in (first, both)]
    if both.reason or first.reason or abs(first.value - both.value) <= _FAR * float(np.hypot(errors[0], errors[1])):
        return ""
    said = "it was given as" if is_given(first) else "without them it is"
    return (
        f"with the labelled negatives the share of positives among the unlabelled rows is {both.value:.2f} "
        f"({both.low:.2f} to {both.high:.2f}), but {said} {first.value:.2f}: the labelled rows of one class are "
        "probably no random sample of it. If the negatives were chosen, hand them over as judged rows"
    )


def contradiction(given: PriorEstimate, learned: PriorEstimate | None, n_labelled: int) -> str:
    """What to tell a person who gave a plain number that the learned scores speak against.

    Odds of the number and of the nearest end of the scores' interval that differ threefold: where classes overlap an
    estimate is too high, so that a smaller difference says little. A number with an interval comes from a review or a
    sample, and rests on more than labels. `n_labelled` is the number of held-out labelled rows.
    """
    if learned is None or learned.reason or given.low < given.high or n_labelled < _FEWEST_TO_CONTRADICT:
        return ""
    own, low, high = (
        share / (1 - share) for share in np.clip((given.value, learned.low, learned.high), _NEAR, 1 - _NEAR)
    )
    if low <= _CONTRADICT * own <= _CONTRADICT**2 * high:
        return ""
    return (
        f"the share of positives among the unlabelled rows was given as {given.value:g}, but the learned scores put "
        f"it at {learned.value:.2f} ({learned.low:.2f} to {learned.high:.2f}): check the number; if it is right, the "
        "labelled rows are no random sample of the positives"
    )


def usable_prior(prior: PriorEstimate) -> float:
    """The share that losses, risks and calibration are told: a given one as it is, an estimated one not too extreme."""
    if is_given(prior):
        return prior.value
    return min(max(prior.value, _NEAR), 1.0 - _NEAR)


def usable_interval(prior: PriorEstimate) -> tuple[float, float] | None:
    """The interval around :func:`usable_prior`, widened to hold it; None where the prior counts as known."""
    if is_given(prior) and prior.low == prior.high:
        return None
    used = usable_prior(prior)
    low, high = min(prior.low, used), max(prior.high, used)
    return (low, high) if low < high else None


def prior_to_json(prior: PriorEstimate) -> dict[str, Any]:
    """What a model file keeps of it: everything but the diagnostics, which can be a number per row."""
    return {key: value for key, value in prior.as_dict().items() if key != "diagnostics"}


def prior_from_json(content: dict[str, Any]) -> PriorEstimate | None:
    """Inverse of :func:`prior_to_json`; None for older files, which kept the value and its interval only."""
    if "population_prior" not in content:
        return None
    found: PriorEstimate = decode(PriorEstimate, {**content, "diagnostics": {}}, "prior")
    for share in (found.value, found.low, found.high):
        check_prior(share)
    return found

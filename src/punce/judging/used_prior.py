"""Which prior a fit rests on: the one that was given, or one of two estimates, kept from 0 and 1; and its JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.priors import PriorEstimate
from punce.scenario import Scenario, label_frequency, population_prior

FEWEST_LABELLED = 3  # one to learn from, one to choose with and one to hold out

_GIVEN = "given"
_ASSUMED = 0.1
_NEAR = 1e-3  # an estimated prior is kept this far from 0 and 1, where every PU risk degenerates


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
    return replace(
        given_prior(_ASSUMED, labels, scenario),
        low=0.0,
        high=1.0,
        method="assumed",
        warnings=(
            f"with {n_p} labelled and {n_u} unlabelled rows the share of positives cannot be estimated: {_ASSUMED} is "
            f"assumed; give prior= if you know it, or label at least {FEWEST_LABELLED} rows (30 for a number to trust)",
        ),
    )


def is_given(prior: PriorEstimate) -> bool:
    """Whether a person gave it: then it is used as it is and counts as known."""
    return prior.method == _GIVEN


def tighter(first: PriorEstimate, second: PriorEstimate | None) -> PriorEstimate:
    """The second estimate if its interval ends lower and is no wider, else the first.

    Scores that leave positives and negatives mixed give too large a share, never too small a one: what they bound is
    the largest share that p_U − π·p_P ≥ 0 allows, and better scores bound it tighter. So the smaller upper confidence
    bound is taken, as BBE does among thresholds. Few held-out rows have a wide interval and leave the first. Where
    both models see the same, the lower of two numbers would only be the luckier one, and `second` is None.
    """
    if second is None or second.high >= first.high or second.high - second.low > first.high - first.low:
        return first
    return second


def usable_prior(prior: PriorEstimate) -> float:
    """The share that losses, risks and calibration are told: a given one as it is, an estimated one not too extreme."""
    if is_given(prior):
        return prior.value
    return min(max(prior.value, _NEAR), 1.0 - _NEAR)


def usable_interval(prior: PriorEstimate) -> tuple[float, float] | None:
    """The interval around :func:`usable_prior`, widened to hold it; None where the prior counts as known."""
    if is_given(prior):
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
    numbers = ("value", "low", "high", "population_prior", "label_frequency")
    return PriorEstimate(
        **{key: float(content[key]) for key in numbers},
        method=str(content["method"]),
        diagnostics={},
        warnings=tuple(map(str, content["warnings"])),
    )

"""Which prior a fit rests on: the one that was given, or one of two estimates, kept from 0 and 1."""

from __future__ import annotations

from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.priors import PriorEstimate
from punce.scenario import Scenario, label_frequency, population_prior

_GIVEN = "given"
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
    if prior.method == _GIVEN:
        return prior.value
    return min(max(prior.value, _NEAR), 1.0 - _NEAR)


def usable_interval(prior: PriorEstimate) -> tuple[float, float] | None:
    """The interval around :func:`usable_prior`, widened to hold it; None where the prior counts as known."""
    if prior.method == _GIVEN:
        return None
    used = usable_prior(prior)
    low, high = min(prior.low, used), max(prior.high, used)
    return (low, high) if low < high else None

"""Recall, and the numbers over a mix of rows, from the shares of them that are called positive.

The formulas are those of :mod:`punce.judging.metrics`; here they are kept within what the calls allow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from punce.judging.calls import Floats, Most, Shares
from punce.judging.estimates import Estimate, estimate_of, stated

CONTRADICTION = (
    "more positives are called than rows: the share of positives is too high, or labelled rows are easier than others"
)
"""Why nothing that rests on the share of positives can be estimated, where π·t > q beyond chance."""
_NEARLY_ALL = 0.99  # of the rows


@dataclass(frozen=True)
class MixMetrics:
    """Metrics over one mix of rows, in which `prior` is the share of positives and `called` the share called so."""

    prior: float
    called: Estimate
    precision: Estimate
    accuracy: Estimate
    f1: Estimate


def recall_of(shares: Shares, confidence: float, unknown: str, is_counted: bool) -> Estimate:
    """Recall, which must not contradict what U says where the prior is known and U is what precision rests on."""
    if unknown and shares.called[0] > _NEARLY_ALL:
        return Estimate.impossible("nearly every row is called positive, which finds the positives without any skill")
    if shares.called[0] == 0.0 < shares.recall[0]:
        return Estimate.impossible("no unlabelled row is called positive, although labelled ones are")
    if unknown:
        return stated(estimate_of(shares.recall, confidence))
    if is_counted:
        return stated(_counted_recall(shares, confidence))
    return stated(_recall_within_called(shares, confidence), CONTRADICTION if shares.contradict else "")


def _recall_within_called(shares: Shares, confidence: float) -> Estimate:
    found = estimate_of(shares.recall_within_called(), confidence, at_bound=shares.are_too_many)
    if shares.are_too_many:
        peak = _where_calls_agree(shares.prior, shares.recall, shares.called, confidence)
        found = _up_to(found, np.minimum(shares.recall, shares.called / peak), confidence)
    return _at_most(found, shares.most)


def _counted_recall(shares: Shares, confidence: float) -> Estimate:
    return _at_most(estimate_of(shares.recall, confidence), shares.most)


def _at_most(estimate: Estimate, most: Most) -> Estimate:
    """The interval ends at the upper end of the bound; a number beyond that is the bound itself."""
    if np.isnan(estimate.value):
        return estimate
    value = most[0] if estimate.value > most[1] else estimate.value
    return replace(estimate, value=value, low=min(estimate.low, value), high=min(estimate.high, most[1]))


def _f1_at_most(most: Most) -> Most:
    """With a recall of at most r, F1 is at most 2r/(1 + r)."""
    return _harmonic_mean(1.0, most[0]), _harmonic_mean(1.0, most[1])


def counted_mix(shares: Shares, beta: float, gamma: float, unknown: str, confidence: float) -> MixMetrics:
    """The ordinary metrics, for a mix with shares β of labelled positives and γ of labelled negatives added to U."""
    assert shares.false is not None
    prior = beta + (1 - beta - gamma) * shares.prior
    both = prior * shares.recall
    called = both + (1 - prior) * shares.false
    with np.errstate(invalid="ignore", divide="ignore"):
        numbers = {
            "precision": both / called,
            "accuracy": both + (1 - prior) * (1 - shares.false),
            "f1": 2 * both / (called + prior),
        }
    found = {name: estimate_of(values, confidence) for name, values in numbers.items()}
    shown = _counted_recall(shares, confidence).value
    found["f1"] = _at_most(found["f1"], _f1_at_most(shares.most))
    if shown < shares.recall[0]:  # cut off: the others must fit to it
        missed = float(prior[0] * (shares.recall[0] - shown))
        found["accuracy"] = _moved_to(found["accuracy"], found["accuracy"].value - missed)
        found["f1"] = _moved_to(found["f1"], _harmonic_mean(found["precision"].value, shown))
    return MixMetrics(
        prior=float(prior[0]),
        called=estimate_of(called, confidence),
        **{name: stated(estimate, unknown) for name, estimate in found.items()},
    )


def mix_by_u(shares: Shares, beta: float, gamma: float, unknown: str, confidence: float) -> MixMetrics:
    """The formulas without negatives, for a mix with shares β of labelled rows and γ of negatives added to U."""
    recall = shares.recall
    prior = beta + (1 - beta - gamma) * shares.prior
    called = beta * recall + (1 - beta - gamma) * shares.called + gamma * np.clip(shares.false_by_u, 0.0, 1.0)
    both = _both(prior, recall, called)
    is_kept = bool(abs(both[0] - prior[0] * recall[0]) > 1e-9)  # at a bound: there the estimate would claim certainty
    found = {
        name: estimate_of(values, confidence, at_bound=is_kept)
        for name, values in _three_numbers(prior, both, called).items()
    }
    peak = _where_calls_agree(prior, recall, called, confidence)
    at_peak = _three_numbers(peak, _both(peak, recall, called), called)
    found |= {name: _up_to(found[name], at_peak[name], confidence) for name in ("accuracy", "f1")}
    shown = _recall_within_called(shares, confidence).value
    found["f1"] = _at_most(found["f1"], _f1_at_most(shares.most))
    if is_kept or shown < recall[0]:  # means of draws, or cut off: the three numbers must fit together all the same
        found["f1"] = _moved_to(found["f1"], _harmonic_mean(found["precision"].value, shown))
    reason = unknown or (CONTRADICTION if shares.contradict else "")
    return MixMetrics(
        prior=float(prior[0]),
        called=estimate_of(called, confidence),
        **{name: stated(estimate, reason) for name, estimate in found.items()},
    )


def _both(prior: Floats, recall: Floats, called: Floats) -> Floats:
    """The share of rows that are positive and called so, kept within what the two margins allow."""
    return np.clip(prior * recall, np.maximum(0.0, called + prior - 1.0), called)


def _three_numbers(prior: Floats, both: Floats, called: Floats) -> dict[str, Floats]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "precision": both / called,
            "accuracy": both + (1 - called) - (prior - both),
            "f1": 2 * both / (called + prior),
        }


def _where_calls_agree(prior: Floats, recall: Floats, called: Floats, confidence: float) -> Floats:
    """For each draw of t and q the prior at which the positives called are all rows called, q = π·t, or nearest to it.

    Accuracy, F1 and recall have a peak there and fall to either side by the error of the prior. Draws of the prior
    hardly hit a peak, so their quantiles stop below it; where classes are far apart, the truth is at the peak.
    "Nearest" is within the interval of π·t/q. Shape: (1 + B,).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = prior * recall / called
        low, high = np.quantile(ratio[1:], [(1 - confidence) / 2, (1 + confidence) / 2])
        nearest = np.nan_to_num(called / recall * np.clip(1.0, low, high), nan=prior[0])
    possible: Floats = np.clip(nearest, 1e-9, 1.0)
    return possible


def _up_to(estimate: Estimate, draws: Floats, confidence: float) -> Estimate:
    """The interval reaches at least as far as that of these draws."""
    return replace(estimate, high=max(estimate.high, estimate_of(draws, confidence).high))


def _harmonic_mean(a: float, b: float) -> float:
    return 2.0 * a * b / (a + b) if a + b > 0.0 else 0.0


def _moved_to(estimate: Estimate, value: float) -> Estimate:
    return replace(estimate, value=value, low=min(value, estimate.low), high=max(value, estimate.high))

"""How good is a classifier when no negatives exist.

From held-out labelled rows (P), held-out unlabelled rows (U) and the prior π, with t = share of P that is called
positive and q = share of U that is:

    recall = t          precision = π·t / q              F1 = 2π·t / (q + π)
    accuracy = π·t + (1 − q) − π(1 − t)                  AUC: see :mod:`punce.judging.ranking`

for the rows of U; where π·t > q, recall is at most q/π. Over refits the rule may call many more rows than the rule at
hand does, whose calls a person sees: the intervals of recall and F1 end where all of these calls are right. In
``case_control`` U is the population. In ``single_set`` the population is P ∪ U with β = n_P/n, π_pop = β + (1−β)π and
q_pop = β·t + (1−β)q in place of π and q. (Starting from the accuracy that counts U as negative the correction is
2(π_pop − β)·t − (π_pop − β), not 2π_pop·t: the labelled part is already right.)

With labelled negatives (N), f = share of N that is called positive takes the place of what U says about negatives:

    called = π·t + (1 − π)·f          precision = π·t / called          accuracy = π·t + (1 − π)(1 − f)

and AUC is that of P against N. These are the ordinary metrics, with the classes mixed by the prior; they rest on U only
through π. `PUMetrics.basis` says which of the two was done.

All of this holds if labelled rows are a random sample of the positives and were *held out of everything*: labels shape
contrastive features, so rows that took part in pretraining look better than new ones. Intervals come from draws of t
and q (:meth:`Calls.shares`), of the prior, and of AUC_PU by its standard error. Where the rows cannot give a
number, its estimate has no value and a reason: "cannot be estimated" is an answer, 1.000 by clipping is not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, get_type_hints

import numpy as np
import numpy.typing as npt

from punce.errors import InputError, number_of
from punce.judging.calls import Calls, Floats, Shares
from punce.judging.estimates import Estimate
from punce.judging.mixes import MixMetrics, counted_mix, mix_by_u, recall_of
from punce.judging.ranking import (
    auc_between,
    auc_of,
    checked_column,
    corrected_auc_draws,
    counted_auc,
    is_beyond_chance,
    prior_draws,
    score_pair,
)
from punce.notebook import html_table
from punce.scenario import Scenario, Target, check_prior, check_scenario, check_target
from punce.storage.json_tree import decode

Basis = Literal["pu", "pnu"]

FEWEST_NEGATIVES = 30
"""Held-out labelled negatives from which on they are the basis of the metrics; fewer say less than U does."""
_HARDLY_ANY = 0.01  # of the unlabelled rows


@dataclass(frozen=True)
class PUMetrics:
    """The quality of a fit, estimated from held-out rows: each number is an Estimate with its interval.

    ``metrics_.five["accuracy"]`` is the accuracy over the rows of the fit's `target`; its other keys are recall,
    precision, f1 and auc. `unlabelled` and `population` hold the numbers that depend on the mix of classes, for either
    mix. `confidence` is that of the intervals, `notes` says where the numbers contradict the assumptions behind them.
    """

    recall: Estimate
    auc: Estimate
    unlabelled: MixMetrics
    population: MixMetrics
    threshold: float
    scenario: Scenario
    confidence: float
    n_positive: int
    n_unlabelled: int
    notes: tuple[str, ...]
    target: Target = "unlabelled"
    unknown: str = ""
    """Why the share of positives is not known, where it is not."""
    n_negative: int = 0
    basis: Basis = "pu"
    """"pnu": ordinary metrics, from labelled rows of both classes. "pu": estimated without negatives."""
    contradicts: bool = False
    """Whether the prior does not fit to U: more positives would be called than rows are, π·t > q, beyond chance."""

    @property
    def basis_in_words(self) -> str:
        """What the numbers were counted on."""
        if self.basis == "pnu":
            return f"counted on {self.n_positive:,} labelled positives and {self.n_negative:,} labelled negatives"
        few = number_of(self.n_negative, "labelled negative is", "labelled negatives are")
        return "estimated without negatives" + (f" ({few} too few to count on)" if self.n_negative else "")

    @property
    def five(self) -> dict[str, Estimate]:
        """The five numbers that people ask for, over the rows of the target, in the order in which they are shown."""
        mix = self.unlabelled if self.target == "unlabelled" else self.population
        return {
            "recall": self.recall,
            "precision": mix.precision,
            "accuracy": mix.accuracy,
            "f1": mix.f1,
            "auc": self.auc,
        }

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and strings; a number that cannot be estimated is null."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)), parse_constant=lambda _: None)
        return plain

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Inverse of :meth:`to_json`."""

        def number(own: Any) -> float:
            return np.nan if own is None else float(decode(float, own, "metrics"))

        def estimate(own: Mapping[str, Any]) -> Estimate:
            return Estimate(
                number(own["value"]), number(own["low"]), number(own["high"]), decode(str, own["reason"], "reason")
            )

        def mix(own: Mapping[str, Any]) -> MixMetrics:
            parts = {key: estimate(own[key]) for key in ("called", "precision", "accuracy", "f1")}
            return MixMetrics(number(own["prior"]), **parts)

        read: dict[str, Callable[[Any], Any]] = {
            **dict.fromkeys(("recall", "auc"), estimate),
            **dict.fromkeys(("unlabelled", "population"), mix),
        }
        kinds = get_type_hints(cls)
        return cls(**{k: read[k](own) if k in read else decode(kinds[k], own, k) for k, own in content.items()})

    def _repr_html_(self) -> str:
        """The five numbers as a notebook shows them."""
        return html_table(
            f"Quality, for {'the unlabelled rows' if self.target == 'unlabelled' else 'new rows of the population'}",
            ("", "estimate", f"{self.confidence:.0%} interval"),
            [(name, *estimate.cells()) for name, estimate in self.five.items()],
            [
                self.basis_in_words,
                *(f"{', '.join(names)}: {reason}" for reason, names in self.reasons.items()),
                *self.notes,
            ],
        )

    @property
    def reasons(self) -> dict[str, list[str]]:
        """Why some of the five cannot be estimated: each reason once, with the names it holds for."""
        found: dict[str, list[str]] = {}
        for name, estimate in self.five.items():
            if estimate.reason:
                found.setdefault(estimate.reason, []).append(name)
        return found


def pu_metrics(
    positive_scores: npt.ArrayLike,
    unlabelled_scores: npt.ArrayLike,
    prior: float,
    *,
    threshold: float = 0.0,
    calls: Calls | None = None,
    scenario: Scenario = "single_set",
    target: Target = "unlabelled",
    labelled_share: float | None = None,
    negative_scores: npt.ArrayLike | None = None,
    negative_share: float = 0.0,
    prior_interval: tuple[float, float] | None = None,
    unknown: str = "",
    confidence: float = 0.95,
    n_draws: int = 1000,
    random_state: int = 0,
) -> PUMetrics:
    """Recall, precision, accuracy, F1 and AUC with intervals from held-out scores; a row is positive above `threshold`.

    `calls` replaces what the threshold says, where threshold and calibration were themselves chosen on these rows:
    cross-fitted ones are not too good. `labelled_share` is n_P/n of the whole data in ``single_set``; by default the
    held-out rows are taken to have been drawn with the same shares. `negative_scores` are those of labelled negatives,
    `negative_share` is n_N/n: from 30 on they are the basis of every number. `prior_interval` carries the uncertainty
    of an estimated prior (an interval of the same `confidence`) into every number; without it the prior is known.
    `unknown` says why the prior is not known at all: then what depends on it cannot be estimated.
    """
    p, u = score_pair(positive_scores, unlabelled_scores)
    prior = check_prior(prior, open_interval=True)
    check_target(target)
    _check_threshold(threshold)
    _check_draws(confidence, n_draws)
    labelled_share = len(p) / (len(p) + len(u)) if labelled_share is None else labelled_share
    n = np.empty(0) if negative_scores is None else checked_column(negative_scores, "negative_scores", finite=False)
    calls = Calls(p > threshold, u > threshold, n=n > threshold if len(n) else None) if calls is None else calls
    rng = np.random.default_rng(random_state)
    shares = _shares(calls, prior, prior_interval, target, confidence, n_draws, rng, random_state)
    is_counted = len(n) >= FEWEST_NEGATIVES
    # A given prior (no interval) needs no support by the scores; an estimated one does.
    if not unknown and not is_counted and prior_interval is not None and not is_beyond_chance(p, u):
        unknown = _useless_scores(p, u)
    mix = counted_mix if is_counted else mix_by_u
    return PUMetrics(
        recall=recall_of(shares, confidence, unknown, is_counted),
        auc=counted_auc(p, n, n_draws, confidence, rng)
        if is_counted
        else auc_of(p, u, calls.chances, shares.prior, unknown, confidence, rng),
        unlabelled=mix(shares, 0.0, 0.0, unknown, confidence),
        population=mix(shares, *_added(scenario, labelled_share, negative_share), unknown, confidence),
        threshold=float(threshold),
        scenario=scenario,
        confidence=confidence,
        n_positive=len(p),
        n_unlabelled=len(u),
        notes=() if unknown else _notes(shares, p, u, random_state),  # an assumed prior cannot be too high
        target=target,
        unknown=unknown,
        n_negative=len(n),
        basis="pnu" if is_counted else "pu",
        contradicts=not unknown and shares.contradict,
    )


def _shares(
    calls: Calls,
    prior: float,
    interval: tuple[float, float] | None,
    target: Target,
    confidence: float,
    n_draws: int,
    rng: np.random.Generator,
    seed: int,
) -> Shares:
    """What the calls and the prior say, with their draws."""
    priors = prior_draws(prior, interval, confidence, n_draws, rng)
    recall, called, *false = calls.shares(n_draws, rng)
    # For U the interval is that of the share among these very rows. A plain number was given for the source of the
    # rows, and their own share differs from it by chance.
    lowest = interval[0] if interval is not None and target == "unlabelled" else None
    most = calls.most_found(priors, confidence, np.random.default_rng((seed, 1)), lowest)
    return Shares(recall, called, priors, *false, most=most)


def _check_threshold(threshold: float) -> None:
    if np.isnan(threshold):  # nothing is above NaN: a recall of 0 would come of it
        raise InputError("threshold is NaN; give the score above which a row is called positive")


def _check_draws(confidence: float, n_draws: int) -> None:
    if not 0.0 < confidence < 1.0 or n_draws < 1:
        raise InputError(f"need 0 < confidence < 1 and n_draws >= 1, got {confidence} and {n_draws}")


def _added(scenario: Scenario, labelled_share: float, negative_share: float) -> tuple[float, float]:
    """β and γ: what labelled positives and negatives add to U in the population, of which in case_control U is all."""
    check_scenario(scenario)
    if scenario == "case_control":
        return 0.0, 0.0
    beta = check_prior(labelled_share, "labelled_share", open_interval=True)
    return beta, check_prior(negative_share, "negative_share")


def _useless_scores(p: Floats, u: Floats) -> str:
    return (
        f"labelled rows do not score higher than unlabelled ones beyond chance (AUC {auc_between(p, u):.2f}, {len(p)} "
        "labelled rows held out), so that what rests on the share of positives cannot be known"
    )


def _notes(shares: Shares, p: Floats, u: Floats, seed: int) -> tuple[str, ...]:
    notes, prior = [], float(shares.prior[0])
    if shares.contradict:
        notes.append(
            f"share of positives × recall = {prior * shares.recall[0]:.3f} exceeds the share of unlabelled rows called "
            f"positive ({shares.called[0]:.3f}): the share of positives is too high, or labelled rows are easier than "
            "other positives"
        )
    # With its error: a perfect classifier is above its own expected AUC in every second sample.
    aucs = corrected_auc_draws(p, u, shares.prior, np.random.default_rng((seed, 2)))
    # Of a share near 0 a good model reaches nearly the AUC of a perfect one, and there is no room for a lower share.
    if prior >= _HARDLY_ANY and np.mean(aucs[1:] > 1) > 0.95:
        notes.append(
            f"labelled rows are separated from unlabelled ones (AUC {auc_between(p, u):.3f}) better than a perfect "
            f"classifier could at a share of positives of {prior:.3g} (AUC {1 - prior / 2:.3f}): the share is too "
            "high, or they were seen in training"
        )
    return tuple(notes)

"""Which prior a fit rests on."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from punce.classifier import PUClassifier
from punce.errors import InputError
from punce.judging.judgement import Judgement, judge
from punce.judging.used_prior import (
    assumed_prior,
    combine,
    contradiction,
    first_prior,
    given_prior,
    prior_from_json,
    prior_to_json,
    prior_to_learn_with,
    usable_interval,
    usable_prior,
)
from punce.priors import PriorEstimate
from punce.priors.cautions import about_width
from punce.scenario import label_frequency, population_prior

LABELS = np.array([1, 0, 0, 0, 0], dtype=np.int8)


def estimate(low: float, high: float, reason: str = "") -> PriorEstimate:
    value = (low + high) / 2
    made = {"n_labelled": 100, "n_unlabelled": 900, "scenario": "single_set"}
    return PriorEstimate(value, low, high, "bbe", made, 0.5, 0.1, (), reason)


def test_the_narrower_estimate_weighs_more_and_the_interval_does_not_shrink() -> None:
    one, other = estimate(0.40, 0.60), estimate(0.50, 0.60)
    found = combine(one, other)
    assert found.value == pytest.approx((0.50 * 1 + 0.55 * 4) / 5)
    assert found.high - found.low > 0.10
    assert (found.low, found.high) == (combine(other, one).low, combine(other, one).high)
    assert found.population_prior == population_prior(found.value, 100, 900, "single_set")
    assert found.label_frequency == label_frequency(found.value, 100, 900)


def test_estimates_for_a_fit_do_not_change_the_filters_of_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    # They are those of all threads: two fits at once left "ignore" behind, for everything.
    rng, simplefilter, changed = np.random.default_rng(0), warnings.simplefilter, []
    X, labels = rng.normal(size=(240, 3)), np.repeat([1, -1, 0], [60, 60, 120]).astype(np.int8)

    def watched(*given: Any, **options: Any) -> None:
        if sys._getframe(1).f_globals["__name__"].startswith("punce.judging"):
            changed.append(given)
        simplefilter(*given, **options)

    monkeypatch.setattr(warnings, "simplefilter", watched)
    first = first_prior(X, labels, "auto", "single_set", seed=0)
    assert first.warnings  # rows without a signal: there is something that nobody is to be warned of here
    prior_to_learn_with(first, X, labels, seed=0)
    own: Any = {"scenario": "single_set", "target": "unlabelled", "sees_more": True, "seed": 0}
    judge(rng.normal(size=240), labels, first, "accuracy", labelled_share=0.25, negative_share=0.25, **own)
    assert changed == []


def test_disagreement_widens() -> None:
    near, far = combine(estimate(0.5, 0.6), estimate(0.5, 0.6)), combine(estimate(0.5, 0.6), estimate(0.2, 0.3))
    assert (near.low, near.high) == (pytest.approx(0.5), pytest.approx(0.6))
    assert far.low < 0.25
    assert far.high > 0.55


@pytest.mark.parametrize(
    ("given", "is_told"), [(0.05, True), (0.14, True), (0.2, False), (0.3, False), (0.5, False), (0.62, True)]
)
def test_a_given_prior_that_the_learned_scores_speak_against_is_told(given: float, is_told: bool) -> None:
    told = contradiction(given_prior(given, LABELS, "single_set"), estimate(0.34, 0.35), 50)
    assert bool(told) == is_told
    assert f"given as {given:g}" in told or not is_told


def test_a_given_interval_and_what_cannot_be_known_contradict_nothing() -> None:
    given = given_prior(0.05, LABELS, "single_set")
    assert contradiction(given, estimate(0.3, 0.4), 50)
    assert not contradiction(given, estimate(0.3, 0.4), 49)
    assert not contradiction(dataclasses.replace(given, low=0.04, high=0.06), estimate(0.3, 0.4), 50)
    assert not contradiction(given, None, 50)
    assert not contradiction(given, estimate(0.9, 0.95, "labelled and unlabelled rows look alike"), 50)


@pytest.mark.parametrize(("given", "is_told"), [(0.03, True), (0.3, False), (0.95, True)])
def test_a_fit_says_when_the_given_prior_cannot_be(given: float, is_told: bool) -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(600) < 0.4
    X = rng.normal(size=(600, 3)) + 2.0 * truth[:, None]
    labels = (truth & (rng.random(600) < 0.4)).astype(int)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        PUClassifier(prior=given, random_state=0).fit(X, labels)
    assert any("was given as" in str(each.message) for each in told) == is_told


def test_what_cannot_be_known_or_is_given_takes_no_part() -> None:
    one, unknown = estimate(0.5, 0.6), estimate(0.0, 1.0, "labelled and unlabelled rows look alike")
    labels = np.array([1, 0, 0])
    given, assumed = given_prior(0.3, labels, "single_set"), assumed_prior(labels, "single_set")
    assert combine(one, None) == combine(one, unknown) == combine(unknown, one) == combine(assumed, one) == one
    assert combine(given, one) == given


def test_the_warning_of_a_wide_interval_speaks_of_the_interval_that_is_used() -> None:
    of_labels = "only 7 labelled positives"
    wide = dataclasses.replace(estimate(0.1, 0.9), warnings=(of_labels, *about_width("bbe", 0.1, 0.9)))
    assert combine(wide, estimate(0.45, 0.5)).warnings == (of_labels,)
    found = combine(wide, estimate(0.2, 0.9))
    assert found.warnings[0] == of_labels
    assert f"{found.low:.2f} to {found.high:.2f}, is too wide" in found.warnings[1]


def _judged(first: PriorEstimate, scores: np.ndarray, n_labelled: int) -> Judgement:
    labels = (np.arange(len(scores)) < n_labelled).astype(np.int8)
    own: dict[str, Any] = {"scenario": "single_set", "target": "unlabelled", "sees_more": True, "seed": 0}
    return judge(scores, labels, first, "accuracy", labelled_share=n_labelled / len(scores), **own)


def test_an_estimate_that_could_not_be_made_before_training_is_not_quoted() -> None:
    """Else one note says that the share cannot be known, and another compares 0.50 with what was learned."""
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(3, 1, 100), rng.normal(3, 1, 90), rng.normal(0, 1, 810)])
    found = _judged(estimate(0.0, 1.0, "labelled and unlabelled rows look alike"), scores, 100)
    assert found.prior == found.second_prior
    assert [text for text in found.warnings if "by a first model" in text] == []
    assert any("rests on the learned scores alone" in text for text in found.warnings)


def test_a_share_that_the_learned_scores_do_not_bear_out_has_a_reason() -> None:
    """metrics.json and the page must not disagree on whether it is known."""
    first = dataclasses.replace(estimate(0.1, 0.9), warnings=tuple(about_width("bbe", 0.1, 0.9)))
    found = _judged(first, np.random.default_rng(0).normal(size=400), 7)
    assert found.metrics.unknown
    assert (found.prior.reason, found.prior.warnings) == (found.metrics.unknown, ())
    assert "do not score higher" in found.metrics.unknown


def test_useless_scores_are_warned_of_where_the_share_was_known_before() -> None:
    """A fit that ranked rows upside down said nothing, because columns before training had told the share."""
    useless = np.random.default_rng(0).normal(size=400)
    given = first_prior(None, np.array([1, 0, 0]), (0.3, 0.2, 0.4), "single_set")
    for first in (estimate(0.2, 0.4), given):
        found = _judged(first, useless, 7)
        assert found.metrics.unknown
        assert found.metrics.unknown in found.warnings
    unknown = _judged(estimate(0.0, 1.0, "alike"), useless, 7)  # the prior's own warnings tell it, once
    assert unknown.metrics.unknown not in unknown.warnings


def test_copies_of_labelled_rows_bound_the_share_whatever_the_second_estimate_says() -> None:
    first = estimate(0.5, 0.6)
    first = dataclasses.replace(first, diagnostics={**first.diagnostics, "copies": 0.45})
    found = combine(first, estimate(0.1, 0.12))
    assert (found.value, found.low) == (0.45, 0.45)


def test_the_reason_is_stored_and_older_files_have_none() -> None:
    unknown = dataclasses.replace(estimate(0.0, 1.0, "alike"), diagnostics={})
    content = prior_to_json(unknown)
    assert prior_from_json(content) == unknown
    del content["reason"]
    older = prior_from_json(content)
    assert older is not None
    assert older.reason == ""


def test_a_given_prior_may_have_an_interval_and_is_still_not_combined() -> None:
    prior = first_prior(None, LABELS, (0.3, 0.2, 0.45), "single_set")
    assert (prior.value, usable_prior(prior), usable_interval(prior)) == (0.3, 0.3, (0.2, 0.45))
    assert combine(prior, first_prior(None, LABELS, 0.6, "single_set")) == prior
    assert usable_interval(first_prior(None, LABELS, 0.3, "single_set")) is None


@pytest.mark.parametrize("prior", [(0.3, 0.4, 0.5), (0.3, 0.2), (0.0, 0.0, 0.5), (0.3, 0.2, 1.2), (0.3, 0.2, "x")])
def test_priors_with_impossible_intervals_are_refused(prior: Any) -> None:
    with pytest.raises(InputError, match="prior"):
        PUClassifier(prior=prior).check_arguments()

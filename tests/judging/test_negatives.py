"""Judging with labelled negatives: the prior from both sides, and ordinary metrics in place of estimates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from punce.judging.calls import Calls
from punce.judging.judgement import judge
from punce.judging.metrics import pu_metrics
from punce.judging.used_prior import disagreement, given_prior, prior_from_both
from punce.labels import Labels
from punce.priors import PriorEstimate

PRIOR = 0.3


def draw(rng: np.random.Generator, n_p: int = 150, n_u: int = 1500, n_n: int = 100) -> tuple[np.ndarray, Labels]:
    """Scores of both classes, one standard deviation and a half apart, and who is labelled."""
    y = np.concatenate([np.ones(n_p), rng.random(n_u) < PRIOR, np.zeros(n_n)])
    return rng.normal(1.5 * y - 0.75), np.repeat([1, 0, -1], [n_p, n_u, n_n]).astype(np.int8)


def unsure(value: float, labels: Labels) -> PriorEstimate:
    facts = {"n_labelled": 150, "n_unlabelled": 1500, "scenario": "single_set"}
    prior = given_prior(value, labels, "single_set")
    return replace(prior, low=value - 0.1, high=value + 0.1, method="some", diagnostics=facts)


def test_the_prior_from_both_sides_covers_the_truth_as_often_as_it_says() -> None:
    rng, covered, errors = np.random.default_rng(0), 0, []
    for _ in range(200):
        scores, labels = draw(rng)
        found = prior_from_both(*(scores[labels == kind] for kind in (1, 0, -1)), unsure(0.5, labels))
        covered += found.low <= PRIOR <= found.high
        errors.append(found.value - PRIOR)
    assert 170 <= covered <= 192  # of 200 at 90 %
    assert abs(np.mean(errors)) < 0.01


def test_a_few_negatives_without_a_false_alarm_are_no_proof() -> None:
    rng, covered = np.random.default_rng(5), 0
    for _ in range(100):  # three negatives in a hundred look like positives, and ten rows may show none of them
        y = rng.random(1500) < 0.05
        like_p = np.concatenate([np.ones(100, dtype=bool), y | (rng.random(1500) < 0.03), rng.random(10) < 0.03])
        scores = rng.normal(6.0 * like_p)
        found = prior_from_both(scores[:100], scores[100:-10], scores[-10:], unsure(0.06, np.array([1, 0])))
        covered += bool(found.reason) or found.low <= 0.05 <= found.high
    assert covered >= 85


def test_too_few_negatives_say_nothing_of_the_prior() -> None:
    p, u, n = np.ones(50), np.full(500, 0.5), np.array([0.0, 0.1])
    first = unsure(0.4, np.array([1, 0], dtype=np.int8))
    assert prior_from_both(p, u, n, first).reason
    assert disagreement(first, prior_from_both(p, u, n, first)) == ""


def test_negatives_move_the_prior_and_the_numbers_are_counted_on_them() -> None:
    scores, labels = draw(np.random.default_rng(1))
    own = {"labelled_share": 150 / 1750, "scenario": "single_set", "target": "population", "sees_more": False}
    first = unsure(0.4, labels)
    judged = judge(scores, labels, first, "accuracy", **own, negative_share=100 / 1750, seed=0)  # type: ignore[arg-type]
    assert judged.both_prior is not None
    assert abs(judged.prior.value - PRIOR) < abs(first.value - PRIOR)
    assert judged.prior.population_prior == pytest.approx((150 + 1500 * judged.prior.value) / 1750)
    metrics = judged.metrics
    assert (metrics.basis, metrics.n_negative) == ("pnu", 100)
    assert "100 labelled negatives" in metrics.basis_in_words
    t, f = (float((judged.held_out[name] >= 0.5).mean()) for name in ("positive", "negative"))
    share = metrics.population.prior
    assert metrics.population.accuracy.value == pytest.approx(share * t + (1 - share) * (1 - f), abs=0.02)


def test_the_population_holds_the_negatives_also_where_nothing_is_counted_on_them() -> None:
    """With labelling='biased', or no negative held out, the prior and the probabilities named different populations."""
    scores, labels = draw(np.random.default_rng(1), n_n=0)
    own = {"labelled_share": 150 / 1900, "scenario": "single_set", "target": "population", "sees_more": False}
    prior = given_prior(PRIOR, labels, "single_set")
    judged = judge(scores, labels, prior, "accuracy", **own, negative_share=250 / 1900, seed=0)  # type: ignore[arg-type]
    assert judged.both_prior is None
    assert judged.prior.population_prior == judged.metrics.population.prior
    assert judged.prior.population_prior == pytest.approx((150 + 1500 * PRIOR) / 1900)


def test_a_classifier_that_tells_the_classes_apart_is_not_said_to_tell_no_rows_apart() -> None:
    """Five labelled positives do not stand out of unlabelled rows that are mostly positive, but of the negatives."""
    rng = np.random.default_rng(0)
    p, u = rng.normal(3, 1, 5), np.concatenate([rng.normal(3, 1, 300), rng.normal(0, 1, 100)])
    own: dict[str, Any] = {"labelled_share": 0.01, "scenario": "single_set", "target": "population", "seed": 0}

    def said(n: np.ndarray) -> str:
        labels = np.repeat(np.array([1, 0, -1], dtype=np.int8), [len(p), len(u), len(n)])
        first = given_prior(0.75, labels, "single_set")
        scores = np.concatenate([p, u, n])
        judged = judge(scores, labels, first, "accuracy", negative_share=0.1, sees_more=False, **own)
        return " ".join(judged.warnings)

    assert "tell rows apart" not in said(rng.normal(0, 1, 60))
    assert "do not score higher than labelled negatives beyond chance" in said(rng.normal(3, 1, 60))


@pytest.mark.parametrize(
    ("rule", "called"), [(0.999, "no row is called positive at the threshold of 0.999"), (1e-6, "every row")]
)
def test_scores_that_tell_rows_apart_are_not_said_to_where_the_threshold_does_not(rule: float, called: str) -> None:
    scores, labels = draw(np.random.default_rng(4), n_n=0)
    own: dict[str, Any] = {"labelled_share": 0.1, "scenario": "single_set", "target": "unlabelled", "seed": 0}
    judged = judge(scores, labels, given_prior(PRIOR, labels, "single_set"), rule, sees_more=False, **own)
    (said,) = [text for text in judged.warnings if "rows apart" in text]
    assert said.startswith(called)
    assert said.endswith("although the scores tell rows apart: choose another one")


def test_ordinary_metrics_are_right_where_labelled_positives_mislead_about_negatives() -> None:
    rng = np.random.default_rng(2)
    scores, labels = draw(rng, n_p=2000, n_u=4000, n_n=2000)
    p, u, n = (scores[labels == kind] for kind in (1, 0, -1))
    found = pu_metrics(p, u, 0.6, scenario="case_control", negative_scores=n)  # a prior that is far too high
    assert found.auc.value == pytest.approx(0.856, abs=0.02)  # Φ(1.5/√2): the prior has no part in it
    t, f = (p > 0).mean(), (n > 0).mean()
    assert found.population.accuracy.value == pytest.approx(0.6 * t + 0.4 * (1 - f))
    assert found.population.precision.value == pytest.approx(0.6 * t / (0.6 * t + 0.4 * f))


def test_accuracy_fits_to_a_recall_that_the_calls_bound() -> None:
    """With a share that is far too high, recall was bounded by the calls and accuracy was not."""
    p, u, n = np.arange(120) > 0, np.arange(1350) < 500, np.zeros(60, dtype=bool)
    calls = Calls(p, u, n=n, at_hand=u, are_all=True)
    scores = [flags.astype(float) for flags in (p, u, n)]
    found = pu_metrics(scores[0], scores[1], 0.5, threshold=0.5, calls=calls, negative_scores=scores[2])
    recall, accuracy = found.recall.value, found.unlabelled.accuracy
    assert recall == pytest.approx(500 / 675)
    assert accuracy.value == pytest.approx(0.5 * recall + 0.5)
    assert accuracy.low <= accuracy.value


def test_few_negatives_leave_the_estimates_without_them() -> None:
    scores, labels = draw(np.random.default_rng(3), n_n=10)
    p, u, n = (scores[labels == kind] for kind in (1, 0, -1))
    found, plain = pu_metrics(p, u, PRIOR, negative_scores=n), pu_metrics(p, u, PRIOR)
    assert found.basis == "pu"
    assert "10 labelled negatives are too few" in found.basis_in_words
    assert found.unlabelled.accuracy.value == plain.unlabelled.accuracy.value


def test_a_contradiction_is_said() -> None:
    scores, labels = draw(np.random.default_rng(4), n_n=400)
    both = prior_from_both(*(scores[labels == kind] for kind in (1, 0, -1)), unsure(0.6, labels))
    assert both.value == pytest.approx(PRIOR, abs=0.05)
    assert "no random sample" in disagreement(unsure(0.6, labels), both)
    assert "given as 0.60" in disagreement(given_prior(0.6, labels, "single_set"), both)
    assert disagreement(unsure(PRIOR, labels), both) == ""


def test_a_vague_auc_of_positives_against_negatives_names_both() -> None:
    rng = np.random.default_rng(0)
    p, u, n = rng.normal(0.8, 1, 6), rng.normal(size=300), rng.normal(size=40)
    found = pu_metrics(p, u, PRIOR, threshold=0.0, negative_scores=n, negative_share=0.1)
    assert found.basis == "pnu"
    assert found.auc.reason.startswith("6 held-out labelled positives and 40 negatives leave it anywhere between")

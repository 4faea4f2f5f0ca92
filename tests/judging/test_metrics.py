"""The estimators against simulated data whose truth is known, in both scenarios."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import norm

from punce.errors import InputError
from punce.experiments.true_metrics import true_metrics
from punce.judging.calls import Calls
from punce.judging.estimates import Estimate
from punce.judging.metrics import PUMetrics, pu_metrics
from punce.judging.ranking import auc_between, collapse_reason, weighted_auc
from punce.scenario import exact_prior, population_prior

RECALL, FALL_OUT = float(norm.sf(-1.0)), float(norm.sf(1.0))  # scores N(1, 1) and N(−1, 1), cut at 0


@dataclass(frozen=True)
class Truth:
    precision: float
    accuracy: float
    f1: float


def truth(prior: float) -> Truth:
    """At threshold 0 in a mix with that share of positives."""
    called = prior * RECALL + (1 - prior) * FALL_OUT
    precision = prior * RECALL / called
    accuracy = prior * RECALL + (1 - prior) * (1 - FALL_OUT)
    return Truth(precision, accuracy, 2 * precision * RECALL / (precision + RECALL))


def draw(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=len(y)) + np.where(y, 1.0, -1.0)


def case_control(rng: np.random.Generator, n_p: int, n_u: int, prior: float) -> tuple[np.ndarray, np.ndarray]:
    return draw(np.ones(n_p, dtype=bool), rng), draw(rng.random(n_u) < prior, rng)


def single_set(rng: np.random.Generator, n: int, pi_pop: float, n_p: int) -> tuple[np.ndarray, np.ndarray, float]:
    """One sample; n_p of its positives get labels. Returns P, U and the prior among U."""
    n_positive = round(n * pi_pop)
    y = np.arange(n) < n_positive
    scores = draw(y, rng)
    labelled = rng.permutation(n_positive)[:n_p]
    is_p = np.zeros(n, dtype=bool)
    is_p[labelled] = True
    return scores[is_p], scores[~is_p], exact_prior(n_positive, n - n_positive, n_p)


def covers(estimate: Estimate, value: float) -> bool:
    return estimate.low <= value <= estimate.high


@pytest.mark.parametrize("prior", [0.1, 0.5, 0.8])
def test_case_control_estimates_are_right_and_intervals_cover(prior: float) -> None:
    rng, repeats, expected = np.random.default_rng(0), 120, truth(prior)
    results = [
        pu_metrics(*case_control(rng, 300, 1500, prior), prior, scenario="case_control", n_draws=200, random_state=i)
        for i in range(repeats)
    ]
    auc = float(norm.cdf(2 / math.sqrt(2)))
    if prior == 0.8:  # 300 rows leave AUC open by 0.3 and more: no number is better than a wild one
        assert np.mean(["leave it anywhere" in result.auc.reason for result in results]) > 0.6
    known = {**asdict(expected), "recall": RECALL} | ({"auc": auc} if prior < 0.8 else {})
    for name, value in known.items():
        estimates = [getattr(r.population if hasattr(r.population, name) else r, name) for r in results]
        values = np.array([estimate.value for estimate in estimates])
        assert abs(values.mean() - value) < 4 * values.std() / math.sqrt(repeats) + 0.003, name
        # Precision and F1 are kept within [0, 1], which only makes their intervals more cautious.
        assert np.mean([covers(estimate, value) for estimate in estimates]) > 0.9, name
    assert results[0].population == results[0].unlabelled


@pytest.mark.parametrize(("pi_pop", "n_p"), [(0.4, 200), (0.4, 600), (0.15, 100)])
def test_single_set_estimates_are_right_for_u_and_for_the_population(pi_pop: float, n_p: int) -> None:
    rng, repeats, n = np.random.default_rng(1), 150, 2000
    results, prior = [], 0.0
    for _ in range(repeats):
        p, u, prior = single_set(rng, n, pi_pop, n_p)
        results.append(pu_metrics(p, u, prior, scenario="single_set", n_draws=50))
    assert results[0].population.prior == pytest.approx(pi_pop)
    assert results[0].population.prior == pytest.approx(population_prior(prior, n_p, n - n_p, "single_set"))
    assert results[0].unlabelled.prior == pytest.approx(prior)
    for mix, share in (("population", pi_pop), ("unlabelled", prior)):
        for name, value in asdict(truth(share)).items():
            values = np.array([getattr(getattr(result, mix), name).value for result in results])
            assert abs(values.mean() - value) < 4 * values.std() / math.sqrt(repeats) + 0.004, (mix, name)


def test_single_set_proxy_accuracy_uses_the_unlabelled_positives_only() -> None:
    """From the accuracy that counts U as negative: + (2t − 1)(π_pop − n_P/n), where 2π_pop·t would be too much."""
    p, u, prior = single_set(np.random.default_rng(2), 4000, 0.4, 800)
    result, beta, t = pu_metrics(p, u, prior), 0.2, float((p > 0).mean())
    naive = ((p > 0).sum() + (u <= 0).sum()) / 4000
    exact = naive + 2 * (0.4 - beta) * t - (0.4 - beta)
    published = naive + 2 * 0.4 * t - 0.4
    assert result.population.accuracy.value == pytest.approx(exact, abs=1e-12)
    assert exact == pytest.approx(truth(0.4).accuracy, abs=0.03)
    assert published - truth(0.4).accuracy == pytest.approx(2 * beta * t - beta, abs=0.03)  # off by a lot
    assert published - exact > 0.1


def test_labelled_share_of_the_whole_data_replaces_that_of_the_held_out_rows() -> None:
    p, u, prior = single_set(np.random.default_rng(3), 4000, 0.4, 800)
    few = p[:80]  # held out less of P than of U
    corrected = pu_metrics(few, u, prior, labelled_share=0.2).population
    assert corrected.prior == pytest.approx(0.4)
    assert pu_metrics(few, u, prior).population.prior < 0.3


def test_formulas_by_hand() -> None:
    p = np.tile([1.0, 2.0, 3.0, -1.0], 200)  # so often that intervals are narrow
    u = np.tile([5.0, 1.0, -1.0, -2.0, -3.0], 200)
    result = pu_metrics(p, u, 0.4, scenario="case_control")
    assert result.recall.value == 0.75
    mix = result.unlabelled
    assert mix.called.value == pytest.approx(0.4)
    assert mix.precision.value == pytest.approx(0.4 * 0.75 / 0.4)
    assert mix.accuracy.value == pytest.approx(0.4 * 0.75 + 0.6 - 0.4 * 0.25)
    assert mix.f1.value == pytest.approx(2 * 0.3 / 0.8)
    # p=1 beats 3 and ties one; 2 and 3 beat 4; −1 beats 2 and ties one.
    auc_pu = (3.5 + 4 + 4 + 2.5) / 20
    assert auc_between(p, u) == pytest.approx(auc_pu)
    assert result.auc.value == pytest.approx((auc_pu - 0.2) / 0.6)


def test_auc_agrees_with_the_true_one_on_many_rows() -> None:
    rng = np.random.default_rng(4)
    y = rng.random(40_000) < 0.3
    u, p = draw(y, rng), draw(np.ones(10_000, dtype=bool), rng)
    estimated = pu_metrics(p, u, 0.3, scenario="case_control", n_draws=50).auc
    assert estimated.value == pytest.approx(true_metrics(y, u).auc, abs=0.01)
    assert estimated.high - estimated.low < 0.03


def test_the_same_seed_gives_the_same_intervals_and_tensors_are_taken() -> None:
    p, u = case_control(np.random.default_rng(5), 40, 100, 0.3)
    first = pu_metrics(p, u, 0.3, n_draws=50)
    assert pu_metrics(torch.from_numpy(p), torch.from_numpy(u), 0.3, n_draws=50) == first
    assert pu_metrics(p, u, 0.3, n_draws=50, random_state=1) != first


def test_twenty_out_of_twenty_is_not_certainty() -> None:
    recall = pu_metrics(np.ones(20), np.linspace(-1, 1, 100), 0.3).recall
    assert recall.value == recall.high == 1.0
    assert 0.8 < recall.low < 0.95


def test_an_uncertain_prior_widens_the_intervals() -> None:
    p, u = case_control(np.random.default_rng(6), 500, 2000, 0.3)
    known = pu_metrics(p, u, 0.3, scenario="case_control").population.precision
    unsure = pu_metrics(p, u, 0.3, scenario="case_control", prior_interval=(0.2, 0.4)).population.precision
    assert unsure.value == known.value
    assert unsure.high - unsure.low > 2 * (known.high - known.low)
    with pytest.raises(InputError, match=r"prior_interval must hold the prior 0\.3"):
        pu_metrics(p, u, 0.3, prior_interval=(0.4, 0.5))


def test_nothing_called_positive_leaves_precision_undefined() -> None:
    result = pu_metrics(np.zeros(100), np.zeros(300), 0.3, threshold=5.0, scenario="case_control")
    assert math.isnan(result.population.precision.value)
    assert result.recall.value == 0.0
    assert result.population.accuracy.value == pytest.approx(0.7)
    assert result.population.precision.reason == "none of these rows is called positive"
    everything = pu_metrics(np.zeros(100), np.zeros(300), 0.3, threshold=-5.0, scenario="case_control").population
    assert everything.precision.value == pytest.approx(0.3)
    assert everything.accuracy.value == pytest.approx(0.3)


def numbers(result: PUMetrics) -> list[Estimate]:
    mixes = [getattr(mix, n) for mix in (result.population, result.unlabelled) for n in ("accuracy", "f1", "called")]
    return [result.recall, result.auc, *mixes, result.population.precision]


@pytest.mark.parametrize("prior", [0.01, 0.5, 0.99])
def test_estimates_stay_in_the_unit_interval_whatever_the_prior(prior: float) -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        result = pu_metrics(*case_control(rng, 8, 20, 0.5), prior, n_draws=40)
        for estimate in numbers(result):
            assert math.isnan(estimate.value) == bool(estimate.reason)
            assert estimate.reason or 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0 + 1e-12


def test_contradictions_are_noted() -> None:
    rng = np.random.default_rng(8)
    p, u = case_control(rng, 400, 2000, 0.3)
    assert pu_metrics(p, u, 0.3).notes == ()
    notes = pu_metrics(p, u, 0.8).notes
    assert any("the share of positives is too high" in note for note in notes)
    seen = pu_metrics(p + 5.0, u, 0.512345).notes
    assert any("could at a share of positives of 0.512 (AUC 0.744): the share is too high" in note for note in seen)
    assert not any("perfect classifier" in note for note in pu_metrics(p + 9.0, u, 0.002).notes)  # 0.999 says nothing
    assert pu_metrics(p, u, 0.8, unknown="too few rows").notes == ()  # it was assumed, and nobody said it was right


@pytest.mark.parametrize("interval", [None, (0.27, 0.33)])
def test_a_perfect_classifier_at_the_true_share_contradicts_nothing(interval: tuple[float, float] | None) -> None:
    """In every second sample it is above the AUC that is expected of it."""
    rng, noted, seen = np.random.default_rng(9), 0, 0
    for _ in range(50):
        p, u = rng.normal(10, 1, 50), np.concatenate([rng.normal(10, 1, 150), rng.normal(0, 1, 350)])
        fresh, known = (
            pu_metrics(scores, u, 0.3, threshold=5.0, prior_interval=interval, n_draws=200) for scores in (p, p + 5.0)
        )
        noted += any("perfect classifier" in note for note in fresh.notes)
        seen += any("perfect classifier" in note for note in known.notes)
    assert noted <= 5
    assert seen == 50


def test_recall_does_not_claim_more_positives_than_rows_are_called() -> None:
    # 60 labelled rows that are nearly all called; 24 % of the unlabelled rows are, of which a third is positive.
    rng = np.random.default_rng(0)
    calls = Calls(np.arange(60) < 57, np.arange(400) < 96)
    found = pu_metrics(rng.normal(2, 1, 60), rng.normal(0, 1, 400), 0.33, calls=calls, prior_interval=(0.24, 0.42))
    mix = found.unlabelled
    assert found.recall.value < 0.8
    assert mix.precision.value * mix.called.value == pytest.approx(0.33 * found.recall.value, abs=0.03)
    sure = pu_metrics(rng.normal(2, 1, 60), rng.normal(0, 1, 400), 0.33, calls=calls, prior_interval=(0.32, 0.34))
    assert "more positives are called than rows" in sure.recall.reason


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"positive_scores": []}, "positive_scores must be a non-empty column"),
        ({"unlabelled_scores": [[1.0]]}, "unlabelled_scores must be a non-empty column"),
        ({"positive_scores": [1.0, math.nan]}, "1 of 2 is NaN, first at row 1"),
        ({"prior": 1.0}, r"prior must lie in \(0, 1\)"),
        ({"scenario": "both"}, "scenario must be one of"),
        ({"confidence": 95}, "0 < confidence < 1"),
        ({"labelled_share": 1.5}, "labelled_share must lie"),
        ({"target": "pop"}, "target must be one of"),
        ({"threshold": math.nan}, "threshold is NaN"),
        ({"positive_scores": np.ma.MaskedArray([1.0, 9.0], [False, True])}, "1 of 2 is NaN, first at row 1"),
        ({"unlabelled_scores": ["a"]}, "unlabelled_scores must hold numbers"),
    ],
)
def test_bad_input_is_explained(change: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"positive_scores": [1.0], "unlabelled_scores": [0.0], "prior": 0.3}
    with pytest.raises(InputError, match=message):
        pu_metrics(**{**good, **change})  # type: ignore[arg-type]


# What cannot be estimated


def test_useless_scores_give_no_number_where_the_prior_is_an_estimate() -> None:
    rng = np.random.default_rng(9)
    for n_p in (10, 100, 500):
        for prior in (0.1, 0.5, 0.99):
            p, u = rng.normal(size=n_p), rng.normal(size=2000)
            found = pu_metrics(p, u, prior, prior_interval=(0.5 * prior, 0.5 + 0.5 * prior), n_draws=100).five
            for name in ("precision", "accuracy", "f1", "auc"):
                assert math.isnan(found[name].value), (n_p, prior, name)
                assert "cannot be known" in found[name].in_words()


def test_a_given_prior_lets_useless_scores_be_judged() -> None:
    """What is known about the share needs no ranking: chance has accuracy π·q + (1 − π)(1 − q)."""
    rng = np.random.default_rng(10)
    found = pu_metrics(rng.normal(size=2000), rng.normal(size=4000), 0.3, scenario="case_control").five
    assert found["accuracy"].value == pytest.approx(0.5, abs=0.03)
    assert found["auc"].value == pytest.approx(0.5, abs=0.05)


def test_a_prior_that_is_unknown_leaves_recall_only() -> None:
    p, u = case_control(np.random.default_rng(11), 400, 2000, 0.3)
    found = pu_metrics(p, u, 0.3, unknown="nobody knows").five
    assert {name for name, estimate in found.items() if not estimate.reason} == {"recall"}
    assert found["accuracy"].in_words() == "cannot be estimated: nobody knows"


def test_all_labelled_rows_above_the_cut_do_not_make_precision_certain() -> None:
    """Twenty of twenty found and 18 of 60 called at prior 0.4: π·t > q by chance, and no claim of 1.000."""
    found = pu_metrics(np.ones(20), np.r_[np.ones(22), -np.ones(38)], 0.4, scenario="case_control").five["precision"]
    assert 0.8 < found.value < 0.999


@pytest.mark.parametrize("n_called", [78, 84, 100])
def test_f1_is_the_harmonic_mean_of_precision_and_recall_also_at_a_bound(n_called: int) -> None:
    """At a prior of 0.3 all labelled rows above the cut are more positives than 78 or 84 of 300 rows can be."""
    p, u = np.ones(50), np.repeat([1.0, -1.0], [n_called, 300 - n_called])
    found = pu_metrics(p, u, 0.3, prior_interval=(0.2, 0.4)).five
    recall, precision, f1 = (found[name] for name in ("recall", "precision", "f1"))
    assert f1.value == pytest.approx(2 / (1 / precision.value + 1 / recall.value), abs=1e-9)
    assert f1.low <= f1.value <= f1.high


def test_weighted_auc_is_the_plain_double_sum() -> None:
    rng = np.random.default_rng(12)
    p, u, chances = rng.integers(0, 9, 7).astype(float), rng.integers(0, 9, 30).astype(float), rng.random(30)
    wins = sum((1 - c) * ((a > b) + 0.5 * (a == b)) for a in p for b, c in zip(u, chances, strict=True))
    assert weighted_auc(p, u, chances) == pytest.approx(wins / (len(p) * sum(1 - c for c in chances)))


def test_weighted_auc_is_the_true_one_and_its_interval_covers() -> None:
    rng, auc, prior = np.random.default_rng(13), float(norm.cdf(2 / math.sqrt(2))), 0.5
    found = []
    for _ in range(60):
        p, u = case_control(rng, 200, 1000, prior)
        calls = Calls(p > 0, u > 0, 1 / (1 + np.exp(-2 * u)))  # the posterior of N(1, 1) against N(−1, 1) at one half
        found.append(pu_metrics(p, u, prior, calls=calls, confidence=0.9, n_draws=200).auc)
    assert np.mean([estimate.value for estimate in found]) == pytest.approx(auc, abs=0.005)
    assert np.mean([covers(estimate, auc) for estimate in found]) > 0.8


@pytest.mark.parametrize("n_p", [1, 2, 5, 20])
def test_few_labelled_rows_do_not_make_auc_certain(n_p: int) -> None:
    rng, expected = np.random.default_rng(0), float(norm.cdf(2 / math.sqrt(2)))
    found = [
        pu_metrics(*case_control(rng, n_p, 400, 0.2), 0.2, confidence=0.9, n_draws=200, random_state=i).auc
        for i in range(100)
    ]
    stated = [estimate for estimate in found if not estimate.reason]
    assert n_p == 20 or not stated  # a handful that happen to score alike say nothing of the others
    assert not stated or np.mean([covers(estimate, expected) for estimate in stated]) > 0.85


def test_perfect_separation_of_labelled_rows_is_not_certainty() -> None:
    p, u, n = np.linspace(2, 3, 50), np.linspace(-3, 3, 300), np.linspace(-3, -2, 40)
    auc = pu_metrics(p, u, 0.2, negative_scores=n).auc
    assert auc.value == auc.high == 1.0
    assert 0.93 < auc.low < 0.99


@pytest.mark.parametrize("apart", [5.0, 8.0])
def test_intervals_reach_the_truth_where_classes_hardly_overlap(apart: float) -> None:
    """Accuracy falls to both sides of the true share, which draws of the share hardly hit: none held the truth."""
    rng, prior, error = np.random.default_rng(15), 0.3, 0.05
    cut = apart / 2 + math.log((1 - prior) / prior) / apart  # the best one for accuracy
    found_all, called_wrongly = float(norm.sf(cut - apart)), float(norm.sf(cut))
    known = {"recall": found_all, "accuracy": prior * found_all + (1 - prior) * (1 - called_wrongly)}
    known["f1"] = 2 * prior * found_all / (prior * found_all + (1 - prior) * called_wrongly + prior)
    results = []
    for i in range(60):
        guess = float(np.clip(rng.normal(prior, error), 0.05, 0.6))
        p, u = rng.normal(apart, 1.0, 60), rng.normal(0.0, 1.0, 1000) + apart * (rng.random(1000) < prior)
        interval = (max(0.0, guess - 1.645 * error), guess + 1.645 * error)
        asked: dict[str, Any] = {"scenario": "case_control", "confidence": 0.9, "n_draws": 200, "random_state": i}
        results.append(pu_metrics(p, u, guess, threshold=cut, prior_interval=interval, **asked).five)
    for name, value in known.items():
        assert np.mean([covers(result[name], value) for result in results]) > 0.85, name


def test_rules_that_differ_widen_the_intervals() -> None:
    p, u = case_control(np.random.default_rng(14), 100, 500, 0.3)
    shares = ([0.4] * 5, [0.2, 0.3, 0.4, 0.5, 0.6])
    steady, shaky = (Calls(p > 0, u > 0, by_rule=np.array([[0.8] * 5, of_u])) for of_u in shares)
    narrow, wide = (pu_metrics(p, u, 0.3, calls=calls).unlabelled.called for calls in (steady, shaky))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


# Warning signs


def unsteady(n_called: int, prior: float, **asked: Any) -> PUMetrics:
    """Rules of five folds that call 1 to 18 % of 1,000 unlabelled rows; the rule at hand calls `n_called`."""
    rng = np.random.default_rng(0)
    by_rule = np.array([[0.05, 0.1, 0.3, 0.8, 0.9], [0.01, 0.02, 0.06, 0.16, 0.18]])
    calls = Calls(np.arange(60) < 25, np.arange(1000) < 86, by_rule=by_rule, at_hand=np.arange(1000) < n_called)
    scores = rng.normal(3, 1, 60), rng.normal(0, 1, 1000)
    return pu_metrics(*scores, prior, calls=replace(calls, are_all=True), confidence=0.9, **asked)


def test_recall_and_f1_do_not_exceed_what_the_calls_at_hand_allow() -> None:
    """With 50 calls and at least 180 positives, recall was said to lie anywhere between 0.00 and 1.00."""
    found = unsteady(50, 0.2, prior_interval=(0.18, 0.24))
    assert found.recall.high == pytest.approx(50 / 180)
    assert found.recall.low <= found.recall.value <= found.recall.high
    assert found.recall.value == pytest.approx(50 / 200)  # and not 0.42 of the labelled rows
    assert found.unlabelled.f1.high <= 2 * (50 / 180) / (1 + 50 / 180) + 1e-12
    # New rows are called by the same rule: there 5 % of calls are an estimate.
    new = unsteady(50, 0.2, prior_interval=(0.18, 0.24), target="population")
    assert 50 / 180 < new.recall.high < 0.36
    given = unsteady(50, 0.2)
    assert 0.25 < given.recall.high < 0.32


def test_calls_at_hand_that_leave_room_change_nothing() -> None:
    free, plain = unsteady(400, 0.2, prior_interval=(0.18, 0.24)), unsteady(1000, 0.2, prior_interval=(0.18, 0.24))
    assert free == plain


def test_collapse_is_recognised() -> None:
    rng = np.random.default_rng(11)
    p, u = case_control(rng, 100, 400, 0.3)
    assert collapse_reason(p, u) == ""
    assert collapse_reason(np.full(5, 0.3), np.full(9, 0.3)) == "every row has the same score"
    assert collapse_reason(p + 99, u + 99) == "every row is called positive"
    assert collapse_reason(p - 99, u - 99) == "no row is called positive"
    assert collapse_reason(rng.permutation(u)[:100], u).startswith("labelled rows do not score higher")
    assert collapse_reason(-p, -u)


def test_recall_is_no_number_where_no_unlabelled_row_is_called() -> None:
    p, u = np.full(100, 2.0), np.linspace(-1.0, 0.5, 800)
    found = pu_metrics(p, u, 0.002, threshold=1.0, prior_interval=(0.0, 0.011))
    assert "no unlabelled row is called positive" in found.recall.reason
    unknown = pu_metrics(p, u, 0.5, threshold=1.0, unknown="it is not known")
    assert "no unlabelled row is called positive" in unknown.recall.reason
    assert pu_metrics(p, u, 0.002, threshold=3.0, prior_interval=(0.0, 0.011)).recall.value == 0.0

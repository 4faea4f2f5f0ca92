"""Students of the portfolio: what they learn, that they see no label of their own fold; how candidates are weighed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from punce.judging.ranking import auc_between, share_below
from punce.models.portfolio.candidates import Candidates
from punce.models.portfolio.readers import Given
from punce.models.portfolio.students import KERNEL, LINEAR, taught
from punce.models.portfolio.weighing import (
    candidate_weights,
    cross_fitted,
    row_chances,
    trust_in,
    weighed_sum,
    weights_beside,
)
from punce.models.ridge import RIDGES, regressed
from punce.models.tabular.weighing import member_weights
from tests.models.test_portfolio import SETTINGS

CPU = torch.device("cpu")


def _ring(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A disc inside a ring, which no plane tells apart; 60 rows of the disc are labelled."""
    truth = np.where(rng.random(n) < 0.5, 1, -1)
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.where(truth > 0, 1.0, 3.0) + 0.4 * rng.normal(size=n)
    x = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).astype(np.float32)
    labels = np.zeros(n, dtype=np.int8)
    labels[np.flatnonzero(truth > 0)[:60]] = 1
    return x, labels, truth


def test_students_learn_from_a_teacher_that_sees_what_the_others_do_not() -> None:
    x, labels, truth = _ring(600, np.random.default_rng(0))
    rows = Given(torch.from_numpy(x))
    teachers = Candidates.fit(rows, labels, SETTINGS, CPU, heads=("logistic", "kernel"), losses=())
    students = taught(teachers, rows, labels, SETTINGS)
    assert set(students.held_out) == {f"{name}, {kind}" for name in students.readers for kind in (LINEAR, KERNEL)}
    scores = cross_fitted(students.held_out, labels, students.folds, SETTINGS.prior)
    unlabelled = labels == 0
    assert auc_between(scores[unlabelled & (truth > 0)], scores[unlabelled & (truth < 0)]) > 0.95


def test_held_out_scores_of_students_rank_labelled_rows_no_better_than_chance_in_noise() -> None:
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x, labels = rng.normal(size=(300, 8)).astype(np.float32), np.repeat([1, 0], [60, 240]).astype(np.int8)
        rows, settings = Given(torch.from_numpy(x)), replace(SETTINGS, random_state=seed, used={})
        teachers = Candidates.fit(rows, labels, settings, CPU, heads=("logistic", "kernel"), losses=())
        students = taught(teachers, rows, labels, settings)
        scores = cross_fitted(students.held_out, labels, students.folds, settings.prior)
        found.append(auc_between(scores[labels == 1], scores[labels == 0]))
    assert abs(np.mean(found) - 0.5) < 0.05  # a standard error of one mean is about 0.015


def test_word_counts_have_linear_students_only() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], [40, 110]).astype(np.int8)
    counts = csr_matrix(rng.poisson(0.2, size=(150, 30)) + np.outer(labels, np.eye(30)[0]))
    rows = Given(torch.from_numpy(rng.normal(size=(150, 4)).astype(np.float32)), counts)
    teachers = Candidates.fit(rows, labels, SETTINGS, CPU, heads=("logistic",), losses=())
    students = taught(teachers, rows, labels, SETTINGS)
    assert {name for name in students.held_out if name.startswith("words")} == {f"words, {LINEAR}"}


def test_a_student_takes_the_truth_of_rows_of_known_class() -> None:
    x, labels, truth = _ring(400, np.random.default_rng(1))
    known = np.where((labels == 0) & (np.arange(400) % 4 != 0), -truth, 0).astype(np.int8)  # wrong on purpose
    settings = replace(SETTINGS, truths=known, used={})
    rows = Given(torch.from_numpy(x))
    teachers = Candidates.fit(rows, labels, settings, CPU, heads=("kernel",), losses=())
    students = taught(teachers, rows, labels, settings)
    plain = taught(Candidates.fit(rows, labels, SETTINGS, CPU, heads=("kernel",), losses=()), rows, labels, SETTINGS)
    unlabelled, name = labels == 0, f"raw, {KERNEL}"
    wrong, right = (
        auc_between(own.held_out[name][unlabelled & (truth > 0)], own.held_out[name][unlabelled & (truth < 0)])
        for own in (students, plain)
    )
    assert wrong < right - 0.05


def test_a_regression_on_given_targets_has_the_least_error_of_rows_left_out() -> None:
    """Every row left out by a fit of its own, in a plain loop."""
    rng = np.random.default_rng(2)
    x, target = rng.normal(size=(40, 5)), rng.random(40)
    weights = np.full(40, 1 / 40)
    centred = x - x.mean(axis=0)
    most = np.linalg.eigvalsh(centred.T @ centred / 40)[-1]

    def plane(part: np.ndarray, ridge: float) -> np.ndarray:
        # Means and penalty are those of all rows, as in the closed form.
        own, wanted = centred[part], (target - target.mean())[part]
        return np.linalg.solve(own.T @ own / 40 + ridge * most * np.eye(5), own.T @ wanted / 40)

    def error(ridge: float) -> float:
        squares = []
        for k in range(40):
            rest = np.arange(40) != k
            squares.append((centred[k] @ plane(rest, ridge) - (target[k] - target.mean())) ** 2)
        return float(np.mean(squares))

    errors = [error(ridge) for ridge in RIDGES]
    found = regressed(x, target, weights)
    assert found.error == pytest.approx(min(errors))
    assert found.weight == pytest.approx(plane(np.ones(40, dtype=bool), RIDGES[int(np.argmin(errors))]))
    assert x @ found.weight + found.bias == pytest.approx(centred @ found.weight + target.mean())


def test_shares_below_count_each_row_as_much_as_it_is_told() -> None:
    scores, others, counts = np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.5, 3.0, 1.0]), np.array([1.0, 2.0, 4.0, 3.0])
    expected = [
        sum(c * ((o < s) + 0.5 * (o == s)) for o, c in zip(others, counts, strict=True)) / counts.sum() for s in scores
    ]
    assert share_below(scores, others, counts) == pytest.approx(expected)
    assert share_below(scores, others, np.ones(4)) == pytest.approx(share_below(scores, others))


def test_a_candidate_that_ranks_negatives_low_counts_more_than_one_that_only_ranks_hidden_positives_low() -> None:
    """Both have the same AUC of labelled against all unlabelled rows; only the first tells the classes apart."""
    rng = np.random.default_rng(3)
    labels = np.repeat([1, 0, 0], [100, 500, 500]).astype(np.int8)
    kind = np.repeat([0, 1, 2], [100, 500, 500])  # labelled, hidden positive, negative
    telling = rng.normal(size=1100) + np.array([1.0, 1.0, -1.0])[kind]
    others = [rng.normal(size=1100) + np.array([1.0, 1.0, -1.0])[kind] for _ in range(3)]
    misled = rng.normal(size=1100) + np.array([1.0, -1.0, 1.0])[kind]
    held_out = {"telling": telling, "misled": misled, **{f"other {k}": own for k, own in enumerate(others)}}
    weights = candidate_weights(held_out, labels, 0.5)
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["misled"] < 0.6 * member_weights(held_out, labels)["misled"]


def test_a_member_apart_begins_at_four_fifths_and_held_out_rows_can_speak_against_it() -> None:
    """Twelve members that rank alike: among them a thirteenth would count for a thirteenth."""
    rng = np.random.default_rng(5)
    labels = np.repeat([1, 0, 0], [100, 500, 500]).astype(np.int8)
    means = np.array([1.0, 1.0, -1.0])[np.repeat([0, 1, 2], [100, 500, 500])]

    def scaled(scores: np.ndarray) -> np.ndarray:
        return (scores - scores[labels == 0].mean()) / scores[labels == 0].std()

    def share(apart: np.ndarray) -> float:
        """Of the spread of the sum that the member apart has."""
        noise = rng.normal(size=1100)
        held_out = {f"other {k}": scaled(means + noise + 0.1 * rng.normal(size=1100)) for k in range(12)}
        assert weights_beside(held_out, labels, 0.5, ()) == candidate_weights(held_out, labels, 0.5)
        weights = weights_beside({**held_out, "apart": scaled(apart)}, labels, 0.5, ("apart",))
        assert sum(weights.values()) == pytest.approx(1.0)
        rest = float(weighed_sum(held_out, weights)[labels == 0].std())
        return weights["apart"] / (weights["apart"] + rest)

    assert 0.65 < np.mean([share(means + rng.normal(size=1100)) for _ in range(10)]) < 0.9  # as good as the others
    assert share(3 * means + rng.normal(size=1100)) > 0.9
    assert share(rng.normal(size=1100)) < 0.1


def test_chances_of_rows_have_the_prior_as_their_mean_and_keep_the_order() -> None:
    scores = np.random.default_rng(4).normal(size=200)
    found = row_chances(scores, 0.3, 1.0)
    assert found.mean() == pytest.approx(0.3)
    assert np.array_equal(np.argsort(found), np.argsort(scores))
    assert row_chances(scores, 0.3, 0.0) == pytest.approx(np.full(200, 0.3))


def test_trust_is_what_scores_tell_of_the_classes_whatever_the_share_of_hidden_positives() -> None:
    rng = np.random.default_rng(5)
    for prior, apart, expected in ((0.2, 1.0, 0.52), (0.7, 1.0, 0.52), (0.5, 0.0, 0.0), (0.5, 6.0, 1.0)):
        labels = np.repeat([1, 0], [20_000, 20_000]).astype(np.int8)
        is_positive = (labels == 1) | (rng.random(40_000) < prior)
        scores = rng.normal(size=40_000) + apart * is_positive
        # 2·AUC − 1 of two normal classes that are one standard deviation apart is 0.52.
        assert trust_in(scores, labels, prior) == pytest.approx(expected, abs=0.03)

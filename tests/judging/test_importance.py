"""Which columns matter, and which moved a row, by a scorer that is known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.inspection import permutation_importance

from punce.judging.importance import (
    column_importances,
    row_effects,
    rows_to_measure,
    telling_columns,
)
from punce.judging.ranking import auc_between, share_below

WEIGHTS = np.array([2.0, 1.0, 0.0, 0.05])


def problem(n: int = 900, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two true columns and two of noise, of which a scorer uses one a little."""
    rng = np.random.default_rng(seed)
    is_positive = rng.random(n) < 0.4
    x = rng.normal(size=(n, 4))
    x[:, 0] += 1.5 * is_positive
    x[:, 1] += 0.8 * is_positive
    labels = (is_positive & (rng.random(n) < 0.5)).astype(np.int64)
    return x.astype(np.float32), labels


def linear(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return values.astype(np.float64) @ WEIGHTS


def columns(d: int = 4) -> dict[str, np.ndarray]:
    return {f"c{j}": np.array([j]) for j in range(d)}


def test_true_columns_come_first_and_noise_is_not_known_to_matter() -> None:
    x, labels = problem()
    found = {each.name: each for each in column_importances(linear, x, labels, columns())}
    assert found["c0"].drop > found["c1"].drop > found["c3"].drop
    assert found["c0"].low > 0
    assert found["c1"].low > 0
    assert found["c2"].drop == found["c2"].low == found["c2"].high == 0
    assert found["c3"].low < 0 < found["c3"].high


def test_equals_scikit_learn_on_the_same_scorer() -> None:
    x, labels = problem(n=600)
    ours = np.mean(
        [[each.drop for each in column_importances(linear, x, labels, columns(), seed=seed)] for seed in range(8)],
        axis=0,
    )

    def auc(_: object, X: np.ndarray, y: np.ndarray) -> float:
        scores = linear(X, np.arange(len(X)))
        return auc_between(scores[y == 1], scores[y == 0])

    stub = SimpleNamespace(fit=lambda: None)
    theirs = permutation_importance(stub, x, labels, scoring=auc, n_repeats=16, random_state=0)
    np.testing.assert_allclose(ours, theirs.importances_mean, atol=0.01)


def test_intervals_cover_the_drop_of_a_large_table() -> None:
    x, labels = problem(n=40_000, seed=99)
    truth = [each.drop for each in column_importances(linear, x, labels, columns())]
    inside = []
    for seed in range(60):
        found = column_importances(linear, *problem(n=300, seed=seed), columns())
        inside.append([each.low <= drop <= each.high for each, drop in zip(found[:2], truth[:2], strict=True)])
    assert 0.8 <= np.mean(inside) <= 0.98


def test_a_column_changes_with_all_that_was_made_of_it() -> None:
    x, labels = problem()
    whole, part = (column_importances(linear, x, labels, {"both": np.array(own)})[0].drop for own in ([0, 1], [0]))
    assert whole > part + 0.02


def test_of_a_wide_table_the_columns_that_explain_the_score_are_measured() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 300)).astype(np.float32)
    labels = (rng.random(400) < 0.3).astype(np.int64)
    calls = []

    def third(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        calls.append(len(values))
        return np.abs(values[:, 3]).astype(np.float64)

    found = column_importances(third, x, labels, columns(300))
    assert len(found) == 300
    assert sum(np.isfinite(each.low) for each in found) == 100
    assert np.isfinite(found[3].low)
    assert sum(calls) <= 400 * 101
    assert telling_columns(x, np.abs(x[:, 3]), columns(300))[0] == "c3"


def test_rows_to_measure_bound_the_time_and_hold_both_sides() -> None:
    labels = np.repeat([1, 0], [3000, 50_000])
    for d, most in ((10, 900), (100, 600), (5000, 300)):
        rows = rows_to_measure(labels, d)
        assert len(rows) == most
        assert {0, 1} == set(labels[rows])
    assert len(rows_to_measure(labels[2990:3100], 10)) == 110


def test_effects_of_a_linear_score_are_weight_times_distance_to_the_mean() -> None:
    x, labels = problem()
    background = x[labels == 0]
    own, without = row_effects(linear, x[:20], np.arange(20), columns(), background)
    wanted = WEIGHTS * (x[:20] - background.mean(axis=0))
    np.testing.assert_allclose(own[:, None] - without, wanted, atol=0.15)


def test_copies_are_scored_as_the_rows_they_are_of() -> None:
    x, _ = problem(n=50)

    def by_row(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return rows.astype(np.float64)

    own, without = row_effects(by_row, x[:5], np.array([7, 3, 9, 1, 4]), columns(), x)
    np.testing.assert_array_equal(own, [7, 3, 9, 1, 4])
    np.testing.assert_array_equal(without, np.repeat(own[:, None], 4, axis=1))


@pytest.mark.parametrize("others", [[1.0, 2.0, 2.0, 5.0]])
def test_a_tie_counts_one_half(others: list[float]) -> None:
    np.testing.assert_array_equal(share_below(np.array([0.0, 2.0, 6.0]), np.array(others)), [0.0, 0.5, 1.0])

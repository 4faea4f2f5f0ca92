from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from punce.errors import InputError
from punce.models.tabular.trees import Trees, all_scores, boosting_trees, held_out

N_NUMBERS, N_CODES = 4, 3


def _rows(n: int, seed: int, *, missing: float = 0.0, codes: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Numbers with ties, columns of codes between them, NaN in both kinds."""
    rng = np.random.default_rng(seed)
    numbers = np.round(rng.normal(size=(n, N_NUMBERS)), 2)
    columns = rng.integers(0, codes, size=(n, N_CODES))
    values = np.empty((n, N_NUMBERS + N_CODES), dtype=np.float32)
    values[:, [0, 2, 4, 6]] = numbers
    values[:, [1, 3, 5]] = columns
    values[rng.random(values.shape) < missing] = np.nan
    return values, np.array([False, True] * 3 + [False])


def _target(values: np.ndarray, seed: int) -> np.ndarray:
    filled = np.nan_to_num(values, nan=1.5)
    score = filled[:, 0] * filled[:, 2] + (filled[:, 1] % 3) - np.sin(filled[:, 3] * 7) + 0.5 * np.isnan(values[:, 5])
    noise = np.random.default_rng(seed).normal(size=len(values))
    return (score + noise > np.median(score)).astype(int)


def _fitted(values: np.ndarray, y: np.ndarray, categorical: np.ndarray | None, **options: Any) -> Any:
    options = {"max_iter": 40, "random_state": 0, "early_stopping": False, **options}
    return HistGradientBoostingClassifier(categorical_features=categorical, **options).fit(values, y)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("codes", [2, 12, 250])
@pytest.mark.parametrize("leaves", [2, 8, 31])
def test_scores_equal_scikit_learns_to_the_last_bit(missing: float, codes: int, leaves: int) -> None:
    values, categorical = _rows(1500, 0, missing=missing, codes=codes)
    model = _fitted(values, _target(values, 1), categorical, max_leaf_nodes=leaves, min_samples_leaf=5)
    unseen, _ = _rows(700, 2, missing=0.1, codes=codes)
    trees = boosting_trees(model)
    assert np.array_equal(trees.score(unseen), model.decision_function(unseen))
    if codes > 2:
        assert len(trees.left_codes), "the model must have split on a category, or this test shows nothing"


def test_codes_never_seen_in_training_go_where_missing_values_go() -> None:
    values, categorical = _rows(1500, 0, missing=0.1)
    values[:, 1] = np.where(values[:, 1] == 4, 5, values[:, 1])  # a gap in the codes
    model = _fitted(values, _target(values, 1), categorical)
    unseen, _ = _rows(500, 3)
    unseen[:, 1] = np.resize([4.0, 12.0, 200.0, 255.0], 500)
    unseen[:, 3] = np.resize([-1.0, 13.0], 500)
    assert np.array_equal(boosting_trees(model).score(unseen), model.decision_function(unseen))


def test_missing_values_in_prediction_only() -> None:
    values, categorical = _rows(1000, 0)
    model = _fitted(values, _target(values, 1), categorical)
    unseen, _ = _rows(500, 4, missing=0.5)
    assert np.array_equal(boosting_trees(model).score(unseen), model.decision_function(unseen))


@pytest.mark.parametrize("kind", ["numbers", "codes"])
def test_tables_of_one_kind(kind: str) -> None:
    values, categorical = _rows(1000, 0, missing=0.1)
    y = _target(values, 1)
    columns = ~categorical if kind == "numbers" else categorical
    values = values[:, columns]
    model = _fitted(values, y, np.ones(values.shape[1], bool) if kind == "codes" else None)
    assert np.array_equal(boosting_trees(model, values[:50]).score(values), model.decision_function(values))


def test_infinite_and_extreme_numbers_go_the_same_way() -> None:
    values, categorical = _rows(1000, 0)
    values[:5, 0] = [np.inf, -np.inf, 3e38, -3e38, 0.0]
    model = _fitted(values, _target(np.clip(values, -9, 9), 1), categorical)
    assert np.array_equal(boosting_trees(model).score(values), model.decision_function(values))


def test_weights_and_random_columns_change_nothing() -> None:
    values, categorical = _rows(1000, 0, missing=0.1)
    y = _target(values, 1)
    model = HistGradientBoostingClassifier(
        max_features=0.5, l2_regularization=5.0, max_iter=30, categorical_features=categorical, random_state=1
    ).fit(values, y, sample_weight=np.random.default_rng(0).random(1000))
    assert np.array_equal(boosting_trees(model).score(values), model.decision_function(values))


def test_a_model_without_splits_scores_its_baseline() -> None:
    values, _ = _rows(30, 0)
    model = _fitted(values, np.resize([0, 1, 1], 30), None, min_samples_leaf=30)
    assert np.array_equal(boosting_trees(model).score(values), model.decision_function(values))


def test_chunks_of_rows_do_not_change_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    values, categorical = _rows(500, 0, missing=0.1)
    trees = boosting_trees(_fitted(values, _target(values, 1), categorical))
    whole = trees.score(values)
    monkeypatch.setattr("punce.models.tabular.trees._ROWS_AT_ONCE", 7)
    assert np.array_equal(trees.score(values), whole)
    assert trees.score(values[:0]).shape == (0,)


@pytest.mark.parametrize("n_rows", [0, 5, 500])
def test_parts_of_rows_do_not_change_the_scores_of_several_models(n_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values, categorical = _rows(500, 0, missing=0.1)
    models = [boosting_trees(_fitted(values, _target(values, seed), categorical)) for seed in (1, 2)]
    one_by_one = np.stack([trees.score(values[:n_rows]) for trees in models])
    folds = np.arange(n_rows) % 2
    monkeypatch.setattr("punce.models.tabular.trees._ROWS_A_COPY", 3)
    assert np.array_equal(all_scores(models, values[:n_rows]), one_by_one)
    assert np.array_equal(held_out(models, values[:n_rows], folds), one_by_one[folds, np.arange(n_rows)])


def test_arrays_bring_the_trees_back() -> None:
    values, categorical = _rows(600, 0, missing=0.1)
    trees = boosting_trees(_fitted(values, _target(values, 1), categorical))
    arrays = trees.arrays()
    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in arrays.values())
    assert np.array_equal(Trees.from_arrays(arrays).score(values), trees.score(values))


def test_a_layout_it_does_not_know_is_noticed() -> None:
    values, categorical = _rows(600, 0)
    model = _fitted(values, _target(values, 1), categorical)
    model._baseline_prediction = model._baseline_prediction + 1.0
    trees = boosting_trees(model)
    model._baseline_prediction = model._baseline_prediction - 1.0
    assert not np.allclose(trees.score(values), model.decision_function(values))
    model._predictors[0][0].nodes["is_categorical"] = 0  # decision_function now disagrees with the bitsets
    boosting_trees(model, values)  # but agrees with its own arrays
    model.decision_function = lambda rows: np.zeros(len(rows))
    with pytest.raises(RuntimeError, match="lays out its trees"):
        boosting_trees(model, values)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("left", lambda a: a[:-1], "wrong shape"),
        ("left", lambda a: np.zeros_like(a), "leads back"),
        ("right", lambda a: a + len(a), "leads back"),
        ("category", lambda a: a + 1000, "does not exist"),
        ("feature", lambda a: a - 100, "does not exist"),
        ("roots", lambda a: a - 1, "leads back"),
        ("left_codes", lambda a: a[:, :9], "wrong shape"),
    ],
)
@pytest.mark.faults
def test_damaged_arrays_are_refused(name: str, change: Any, message: str) -> None:
    values, categorical = _rows(300, 0)
    trees = boosting_trees(_fitted(values, _target(values, 1), categorical, max_iter=3))
    damaged = replace(trees, **{name: change(getattr(trees, name))})
    with pytest.raises(InputError, match=message):
        Trees.from_arrays(damaged.arrays())


def test_absent_arrays_are_named() -> None:
    with pytest.raises(InputError, match="threshold"):
        Trees.from_arrays({"roots": np.zeros(1, np.int32)})

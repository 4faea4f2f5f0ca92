from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from sklearn.ensemble import HistGradientBoostingClassifier

from punce.errors import InputError
from punce.judging.ranking import auc_between
from punce.models.tabular import MEMBERS, TabularPU
from punce.models.tabular.model import member_weights, scale_of, stratified_folds
from tests.models.problem import Problem, problem


def _auc(scores: np.ndarray, y: np.ndarray) -> float:
    return auc_between(scores[y == 1], scores[y == 0])


@pytest.fixture(scope="module")
def rows() -> Problem:
    return problem(700, n_labelled=50, seed=1)


@pytest.fixture(scope="module")
def fresh() -> Problem:
    return problem(1500, n_labelled=1, seed=2)


@pytest.fixture(scope="module")
def fitted(rows: Problem) -> TabularPU:
    return TabularPU(rows.prior).fit(rows.values, rows.categorical, rows.labels)


def test_it_beats_p_against_u_boosting_on_new_rows(fitted: TabularPU, rows: Problem, fresh: Problem) -> None:
    plain = HistGradientBoostingClassifier(categorical_features=rows.categorical, random_state=0)
    plain.fit(rows.values, rows.labels)
    ours = _auc(fitted.score(fresh.values), fresh.y)
    assert ours > _auc(plain.decision_function(fresh.values), fresh.y) + 0.02
    assert ours > 0.93


def test_out_of_fold_scores_tell_the_truth_about_new_rows(fitted: TabularPU, rows: Problem, fresh: Problem) -> None:
    """Labelled rows and hidden positives must be scored alike, and as new rows are."""
    scores, is_p = fitted.out_of_fold_scores_, rows.labels == 1
    hidden = ~is_p & (rows.y == 1)
    assert abs(scores[is_p].mean() - scores[hidden].mean()) < 0.3 * scores[hidden].std()
    assert abs(_auc(scores[~is_p], rows.y[~is_p]) - _auc(fitted.score(fresh.values), fresh.y)) < 0.03


def test_labels_without_meaning_give_chance_out_of_fold(rows: Problem) -> None:
    labels = np.random.default_rng(3).permutation(rows.labels)
    model = TabularPU(0.4).fit(rows.values, rows.categorical, labels)
    noise = 3 * np.sqrt(1 / (12 * 50))
    assert abs(_auc(model.out_of_fold_scores_, labels) - 0.5) < noise


def test_same_seed_same_scores(fitted: TabularPU, rows: Problem) -> None:
    again = TabularPU(rows.prior).fit(rows.values, rows.categorical, rows.labels)
    assert np.array_equal(again.out_of_fold_scores_, fitted.out_of_fold_scores_)
    assert np.array_equal(again.score(rows.values), fitted.score(rows.values))


def test_the_largest_seed_is_taken_although_folds_have_the_next_ones() -> None:
    small = problem(60, n_labelled=10, seed=1)
    model = TabularPU(small.prior, random_state=2**32 - 1).fit(small.values, small.categorical, small.labels)
    assert np.isfinite(model.out_of_fold_scores_).all()


def test_it_comes_back_from_safetensors_and_json(fitted: TabularPU, fresh: Problem, tmp_path: Path) -> None:
    tensors, content = fitted.state()
    save_file(tensors, tmp_path / "model.safetensors")
    text = json.dumps(content, allow_nan=False)
    again = TabularPU.from_state(load_file(tmp_path / "model.safetensors"), json.loads(text))
    assert np.array_equal(again.score(fresh.values), fitted.score(fresh.values))
    assert np.array_equal(again.out_of_fold_scores_, fitted.out_of_fold_scores_)
    assert (again.prior, again.members, again.scenario) == (fitted.prior, fitted.members, fitted.scenario)


@pytest.mark.parametrize("lost", ["bins.edges", "forest.0.numeric", "out_of_fold_scores", "boosting.0.1.left"])
def test_a_state_with_a_hole_is_refused(fitted: TabularPU, lost: str) -> None:
    tensors, content = fitted.state()
    del tensors[lost]
    with pytest.raises(InputError, match=r"not (a )?stored"):
        TabularPU.from_state(tensors, content)


def test_another_format_or_no_model_at_all_is_refused(fitted: TabularPU) -> None:
    tensors, content = fitted.state()
    with pytest.raises(InputError, match="format 99"):
        TabularPU.from_state(tensors, {**content, "format": 99})
    with pytest.raises(InputError, match="not a stored table model"):
        TabularPU.from_state({}, {})


def test_a_useless_member_loses_its_weight_and_equal_ones_share() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], [200, 2000]).astype(np.int8)
    good = rng.normal(size=2200) + 2.0 * labels
    scores = {"good": good, "alike": good + 0.05 * rng.normal(size=2200), "noise": rng.normal(size=2200)}
    weights = member_weights(scores, labels)
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["noise"] < 1e-6
    assert weights["alike"] > 0.1
    assert member_weights({"a": good, "b": good}, labels) == {"a": 0.5, "b": 0.5}


def test_folds_hold_labelled_rows_evenly() -> None:
    labels = np.repeat([1, 0], [13, 200]).astype(np.int8)
    folds = stratified_folds(labels, 5, 0)
    assert sorted(np.bincount(folds[labels == 1], minlength=5).tolist()) == [2, 2, 3, 3, 3]
    assert np.bincount(folds[labels == 0], minlength=5).tolist() == [40] * 5


@pytest.mark.parametrize(("n_labelled", "prior"), [(3, 0.97), (7, 0.02)])
def test_few_labelled_rows_and_extreme_priors_still_give_finite_scores(n_labelled: int, prior: float) -> None:
    rows = problem(120, n_labelled=n_labelled, seed=4)
    model = TabularPU(prior).fit(rows.values, rows.categorical, rows.labels)
    assert np.isfinite(model.out_of_fold_scores_).all()
    assert np.isfinite(model.score(rows.values)).all()


def test_a_rows_score_does_not_depend_on_the_other_rows(fitted: TabularPU, fresh: Problem) -> None:
    whole = fitted.score(fresh.values)
    assert np.allclose(fitted.score(fresh.values[10:11]), whole[10:11], atol=1e-5)
    assert fitted.score(fresh.values[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.zeros(700, np.int8)}, "no labelled positive"),
        ({"labels": np.ones(700, np.int8)}, "no unlabelled row"),
        ({"labels": np.repeat([1, 0, -1], [50, 600, 50]).astype(np.int8)}, "labelled negative"),
        ({"labels": np.repeat([1, 0], [2, 698]).astype(np.int8)}, "at least 3 labelled"),
        ({"labels": np.ones(3, np.int8)}, "700 rows but 3 labels"),
        ({"categorical": np.array([True])}, "categorical"),
        ({"categorical": np.ones(5, bool)}, "column 0 is categorical"),
        ({"values": np.zeros((700, 0), np.float32), "categorical": np.zeros(0, bool)}, "d >= 1"),
    ],
)
def test_what_cannot_be_used_is_refused(rows: Problem, change: dict[str, Any], message: str) -> None:
    given = replace(rows, **change)
    with pytest.raises(InputError, match=message):
        TabularPU(0.4).fit(given.values, given.categorical, given.labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": 0.0}, "prior"),
        ({"prior": 40}, "percentage"),
        ({"members": ()}, "members"),
        ({"members": ("boosting", "magic")}, "magic"),
        ({"scenario": "other"}, "scenario"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TabularPU(**{"prior": 0.3, **options})


def test_rows_of_another_width_are_refused(fitted: TabularPU) -> None:
    with pytest.raises(InputError, match="5 columns"):
        fitted.score(np.zeros((2, 4), np.float32))


def test_the_catalogue_holds_the_defaults(fitted: TabularPU) -> None:
    assert set(fitted.members) == set(MEMBERS)


def test_unlabelled_rows_that_only_rounding_tells_apart_have_no_spread() -> None:
    """Divided by a spread of 1e-17, scores of new rows were beyond 1e15."""
    labels = np.array([1, 1, 0, 0, 0], dtype=np.int8)
    assert scale_of(np.array([1.0, 2.0, 0.1 + 0.2, 0.3, 0.3]), labels)[1] == 1.0
    assert scale_of(np.full(5, 0.3), labels) == (0.3, 1.0)
    assert scale_of(np.array([1.0, 2.0, 0.1, 0.2, 0.3]), labels)[1] == pytest.approx(np.std([0.1, 0.2, 0.3]))

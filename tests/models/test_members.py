from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesRegressor

from punce.columns.bins import Bins
from punce.errors import InputError
from punce.judging.ranking import auc_between
from punce.models.tabular import teachers
from punce.models.tabular.model import MEMBERS, Member, stratified_folds
from punce.models.tabular.network import balanced_nnpu
from punce.models.tabular.steps import Steps
from punce.models.tabular.teachers import TableLesson, lesson_of, telling_columns
from punce.models.tabular.trees import forest_trees, held_out, stored_trees, trees_arrays
from tests.models.problem import problem


@pytest.fixture(scope="module")
def lesson() -> TableLesson:
    rows = problem(400, n_labelled=40, seed=0)
    binned = Bins.fit(rows.values, rows.categorical).transform(rows.values)
    folds = stratified_folds(rows.labels, 3, 0)
    return lesson_of(binned, rows.categorical, rows.labels, folds, rows.prior, 0, Steps())


def _learned(name: str, lesson: TableLesson) -> Member:
    return MEMBERS[name].from_steps(lesson, Steps()(MEMBERS[name].steps(lesson)))


def _with_labels(lesson: TableLesson, labels: np.ndarray) -> TableLesson:
    return lesson_of(lesson.binned, lesson.categorical, labels, lesson.folds, lesson.prior, 0, Steps())


def test_chances_average_to_the_prior_and_find_hidden_positives(lesson: TableLesson) -> None:
    y = problem(400, n_labelled=40, seed=0).y
    for k in range(3):
        hidden = (lesson.folds != k) & (lesson.labels == 0)
        w = lesson.chances[k]
        assert w[hidden].mean() == pytest.approx(lesson.prior, abs=1e-9)
        assert (w[(lesson.folds != k) & (lesson.labels == 1)] == 1).all()
        assert (w[lesson.folds == k] == 0).all()
        assert auc_between(w[hidden & (y == 1)], w[hidden & (y == 0)]) > 0.85


def test_labels_of_a_held_out_fold_cannot_reach_its_chances(lesson: TableLesson) -> None:
    changed = lesson.labels.copy()
    inside = np.flatnonzero(lesson.folds == 1)
    changed[inside] = 1 - changed[inside]
    again = _with_labels(lesson, changed).chances
    assert np.array_equal(again[1], lesson.chances[1])
    assert not np.array_equal(again[0], lesson.chances[0])


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_a_held_out_score_does_not_depend_on_the_labels_of_its_fold(name: str, lesson: TableLesson) -> None:
    changed = lesson.labels.copy()
    inside = lesson.folds == 1
    swapped = np.flatnonzero(inside)
    changed[swapped] = changed[swapped[::-1]]
    other = _with_labels(lesson, changed)
    before, after = (_learned(name, x).held_out_scores(lesson.binned, lesson.folds) for x in (lesson, other))
    if name == "nnpu":  # its K networks share one batched product, whose last bits may move
        assert np.allclose(before[inside], after[inside], atol=1e-3)
    else:
        assert np.array_equal(before[inside], after[inside])
    assert not np.allclose(before[~inside], after[~inside], atol=1e-3)


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_members_rank_and_come_back_from_their_arrays(name: str, lesson: TableLesson) -> None:
    member = _learned(name, lesson)
    scores = member.scores(lesson.binned)
    assert scores.shape == (3, 400)
    assert np.isfinite(scores).all()
    own = member.held_out_scores(lesson.binned, lesson.folds)
    assert np.allclose(own, scores[lesson.folds, np.arange(400)], atol=1e-5)
    y, hidden = problem(400, n_labelled=40, seed=0).y, lesson.labels == 0
    assert auc_between(own[hidden & (y == 1)], own[hidden & (y == 0)]) > 0.85
    again = MEMBERS[name].from_arrays({key: np.array(array) for key, array in member.arrays().items()})
    assert np.array_equal(again.scores(lesson.binned), scores)
    assert member.scores(lesson.binned[:0]).shape == (3, 0)


def test_networks_do_not_touch_the_global_stream(lesson: TableLesson) -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = _learned("nnpu", lesson).scores(lesson.binned)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(8)
    assert np.array_equal(_learned("nnpu", lesson).scores(lesson.binned), first)


def test_balanced_nnpu_is_its_formula_in_both_branches() -> None:
    positive = torch.tensor([[2.0, 1.0], [4.0, 5.0]], dtype=torch.float64, requires_grad=True)
    hidden = torch.tensor([[1.0, -1.0, 0.5], [-6.0, -7.0, -8.0]], dtype=torch.float64)
    prior = 0.3
    value = balanced_nnpu(positive, hidden, prior)
    loss = lambda t: np.log1p(np.exp(-t))  # noqa: E731
    p, u = positive.detach().numpy(), hidden.numpy()
    r = [(loss(-u[k]).mean() - prior * loss(-p[k]).mean()) / (1 - prior) for k in range(2)]
    assert r[0] > 0 > r[1]
    assert value[0].item() == pytest.approx(loss(p[0]).mean() + r[0])
    assert value[1].item() == pytest.approx(-r[1])
    value.sum().backward()
    assert positive.grad is not None
    assert (positive.grad[1] > 0).all(), "the second branch steps on −r alone, which lowers scores of positives"


def test_forest_trees_equal_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(500, 5)), 1).astype(np.float32)
    model = ExtraTreesRegressor(20, min_samples_leaf=2, random_state=0).fit(x, rng.random(500))
    trees = forest_trees(model)
    unseen = rng.normal(size=(300, 5)).astype(np.float32)
    assert np.allclose(trees.score(unseen), model.predict(unseen), rtol=0, atol=1e-12)
    again = stored_trees(trees_arrays([trees, trees]))
    folds = np.arange(300) % 2
    assert np.array_equal(held_out(again, unseen, folds), trees.score(unseen))


def test_a_wide_table_is_learned_from_the_columns_that_tell_groups_apart() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], [40, 160]).astype(np.int8)
    x = rng.normal(size=(200, 1500)).astype(np.float32)
    x[labels == 1, 7] += 2.0
    x[:, 9] = 1.0
    chosen = telling_columns(x, labels == 1)
    assert len(chosen) == 1000
    assert 7 in chosen
    assert 9 not in chosen
    assert np.array_equal(telling_columns(x[:, :1000], labels == 1), np.arange(1000))


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_columns_of_a_wide_table_are_chosen_without_the_held_out_labels(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With noise columns and random labels, held-out scores must say nothing about the labels."""
    monkeypatch.setattr(teachers, "MOST_COLUMNS", 20)
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.repeat([1, 0], [60, 240])).astype(np.int8)
    folds = stratified_folds(labels, 3, 0)
    none = np.zeros(600, dtype=bool)
    binned = rng.integers(0, 64, (300, 600)).astype(np.float32)
    wide = lesson_of(binned, none, labels, folds, 0.3, 0, Steps())
    member = _learned(name, wide)
    own = member.held_out_scores(binned, folds)
    assert abs(auc_between(own[labels == 1], own[labels == 0]) - 0.5) < 3 * np.sqrt(1 / (12 * 60))
    seen = member.scores(binned)[0][folds != 0]
    assert auc_between(seen[labels[folds != 0] == 1], seen[labels[folds != 0] == 0]) > 0.8, "it must have learned"


def test_weights_that_leave_a_bag_without_a_row_are_refused_in_words() -> None:
    """With three labelled and three unlabelled rows of 200 that count, boosting failed with words of its own."""
    labels = np.array([1, 1, 0, 0], dtype=np.int8)
    assert teachers._weights(labels, 0.3, np.array([0.0, 0.0, 0.0, 1.0])).sum() > 0
    with pytest.raises(InputError, match="leave rows that count nothing out of X"):
        teachers._weights(labels, 0.3, np.zeros(4))

"""Labelled negatives and judged rows in the ensemble for tables: who learns from them, and who must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from punce.classifier import PUClassifier
from punce.columns.bins import Bins
from punce.errors import InputError
from punce.judging.ranking import auc_between
from punce.models.tabular import MEMBERS, TabularPU, model
from punce.models.tabular.model import stratified_folds
from punce.models.tabular.steps import Steps
from punce.models.tabular.teachers import against_unlabelled, lesson_of
from tests.models.problem import Problem, problem

pytestmark = pytest.mark.usefixtures("quick_tables")


def _fitted(rows: Problem, truths: np.ndarray | None, folds: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> TabularPU:
    monkeypatch.setattr(model, "stratified_folds", lambda *_: folds)
    return TabularPU(rows.prior).fit(rows.values, rows.categorical, rows.labels, truths=truths)


def test_a_known_row_teaches_every_member_but_the_one_that_scores_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = problem(400, n_labelled=40, seed=1)
    folds = stratified_folds(rows.labels, 2, 0)
    truths, others = np.zeros_like(rows.labels), np.flatnonzero((rows.labels == 0) & (folds == 0))[:20]
    truths[others] = np.where(np.arange(20) % 2, 1, -1)
    swapped = -truths  # as many of each, so that no share changes
    one, other = (_fitted(rows, own, folds, monkeypatch) for own in (truths, swapped))
    binned = one.bins_.transform(rows.values)
    for name in MEMBERS:
        own, changed = (fit.fitted_[name].held_out_scores(binned, folds) for fit in (one, other))
        np.testing.assert_array_equal(own[folds == 0], changed[folds == 0], err_msg=name)
        assert (own[folds == 1] != changed[folds == 1]).any(), name


def test_known_negatives_help_where_few_rows_are_labelled() -> None:
    rng, y = np.random.default_rng(0), np.repeat([1, 0], [250, 350])
    values = rng.normal(0.0, 1.0, (600, 6)) + np.outer(y, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    labels, truths = np.zeros(600, dtype=np.int8), np.zeros(600, dtype=np.int8)
    labels[rng.permutation(np.flatnonzero(y == 1))[:10]] = 1
    truths[rng.permutation(np.flatnonzero(y == 0))[:150]] = -1
    inputs = (values.astype(np.float32), np.zeros(6, dtype=bool), labels)
    unknown = (labels == 0) & (truths == 0)

    def auc(fit: TabularPU) -> float:
        return auc_between(*(fit.out_of_fold_scores_[unknown & (y == kind)] for kind in (1, 0)))

    assert auc(TabularPU(0.4).fit(*inputs, truths=truths)) > auc(TabularPU(0.4).fit(*inputs)) + 0.02


def test_odds_against_unlabelled_and_negative_rows_give_those_against_unlabelled_ones() -> None:
    prior, labels = 0.3, np.repeat([1, 0, -1], [50, 150, 40])
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(labels))
    p, n = np.array([0.1, 0.5, 2.0]), np.array([1.0, 0.5, 0.01])  # densities of the classes at three places
    u = prior * p + (1 - prior) * n
    mass_u, mass_n = (weights[labels == kind].sum() for kind in (0, -1))
    faced = (mass_u * u + mass_n * n) / (mass_u + mass_n)
    np.testing.assert_allclose(against_unlabelled(np.log(p / faced), labels, weights, prior), np.log(p / u))


def test_known_negatives_do_not_spoil_the_chances_of_the_other_rows() -> None:
    def log_loss(n_negative: int, seed: int) -> float:
        rng = np.random.default_rng(seed)
        labels, y = np.repeat([1, 0, -1], [100, 1500, 300]).astype(np.int8), np.zeros(1900, dtype=bool)
        y[:100], y[100:1600] = True, rng.random(1500) < 0.3
        values = (rng.normal(size=(1900, 4)) + np.outer(y, [1.0, 0.8, 0.5, 0.0])).astype(np.float32)
        rows = np.arange(1600 + n_negative)
        categorical = np.zeros(4, dtype=bool)
        binned = Bins.fit(values[rows], categorical).transform(values[rows])
        folds = stratified_folds(np.maximum(labels[rows], 0), 2, 0)
        own = lesson_of(binned, categorical, labels[rows], folds, 0.3, seed, Steps())
        chance = np.clip(own.chances.sum(0)[100:1600], 0.01, 0.99)  # that of its own fold is 0
        return float(-np.log(np.where(y[100:1600], chance, 1 - chance)).mean())

    without, with_them = (np.mean([log_loss(n, seed) for seed in range(3)]) for n in (0, 300))
    assert with_them < without


@pytest.mark.parametrize("n_unknown", [0, 2])
def test_rows_that_nearly_all_have_a_known_class_are_refused(n_unknown: int) -> None:
    """With every unlabelled row judged it said that "odds must be finite numbers, one per unlabelled row"."""
    labels = np.repeat([1, -1, 0], [10, 30, n_unknown])
    judged = np.arange(len(labels)) >= 5
    judged[len(labels) - n_unknown :] = False
    labels = np.where(judged & (labels == 0), -1, labels)
    with pytest.raises(InputError, match=f"{n_unknown} rows are of unknown class, beside 35 judged rows"):
        PUClassifier().fit(np.random.default_rng(0).normal(size=(len(labels), 3)), labels, judged=judged)


@pytest.mark.parametrize("negative", [0, "no"])
def test_judged_rows_without_a_class_are_refused(negative: Any) -> None:
    """Judged negatives written as 0 were left out: probabilities averaged to 0.79 where 38 % were positive."""
    judged = np.arange(60) >= 40
    positive = 1 if negative == 0 else "yes"
    y = np.where(np.arange(60) % 10 == 0, positive, negative)
    with pytest.raises(InputError, match=r"judged marks 18 rows .* first row 41: label a judged row 1 or -1"):
        PUClassifier().fit(np.random.default_rng(0).normal(size=(60, 3)), y, judged=judged)

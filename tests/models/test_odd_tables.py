"""Tables at the edge of what can be learned from: few rows, odd columns, more rows than are trained on."""

from __future__ import annotations

import numpy as np
import pytest

from punce.judging.ranking import auc_between
from punce.models.tabular import MEMBERS, TabularPU
from tests.models.problem import Problem, problem

pytestmark = pytest.mark.usefixtures("quick_tables")


@pytest.fixture(scope="module")
def rows() -> Problem:
    return problem(700, n_labelled=50, seed=1)


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_another_seed_gives_other_scores(name: str, rows: Problem) -> None:
    part = slice(0, 200)
    given = rows.values[part], rows.categorical, rows.labels[part]
    one, other = (TabularPU(rows.prior, random_state=seed, members=(name,)).fit(*given) for seed in (0, 1))
    assert not np.array_equal(other.score(rows.values), one.score(rows.values))


def test_more_labelled_than_unlabelled_rows() -> None:
    rows = problem(300, n_labelled=100, seed=5)
    keep = np.flatnonzero((rows.labels == 1) | (np.arange(300) % 5 == 0))
    model = TabularPU(0.2).fit(rows.values[keep], rows.categorical, rows.labels[keep])
    assert np.isfinite(model.out_of_fold_scores_).all()


@pytest.mark.parametrize("kind", ["constant", "all missing", "many codes", "only codes", "only numbers"])
def test_odd_columns(kind: str, rows: Problem) -> None:
    values, categorical = rows.values.copy(), rows.categorical.copy()
    if kind == "constant":
        values[:] = 1.0
    elif kind == "all missing":
        values[:, 0] = np.nan
        values[:, 4] = np.nan
    elif kind == "many codes":
        values[:, 4] = np.random.default_rng(0).integers(0, 900, len(values))
    else:
        columns = categorical if kind == "only codes" else ~categorical
        values, categorical = values[:, columns], categorical[columns]
    part = slice(0, 250)
    model = TabularPU(rows.prior).fit(values[part], categorical, rows.labels[part])
    assert np.isfinite(model.score(values)).all()
    unseen = np.where(categorical, 997.0, np.nan).astype(np.float32) * np.ones((3, 1), np.float32)
    assert np.isfinite(model.score(unseen)).all()


def test_large_tables_train_on_a_part_and_score_every_row(rows: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punce.models.tabular.model.MOST_UNLABELLED", 200)
    model = TabularPU(rows.prior).fit(rows.values, rows.categorical, rows.labels)
    hidden, scores = rows.labels == 0, model.out_of_fold_scores_
    assert scores.shape == (700,)
    assert auc_between(scores[hidden & (rows.y == 1)], scores[hidden & (rows.y == 0)]) > 0.9

"""Columns of new rows beside those of the fit."""

from __future__ import annotations

import numpy as np
import pytest

from punce.columns.encoder import EncodedTable
from punce.judging.drift import SeenColumns

KINDS = np.array([False, False, False, True])
NAMES = ("normal", "long tail", "count", "category")


def rows(rng: np.random.Generator, n: int, share: float = 0.3) -> tuple[EncodedTable, np.ndarray]:
    """Numbers with and without a long tail and with gaps, counts, and codes; the first moves with the class."""
    y = rng.random(n) < share
    tail = np.exp(2.5 * rng.normal(size=n)) * (rng.random(n) < 0.3)  # mostly 0
    tail[rng.random(n) < 0.1] = np.nan
    codes = 2 + rng.geometric(0.4, n).clip(max=20)
    return EncodedTable(np.column_stack([rng.normal(size=n) + 2 * y, tail, rng.poisson(1, n), codes]), KINDS, NAMES), y


def seen_by(rng: np.random.Generator, n: int = 1_000) -> SeenColumns:
    table, y = rows(rng, n)
    return SeenColumns.of(table, (y & (rng.random(n) < 0.3)).astype(int), seed=0)


def test_rows_of_the_same_kind_seldom_raise_an_alarm():
    alarms = outside = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        seen, (new, _) = seen_by(rng), rows(rng, 500)
        alarms += bool(seen.moved(seen.count(new.values), 0.91, 0.05))
        outside += bool(seen.outside(new.values).any())
    assert alarms <= 3
    assert outside <= 3


def test_another_share_of_positives_alone_moves_no_column():
    moved = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        seen, (new, _) = seen_by(rng), rows(rng, 500, share=0.7)
        u_share = 0.21 / 0.91  # what labelling 30 % of the positives leaves
        moved += bool(seen.moved(seen.count(new.values), 0.3 / (1 - u_share), 0.03))
    assert moved <= 1
    assert "normal" in seen.moved(seen.count(new.values), 1.0, 0.0)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("normal", lambda x: x + 0.7),
        ("long tail", lambda x: np.where(np.arange(len(x)) % 3 == 0, np.nan, x)),
        ("count", lambda x: x + (np.arange(len(x)) % 4 == 0)),
        ("category", lambda x: np.where(np.arange(len(x)) % 5 == 0, 1, x)),
    ],
)
def test_a_column_that_moved_is_named(name: str, change):
    rng = np.random.default_rng(0)
    seen, (new, _) = seen_by(rng), rows(rng, 500)
    values = new.values.copy()
    values[:, NAMES.index(name)] = change(values[:, NAMES.index(name)])
    assert list(seen.moved(seen.count(values), 0.91, 0.05)) == [name]


def test_values_far_outside_are_marked():
    rng = np.random.default_rng(0)
    seen, (new, _) = seen_by(rng), rows(rng, 5)
    values = np.nan_to_num(new.values)
    values[1, 0], values[3, 1], values[4, 3] = -1e3, 1e8, 900  # any code may come
    assert seen.outside(values).any(axis=1).tolist() == [False, True, False, True, False]


def test_nothing_kept_is_a_value_of_the_extreme_rows():
    seen = seen_by(np.random.default_rng(0))
    table, _ = rows(np.random.default_rng(0), 1_000)
    finite = seen.ends[np.isfinite(seen.ends)]
    assert not np.isin(finite, [np.nanmin(table.values[:, 0]), np.nanmax(table.values[:, :2])]).any()
    assert SeenColumns.from_arrays(seen.names, seen.arrays()).names == seen.names


def test_no_new_row_moves_nothing():
    seen = seen_by(np.random.default_rng(0))
    nothing = np.empty((0, len(NAMES)))
    assert seen.moved(seen.count(nothing), 0.9, 0.05) == {}

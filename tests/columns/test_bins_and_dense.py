from __future__ import annotations

import numpy as np
import pytest

from punce.columns.bins import LAST_CODE, MISSING_BIN, MISSING_CODE, N_BINS, Bins
from punce.columns.dense import DenseColumns
from punce.columns.one_hot import OneHot
from punce.errors import InputError

NUMBER, CODE = np.array([False]), np.array([True])


def _column(values: list[float] | np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=np.float32)[:, None]


def test_few_distinct_values_keep_their_own_bins() -> None:
    x = _column([3.0, -1.0, 3.0, 7.5])
    bins = Bins.fit(x, NUMBER)
    assert bins.transform(x)[:, 0].tolist() == [1, 0, 1, 2]
    assert bins.transform(_column([-50, 1.1, 99]))[:, 0].tolist() == [0, 1, 2]


def test_many_values_fill_bins_evenly_and_in_order() -> None:
    x = np.random.default_rng(0).lognormal(0, 2, 6400).astype(np.float32)[:, None]
    binned = Bins.fit(x, NUMBER).transform(x)[:, 0]
    assert np.bincount(binned.astype(int)).max() <= 1.1 * 6400 / N_BINS
    assert (np.diff(binned[np.argsort(x[:, 0])]) >= 0).all()
    assert binned.max() == N_BINS - 1


def test_a_value_that_most_rows_share_has_one_bin() -> None:
    x = np.concatenate([np.zeros(900), np.random.default_rng(0).random(100)])[:, None].astype(np.float32)
    binned = Bins.fit(x, NUMBER).transform(x)[:, 0]
    assert set(binned[:900]) == {0.0}
    assert binned[900:].min() > 0


def test_missing_and_infinite_values_have_bins() -> None:
    x = _column([1.0, np.nan, 2.0, np.inf, -np.inf])
    binned = Bins.fit(x, NUMBER).transform(x)[:, 0]
    assert binned[1] == MISSING_BIN
    assert binned[[4, 0, 2, 3]].tolist() == [0, 1, 2, 3]


def test_codes_beyond_the_last_bin_are_pooled() -> None:
    bins = Bins.fit(_column([0, 3, 999]), CODE)
    assert bins.transform(_column([0, 252, 253, 254, 999]))[:, 0].tolist() == [0, 252, LAST_CODE, LAST_CODE, LAST_CODE]
    assert bins.transform(_column([np.nan]))[0, 0] == MISSING_CODE


def test_normal_scores_do_not_depend_on_the_unit_and_follow_the_order() -> None:
    x = np.random.default_rng(0).lognormal(0, 1, 2000).astype(np.float32)[:, None]
    z = DenseColumns.fit(x, NUMBER).transform(x)[:, 0]
    assert abs(z.mean()) < 0.05
    assert abs(z.std() - 1.0) < 0.05
    assert (np.diff(z[np.argsort(x[:, 0])]) >= 0).all()
    assert np.allclose(DenseColumns.fit(1000 * x, NUMBER).transform(1000 * x)[:, 0], z, atol=1e-4)


def test_normal_scores_of_ties_missing_and_constant_columns() -> None:
    ties = _column([0.0] * 80 + [1.0] * 20)
    columns = DenseColumns.fit(ties, NUMBER)
    low, high = columns.transform(_column([0.0, 1.0]))[:, 0]
    assert low < 0 < high
    assert columns.transform(_column([np.nan]))[0, 0] == 0.0
    assert columns.transform(_column([-1e30]))[0, 0] == low
    assert columns.transform(_column([1e30]))[0, 0] == high
    assert np.isfinite(DenseColumns.fit(_column([5.0] * 9), NUMBER).transform(_column([5.0, 6.0]))).all()
    assert DenseColumns.fit(_column([np.nan] * 3), NUMBER).transform(_column([1.0]))[0, 0] == 0.0


def test_one_hot_of_known_unknown_and_missing_codes() -> None:
    x = _column([2, 2, 5, 0])
    for made in (DenseColumns.fit(x, CODE), OneHot.fit(x, CODE)):
        dense = made.transform(_column([2, 5, 0, 9]))
        assert dense.tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0, 0]]
    assert DenseColumns.fit(x, CODE).transform(_column([np.nan])).tolist() == [[0, 0, 0]]


def test_only_the_commonest_codes_get_a_column() -> None:
    codes = np.concatenate([np.arange(200), np.repeat(np.arange(100, 150), 3)]).astype(np.float32)[:, None]
    columns = DenseColumns.fit(codes, CODE)
    assert columns.width == 50
    assert columns.code_value.tolist() == list(range(100, 150))


@pytest.mark.parametrize("kind", [Bins, DenseColumns])
def test_arrays_bring_it_back(kind: type[Bins] | type[DenseColumns]) -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=300), rng.integers(0, 9, 300)]).astype(np.float32)
    made = kind.fit(x, np.array([False, True]))
    again = kind.from_arrays(made.arrays())
    assert np.array_equal(again.transform(x), made.transform(x))
    with pytest.raises(InputError, match="missing"):
        kind.from_arrays({})


def test_the_columns_of_one_category_are_one_feature() -> None:
    x = np.array([[2, 0.1, 7], [3, 0.2, 7], [3, 0.3, 8]], dtype=np.float32)
    columns = DenseColumns.fit(x, np.array([True, False, True]))
    assert columns.groups == (0, 1, 1, 2, 2)  # the number, codes 2 and 3, codes 7 and 8


def test_scores_of_bins_are_those_of_their_numbers() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=300), rng.integers(0, 9, 300), rng.integers(0, 3, 300)]).astype(np.float32)
    x[::7] = np.nan
    categorical = np.array([False, True, False])
    binned = Bins.fit(x, categorical).transform(x)
    gaps = np.where(binned == MISSING_BIN, np.nan, binned)
    columns = DenseColumns.fit_bins(binned, categorical)
    assert np.array_equal(columns.transform_bins(binned), columns.transform(gaps))
    assert (columns.transform_bins(binned)[::7, :2] == 0).all()

"""A table as numbers a network likes: normal scores of numeric columns, one 0/1 column per common category.

Normal scores (the quantile of a value, pushed through the inverse normal distribution) tame skewed columns and
outliers without a choice per column. The mapping is kept as knots, so that it can be stored as arrays.

QuantileTransformer does nearly the same. Ours stays because model folders hold these knots, because it gives a value
that fills several quantiles their middle, and because its scores end at ±3, not at ±5.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.columns.bins import MISSING_BIN, N_BINS
from punce.columns.one_hot import common_codes, has_code
from punce.columns.stored import StoredArrays

_KNOTS = 101
_LEVELS = np.linspace(0.0, 1.0, _KNOTS)
_CELLS_AT_ONCE = 4_000_000  # 32 MB
_LARGEST = 3.0


@dataclass(frozen=True)
class DenseColumns(StoredArrays):
    """Shape: knots and scores (Q, numeric columns); code_column and code_value (one-hot columns,)."""

    numeric: npt.NDArray[np.int64]
    knots: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]
    code_column: npt.NDArray[np.int64]
    code_value: npt.NDArray[np.float64]

    @classmethod
    def fit(cls, values: npt.NDArray[Any], categorical: npt.NDArray[np.bool_]) -> DenseColumns:
        """Knots and categories from the rows at hand; labels have no part in it."""
        numeric = np.flatnonzero(~categorical).astype(np.int64)
        knots, scores = np.empty((_KNOTS, len(numeric))), np.empty((_KNOTS, len(numeric)))
        for k, quantiles in enumerate(_quantiles(values[:, numeric])):
            knots[:, k], scores[:, k] = _knots(quantiles)
        codes = common_codes(values, categorical)
        return cls(numeric, knots, scores, codes[:, 0].copy(), codes[:, 1].astype(np.float64))

    @classmethod
    def fit_bins(cls, binned: npt.NDArray[Any], categorical: npt.NDArray[np.bool_]) -> DenseColumns:
        """The same from bins. A missing number is in the middle for a network, not below all others."""
        return cls.fit(np.where(binned == MISSING_BIN, np.float32(np.nan), binned), categorical)

    @property
    def width(self) -> int:
        """How many columns :meth:`transform` gives."""
        return len(self.numeric) + len(self.code_column)

    @property
    def groups(self) -> tuple[int, ...]:
        """The feature of each output column, counted from 0: a view replaces all 0/1 columns of a category together."""
        columns = [*self.numeric.tolist(), *self.code_column.tolist()]
        feature = {column: k for k, column in enumerate(dict.fromkeys(columns))}
        return tuple(feature[column] for column in columns)

    def transform(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Shape: (n, d) -> (n, width). A missing number becomes 0, the middle; a missing category all zeros."""
        dense = np.zeros((len(values), self.width), dtype=np.float32)
        for k, column in enumerate(self.numeric):
            dense[:, k] = np.interp(values[:, column], self.knots[:, k], self.scores[:, k])
        np.nan_to_num(dense, copy=False)
        dense[:, len(self.numeric) :] = has_code(values, self.codes)
        return dense

    def transform_bins(self, binned: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """The same of bins, whose scores are looked up: a wide table takes a tenth of the time."""
        dense = np.empty((len(binned), self.width), dtype=np.float32)
        size = max(1, _CELLS_AT_ONCE // max(1, self.width))
        for start in range(0, len(binned), size):
            places = binned[start : start + size, self.numeric].astype(np.intp) + 1  # the first score is of no number
            dense[start : start + size, : len(self.numeric)] = np.take_along_axis(self.score_of_bin, places, axis=0)
        dense[:, len(self.numeric) :] = has_code(binned, self.codes)
        return dense

    @property
    def codes(self) -> npt.NDArray[np.int64]:
        """Pairs of column and code. Shape: (one-hot columns, 2)."""
        return np.stack([self.code_column, self.code_value.astype(np.int64)], axis=1)

    @cached_property
    def score_of_bin(self) -> npt.NDArray[np.float32]:
        """The normal score of no number and of each bin. Shape: (1 + bins, numeric columns)."""
        table = np.zeros((1 + N_BINS, len(self.numeric)), dtype=np.float32)
        for k in range(len(self.numeric)):
            table[1:, k] = np.interp(np.arange(N_BINS), self.knots[:, k], self.scores[:, k])
        return table


def _quantiles(values: npt.NDArray[Any]) -> Iterator[npt.NDArray[np.float64]]:
    """Q quantiles of the finite values of each column, none for a column without. Complete columns are taken together,
    because a call of np.quantile costs more than its work on a few hundred rows. Shape: (n, d) -> d times (Q,)."""
    width = max(1, _CELLS_AT_ONCE // max(1, len(values)))
    for start in range(0, values.shape[1], width):
        block = values[:, start : start + width].astype(np.float64)
        finite = np.isfinite(block)
        complete: npt.NDArray[np.bool_] = np.logical_and(finite.all(axis=0), len(values) > 0)
        together = iter(np.quantile(block[:, complete], _LEVELS, axis=0).T if complete.any() else ())
        for k in range(block.shape[1]):
            present = block[finite[:, k], k]
            yield next(together) if complete[k] else np.quantile(present, _LEVELS) if len(present) else present


def _knots(quantiles: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(Q,) increasing values and their normal scores; a value that fills several quantiles gets their middle."""
    from scipy.special import ndtri

    if len(quantiles) == 0:
        return np.arange(_KNOTS, dtype=np.float64), np.zeros(_KNOTS)
    distinct, where = np.unique(quantiles, return_inverse=True)
    level = np.bincount(where, weights=_LEVELS) / np.bincount(where)
    # The ends of the levels, 0 and 1, have infinite scores.
    score = np.clip(ndtri(level), -_LARGEST, _LARGEST)
    # np.interp wants one length for all columns: the last knot is repeated to the right, where nothing is read
    padding = np.arange(1, _KNOTS - len(distinct) + 1)
    knots = np.concatenate([distinct, distinct[-1] + padding * (abs(distinct[-1]) + 1.0)])
    return knots, np.concatenate([score, np.full(len(padding), score[-1])])

"""A table as numbers a network likes: normal scores of numeric columns, one column per common category.

Normal scores (the quantile of a value, pushed through the inverse normal distribution) tame skewed columns and
outliers without a choice per column. The mapping is kept as knots, so that it can be stored as arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.errors import InputError

_KNOTS = 101
_LARGEST = 3.0
_MOST_COLUMNS = 50  # one-hot columns of one category column; the rest share "all zero"


@dataclass(frozen=True)
class DenseColumns:
    """Shape: knots and scores (Q, numeric columns); code_column and code_value (one-hot columns,)."""

    numeric: npt.NDArray[np.int64]
    knots: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]
    code_column: npt.NDArray[np.int64]
    code_value: npt.NDArray[np.float64]

    @classmethod
    def fit(cls, values: npt.NDArray[Any], categorical: npt.NDArray[np.bool_]) -> DenseColumns:
        """Knots and categories from the rows at hand; labels have no part in it."""
        numeric = np.flatnonzero(~categorical)
        pairs = [_knots(values[:, column]) for column in numeric]
        codes = [(column, code) for column in np.flatnonzero(categorical) for code in _common(values[:, column])]
        empty = np.empty((_KNOTS, 0))
        return cls(
            numeric=numeric.astype(np.int64),
            knots=np.stack([knots for knots, _ in pairs], axis=1) if pairs else empty,
            scores=np.stack([scores for _, scores in pairs], axis=1) if pairs else empty,
            code_column=np.array([column for column, _ in codes], dtype=np.int64),
            code_value=np.array([code for _, code in codes], dtype=np.float64),
        )

    @property
    def width(self) -> int:
        """How many columns :meth:`transform` gives."""
        return len(self.numeric) + len(self.code_column)

    def transform(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Shape: (n, d) -> (n, width). A missing number becomes 0, the middle; a missing category all zeros."""
        dense = np.zeros((len(values), self.width), dtype=np.float32)
        for k, column in enumerate(self.numeric):
            dense[:, k] = np.nan_to_num(np.interp(values[:, column], self.knots[:, k], self.scores[:, k]))
        dense[:, len(self.numeric) :] = values[:, self.code_column] == self.code_value
        return dense

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Name -> array."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> DenseColumns:
        """What :meth:`arrays` gave."""
        absent = [field.name for field in fields(cls) if field.name not in arrays]
        if absent:
            raise InputError(f"not stored columns: {absent} are missing")
        return cls(**{field.name: np.asarray(arrays[field.name]) for field in fields(cls)})


def _knots(column: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(Q,) increasing values and their normal scores; a value that fills several quantiles gets their middle."""
    from scipy.special import ndtri

    present = column[np.isfinite(column)].astype(np.float64)
    if len(present) == 0:
        return np.arange(_KNOTS, dtype=np.float64), np.zeros(_KNOTS)
    levels = np.linspace(0.0, 1.0, _KNOTS)
    quantiles = np.quantile(present, levels)
    distinct, where = np.unique(quantiles, return_inverse=True)
    level = np.bincount(where, weights=levels) / np.bincount(where)
    score = np.clip(ndtri(level), -_LARGEST, _LARGEST)
    # np.interp wants one length for all columns: the last knot is repeated to the right, where nothing is read
    padding = np.arange(1, _KNOTS - len(distinct) + 1)
    knots = np.concatenate([distinct, distinct[-1] + padding * (abs(distinct[-1]) + 1.0)])
    return knots, np.concatenate([score, np.full(len(padding), score[-1])])


def _common(column: npt.NDArray[Any]) -> list[float]:
    codes, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_COLUMNS]
    return sorted(float(code) for code in codes[order])

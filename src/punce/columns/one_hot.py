"""A 0/1 column for each common category.

Ours rather than scikit-learn's OneHotEncoder(max_categories=...): a rare or unseen category is "all zero" here, there
it would get a column of its own, and model folders hold these two arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.columns.stored import StoredArrays

MOST_CODES = 50
"""0/1 columns of one column of categories; rarer ones are "all zero"."""


@dataclass(frozen=True)
class OneHot(StoredArrays):
    """Numbers as they are, then the 0/1 columns. Shape: numeric (d',), codes (c, 2) of column and code."""

    numeric: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]

    @classmethod
    def fit(cls, values: npt.NDArray[Any], categorical: npt.NDArray[np.bool_]) -> OneHot:
        """The commonest codes of the rows at hand."""
        return cls(np.flatnonzero(~categorical).astype(np.int64), common_codes(values, categorical))

    def transform(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Shape: (n, d) -> (n, d' + c)."""
        return np.concatenate([values[:, self.numeric], has_code(values, self.codes)], axis=1, dtype=np.float32)


def common_codes(
    values: npt.NDArray[Any], categorical: npt.NDArray[np.bool_], most: int = MOST_CODES
) -> npt.NDArray[np.int64]:
    """Pairs of column and code, by column, then code; at most `most` codes of a column, NaN is none. Shape: (c, 2)."""
    pairs = [
        (int(column), code) for column in np.flatnonzero(categorical) for code in _commonest(values[:, column], most)
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def has_code(values: npt.NDArray[Any], codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether a row has a code, for each pair of column and code. Shape: (n, d), (c, 2) -> (n, c)."""
    return np.asarray(values[:, codes[:, 0]] == codes[:, 1])


def _commonest(column: npt.NDArray[Any], most: int) -> list[int]:
    # Stable, so that ties are broken by code and the columns do not depend on the order of the rows.
    codes, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    return sorted(int(code) for code in codes[np.argsort(-counts, kind="stable")[:most]])

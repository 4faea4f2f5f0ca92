"""Columns cut into at most 64 bins before boosting sees them.

Labels have no part in the cuts, so one set of bins serves every fold and every model. scikit-learn would cut each
column again for each fit, and with weighted rows that takes several times as long as growing the trees. Few bins also
keep a tree from isolating single labelled rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.errors import InputError

N_BINS = 64
MISSING_BIN = -1.0
LAST_CODE, MISSING_CODE = 253, 254
"""Codes from 253 upwards share one: scikit-learn's boosting has room for 255. They count the commonest first."""


@dataclass(frozen=True)
class Bins:
    """Shape: edges (63, d), +inf where a column needs fewer; categorical (d,)."""

    edges: npt.NDArray[np.float32]
    categorical: npt.NDArray[np.bool_]

    @classmethod
    def fit(cls, values: npt.NDArray[np.float32], categorical: npt.NDArray[np.bool_]) -> Bins:
        """Edges half-way between distinct values where there are few, at quantiles where there are many."""
        edges = np.full((N_BINS - 1, values.shape[1]), np.inf, dtype=np.float32)
        for column in np.flatnonzero(~categorical):
            cuts = _cuts(values[:, column])
            edges[: len(cuts), column] = cuts
        return cls(edges, categorical)

    def transform(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Bin numbers −1 … 63 and category codes 0 … 254; missing values have their own. (n, d) -> (n, d).

        Nothing is left missing: a sample of rows in which all of a column is missing would stop scikit-learn.
        """
        values = np.asarray(values, dtype=np.float32)
        binned = np.minimum(values, np.float32(LAST_CODE))  # right for codes; numbers follow
        for column in np.flatnonzero(~self.categorical):
            binned[:, column] = np.searchsorted(self.edges[:, column], values[:, column], side="left")
        own = np.where(self.categorical, np.float32(MISSING_CODE), np.float32(MISSING_BIN))
        return np.where(np.isnan(values), own, binned)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Name -> array."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Bins:
        """What :meth:`arrays` gave."""
        absent = [field.name for field in fields(cls) if field.name not in arrays]
        if absent:
            raise InputError(f"not stored bins: {absent} are missing")
        return cls(**{field.name: np.asarray(arrays[field.name]) for field in fields(cls)})


def _cuts(column: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    present = column[~np.isnan(column)].astype(np.float64)
    distinct = np.unique(present)
    if len(distinct) > N_BINS:
        distinct = np.unique(np.quantile(present, np.linspace(0.0, 1.0, N_BINS + 1)[1:-1], method="inverted_cdf"))
        return np.asarray(distinct, dtype=np.float32)
    finite = np.clip(distinct, np.finfo(np.float32).min, np.finfo(np.float32).max)
    return np.asarray((finite[:-1] + finite[1:]) / 2, dtype=np.float32)

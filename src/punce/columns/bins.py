"""Columns of numbers cut into bins before trees see them.

Labels have no part in the cuts, so one set of bins serves every fold and every model. scikit-learn's boosting would
cut each column again for each fit, and with weighted rows that takes several times as long as growing the trees. Few
bins also keep a tree from isolating single labelled rows.

KBinsDiscretizer does not serve: it refuses missing values, and it cuts at quantiles also where a column has only a few
distinct values, each of which should have a bin of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from punce.columns.stored import StoredArrays
from punce.errors import InputError

N_BINS = 64
MISSING_BIN = -1.0
LAST_CODE, MISSING_CODE = 253, 254
"""Codes from 253 upwards share one: scikit-learn's boosting has room for 255. They count the commonest first."""


@dataclass(frozen=True)
class Bins(StoredArrays):
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

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """What :meth:`arrays` gave; more edges would give bins that the models do not know."""
        bins = super().from_arrays(arrays)
        if bins.categorical.ndim != 1 or bins.edges.shape != (N_BINS - 1, len(bins.categorical)):
            raise InputError(f"not stored bins: edges of shape {bins.edges.shape}, flags of {bins.categorical.shape}")
        return bins

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


def quantile_bins(
    column: npt.NDArray[Any], n_bins: int, edges: Literal["lower", "linear"] = "lower"
) -> npt.NDArray[np.intp]:
    """The bin of each value of a column, 0 … `n_bins` − 1, by its quantiles; NaN must not occur. (n,) -> (n,).

    For methods of a single fit, which store no edges. A value on an edge belongs to the bin above; `edges` says
    whether they are values of the column or lie between them.
    """
    cuts = np.unique(np.quantile(column, np.linspace(0.0, 1.0, n_bins + 1)[1:-1], method=edges))
    return np.searchsorted(cuts, column, side="right")


def _cuts(column: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    present = np.sort(column[~np.isnan(column)].astype(np.float64))
    distinct = _distinct(present)
    if len(distinct) > N_BINS:
        # np.quantile(method="inverted_cdf") of what is sorted already: a third of the time of a wide table
        levels = np.linspace(0.0, 1.0, N_BINS + 1)[1:-1]
        places = np.ceil(len(present) * levels - 1).astype(np.intp)
        return np.asarray(_distinct(present[places]), dtype=np.float32)
    finite = np.clip(distinct, np.finfo(np.float32).min, np.finfo(np.float32).max)
    return np.asarray((finite[:-1] + finite[1:]) / 2, dtype=np.float32)


def _distinct(ordered: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    is_new = np.append(True, ordered[1:] != ordered[:-1])
    return np.asarray(ordered[is_new[: len(ordered)]])

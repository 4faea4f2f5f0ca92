"""What new rows look like beside those of the fit, column by column, without a classifier.

A column moved if its values cannot be a mix (1−k)·P + k·U of the labelled and unlabelled rows of the fit, at the k that
the scores give (:mod:`punce.judging.shift`): another share of positives alone moves no column. A χ² over the ninths of
the column and its gaps decides, at a family-wise level of 1 % over all columns (Holm's rule).

What is kept of the fit is no row: eight quantiles a column, how many rows lie between them, and the smallest and the
largest value, rounded outwards to two digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from punce.columns.encoder import EncodedTable
from punce.columns.fitted import FIRST_CATEGORY
from punce.labels import POSITIVE, UNLABELLED, Labels

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_EDGES = 8
_MOST_COLUMNS, _MOST_ROWS = 1_000, 10_000  # bound the time and what is stored
_FAR = 3.0, 100.0  # widths of the seen range that a value may lie beyond it, of a column with short and with long tails
_LEVEL = 0.01
_SMALLEST = 0.05  # share of the rows that must have moved, however many rows show it
_FEWEST = 5.0  # rows expected in a bin, below which χ² does not hold: such bins are put together


@dataclass(frozen=True)
class SeenColumns:
    """Bins of each column and the counts of the fit in them; bin 0 holds missing values.

    Shape, for d columns: edges (d, 8), ends (d, 2), positive and unlabelled (d, 10).
    """

    names: tuple[str, ...]
    edges: Floats
    ends: Floats
    positive: Floats
    unlabelled: Floats

    @classmethod
    def of(cls, table: EncodedTable, labels: Labels, seed: int, kept: Flags | None = None) -> SeenColumns:
        """Of the rows of a fit, numbers in their own units, gaps as NaN, categories as codes.

        Labelled rows that are not `kept` are no part of a random sample of the positives. Shape: kept (n,).
        """
        values, kinds = table.values[:, :_MOST_COLUMNS], table.categorical[:_MOST_COLUMNS]
        u = np.random.default_rng(seed).permutation(np.flatnonzero(labels == UNLABELLED))[:_MOST_ROWS]
        some = values[u].astype(np.float64)
        edges = np.stack([_edges(column, bool(kind)) for column, kind in zip(some.T, kinds, strict=True)])
        # Column by column: a copy of all of them in float64 is twice the table.
        ends = np.stack([_ends(c.astype(np.float64), bool(kind)) for c, kind in zip(values.T, kinds, strict=True)])
        empty = np.zeros((len(edges), _EDGES + 2))
        seen = cls(table.names[:_MOST_COLUMNS], edges, ends, empty, empty)
        is_p = labels == POSITIVE if kept is None else (labels == POSITIVE) & kept
        positive, unlabelled = seen.count(values[is_p]), seen.count(some)
        return cls(seen.names, edges, ends, positive, unlabelled)

    def count(self, values: npt.NDArray[np.floating]) -> Floats:
        """How many rows fall into each bin. Shape: (n, d) -> (d, 10)."""
        counts = np.zeros((len(self.names), _EDGES + 2))
        for row, edges, column in zip(counts, self.edges, values[:, : len(self.names)].T, strict=True):
            places = np.where(np.isnan(column), 0, 1 + np.searchsorted(edges, column.astype(np.float64)))
            row += np.bincount(places, minlength=len(row))
        return counts

    def outside(self, values: npt.NDArray[np.floating]) -> Flags:
        """Values far beyond the range of the fit. Shape: (n, d) -> (n, d)."""
        low, high = self.ends.T
        middle, width = self.edges[:, 3:5].mean(axis=1), high - low
        below = _tail(middle - low, middle - self.edges[:, 0]) * width
        above = _tail(high - middle, self.edges[:, -1] - middle) * width
        known = values[:, : len(self.names)]
        return np.asarray((known < low - below) | (known > high + above))

    def moved(self, new: Floats, k: float, k_error: float) -> dict[str, float]:
        """Columns that are no mix of those of the fit, with the share of rows that moved, most first.

        Shape: new (d, 10), as counted by :meth:`count`.
        """
        if not new.any():  # no row was counted
            return {}
        t, p, u = (counts / counts.sum(axis=1, keepdims=True) for counts in (new, self.positive, self.unlabelled))
        n_t, n_p, n_u = (counts.sum(axis=1, keepdims=True) for counts in (new, self.positive, self.unlabelled))
        mix = np.maximum((1.0 - k) * p + k * u, 0.0)
        mix /= mix.sum(axis=1, keepdims=True)
        n_mix = 1.0 / (k**2 / n_u + (1.0 - k) ** 2 / n_p)
        pooled = (n_t * t + n_mix * mix) / (n_t + n_mix)
        # The doubt about k moves the mix along p − u.
        variance = pooled * (1.0 / n_t + 1.0 / n_mix) + (k_error * (p - u)) ** 2
        scarce = pooled * np.minimum(n_t, n_mix) < _FEWEST
        gap, variance = _put_together(t - mix, scarce), _put_together(variance, scarce)
        used = variance > 0
        statistic = np.where(used, gap**2 / np.where(used, variance, 1.0), 0.0).sum(axis=1)
        p_values = chi2.sf(statistic, np.maximum(used.sum(axis=1) - 1, 1))
        distance = np.abs(gap).sum(axis=1) / 2
        found = [j for j in _rejected_columns(p_values) if distance[j] >= _SMALLEST]
        return {self.names[j]: float(distance[j]) for j in sorted(found, key=lambda j: -distance[j])}

    def arrays(self) -> dict[str, Floats]:
        """What a model file keeps, beside the names."""
        return {name: getattr(self, name) for name in ("edges", "ends", "positive", "unlabelled")}

    @classmethod
    def from_arrays(cls, names: Sequence[str], arrays: Mapping[str, npt.NDArray[np.generic]]) -> Self:
        """Inverse of :meth:`arrays`."""
        widths = {"edges": _EDGES, "ends": 2, "positive": _EDGES + 2, "unlabelled": _EDGES + 2}
        for name, width in widths.items():
            if arrays[name].shape != (len(names), width):
                raise ValueError(f"{name} of {len(names)} columns cannot have shape {arrays[name].shape}")
        return cls(tuple(names), **{name: np.asarray(arrays[name], dtype=np.float64) for name in widths})


def _edges(column: Floats, is_category: bool) -> Floats:
    """Where the bins of a column end: between the codes of the commonest categories, or at the ninths of numbers."""
    if is_category:  # never seen | the seven commonest | all rarer ones
        return FIRST_CATEGORY - 0.5 + np.arange(_EDGES, dtype=np.float64)
    present = column[~np.isnan(column)]
    if len(present) == 0:
        return np.zeros(_EDGES)
    ninths = np.arange(1, _EDGES + 1) / (_EDGES + 1)
    return np.asarray(np.quantile(present, ninths, method="inverted_cdf"), dtype=np.float64)


def _ends(column: Floats, is_category: bool) -> Floats:
    """Smallest and largest value, rounded outwards to two digits; of codes none is too large."""
    present = column[~np.isnan(column)]
    if is_category or len(present) == 0:
        return np.array([-np.inf, np.inf])
    ends = np.array([present.min(), present.max()])
    unit = 10.0 ** (np.floor(np.log10(np.maximum(np.abs(ends), 1e-300))) - 1)
    return np.array([np.floor(ends[0] / unit[0]) * unit[0], np.ceil(ends[1] / unit[1]) * unit[1]])


def _tail(extreme: Floats, ninth: Floats) -> Floats:
    """How many widths beyond the seen range are far: the longer its tail, the further out a new value may lie.

    `extreme` and `ninth` are the distances of the last value and of the outermost ninth from the middle.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(np.nan_to_num(extreme / ninth, nan=0.0, posinf=np.inf), *_FAR)


def _put_together(values: Floats, scarce: Flags) -> Floats:
    """One more bin for what is in the scarce ones. Shape: (d, b) -> (d, b + 1)."""
    together = np.where(scarce, values, 0.0).sum(axis=1, keepdims=True)
    return np.concatenate([np.where(scarce, 0.0, values), together], axis=1)


def _rejected_columns(p_values: Floats) -> list[int]:
    """Columns that are no mix by Holm's rule: the k-th smallest p is at most _LEVEL / (m − k + 1)."""
    order = np.argsort(p_values)
    too_large = p_values[order] > _LEVEL / np.arange(len(order), 0, -1)
    rejected = order[: int(np.argmax(too_large)) if too_large.any() else len(order)]
    return [int(j) for j in rejected]

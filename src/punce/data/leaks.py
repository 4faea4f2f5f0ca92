"""Does one column alone tell labelled from unlabelled rows?

Labels are taken at random among positives, so within the positives no honest column knows which are labelled. The
best honest column separates the classes perfectly, and even that has AUC 1 − π/2 for labelled against unlabelled
rows (the positives among the unlabelled tie). An AUC of a therefore means: at most 2(1 − a) of the unlabelled rows
are positive, or the column was filled in after the label was.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.columns.kinds import (
    category_names,
    column_kind,
    date_format,
    dates_also_iso,
    days_since_epoch,
    missing_values,
    numbers,
    plain_numbers,
)
from punce.labels import POSITIVE, UNLABELLED, Labels

_FEWEST = 5  # rows a side; an AUC of fewer is noise
_SAMPLED = 5_000  # rows a side: an AUC then has a standard error below 0.01
_MOST_CATEGORIES = 200  # with more, a few rows each, the shares of labelled rows would fit the noise
_FOLDS = 5
_CELLS_AT_ONCE = 4_000_000  # ranks of so many cells take 32 MB


def separation(values: npt.NDArray[np.float64], is_labelled: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """max(AUC, 1 − AUC) of labelled against unlabelled rows, of each column; 0.5 where a side has fewer than 5 rows.

    Shape: (n, k), (n,) -> (k,). One call for many columns, because ranking them one by one costs mostly overhead.
    """
    n_p = int(is_labelled.sum())
    n_u = len(values) - n_p
    if min(n_p, n_u) < _FEWEST:
        return np.full(values.shape[1], 0.5)
    strengths = np.empty(values.shape[1])
    width = max(1, _CELLS_AT_ONCE // len(values))
    for start in range(0, values.shape[1], width):
        ranks = _mean_ranks(values[:, start : start + width])
        auc = (ranks[is_labelled].sum(axis=0) - n_p * (n_p + 1) / 2) / (n_p * n_u)
        strengths[start : start + width] = np.maximum(auc, 1.0 - auc)
    return strengths


def _mean_ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Ranks 1 … n within each column, equal values sharing their mean. Shape: (n, d) -> (n, d).

    scipy.stats has this too, but importing it takes longer than the whole check of a small table.
    """
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    is_new = np.ones(values.shape, dtype=bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    is_last = np.roll(is_new, -1, axis=0)  # the row before a new value, and the last row
    place = np.arange(len(values))[:, None]
    first = np.maximum.accumulate(np.where(is_new, place, 0), axis=0)
    last = np.minimum.accumulate(np.where(is_last, place, len(values))[::-1], axis=0)[::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=0)
    return ranks


def strongest_separations(frame: pd.DataFrame, is_labelled: npt.NDArray[np.bool_]) -> dict[str, tuple[float, str]]:
    """For each column the strongest separation it gives, and by what: its values, or where it is missing."""
    plain = [str(name) for name, series in frame.items() if _is_complete(series)]
    together = dict(zip(plain, separation(frame[plain].to_numpy(np.float64), is_labelled).tolist(), strict=True))
    return {
        name: (together[name], "values") if name in together else _column_separation(frame[name], is_labelled)
        for name in frame.columns
    }


def _is_complete(series: pd.Series[Any]) -> bool:
    values = plain_numbers(series)
    return values is not None and bool(np.isfinite(values).all())


def _column_separation(series: pd.Series[Any], is_labelled: npt.NDArray[np.bool_]) -> tuple[float, str]:
    missing = missing_values(series).astype(np.float64)
    scores = _scores(series, is_labelled)
    present = np.isfinite(scores)  # gaps are judged apart: that a value is missing can itself give the label away
    by_missing = separation(missing[:, None], is_labelled)[0]
    by_value = separation(scores[present, None], is_labelled[present])[0]
    return max((float(by_value), "values"), (float(by_missing), "missing values"))


def _scores(series: pd.Series[Any], is_labelled: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    kind = column_kind(series)
    if kind == "numeric":
        return numbers(series)
    if kind == "date":
        return days_since_epoch(dates_also_iso(series, date_format(series)))
    if kind == "categorical":
        return _category_scores(series, is_labelled)
    return np.full(len(series), np.nan)


def _category_scores(series: pd.Series[Any], is_labelled: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Each category's share of labelled rows, with one row of the overall share added so that rare ones say little.

    Counted among rows of other folds: with its own label a labelled row makes its category look telling, and five of
    them in 200 honest categories would be separated from nearly all other rows.
    """
    codes, categories = pd.factorize(category_names(series))
    scores = np.full(len(series), np.nan)
    if len(categories) > _MOST_CATEGORIES:
        return scores
    fold, is_known = _folds(is_labelled), codes >= 0
    for k in range(_FOLDS):
        others, own = is_known & (fold != k), is_known & (fold == k)
        rows = np.bincount(codes[others], minlength=len(categories))
        labelled = np.bincount(codes[others & is_labelled], minlength=len(categories))
        scores[own] = ((labelled + is_labelled.mean()) / (rows + 1.0))[codes[own]]
    return scores


def _folds(is_labelled: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """A fold for each row, as many labelled rows in each as can be. Shape: (n,)."""
    return np.where(is_labelled, np.cumsum(is_labelled), np.cumsum(~is_labelled)) % _FOLDS


class RowSample:
    """A uniform sample of labelled and of unlabelled rows from batches of unknown number.

    Keeps the rows with the smallest random keys: every row is kept with the same probability.
    """

    def __init__(self, size: int = _SAMPLED, seed: int = 0) -> None:
        self._size = size
        self._random = np.random.RandomState(seed)
        self._rows: dict[int, Any] = {}
        self._keys: dict[int, npt.NDArray[np.float64]] = {}

    def add(self, rows: Any, labels: Labels) -> None:
        """Consider a batch: a DataFrame or an array."""
        # Keys are drawn for all rows, so that the sample does not depend on the labels of other rows.
        keys = self._random.random_sample(len(labels))
        for side in (POSITIVE, UNLABELLED):
            threshold = self._threshold(side)
            chosen = np.flatnonzero((labels == side) & (keys < threshold))
            if len(chosen):
                self._keep(side, _take(rows, chosen), keys[chosen])

    def _threshold(self, side: int) -> float:
        kept = self._keys.get(side)
        return float(kept.max()) if kept is not None and len(kept) == self._size else np.inf

    def _keep(self, side: int, rows: Any, keys: npt.NDArray[np.float64]) -> None:
        if side in self._rows:
            rows, keys = _join(self._rows[side], rows), np.concatenate([self._keys[side], keys])
        order = np.argsort(keys, kind="stable")[: self._size]
        self._rows[side], self._keys[side] = _take(rows, order), keys[order]

    @property
    def usable(self) -> bool:
        """Enough rows on both sides to say anything."""
        return all(len(self._keys.get(side, ())) >= _FEWEST for side in (POSITIVE, UNLABELLED))

    def rows(self) -> tuple[Any, npt.NDArray[np.bool_]]:
        """The sampled rows and whether each is a labelled positive."""
        n_p, n_u = len(self._keys[POSITIVE]), len(self._keys[UNLABELLED])
        is_labelled = np.repeat([True, False], [n_p, n_u])
        return _join(self._rows[POSITIVE], self._rows[UNLABELLED]), is_labelled


def _take(rows: Any, chosen: npt.NDArray[Any]) -> Any:
    return rows.iloc[chosen] if isinstance(rows, pd.DataFrame) else rows[chosen]


def _join(first: Any, second: Any) -> Any:
    if isinstance(first, pd.DataFrame):
        return pd.concat([first, second], ignore_index=True)
    return np.concatenate([first, second])

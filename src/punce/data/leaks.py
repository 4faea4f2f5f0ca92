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

from punce.columns.kinds import category_names, column_kind, date_format, dates, days_since_epoch, numbers

FEWEST = 5
_MOST_CATEGORIES = 200


def separation(values: npt.NDArray[np.float64], is_labelled: npt.NDArray[np.bool_]) -> float:
    """max(AUC, 1 − AUC) of labelled against unlabelled rows; 0.5 where either side has fewer than 5 values."""
    n_p = int(is_labelled.sum())
    n_u = len(values) - n_p
    if min(n_p, n_u) < FEWEST:
        return 0.5
    from scipy.stats import rankdata

    ranks = rankdata(values)
    auc = (float(ranks[is_labelled].sum()) - n_p * (n_p + 1) / 2) / (n_p * n_u)
    return max(auc, 1.0 - auc)


def column_separation(series: pd.Series[Any], is_labelled: npt.NDArray[np.bool_]) -> tuple[float, str]:
    """The strongest separation a column gives, and by what: its values, or where it is missing."""
    missing = series.isna().to_numpy()
    by_missing = separation(missing.astype(np.float64), is_labelled)
    scores = _scores(series, is_labelled)
    present = np.isfinite(scores)
    by_value = separation(scores[present], is_labelled[present])
    return max((by_value, "values"), (by_missing, "missing values"))


def _scores(series: pd.Series[Any], is_labelled: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    kind = column_kind(series)
    if kind == "numeric":
        return np.asarray(numbers(series), dtype=np.float64)
    if kind == "date":
        return np.asarray(days_since_epoch(dates(series, date_format(series))), dtype=np.float64)
    if kind == "categorical":
        return _category_scores(series, is_labelled)
    return np.full(len(series), np.nan)


def _category_scores(series: pd.Series[Any], is_labelled: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Each category's share of labelled rows, with one row of the overall share added so that rare ones say little."""
    names = category_names(series)
    if names.nunique() > _MOST_CATEGORIES:
        return np.full(len(series), np.nan)
    groups = pd.Series(is_labelled.astype(np.float64), index=series.index).groupby(names)
    counts, sums = groups.transform("count"), groups.transform("sum")
    return np.asarray((sums + is_labelled.mean()) / (counts + 1.0), dtype=np.float64)

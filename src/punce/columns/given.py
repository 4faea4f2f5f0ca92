"""Rows as a caller hands them over: those of other libraries as pandas' and NumPy's, and whether they are texts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from punce.row_numbers import without_mask

_LOOKED_AT = 50  # rows; reading all of a long column only to tell its kind would take time


def plain_rows(X: Any) -> Any:
    """Frames of other libraries as pandas', and anything else that says it is an array as one."""
    if isinstance(X, np.ndarray) and X.dtype.names is not None and X.ndim == 1:  # DataFrame.to_records, np.genfromtxt
        return pd.DataFrame({name: plain_rows(X[name]) for name in X.dtype.names})
    X = without_mask(X)
    if isinstance(X, np.ndarray | pd.DataFrame | pd.Series | list | tuple):
        return X
    if issparse(X):
        return X.tocsr()  # type: ignore[attr-defined]  # has rows to take; a route makes it dense where it must
    if hasattr(X, "collect") and hasattr(X, "lazy"):  # a query of polars that has not run yet
        X = X.collect()
    if hasattr(X, "to_pandas"):  # polars, Arrow
        return X.to_pandas()
    if hasattr(X, "detach"):  # torch
        return X.detach().cpu().numpy()
    return np.asarray(X) if hasattr(X, "__array__") else X


def is_text(X: Any) -> bool:
    """Whether rows are texts: a list, an array or a Series of str, of which some may be missing."""
    if isinstance(X, pd.Series):
        is_string = pd.api.types.is_string_dtype(X) and not pd.api.types.is_numeric_dtype(X)
        return bool(is_string or (X.dtype == object and _begins_with_text(X)))
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and (X.dtype.kind == "U" or (X.dtype == object and _begins_with_text(X)))
    return isinstance(X, list | tuple) and _begins_with_text(X)


def is_missing(value: Any) -> bool:
    """None, NaN, pandas' NA or NaT."""
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _begins_with_text(rows: Iterable[Any]) -> bool:
    """Whether the first rows that are there are str."""
    first = list(islice((row for row in rows if not is_missing(row)), _LOOKED_AT))
    return bool(first) and all(isinstance(row, str) for row in first)

"""What kind of input is this? Decided once, in one place, and said when it cannot be."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, get_args

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from punce.datasets.dataset import Kind
from punce.errors import InputError

KINDS: tuple[Kind, ...] = get_args(Kind)
_LOOKED_AT = 50  # rows; reading all of a long column only to tell its kind would take time


def kind_of(X: Any) -> Kind:
    """A frame is a table, four dimensions are images, strings are text; a matrix is a table.

    A matrix of ready-made embeddings cannot be told from a table of numbers: name it with ``kind="embedding"``.
    """
    if isinstance(X, pd.DataFrame):
        return "table"
    if _is_text(X):
        return "text"
    shape = np.shape(X)
    if len(shape) == 4:
        return "image"
    if len(shape) in (1, 2):
        return "table"
    raise InputError(
        f"X of shape {shape} is neither a table (n, d), images (n, C, H, W) or (n, H, W, C), nor a list of texts"
    )


def plain_rows(X: Any) -> Any:
    """Frames of other libraries as pandas', and anything else that says it is an array as one."""
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


def check_rows(X: Any) -> None:
    """Refuse what no route reads: complex matrices, no rows, no columns."""
    shape = np.shape(X)
    if shape == ():
        raise InputError(f"X must hold rows: a table, a matrix, images or a list of texts, got {type(X).__name__}")
    if len(shape) == 2 and shape[1] == 0:
        raise InputError(f"0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if np.size(shape) and shape[0] == 0:
        raise InputError(f"0 sample(s) (shape={shape}) while a minimum of 2 is required.")
    if shape and shape[0] == 1:
        raise InputError("1 sample is not enough to learn from: n_samples = 1")
    if isinstance(X, np.ndarray) and np.iscomplexobj(X):
        raise InputError("Complex data not supported")


def is_missing(value: Any) -> bool:
    """None, NaN, pandas' NA or NaT."""
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _is_text(X: Any) -> bool:
    if isinstance(X, pd.Series):
        is_string = pd.api.types.is_string_dtype(X) and not pd.api.types.is_numeric_dtype(X)
        return bool(is_string or (X.dtype == object and _begins_with_text(X)))
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and (X.dtype.kind == "U" or (X.dtype == object and _begins_with_text(X)))
    return isinstance(X, list | tuple) and _begins_with_text(X)


def _begins_with_text(rows: Iterable[Any]) -> bool:
    """Whether the first rows that are there are str."""
    first = list(islice((row for row in rows if not is_missing(row)), _LOOKED_AT))
    return bool(first) and all(isinstance(row, str) for row in first)

"""What kind of input is this? Decided once, in one place, and said when it cannot be."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pandas as pd

from punce.columns.given import is_text
from punce.datasets.dataset import Kind
from punce.errors import InputError

KINDS: tuple[Kind, ...] = get_args(Kind)
_AS_WIDE_AS_EMBEDDINGS = 256


def kind_of(X: Any) -> Kind:
    """A frame is a table, four dimensions are images, strings are text; a matrix is a table.

    A matrix of ready-made embeddings cannot be told from a table of numbers: name it with ``kind="embedding"``.
    """
    if isinstance(X, pd.DataFrame):
        return "table"
    if is_text(X):
        return "text"
    shape = np.shape(X)
    if len(shape) == 4:
        return "image"
    if len(shape) in (1, 2):
        return "table"
    raise InputError(
        f"X of shape {shape} is neither a table (n, d), images (n, C, H, W) or (n, H, W, C), nor a list of texts"
        + ("; grey images (n, H, W) are X[:, None]" if len(shape) == 3 else "")
    )


def about_matrix(X: Any) -> str:
    """A matrix with as many columns as embeddings have is a table only because nobody said otherwise."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind != "f" or X.shape[1] < _AS_WIDE_AS_EMBEDDINGS:
        return ""
    return (
        f"X has {X.shape[1]:,} columns of numbers and is learned as a table; if its rows are embeddings, say "
        "kind='embedding' (kind='table' ends this message)"
    )


def check_shape(kind: str, X: Any) -> None:
    """Refuse a matrix in place of images and images in place of embeddings: one would be learned as the other."""
    shape = np.shape(X)
    if kind == "image" and len(shape) == 2:
        raise InputError(
            f"images have the shape (n, C, H, W) or (n, H, W, C), got {shape}; bring flat images back to it (grey "
            "ones: X.reshape(-1, 1, H, W)), or name a matrix of embeddings kind='embedding'"
        )
    if kind == "embedding" and len(shape) == 4:
        raise InputError(f"embeddings are a matrix (n, d), got {shape}; images are kind='image'")
    if kind == "embedding" and isinstance(X, pd.DataFrame):
        for name, column in X.items():
            if _holds_vectors(column):
                raise InputError(
                    f"column {name!r} of X holds a vector in each row; give the matrix: np.stack(X[{name!r}])"
                )


def check_rows(X: Any) -> None:
    """Refuse what no route reads: complex matrices, no rows, no columns, rows of different lengths."""
    try:
        shape = np.shape(X)
    except ValueError as error:  # NumPy's own words are about arrays, and a list has none
        raise InputError(f"the rows of X must all have the same length, and do not: {error}") from error
    if shape == ():
        raise InputError(f"X must hold rows: a table, a matrix, images or a list of texts, got {type(X).__name__}")
    if isinstance(X, list | tuple) and len(X) and isinstance(X[0], dict):
        raise InputError("X is a list of dictionaries, not rows; pandas.DataFrame(X) makes a table of them")
    if isinstance(X, pd.Series) and _holds_vectors(X):
        raise InputError(
            "X is one column that holds a vector in each row; np.stack(X) makes a matrix of it, which "
            "kind='embedding' takes for embeddings"
        )
    if len(shape) == 2 and shape[1] == 0:
        raise InputError(f"0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if np.size(shape) and shape[0] == 0:
        raise InputError(f"0 sample(s) (shape={shape}) while a minimum of 2 is required.")
    if shape and shape[0] == 1:
        raise InputError("1 sample is not enough to learn from: n_samples = 1")
    if isinstance(X, np.ndarray) and np.iscomplexobj(X):
        raise InputError("Complex data not supported")


def _holds_vectors(column: pd.Series[Any]) -> bool:
    return column.dtype == object and len(column) > 0 and isinstance(column.iloc[0], list | tuple | np.ndarray)

"""Sparse matrices, such as scikit-learn's OneHotEncoder gives, as input of bounded size.

Every model here reads dense rows, so a sparse matrix becomes dense, in single precision. One that would fill more than
1 GB so is cut, for a table, to the columns with the most non-zero rows. An embedding cannot
be cut without a change of its meaning, so it is refused with the advice to project it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from punce.errors import InputError

MOST_CELLS = 250_000_000
"""Cells of a dense float32 matrix: 1 GB."""


def frame_from_sparse(X: Any, names: tuple[str, ...] | None = None, most_cells: int = MOST_CELLS) -> pd.DataFrame:
    """A table with the columns x0, x1, … of a sparse matrix: those in `names`, or as many as `most_cells` allows.

    A cell that is not stored is the number 0, not a missing value. With too many cells the columns with the most
    non-zero rows stay; they keep their names, so that `names` finds them again in new rows.
    """
    matrix = _checked(X)
    if names is not None:
        kept = [int(name[1:]) for name in names if int(name[1:]) < matrix.shape[1]]
    else:
        kept = _fullest(matrix, most_cells // matrix.shape[0])
    values = matrix[:, kept].toarray(order="F")  # by columns, as the table is read
    return pd.DataFrame(values, columns=[f"x{k}" for k in kept], copy=False)


def matrix_from_sparse(X: Any, most_cells: int = MOST_CELLS) -> npt.NDArray[np.float32]:
    """An embedding as a dense float32 matrix (n, d); refuses one that would be too large."""
    matrix = _checked(X)
    n, d = matrix.shape
    if n * d > most_cells:
        raise InputError(
            f"a sparse embedding of {n:,} × {d:,} would take {n * d * 4 / 1e9:.1f} GB when dense, more than "
            f"{most_cells * 4 / 1e9:.1f} GB; project it first: sklearn.decomposition.TruncatedSVD(256).fit_transform(X)"
        )
    return np.asarray(matrix.toarray(), dtype=np.float32)


def _checked(X: Any) -> sparse.csc_array:
    if np.issubdtype(X.dtype, np.complexfloating):
        raise InputError("Complex data not supported")
    if 0 in X.shape:
        raise InputError(f"the sparse matrix is empty: shape {X.shape}")
    return sparse.csc_array(X, dtype=np.float32)


def _fullest(matrix: sparse.csc_array, most: int) -> list[int]:
    """At most `most` columns, at least one, in their order."""
    if matrix.shape[1] <= most:
        return list(range(matrix.shape[1]))
    filled = matrix.count_nonzero(axis=0)
    return sorted(np.argsort(-filled, kind="stable")[: max(most, 1)].tolist())

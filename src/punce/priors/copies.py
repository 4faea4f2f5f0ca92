"""Unlabelled rows that are exact copies of labelled ones: where rows hardly repeat, they are known positives."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

_CHANCE = 0.1  # share of the unlabelled rows that repeat each other, from which copies may be chance


class Copies(NamedTuple):
    """`fold_with` (n,): the row each row shares its fold with, itself for most. `share`: known positives among U."""

    fold_with: npt.NDArray[np.intp]
    share: float

    def among(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """`fold_with` where only these rows are used, as places in `rows`. Shape: (m,) -> (m,)."""
        named = self.fold_with[rows]
        order = np.argsort(named != rows, kind="stable")  # the row that is named, if it is used, else another copy
        first = np.unique(named[order], return_index=True)[1]
        return np.asarray(order[first][np.unique(named, return_inverse=True)[1]], dtype=np.intp)


def find_copies(values: Any, is_p: npt.NDArray[np.bool_]) -> Copies:
    """Copies in `values` (n, d), dense or CSR.

    A few columns of few values repeat by chance, in both classes. That shows in how often unlabelled rows repeat
    each other: where more than a tenth of them do, nothing is concluded and rows are left as they are.
    """
    fold_with = _first_equal(values, is_p)
    of_unlabelled = fold_with[~is_p]
    if len(np.unique(of_unlabelled)) < (1.0 - _CHANCE) * len(of_unlabelled):
        return Copies(np.arange(len(is_p)), 0.0)
    return Copies(fold_with, float(is_p[of_unlabelled].mean()))


def _first_equal(values: Any, is_p: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Of every row the first row equal to it; labelled rows count as earlier than unlabelled ones."""
    keys: list[Any]
    if sparse.issparse(values):
        matrix: Any = values
        ends = itertools.pairwise(matrix.indptr.tolist())
        keys = [(matrix.indices[a:b].tobytes(), matrix.data[a:b].tobytes()) for a, b in ends]
    else:
        # Digests: the bytes of all rows would be another copy of them.
        keys = [hashlib.blake2b(row, digest_size=16).digest() for row in np.ascontiguousarray(values)]
    first: dict[Any, int] = {}
    found = np.empty(len(keys), dtype=np.intp)
    for row in np.argsort(~is_p, kind="stable").tolist():
        found[row] = first.setdefault(keys[row], row)
    return found

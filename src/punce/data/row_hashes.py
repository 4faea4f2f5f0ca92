"""A 64-bit fingerprint per row, by which equal rows are found without keeping them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.columns.kinds import beyond_floats, plain_numbers
from punce.labels import POSITIVE, UNLABELLED, Labels

Hashes = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_REPEATED = 0.1  # of the labelled rows: fewer copies among them change no number much


def hash_table(frame: pd.DataFrame, left_out: Collection[str]) -> Hashes:
    """Rows of a table, without the columns that differ by design (row numbers) or cannot be compared."""
    kept = [series for name, series in frame.items() if name not in left_out]
    if not kept:
        return np.arange(len(frame), dtype=np.uint64)
    hashes: Hashes = np.zeros(len(frame), dtype=np.uint64)
    for series in kept:
        # a polynomial in an odd number, modulo 2^64: unequal rows have equal sums with a chance of 2^-64
        hashes = hashes * _ODD + hash_values(series)
    return hashes


def hash_values(column: pd.Series[Any] | npt.NDArray[Any]) -> Hashes:
    """Values of one column. Plain numbers are hashed as floats: a batch may hold 3 where another holds 3.0.

    Whole numbers that no float holds are hashed as they are: equal floats would make different rows equal.
    """
    if isinstance(column, pd.Series) and plain_numbers(column) is None:
        return np.asarray(pd.util.hash_pandas_object(column, index=False), dtype=np.uint64)
    values = np.asarray(column)
    hashes = pd.util.hash_array(values.astype(np.float64))
    if values.dtype.kind in "iu" and (large := beyond_floats(values)).any():
        hashes[large] = pd.util.hash_array(values[large])
    return hashes


def hash_texts(texts: list[str]) -> Hashes:
    """Texts, whatever their case and spacing."""
    plain = (" ".join(text.casefold().split()) for text in texts)
    # Half a surrogate pair is no character, and pandas hashes none.
    return np.array([hash_bytes(text.encode("utf-8", "surrogatepass")) for text in plain], dtype=np.uint64)


def hash_array(array: npt.NDArray[Any]) -> Hashes:
    """Rows of an array of any shape, by their bytes."""
    return np.array([hash_bytes(np.ascontiguousarray(row).tobytes()) for row in array], dtype=np.uint64)


def hash_bytes(content: bytes) -> int:
    """64 bits of BLAKE2."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def count_duplicates(hashes: Hashes, labels: Labels, label: int = UNLABELLED) -> tuple[int, npt.NDArray[np.intp]]:
    """How many rows of this label equal a labelled positive one, and the first few of them."""
    # By sorting: the other way, which NumPy takes where few values lie close together, overflows in NumPy 2.0.
    rows = np.flatnonzero(np.isin(hashes, hashes[labels == POSITIVE], kind="sort") & (labels == label))
    return len(rows), rows[:5]


def about_repeated(positive: Hashes, unlabelled: Callable[[], int]) -> str:
    """What to tell a person whose labelled rows stand among the rows several times; empty where hardly one does.

    Rows of few values repeat by chance. Then `unlabelled` rows equal a labelled one at least as often.
    """
    copies = len(positive) - len(np.unique(positive))
    if copies <= _REPEATED * len(positive) or copies <= unlabelled():
        return ""
    what = f"{copies:,} of {len(positive):,} labelled rows are copies of another labelled row"
    return f"{what}: a copy in training makes the held-out one look easy, and every number too good; keep one of each"

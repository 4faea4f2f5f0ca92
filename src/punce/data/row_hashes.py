"""A 64-bit fingerprint per row, by which equal rows are found without keeping them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.labels import POSITIVE, UNLABELLED, Labels

Hashes = npt.NDArray[np.uint64]


def hash_table(frame: pd.DataFrame, left_out: Collection[str]) -> Hashes:
    """Rows of a table, without the columns that differ by design (row numbers) or cannot be compared."""
    kept = [name for name in frame.columns if name not in left_out]
    if not kept:
        return np.arange(len(frame), dtype=np.uint64)
    return np.asarray(pd.util.hash_pandas_object(frame[kept], index=False), dtype=np.uint64)


def hash_texts(texts: list[str]) -> Hashes:
    """Texts, whatever their case and spacing."""
    plain = [" ".join(text.casefold().split()) for text in texts]
    return pd.util.hash_array(np.array(plain, dtype=object))


def hash_array(array: npt.NDArray[Any]) -> Hashes:
    """Rows of an array of any shape, by their bytes."""
    return np.array([hash_bytes(np.ascontiguousarray(row).tobytes()) for row in array], dtype=np.uint64)


def hash_bytes(content: bytes) -> int:
    """64 bits of BLAKE2."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def count_duplicates(hashes: Hashes, labels: Labels) -> tuple[int, npt.NDArray[np.intp]]:
    """How many unlabelled rows equal a labelled positive one, and the first few of them."""
    labelled = np.unique(hashes[labels == POSITIVE])
    if len(labelled) == 0:
        return 0, np.empty(0, dtype=np.intp)
    place = np.minimum(np.searchsorted(labelled, hashes), len(labelled) - 1)
    rows = np.flatnonzero((labelled[place] == hashes) & (labels == UNLABELLED))
    return len(rows), rows[:5]

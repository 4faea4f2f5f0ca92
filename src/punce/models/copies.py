"""Labelled rows that are copies of each other: held-out scores of such rows are by models that have seen a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from punce.columns.encoder import EncodedTable
from punce.columns.given import is_text
from punce.data.row_hashes import Hashes, about_repeated, count_duplicates, hash_array, hash_texts
from punce.labels import POSITIVE, Labels


def about_copies(rows: Any, labels: Labels) -> str:
    """What to tell a person of copies among the labelled rows, as the data check of the command does; empty if none.

    `rows` are those of :meth:`~punce.models.route.Route.prepare`. Sparse rows are not compared. Shape: labels (n,).
    """
    values = _comparable(rows)
    if values is None:
        return ""

    def unlabelled() -> int:
        return count_duplicates(_hashes(values), labels)[0]

    labelled = np.flatnonzero(labels == POSITIVE)
    some = values[labelled] if isinstance(values, np.ndarray) else [values[row] for row in labelled]
    return about_repeated(_hashes(some), unlabelled)


def _comparable(rows: Any) -> npt.NDArray[Any] | list[str] | None:
    """Rows as texts or as an array, whatever holds them: a list of vectors, a frame, a tensor. None: not compared."""
    if isinstance(rows, list) and is_text(rows):
        return rows
    if issparse(rows):
        return None
    values = rows.values if isinstance(rows, EncodedTable) else np.asarray(rows)
    return None if values.dtype == object else values  # whose bytes are addresses


def _hashes(rows: npt.NDArray[Any] | list[str]) -> Hashes:
    return hash_array(rows) if isinstance(rows, np.ndarray) else hash_texts(rows)

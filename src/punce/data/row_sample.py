"""A uniform sample of labelled and of unlabelled rows from batches of unknown number."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.data.leaks import FEWEST
from punce.labels import POSITIVE, UNLABELLED, Labels

SIZE = 5_000


class RowSample:
    """Keeps the rows with the smallest random keys: every row is kept with the same probability."""

    def __init__(self, size: int = SIZE, seed: int = 0) -> None:
        self._size = size
        self._random = np.random.RandomState(seed)
        self._rows: dict[int, Any] = {}
        self._keys: dict[int, npt.NDArray[np.float64]] = {}

    def add(self, rows: Any, labels: Labels) -> None:
        """Consider a batch: a DataFrame or an array."""
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
        return all(len(self._keys.get(side, ())) >= FEWEST for side in (POSITIVE, UNLABELLED))

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

"""Features as coordinates along their leading directions: at most 256 numbers a row, whatever it had before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from punce.columns.stored import StoredArrays

Values = npt.NDArray[np.float32]

MOST = 256
"""Directions. More cost time and, with few labelled rows, add noise rather than signal."""
_ROWS_AT_ONCE = 20_000
_MOST_ROWS = 20_000  # from which directions are learned: enough for a covariance of a few thousand features


@dataclass(frozen=True)
class Directions(StoredArrays):
    """Principal directions, scaled by one number to a mean spread of 1. Shape: mean (D,), rotation (D, M)."""

    mean: Values
    rotation: Values

    @classmethod
    def fit(cls, x: Values, seed: int) -> Directions:
        """Learn from some of the rows; labels are not looked at. Shape: (n, D)."""
        from scipy.linalg import eigh

        rows = np.random.default_rng(seed).permutation(len(x))[:_MOST_ROWS]
        some = x[np.sort(rows)].astype(np.float32)
        mean = some.mean(axis=0)
        some = some - mean
        size = min(MOST, x.shape[1], max(1, len(some) - 1))
        last = x.shape[1] - 1
        variance, rotation = eigh(
            (some.T @ some).astype(np.float64) / len(some), subset_by_index=(last - size + 1, last)
        )
        kept = variance > 1e-7 * max(float(variance[-1]), 1e-30)  # directions in which rows do not differ
        kept[-1] = True
        scale = np.sqrt(max(float(variance[kept].mean()), 1e-30))
        return cls(mean, np.ascontiguousarray((rotation[:, kept] / scale)[:, ::-1].astype(np.float32)))

    def __call__(self, x: Values) -> Values:
        """Shape: (n, D) -> (n, M)."""
        found = np.empty((len(x), self.rotation.shape[1]), dtype=np.float32)
        for k in range(0, len(x), _ROWS_AT_ONCE):  # a centred copy of a million rows would double their memory
            part = np.asarray(x[k : k + _ROWS_AT_ONCE], dtype=np.float32)
            np.matmul(part - self.mean, self.rotation, out=found[k : k + _ROWS_AT_ONCE])
        return found

"""Features as coordinates along their leading directions: at most 256 numbers a row, whatever it had before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.columns.stored import StoredArrays

Values = npt.NDArray[np.float32]

MOST = 256
"""Directions. More cost time and, with few labelled rows, add noise rather than signal."""
_ROWS_AT_ONCE = 20_000
_MOST_ROWS = 20_000  # from which directions are learned: enough for a covariance of a few thousand features
_WIDE, _ROWS_IF_WIDE = 4_096, 3_000  # the time grows with the cube of the lesser of rows and features

_NO_SPREAD, _TINY = 2.0**-110, 2.0**-30  # distances from the mean


@dataclass(frozen=True)
class Directions(StoredArrays):
    """Principal directions, scaled by one number to a mean spread of 1. Shape: mean (D,), rotation (D, M)."""

    mean: Values
    rotation: Values

    @classmethod
    def fit(cls, x: npt.NDArray[Any], seed: int) -> Directions:
        """Learn from some of the rows, numbers of any type; labels are not looked at. Shape: (n, D)."""
        rows = np.random.default_rng(seed).permutation(len(x))[: _MOST_ROWS if x.shape[1] <= _WIDE else _ROWS_IF_WIDE]
        some = x[np.sort(rows)].astype(np.float32)
        mean = some.mean(axis=0)
        some = some - mean
        shift = _shift(some)
        np.ldexp(some, shift, out=some)
        size = min(MOST, x.shape[1], max(1, len(some) - 1))
        variance, rotation = _leading(some, size)
        kept = variance > 1e-7 * max(float(variance[-1]), 1e-30)  # directions in which rows do not differ
        kept[-1] = True
        scale = np.sqrt(max(float(variance[kept].mean()), 1e-30))
        unscaled = np.ldexp(rotation[:, kept] / scale, shift)
        return cls(mean, np.ascontiguousarray(unscaled[:, ::-1].astype(np.float32)))

    def __call__(self, x: npt.NDArray[Any]) -> Values:
        """Shape: (n, D) -> (n, M)."""
        found = np.empty((len(x), self.rotation.shape[1]), dtype=np.float32)
        for k in range(0, len(x), _ROWS_AT_ONCE):  # a centred copy of a million rows would double their memory
            part = np.asarray(x[k : k + _ROWS_AT_ONCE], dtype=np.float32)
            np.matmul(part - self.mean, self.rotation, out=found[k : k + _ROWS_AT_ONCE])
        return found


def _shift(x: Values) -> int:
    """The power of two that brings tiny numbers near 1, because their squares are nothing in float32; mostly 0.

    Below the last limit the rotation would overflow: such rows count as equal.
    """
    largest = max(float(x.max(initial=0)), -float(x.min(initial=0)))
    return -int(np.frexp(largest)[1]) if _NO_SPREAD < largest < _TINY else 0


def _leading(x: Values, size: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Variance and vectors of the leading directions, ascending. Shape: (n, D) -> (size,), (D, size).

    Of rows with more numbers than there are rows, the products of rows with rows are decomposed instead: 600 images
    of 64 × 64 pixels take a second, not minutes.
    """
    from scipy.linalg import eigh

    is_wide = x.shape[1] > len(x)
    products = (x @ x.T if is_wide else x.T @ x).astype(np.float64) / len(x)
    last = len(products) - 1
    variance, vectors = eigh(products, subset_by_index=(last - size + 1, last))
    if is_wide:  # x = U S Vᵀ: the directions V are xᵀ U / S
        vectors = x.T @ vectors.astype(np.float32) / np.sqrt(len(x) * variance.clip(1e-30))
    return variance, vectors

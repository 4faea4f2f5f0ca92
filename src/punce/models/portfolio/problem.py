"""What a head learns from, and the linear score that most heads become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from punce.columns.stored import StoredArrays
from punce.errors import InputError

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class HeadProblem:
    """What a head learns from. `truths` is the known class (1 or −1) of rows that are not labelled, else 0.

    Shape: x (n, D) on comparable scales, or sparse; is_p (n,); truths (n,); counts (n,), how much each row counts.
    """

    x: Any
    is_p: Flags
    truths: npt.NDArray[np.int8]
    counts: Floats
    prior: float
    seed: int
    memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What one head worked out and others ask for, too. A changed problem needs a new one (:meth:`changed`)."""

    def changed(self, **changes: Any) -> HeadProblem:
        """The same problem but for these fields, with an empty memory."""
        return replace(self, memory={}, **changes)

    @property
    def balanced(self) -> Floats:
        """Weights of the rows in which labelled and other rows sum to one half each. Shape: (n,)."""
        weights = np.empty(len(self.is_p))
        for group in (self.is_p, ~self.is_p):
            own = self.counts[group]
            own = own if own.any() else np.ones_like(own)
            weights[group] = 0.5 * own / own.sum()
        return weights

    @property
    def hard_targets(self) -> Flags:
        """Labelled rows and those known to be positive."""
        return self.is_p | (self.truths > 0)


@dataclass(frozen=True)
class Linear(StoredArrays):
    """Shape: weight (D,), bias (1,)."""

    weight: Values
    bias: Values

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """What :meth:`arrays` gave; a longer bias would be another one for each row."""
        head = super().from_arrays(arrays)
        if head.weight.ndim != 1 or head.bias.shape != (1,):
            raise InputError("not a stored linear head: its arrays do not fit together")
        return head

    def score(self, x: Any) -> Floats:
        """Shape: (n, D) -> (n,)."""
        scores: Floats = np.asarray(x @ self.weight + self.bias, dtype=np.float64)
        return scores


def linear(weight: npt.NDArray[Any], bias: float) -> Linear:
    """Shape: weight (D,)."""
    return Linear(weight.astype(np.float32), np.array([bias], dtype=np.float32))

"""What a benchmark set is: two parts of rows with their true labels, kept apart from anything training sees."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from punce.errors import InputError

Kind = Literal["image", "table", "text", "embedding"]
TrueLabels = npt.NDArray[np.int8]

# RandomState's stream is frozen by NumPy's compatibility policy (NEP 19), Generator's is not: the split of a
# benchmark set must be the same rows in ten years.
_SPLIT_SEED = 20_190_531
_TEST_SHARE = 0.2


@dataclass(frozen=True)
class Part:
    """Rows of a benchmark set.

    Shape: X is uint8 (n, C, H, W) for images, a DataFrame of n rows for tables, a list of n str for text;
    y_true is int8 (n,), 1 for the positive class and 0 for the negative class. `y_true` is the truth, not labels:
    training code gets the output of :func:`punce.data.simulate_pu`, never this.
    """

    X: Any
    y_true: TrueLabels

    def __post_init__(self) -> None:
        if len(self.X) != len(self.y_true):
            raise InputError(f"{len(self.X)} rows but {len(self.y_true)} true labels")

    def __len__(self) -> int:
        return len(self.y_true)

    @property
    def n_positive(self) -> int:
        """Rows of the positive class."""
        return int(self.y_true.sum())

    @property
    def n_negative(self) -> int:
        """Rows of the negative class."""
        return len(self) - self.n_positive


@dataclass(frozen=True)
class Dataset:
    """A benchmark set. `validation` exists only where the set's own distribution has such a part."""

    name: str
    kind: Kind
    positive: str
    train: Part
    test: Part
    validation: Part | None = None


def is_member(classes: npt.NDArray[Any], positive: Collection[Any]) -> TrueLabels:
    """1 where the class is one of `positive`, else 0."""
    return np.isin(classes, list(positive)).astype(np.int8)


def named_classes(names: Sequence[str], positive: Collection[Any]) -> list[str]:
    """The names of these classes, in order; refuses a class that the set does not have."""
    if unknown := [one for one in positive if one not in range(len(names))]:
        raise InputError(f"positive: there is no class {unknown[0]!r}; classes are 0 to {len(names) - 1}")
    return [names[int(one)] for one in sorted(positive)]


def fixed_split(strata: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows of train (80 %) and test, always the same, with the shares of `strata` kept; for sets without a split."""
    order = np.random.RandomState(_SPLIT_SEED).permutation(len(strata))
    is_test = np.zeros(len(strata), dtype=bool)
    for stratum in np.unique(strata):
        rows = order[strata[order] == stratum]
        is_test[rows[: round(_TEST_SHARE * len(rows))]] = True
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)

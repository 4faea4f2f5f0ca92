"""What every member is given to learn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from punce.labels import Labels
from punce.models.tabular.trees import Floats


@dataclass(frozen=True)
class Lesson:
    """Rows, labels and folds; `chances` is P(y=1 | x, unlabelled) by teachers that did not see the fold.

    Shape: binned (n, d), categorical (d,), labels (n,), folds (n,) of 0 … K−1, chances (K, n).
    """

    binned: npt.NDArray[np.float32]
    categorical: npt.NDArray[np.bool_]
    labels: Labels
    folds: npt.NDArray[np.intp]
    chances: Floats
    prior: float
    seed: int

    @property
    def n_folds(self) -> int:
        """K."""
        return len(self.chances)

    def without(self, fold: int) -> npt.NDArray[np.intp]:
        """Rows of all the other folds."""
        return np.flatnonzero(self.folds != fold)

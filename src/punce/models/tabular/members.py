"""The members of the default for tables. A new one is a class like these and one line in :data:`MEMBERS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from punce.models.tabular.boosting import Boosting
from punce.models.tabular.forest import Forest
from punce.models.tabular.network import Networks
from punce.models.tabular.steps import Arrays, Steps
from punce.models.tabular.teachers import Lesson
from punce.models.tabular.trees import Floats


class Member(Protocol):
    """K models of one kind, model k trained without fold k."""

    @classmethod
    def fit(cls, lesson: Lesson, step: Steps) -> Self:
        """Model k learns from every fold but k. What takes time goes through `step`, so that a killed fit resumes."""
        ...

    def scores(self, binned: npt.NDArray[np.float32]) -> Floats:
        """Scores on the scale of log-odds. Shape: (n, d) -> (K, n)."""
        ...

    def held_out_scores(self, binned: npt.NDArray[np.float32], folds: npt.NDArray[np.intp]) -> Floats:
        """Each row's score by the model that did not see its fold. Shape: (n, d), (n,) -> (n,)."""
        ...

    def arrays(self) -> Arrays:
        """Everything needed to score, as arrays."""
        ...

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """What `arrays` gave."""
        ...


MEMBERS: dict[str, type[Member]] = {"boosting": Boosting, "forest": Forest, "nnpu": Networks}

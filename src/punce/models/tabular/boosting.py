"""Member "boosting": gradient boosting on Elkan & Noto's weighted duplicates.

Every unlabelled row is there twice, as a positive with weight w and as a negative with weight 1 − w.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from punce.labels import UNLABELLED, Labels
from punce.models.tabular.lesson import Lesson
from punce.models.tabular.teachers import boosting
from punce.models.tabular.trees import Floats, Trees, boosting_trees, held_out, stored_trees, trees_arrays

_LIGHTEST = 1e-3  # a duplicate lighter than this changes no tree but costs its time
_CHECKED = 20


@dataclass(frozen=True)
class Boosting:
    """One student for each fold."""

    students: tuple[Trees, ...]

    @classmethod
    def fit(cls, lesson: Lesson) -> Self:
        """Student k learns from every fold but k."""
        students = []
        for k in range(lesson.n_folds):
            rows = lesson.without(k)
            x = lesson.binned[rows]
            model = _student(x, lesson.categorical, lesson.labels[rows], lesson.chances[k, rows], lesson.seed + k)
            students.append(boosting_trees(model, x[:_CHECKED]))
        return cls(tuple(students))

    def scores(self, binned: npt.NDArray[np.float32]) -> Floats:
        """Log-odds. Shape: (n, d) -> (K, n)."""
        return np.stack([trees.score(binned) for trees in self.students])

    def held_out_scores(self, binned: npt.NDArray[np.float32], folds: npt.NDArray[np.intp]) -> Floats:
        """Each row's score by the student that did not see its fold. Shape: (n,)."""
        return held_out(self.students, binned, folds)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything needed to score."""
        return trees_arrays(self.students)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """What :meth:`arrays` gave."""
        return cls(stored_trees(arrays))


def _student(
    binned: npt.NDArray[np.float32], categorical: npt.NDArray[np.bool_], labels: Labels, chances: Floats, seed: int
) -> Any:
    hidden = labels == UNLABELLED
    rows = np.concatenate([np.arange(len(labels)), np.flatnonzero(hidden)])
    target = np.concatenate([np.ones(len(labels), np.int64), np.zeros(int(hidden.sum()), np.int64)])
    weights = np.concatenate([chances, 1.0 - chances[hidden]])
    kept = weights > _LIGHTEST
    model = boosting(categorical, seed, max_iter=100, max_leaf_nodes=8, min_samples_leaf=10, l2_regularization=1.0)
    return model.fit(binned[rows[kept]], target[kept], sample_weight=weights[kept])

"""Member "boosting": gradient boosting on Elkan & Noto's weighted duplicates.

Every unlabelled row is there twice, as a positive with weight w and as a negative with weight 1 − w.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from punce.labels import POSITIVE, UNLABELLED
from punce.models.tabular.steps import Arrays, Steps
from punce.models.tabular.teachers import Lesson, boosting, telling_columns
from punce.models.tabular.trees import Floats, Trees, boosting_trees, held_out, stored_trees, trees_arrays

_LIGHTEST = 1e-3  # a duplicate lighter than this changes no tree but costs its time
_CHECKED = 20


@dataclass(frozen=True)
class Boosting:
    """One student for each fold."""

    students: tuple[Trees, ...]

    @classmethod
    def fit(cls, lesson: Lesson, step: Steps) -> Self:
        """Student k learns from every fold but k."""
        students = (step(f"boosting-{lesson.seed}-{k}", partial(_student, lesson, k)) for k in range(lesson.n_folds))
        return cls(tuple(map(Trees.from_arrays, students)))

    def scores(self, binned: npt.NDArray[np.float32]) -> Floats:
        """Log-odds. Shape: (n, d) -> (K, n)."""
        return np.stack([trees.score(binned) for trees in self.students])

    def held_out_scores(self, binned: npt.NDArray[np.float32], folds: npt.NDArray[np.intp]) -> Floats:
        """Each row's score by the student that did not see its fold. Shape: (n,)."""
        return held_out(self.students, binned, folds)

    def arrays(self) -> Arrays:
        """Everything needed to score."""
        return trees_arrays(self.students)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """What :meth:`arrays` gave."""
        return cls(stored_trees(arrays))


def _student(lesson: Lesson, fold: int) -> Arrays:
    rows = lesson.without(fold)
    labels, chances = lesson.labels[rows], lesson.chances[fold, rows]
    columns = telling_columns(lesson.binned[rows], labels == POSITIVE)
    x = lesson.binned[np.ix_(rows, columns)]
    is_u = labels == UNLABELLED
    twice = np.concatenate([np.arange(len(labels)), np.flatnonzero(is_u)])
    target = np.concatenate([np.ones(len(labels), np.int64), np.zeros(int(is_u.sum()), np.int64)])
    weights = np.concatenate([chances, 1.0 - chances[is_u]])
    weights = weights * lesson.weights_of(rows)[twice]
    kept = weights > _LIGHTEST
    model = boosting(
        lesson.categorical[columns],
        lesson.seed + fold,
        max_iter=100,
        max_leaf_nodes=8,
        min_samples_leaf=10,
        l2_regularization=1.0,
    ).fit(x[twice[kept]], target[kept], sample_weight=weights[kept])
    return boosting_trees(model, x[:_CHECKED]).on_columns(columns).arrays()

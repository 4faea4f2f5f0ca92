"""Member "forest": extremely randomised trees that regress on the chances w(x).

A regression on w with squared error has the same minimum as classifying weighted duplicates. Random cuts average out
what the teachers got wrong about single rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from punce.columns.one_hot import OneHot
from punce.labels import POSITIVE
from punce.models.tabular.steps import Arrays, Steps
from punce.models.tabular.teachers import Lesson, telling_columns
from punce.models.tabular.trees import Floats, Trees, forest_trees, held_out, stored_trees, trees_arrays

_TREES = 40
_SMALLEST_LEAF = 3
_DEEPEST = 14
_MARGIN = 1e-3  # keeps log-odds finite where all trees agree


@dataclass(frozen=True)
class Forest:
    """One forest for each fold."""

    students: tuple[Trees, ...]
    one_hot: OneHot

    @classmethod
    def fit(cls, lesson: Lesson, step: Steps) -> Self:
        """Forest k learns from every fold but k."""
        one_hot = OneHot.fit(lesson.binned, lesson.categorical)
        x = one_hot.transform(lesson.binned)
        students = (
            step(f"forest-{lesson.seed}-{k}", partial(_student, lesson, x, k, step.threads))
            for k in range(lesson.n_folds)
        )
        return cls(tuple(map(Trees.from_arrays, students)), one_hot)

    def scores(self, binned: npt.NDArray[np.float32]) -> Floats:
        """Log-odds of the mean chance. Shape: (n, d) -> (K, n)."""
        x = self.one_hot.transform(binned)
        return _log_odds(np.stack([trees.score(x) for trees in self.students]))

    def held_out_scores(self, binned: npt.NDArray[np.float32], folds: npt.NDArray[np.intp]) -> Floats:
        """Each row's score by the forest that did not see its fold. Shape: (n,)."""
        return _log_odds(held_out(self.students, self.one_hot.transform(binned), folds))

    def arrays(self) -> Arrays:
        """Everything needed to score."""
        return {**trees_arrays(self.students), **self.one_hot.arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """What :meth:`arrays` gave."""
        one_hot = OneHot.from_arrays(arrays)
        trees = {name: array for name, array in arrays.items() if name not in one_hot.arrays()}
        return cls(stored_trees(trees), one_hot)


def _student(lesson: Lesson, x: npt.NDArray[np.float32], fold: int, threads: int) -> Arrays:
    from sklearn.ensemble import ExtraTreesRegressor

    rows = lesson.without(fold)
    columns = telling_columns(x[rows], lesson.labels[rows] == POSITIVE)
    model = ExtraTreesRegressor(
        _TREES,
        min_samples_leaf=_SMALLEST_LEAF,
        max_depth=_DEEPEST,
        max_features=1 / 3,
        random_state=lesson.seed + fold,
        n_jobs=threads,  # trees have seeds of their own, so threads change no number
    ).fit(
        x[np.ix_(rows, columns)],
        lesson.chances[fold, rows],
        sample_weight=None if lesson.weights is None else lesson.weights[rows],
    )
    return forest_trees(model).on_columns(columns).arrays()


def _log_odds(chance: Floats) -> Floats:
    chance = np.clip(chance, 0.0, 1.0)
    scores: Floats = np.log(chance + _MARGIN) - np.log(1.0 - chance + _MARGIN)
    return scores

"""Members "boosting", "forest" and "pu_trees": one model of trees for each fold, stored and scored alike.

Boosting learns from Elkan & Noto's weighted duplicates: every unlabelled row is there twice, as a positive with weight
w and as a negative with weight 1 − w. The forest regresses on w(x) itself: squared error has the same minimum as
classifying weighted duplicates, and random cuts average out what the teachers got wrong about single rows.

A row of known class has its truth for w, and weighs more than a guess.

Both know what the teachers know, who are kept small for few labels. PU trees learn from the labels themselves and have
as many leaves as the rows allow: the more labels, the finer the structure they find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from punce.columns.one_hot import OneHot
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED
from punce.models.tabular.steps import Step
from punce.models.tabular.teachers import TableLesson, boosting, telling_columns, threads_of
from punce.models.tabular.trees import (
    AnyArray,
    Arrays,
    Floats,
    Rows,
    Trees,
    Values,
    all_scores,
    boosting_trees,
    forest_trees,
    held_out,
    stored_trees,
    trees_arrays,
)

_LIGHTEST = 1e-3  # a duplicate lighter than this changes no tree but costs its time
_CHECKED = 20  # rows on which the stored trees are compared with scikit-learn's own
_COLUMNS_TRIED = 16  # at a node of a PU tree: a third of many one-hot columns takes long and ranks no better
_MOST_LEAVES = 2000  # of a PU tree, which bounds the size of a stored model
MARGIN = 1e-3  # keeps log-odds finite where all trees agree


@dataclass(frozen=True)
class Boosting:
    """One booster for each fold, on the binned columns."""

    students: tuple[Trees, ...]

    @classmethod
    def steps(cls, lesson: TableLesson) -> dict[str, Step]:
        """Student k learns from every fold but k."""
        return {f"boosting-{lesson.seed}-{k}": partial(_boosted, lesson, k) for k in range(lesson.n_folds)}

    @classmethod
    def from_steps(cls, lesson: TableLesson, arrays: Sequence[Arrays]) -> Self:
        """The students of all folds."""
        return cls(tuple(map(Trees.from_arrays, arrays)))

    def scores(self, binned: Values) -> Floats:
        """Log-odds. Shape: (n, d) -> (K, n)."""
        return all_scores(self.students, binned)

    def held_out_scores(self, binned: Values, folds: Rows) -> Floats:
        """Each row's score by the student that did not see its fold. Shape: (n,)."""
        return held_out(self.students, binned, folds)

    def arrays(self) -> Arrays:
        """Everything needed to score."""
        return trees_arrays(self.students)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> Self:
        """What :meth:`arrays` gave."""
        return cls(stored_trees(arrays))


@dataclass(frozen=True)
class Forest:
    """One forest of extremely randomised trees for each fold, on one-hot columns: its trees know no categories."""

    name: ClassVar[str] = "forest"
    students: tuple[Trees, ...]
    one_hot: OneHot

    @staticmethod
    def grown(lesson: TableLesson, x: Values, fold: int) -> Arrays:
        """A forest that regresses on the teachers' chances."""
        from sklearn.ensemble import ExtraTreesRegressor

        rows, columns = _rows_and_columns(lesson, x, fold)
        options = {"min_samples_leaf": 3, "max_depth": 14, "max_features": 1 / 3, "random_state": lesson.seed_of(fold)}
        # Trees have their own seeds: threads change no number.
        model = ExtraTreesRegressor(40, n_jobs=threads_of(lesson.binned), **options)
        weights = None if lesson.weights is None else lesson.weights[rows]
        model.fit(x[np.ix_(rows, columns)], lesson.chances[fold, rows], sample_weight=weights)
        return forest_trees(model).on_columns(columns).arrays()

    @classmethod
    def steps(cls, lesson: TableLesson) -> dict[str, Step]:
        """Forest k learns from every fold but k."""
        x = OneHot.fit(lesson.binned, lesson.categorical).transform(lesson.binned)
        return {f"{cls.name}-{lesson.seed}-{k}": partial(cls.grown, lesson, x, k) for k in range(lesson.n_folds)}

    @classmethod
    def from_steps(cls, lesson: TableLesson, arrays: Sequence[Arrays]) -> Self:
        """The forests of all folds."""
        return cls(tuple(map(Trees.from_arrays, arrays)), OneHot.fit(lesson.binned, lesson.categorical))

    def scores(self, binned: Values) -> Floats:
        """Log-odds of the mean chance. Shape: (n, d) -> (K, n)."""
        x = self.one_hot.transform(binned)
        return _log_odds(all_scores(self.students, x))

    def held_out_scores(self, binned: Values, folds: Rows) -> Floats:
        """Each row's score by the forest that did not see its fold. Shape: (n,)."""
        return _log_odds(held_out(self.students, self.one_hot.transform(binned), folds))

    def arrays(self) -> Arrays:
        """Everything needed to score."""
        return {**trees_arrays(self.students), **self.one_hot.arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> Self:
        """What :meth:`arrays` gave."""
        one_hot = OneHot.from_arrays(arrays)
        return cls(stored_trees({name: arrays[name] for name in arrays.keys() - one_hot.arrays().keys()}), one_hot)


class PUTrees(Forest):
    """Extremely randomised trees that split by the PU risk of a node (Wilton et al. 2022): 4·W_P·W_N / W_U.

    W_P is π times the share of labelled rows in the node, W_U its share of unlabelled rows and W_N = W_U − W_P. This is
    the Gini impurity of a node in which every labelled row is a positive of weight π/n_P and a negative of weight
    −π/n_P, and every unlabelled row a negative of weight 1/n_U. Known negatives are negatives of their own weight.
    """

    name = "pu_trees"

    @staticmethod
    def grown(lesson: TableLesson, x: Values, fold: int) -> Arrays:
        """A forest on labelled rows, taken twice, and unlabelled ones."""
        from sklearn.ensemble import ExtraTreesClassifier

        rows, columns = _rows_and_columns(lesson, x, fold)
        positive, unlabelled, negative = (
            rows[lesson.labels[rows] == kind] for kind in (POSITIVE, UNLABELLED, NEGATIVE)
        )
        counts = lesson.weights_of(unlabelled)
        weights = lesson.weights_of(positive)
        weights = lesson.prior * counts.sum() * weights / weights.sum()
        leaf = max(5, len(rows) // _MOST_LEAVES)
        options = {"min_samples_leaf": leaf, "max_features": max(1, min(_COLUMNS_TRIED, len(columns) // 3))}
        model = ExtraTreesClassifier(40, n_jobs=threads_of(lesson.binned), random_state=lesson.seed_of(fold), **options)
        target = np.repeat([1, 0, 0, 0], [len(positive), len(positive), len(unlabelled), len(negative)])
        twice = np.concatenate([positive, positive, unlabelled, negative])
        each = np.concatenate([weights, -weights, counts, lesson.weights_of(negative)])
        model.fit(x[np.ix_(twice, columns)], target, sample_weight=each)
        return forest_trees(model).on_columns(columns).arrays()


def _boosted(lesson: TableLesson, fold: int) -> Arrays:
    rows = lesson.without(fold)
    labels, chances = lesson.labels[rows], lesson.chances[fold, rows]
    columns = telling_columns(lesson.binned[rows], labels == POSITIVE)
    x, others = lesson.binned[np.ix_(rows, columns)], labels != POSITIVE
    # All rows as positives (a labelled one has chance 1), then the others once more as negatives.
    twice = np.concatenate([np.arange(len(labels)), np.flatnonzero(others)])
    target = np.concatenate([np.ones(len(labels), np.int64), np.zeros(int(others.sum()), np.int64)])
    weights = np.concatenate([chances, 1.0 - chances[others]]) * lesson.weights_of(rows)[twice]
    kept = weights > _LIGHTEST
    options = {"max_iter": 100, "max_leaf_nodes": 8, "min_samples_leaf": 10, "l2_regularization": 1.0}
    model = boosting(lesson.categorical[columns], lesson.seed_of(fold), **options)
    model.fit(x[twice[kept]], target[kept], sample_weight=weights[kept])
    return boosting_trees(model, x[:_CHECKED]).on_columns(columns).arrays()


def _rows_and_columns(lesson: TableLesson, x: Values, fold: int) -> tuple[Rows, Rows]:
    rows = lesson.without(fold)
    return rows, telling_columns(x[rows], lesson.labels[rows] == POSITIVE)


def _log_odds(chance: Floats) -> Floats:
    chance = np.clip(chance, 0.0, 1.0)
    scores: Floats = np.log(chance + MARGIN) - np.log(1.0 - chance + MARGIN)
    return scores

"""Members "kernel" and "linear": smooth scores, for classes that are regions or sides of a plane and not boxes.

Both are a self-consistent ridge regression: on a radial basis with a few hundred rows as centres, or on the columns
themselves. Width and penalty are chosen by the AUC of labelled against unlabelled rows, each scored as if left out.

Shapes: n rows, W columns, M centres, K folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from punce.columns.dense import DenseColumns
from punce.columns.stored import StoredArrays
from punce.errors import InputError
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED
from punce.models.ridge import TINY, Ridge
from punce.models.route import under
from punce.models.tabular.steps import Step
from punce.models.tabular.teachers import TableLesson, telling_columns
from punce.models.tabular.trees import AnyArray, Arrays, Floats, Rows, Values
from punce.training.cpus import limited_threads

_CENTRES = 200
_MOST_ROWS = 10_000  # of each kind that a model learns from: the basis is too small to gain from more
_WIDTHS = (0.5, 1.0, 2.0)  # in units of the median distance to a centre
_MISFIT = "not a stored model: the arrays of a kernel member do not fit together"
_CELLS_AT_ONCE = 4_000_000  # rows × centres: bounds the memory of scoring


@dataclass(frozen=True)
class Basis(StoredArrays):
    """One fold's model, on exp(−d²/scale) to each centre, or on the columns where there is no centre.

    Shape: used (U,), centres (M, U), scale (1,), weight (M,) or (U,), bias (1,).
    """

    used: Rows
    centres: Values
    scale: Floats
    weight: Floats
    bias: Floats

    def features(self, x: Values) -> Floats:
        """Shape: (n, W) -> (n, M) or (n, U)."""
        if not len(self.centres):
            return x[:, self.used].astype(np.float64)
        features: Floats = np.exp(-_squared_distances(x[:, self.used], self.centres) / self.scale)
        return features

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> Self:
        """What :meth:`arrays` gave; refuses arrays that do not fit together."""
        basis = super().from_arrays(arrays)
        # A linear model has no centres and a weight for each column.
        n_weights = len(basis.centres) or len(basis.used)
        fits = basis.centres.shape[1:] == basis.used.shape and basis.weight.shape == (n_weights,)
        if not fits or not basis.scale.shape == basis.bias.shape == (1,) or (basis.used < 0).any():
            raise InputError(_MISFIT)
        return basis

    @limited_threads(1)
    def score(self, x: Values) -> Floats:
        """Shape: (n, W) -> (n,)."""
        size = max(1, _CELLS_AT_ONCE // max(1, len(self.weight)))
        parts = [self.features(x[k : k + size]) @ self.weight + self.bias for k in range(0, len(x), size)]
        return np.concatenate(parts) if parts else np.empty(0)


@dataclass(frozen=True)
class Kernel:
    """A basis for each fold, on normal scores and one-hot codes."""

    columns: DenseColumns
    bases: tuple[Basis, ...]
    name: ClassVar[str] = "kernel"
    n_centres: ClassVar[int] = _CENTRES

    @classmethod
    def steps(cls, lesson: TableLesson) -> dict[str, Step]:
        """Basis k learns from every fold but k."""
        x = lesson.dense  # made here: members that learn in copies of this process then share it
        return {
            f"{cls.name}-{lesson.seed}-{k}": partial(_fitted, lesson, x, k, cls.n_centres)
            for k in range(lesson.n_folds)
        }

    @classmethod
    def from_steps(cls, lesson: TableLesson, arrays: Sequence[Arrays]) -> Self:
        """The bases of all folds."""
        return cls(lesson.columns, tuple(map(Basis.from_arrays, arrays)))

    def scores(self, binned: Values) -> Floats:
        """Shape: (n, d) -> (K, n)."""
        x = self.columns.transform_bins(binned)
        return np.stack([basis.score(x) for basis in self.bases])

    def held_out_scores(self, binned: Values, folds: Rows) -> Floats:
        """Each row's score by the basis that did not see its fold. Shape: (n,)."""
        x, scores = self.columns.transform_bins(binned), np.empty(len(binned))
        for k, basis in enumerate(self.bases):
            scores[folds == k] = basis.score(x[folds == k])
        return scores

    def arrays(self) -> Arrays:
        """Everything needed to score."""
        bases = {f"{k}.{name}": array for k, basis in enumerate(self.bases) for name, array in basis.arrays().items()}
        return {**{f"columns.{name}": array for name, array in self.columns.arrays().items()}, **bases}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> Self:
        """What :meth:`arrays` gave."""
        n_folds = len({name.partition(".")[0] for name in arrays} - {"columns"})
        columns = DenseColumns.from_arrays(under(arrays, "columns."))
        bases = tuple(Basis.from_arrays(under(arrays, f"{k}.")) for k in range(n_folds))
        if any(len(basis.used) and int(basis.used.max()) >= columns.width for basis in bases):
            raise InputError(_MISFIT)
        return cls(columns, bases)


class Linear(Kernel):
    """A weight for each column: with few labels often the best there is, and the one shape that trees draw badly."""

    name = "linear"
    n_centres = 0


@limited_threads(1)  # BLAS rounds its products by the number of threads
def _fitted(lesson: TableLesson, x: Values, fold: int, n_centres: int) -> Arrays:
    rng = np.random.default_rng(lesson.seed + fold)
    rows = lesson.without(fold)
    positive, unlabelled, negative = (
        rng.permutation(rows[lesson.labels[rows] == kind])[:_MOST_ROWS] for kind in (POSITIVE, UNLABELLED, NEGATIVE)
    )
    others = np.concatenate([unlabelled, negative])
    rows = np.concatenate([positive, others])
    known, is_p = lesson.labels[rows], lesson.labels[rows] == POSITIVE
    used = telling_columns(x[rows], is_p)
    # Labelled rows mark the regions of interest; unlabelled ones fill the rest.
    near = positive[: n_centres // 2]
    centres = x[np.ix_(np.concatenate([near, unlabelled[: n_centres - len(near)]]), used)]
    # Positives and all others weigh one half each.
    weights = np.concatenate([0.5 * own / own.sum() for own in map(lesson.weights_of, (positive, others))])
    tried = [(scale, Ridge(own, weights, is_p, known)) for scale, own in _features(x[np.ix_(rows, used)], centres)]
    return best_basis(tried, used, centres, lesson.prior).arrays()


def best_basis(tried: Sequence[tuple[float, Ridge]], used: Rows, centres: Values, prior: float) -> Basis:
    """The scale whose ridge ranks left-out rows best, solved."""
    scale, ridge = max(tried, key=lambda pair: pair[1].auc)
    weight, bias = ridge.solved(prior)
    return Basis(used, centres, np.array([scale]), weight, np.array([bias]))


def _features(x: Values, centres: Values) -> Iterator[tuple[float, Floats]]:
    """The rows on each scale that is tried. Shape: (n, U), (M, U) -> (n, M), or (n, U) if there is no centre."""
    if not len(centres):
        yield 1.0, x.astype(np.float64)
        return
    yield from radial(x, centres, _WIDTHS)


def radial(x: Values, centres: Values, widths: Sequence[float]) -> Iterator[tuple[float, Floats]]:
    """Each scale with exp(−d²/scale) to each centre; widths in units of the median. Shape: (n, U), (M, U) -> (n, M)."""
    squared = _squared_distances(x, centres)
    for width in widths:
        scale = 2.0 * width**2 * max(float(np.median(squared)), TINY)
        yield scale, np.exp(-squared / scale)


def _squared_distances(x: Values, centres: Values) -> Floats:
    """Shape: (n, W), (M, W) -> (n, M)."""
    own, others = ((part.astype(np.float64) ** 2).sum(axis=1) for part in (x, centres))
    # The product in single precision: it takes most of the time, and a distance needs no more.
    distances: Floats = np.maximum(own[:, None] + others - 2.0 * (x @ centres.T), 0.0)
    return distances

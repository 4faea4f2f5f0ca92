"""The labelled and unlabelled rows as estimators see them; what is costly is computed once and shared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, rankdata
from sklearn.utils import _safe_indexing as take_rows

from punce.columns.encoder import EncodedTable
from punce.columns.given import plain_rows
from punce.errors import InputError, number_of
from punce.labels import (
    NEGATIVE,
    POSITIVE,
    UNLABELLED,
    as_labels,
    require_positive_and_unlabelled,
)
from punce.priors.copies import Copies, find_copies
from punce.priors.crossfit import OutOfFold, check_classifier, default_classifier, out_of_fold
from punce.priors.features import Float, Rows, as_rows
from punce.priors.result import RawEstimate
from punce.row_numbers import floats_of, require_same_index


class Scores(NamedTuple):
    """Held-out scores. Shape: p (n_P,), u (n_U,) in row order."""

    p: Float
    u: Float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """One question: these rows, these labels.

    Shape: is_p (n,) True for labelled positives, False for unlabelled rows; `X` n rows of anything
    :func:`~punce.priors.features.as_rows` reads, or None when `given_scores` (n,) stand alone.
    """

    X: Any
    is_p: npt.NDArray[np.bool_]
    given_scores: Float | None = None
    given_classifier: Any = None
    seed: int = 0

    @property
    def n_p(self) -> int:
        """Labelled positives."""
        return int(self.is_p.sum())

    @property
    def n_u(self) -> int:
        """Unlabelled rows."""
        return len(self.is_p) - self.n_p

    @cached_property
    def rows(self) -> Rows:
        """The features as numbers; without features the scores, mapped to normal quantiles, are the one column."""
        if self.X is not None:
            return as_rows(self.X)
        assert self.given_scores is not None
        # Scores have no unit; their ranks do not depend on how they were scaled.
        ranks = rankdata(self.given_scores) / (len(self.given_scores) + 1.0)
        column = norm.ppf(ranks).astype(np.float32)[:, None]
        return Rows(column, np.zeros(1, dtype=bool), ("no features were given: the scores served as the one feature",))

    @property
    def model_rows(self) -> Any:
        """What a P-vs-U model is fitted on: the caller's own rows for the caller's own classifier."""
        if self.given_classifier is not None and self.X is not None:
            # A list of texts has no rows to take by an array of numbers.
            return np.asarray(self.X) if isinstance(self.X, list) else self.X
        return self.rows.for_trees.values

    @property
    def classifier(self) -> Any:
        """An unfitted P-vs-U model."""
        if self.given_classifier is not None:
            return self.given_classifier
        return default_classifier(self.rows.for_trees, self.seed)

    @cached_property
    def fitted(self) -> OutOfFold:
        """Out-of-fold scores of the P-vs-U model."""
        return out_of_fold(self.model_rows, self.is_p, self.classifier, self.seed, fold_with=self.copies.fold_with)

    @cached_property
    def copies(self) -> Copies:
        """Rows that are exact copies of others; none where only scores were given."""
        if self.X is None:
            return Copies(np.arange(len(self.is_p)), 0.0)
        return find_copies(self.rows.values, self.is_p)

    @property
    def has_scores(self) -> bool:
        """Whether there are held-out scores without fitting a model for them."""
        return self.given_scores is not None or "fitted" in vars(self)

    @cached_property
    def scores(self) -> Scores:
        """Held-out scores: the caller's, or out-of-fold ones."""
        if self.given_scores is not None:
            return split_scores(self.given_scores, self.is_p)
        notes = (*(() if self.given_classifier is not None else self.rows.for_trees.notes), *self.fitted.notes)
        return split_scores(self.fitted.scores, self.is_p, notes)

    def subsample(
        self, rng: np.random.Generator, most: int
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], tuple[str, ...]]:
        """Row numbers of at most `most` labelled and unlabelled rows, and the announcement."""
        p, u = np.flatnonzero(self.is_p), np.flatnonzero(~self.is_p)
        notes = tuple(
            f"{most} of {len(side)} {name} rows were used, drawn at random"
            for side, name in ((p, "labelled"), (u, "unlabelled"))
            if len(side) > most
        )
        return rng.permutation(p)[:most], rng.permutation(u)[:most], notes

    def points(self, rng: np.random.Generator, most: int) -> tuple[Float, int, tuple[str, ...]]:
        """At most `most` rows a side for methods that measure distances: labelled rows first, how many, the notes."""
        p, u, notes = self.subsample(rng, most)
        return self.rows.for_kernels(np.concatenate([p, u])), len(p), (*self.rows.notes, *notes)


class EqualScoresError(InputError):
    """All scores are the same number: no estimator can say anything."""


def split_scores(scores: Float, is_p: npt.NDArray[np.bool_], notes: tuple[str, ...] = ()) -> Scores:
    """Scores of the two groups; refuses scores that cannot rank."""
    if scores.min() == scores.max():
        n_p = int(is_p.sum())
        raise EqualScoresError(
            f"all {len(scores)} scores are equal to {scores[0]:g}, so nothing tells {n_p} labelled from "
            f"{len(scores) - n_p} unlabelled rows: the share of positives cannot be estimated; give more rows, or more "
            "informative features or scores"
        )
    return Scores(scores[is_p], scores[~is_p], notes)


class PriorEstimator(Protocol):
    """What the catalogue holds: settings in the constructor, one method."""

    reads: ClassVar[Literal["scores", "features"]] = "features"
    """An estimator that reads scores must read them by rank only: an increasing map gives the same answer."""
    has_classifier: ClassVar[bool] = True
    """Whether it fits a classifier, which a caller may choose."""

    def estimate(self, sample: Sample, rng: np.random.Generator) -> RawEstimate:
        """The share of positives among the unlabelled rows of `sample`."""
        ...


# --- A caller's arguments ---------------------------------------------------------------------------------------------


def read_sample(X: Any, labels: Any, scores: Any, classifier: Any, random_state: int | None) -> tuple[Sample, int]:
    """The rows of the two groups, and how many rows labelled negative were set aside."""
    codes = _codes(labels)
    require_positive_and_unlabelled(codes)
    if X is None and scores is None:
        raise InputError("give features X, or held-out scores=, or both")
    if classifier is None:
        X = plain_rows(X)
    else:  # it is handed the rows as they are
        check_classifier(classifier)
    require_same_index(labels, X, "labels", "X")
    require_same_index(labels, scores, "labels", "scores")
    given = None if scores is None else _checked_scores(scores, len(codes))
    if X is not None and _length(X) != len(codes):
        raise InputError(f"{_length(X)} rows of features but {len(codes)} labels")
    used = codes != NEGATIVE
    aside = int((~used).sum())
    if aside:
        X = None if X is None else rows_of(X, np.flatnonzero(used))
        given = None if given is None else given[used]
    return Sample(X, codes[used] == POSITIVE, given, classifier, _seed(random_state)), aside


def _codes(labels: Any) -> npt.NDArray[np.int8]:
    codes = as_labels(labels, setting="pnu")
    # Only 1 and -1: the convention in which -1 means unlabelled.
    return codes if (codes == UNLABELLED).any() else as_labels(labels, setting="pu")


def _checked_scores(scores: Any, expected: int) -> Float:
    values = floats_of(scores, "scores")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(
            f"scores must be one number a row, got shape {values.shape}; of predict_proba take the column [:, 1]"
        )
    if len(values) != expected:
        raise InputError(f"{len(values)} scores but {expected} labels")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        are = number_of(len(bad), "score is", "scores are")
        raise InputError(f"{are} NaN or infinite, first at row {bad[0]}; every row needs a score")
    return values


def _seed(random_state: int | None) -> int:
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    is_whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not (is_whole and 0 <= random_state < 2**32):  # scikit-learn's models take no larger one
        raise InputError(f"random_state must be None or a whole number from 0 to 2³² − 1, got {random_state!r}")
    return int(random_state)


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") and len(X.shape) else len(X)


def rows_of(X: Any, rows: npt.NDArray[np.intp]) -> Any:
    """Some rows of what :func:`~punce.priors.estimate_prior` takes."""
    if isinstance(X, EncodedTable):
        return X.take(rows)
    return take_rows(X.tocsr() if hasattr(X, "tocsr") else X, rows)  # rows of other sparse formats cannot be taken

"""The labelled and unlabelled rows as estimators see them; what is costly is computed once and shared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, rankdata

from punce.errors import InputError
from punce.priors.crossfit import OutOfFold, default_classifier, out_of_fold
from punce.priors.features import Float, Rows, as_rows


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
        ranks = rankdata(self.given_scores) / (len(self.given_scores) + 1.0)
        column = norm.ppf(ranks).astype(np.float32)[:, None]
        return Rows(column, np.zeros(1, dtype=bool), ("no features were given: the scores served as the one feature",))

    @property
    def model_rows(self) -> Any:
        """What a P-vs-U model is fitted on: the caller's own rows for the caller's own classifier."""
        if self.given_classifier is not None and self.X is not None:
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
        return out_of_fold(self.model_rows, self.is_p, self.classifier, self.seed)

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


def split_scores(scores: Float, is_p: npt.NDArray[np.bool_], notes: tuple[str, ...] = ()) -> Scores:
    """Scores of the two groups; refuses scores that cannot rank."""
    if scores.min() == scores.max():
        raise InputError(
            f"all {len(scores)} scores are equal to {scores[0]:g}, so nothing tells labelled from unlabelled rows: "
            "the share of positives cannot be estimated; give more informative features or scores"
        )
    return Scores(scores[is_p], scores[~is_p], notes)

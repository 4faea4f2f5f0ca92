"""How likely is each unlabelled row to be positive? Bagged P-vs-U boosting, asked only about rows it did not see.

A P-vs-U model learns that unlabelled positives are not positive, the more the longer it trains. Three things hold it
back: small, heavily penalised trees; bags (Mordelet & Vert 2014) in which only three unlabelled rows face each labelled
one, so that each bag holds few unlabelled positives; and out-of-bag scores, so that no row is judged by a model that
was told it is negative. The averaged odds, rescaled so that their mean is the prior, are Elkan & Noto's (2008, §3)
weights w(x) = P(y=1 | x, unlabelled), from which the students learn.

The teachers of student k never see fold k: its labels must not reach the student through the weights.

Rows whose class is known need no teacher: their chance is the truth. They are in every bag, on the side of their class,
and the odds are then turned back into those of P against U alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from punce.columns.bins import N_BINS
from punce.columns.dense import DenseColumns
from punce.errors import InputError
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels
from punce.models.known_rows import known_weight
from punce.models.tabular.steps import Steps
from punce.models.tabular.trees import Arrays, Flags, Floats, Rows, Values
from punce.risks.elkan_noto import rescale_to_prior
from punce.training.cpus import threads_for

MOST_COLUMNS = 1000
"""A tree or network learns from no more columns than this; each chooses its own by the rows it learns from."""
_BAGS = 6
_UNLABELLED_PER_POSITIVE = 3
_FEWEST_UNLABELLED = 150  # in a bag, if there are so many: trees need some rows even where few are labelled
_MOST_UNLABELLED_SHARE = 0.75  # the rest is what a bag can judge
_LOGIT_LIMIT = 15.0  # keeps one sure row from taking all the weight when odds are rescaled


@dataclass(frozen=True)
class TableLesson:
    """What every member learns from; `chances` is P(y=1 | x) by teachers that did not see the fold.

    `labels` are 1 and -1 where the class is known, whoever said it, else 0; `prior` is the share of positives among the
    rows of label 0. Shape: binned (n, d), categorical (d,), labels (n,), folds (n,) of 0 … K−1, chances (K, n).
    """

    binned: Values
    categorical: Flags
    labels: Labels
    folds: Rows
    chances: Floats
    prior: float
    seed: int
    weights: Floats | None = None
    """How much each row counts, 1 on average; None if all count the same. Shape: (n,)."""

    @property
    def n_folds(self) -> int:
        """K."""
        return len(self.chances)

    @cached_property
    def columns(self) -> DenseColumns:
        """Normal scores and one-hot codes, fitted once for all members that read them."""
        return DenseColumns.fit_bins(self.binned, self.categorical)

    @cached_property
    def dense(self) -> Values:
        """The rows as :attr:`columns` give them. Shape: (n, W)."""
        return self.columns.transform_bins(self.binned)

    def seed_of(self, fold: int) -> int:
        """A seed for each fold that scikit-learn takes."""
        return (self.seed + fold) % 2**32

    def without(self, fold: int) -> Rows:
        """Rows of all the other folds."""
        return np.flatnonzero(self.folds != fold)

    def with_heavier(self, known: Flags) -> TableLesson:
        """The same with more weight on the rows of `known` class that are no labelled positives."""
        n_p, n_u = (int((self.labels == kind).sum()) for kind in (POSITIVE, UNLABELLED))
        weights = self.weights_of(np.arange(len(known))) * np.where(known, known_weight(self.prior, n_p, n_u), 1.0)
        return replace(self, weights=weights / weights.mean())

    def weights_of(self, rows: Rows) -> Floats:
        """How much each of these rows counts; rows that all count 0 count the same. Shape: (m,) -> (m,)."""
        counts = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        return counts if counts.any() else np.ones(len(rows))


def lesson_of(
    binned: Values,
    categorical: Flags,
    labels: Labels,
    folds: Rows,
    prior: float,
    seed: int,
    run: Steps,
    weights: Floats | None = None,
) -> TableLesson:
    """The lesson, its chances by one step for each held-out fold: the truth of known rows, 0 (unused) for the fold."""
    chances = np.zeros((int(folds.max()) + 1, len(labels)))
    counts = np.ones(len(labels)) if weights is None else weights
    steps = {}
    for k in range(len(chances)):
        rows = np.flatnonzero(folds != k)
        judged = partial(_chances, binned[rows], categorical, labels[rows], prior, seed + 100 * k, counts[rows])
        steps[f"teachers-{seed}-{k}"] = judged
    for k, found in enumerate(run(steps)):
        chances[k, folds != k] = found["chances"]
    return TableLesson(binned, categorical, labels, folds, chances, prior, seed, weights)


def threads_of(binned: Values) -> int:
    """Threads worth starting for a model of these rows: by what one model sees of the table, not by all of it."""
    return threads_for(len(binned) * min(binned.shape[1], MOST_COLUMNS))


def telling_columns(x: Values, is_p: Flags) -> Rows:
    """All columns, or the 1,000 whose mean differs most between labelled and unlabelled rows, in order.

    Only rows that a model learns from may be given: columns chosen with held-out labels would flatter their scores.
    Codes are compared like numbers, which is crude; they count the commonest first.
    """
    if x.shape[1] <= MOST_COLUMNS:
        return np.arange(x.shape[1])
    spread = x.std(axis=0)
    distance = np.abs(x[is_p].mean(axis=0) - x[~is_p].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.sort(np.argsort(-distance, kind="stable")[:MOST_COLUMNS])


def boosting(categorical: Flags, seed: int, **options: Any) -> Any:
    """scikit-learn's histogram boosting on random halves of the columns."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        learning_rate=0.1,
        max_features=0.5,
        early_stopping=False,
        categorical_features=categorical if categorical.any() else None,
        # The rows are binned already. Room for 255 bins would be cleared and read for every node and column.
        max_bins=255 if categorical.any() else N_BINS + 1,
        random_state=seed % 2**32,  # of the largest seeds the next one is too large
        **options,
    )


def _chances(binned: Values, categorical: Flags, labels: Labels, prior: float, seed: int, weights: Floats) -> Arrays:
    scores = _out_of_bag(binned, categorical, labels, prior, seed, weights)
    chances, is_u = (labels == POSITIVE).astype(np.float64), labels == UNLABELLED
    odds = np.exp(np.clip(scores[is_u], -_LOGIT_LIMIT, _LOGIT_LIMIT))
    chances[is_u] = rescale_to_prior(odds, prior)
    return {"chances": chances}


def _out_of_bag(binned: Values, categorical: Flags, labels: Labels, prior: float, seed: int, counts: Floats) -> Floats:
    """Mean score of every row over the bags that do not hold it. Shape: (n,)."""
    rng = np.random.default_rng(seed)
    total, count = np.zeros(len(labels)), np.zeros(len(labels))
    for bag in range(_BAGS):
        rows = _bag(labels, count, rng)
        columns = telling_columns(binned[rows], labels[rows] == POSITIVE)
        x, weights = binned[np.ix_(rows, columns)], _weights(labels[rows], prior, counts[rows])
        model = _fitted(x, categorical[columns], labels[rows], weights, seed + bag)
        outside = np.ones(len(labels), dtype=bool)
        outside[rows] = False
        scores = model.decision_function(binned[np.ix_(outside, columns)])
        total[outside] += against_unlabelled(scores, labels[rows], weights, prior)
        count[outside] += 1
    return total / np.maximum(count, 1)


def _bag(labels: Labels, count: Floats, rng: np.random.Generator) -> Rows:
    """Positives with replacement, all negatives, and the unlabelled rows that bags have judged most often so far."""
    positive, unlabelled, negative = (np.flatnonzero(labels == kind) for kind in (POSITIVE, UNLABELLED, NEGATIVE))
    wanted = max(_UNLABELLED_PER_POSITIVE * len(positive), _FEWEST_UNLABELLED)
    size = max(1, min(wanted, int(_MOST_UNLABELLED_SHARE * len(unlabelled))))
    # Taking the rows judged most often keeps the number of judgements even, and above 0 for every row.
    order = np.argsort(-count[unlabelled] + rng.random(len(unlabelled)))
    return np.concatenate([rng.choice(positive, len(positive)), unlabelled[order[:size]], negative])


def _weights(labels: Labels, prior: float, counts: Floats) -> Floats:
    """Of the rows of a bag: P weighs as much as U and N together, and a row of N more than one of U."""
    if not counts.any():
        raise InputError(
            "sample_weight is zero for so many rows that none counts in some random part of them; leave rows that "
            "count nothing out of X"
        )
    is_p, is_n = labels == POSITIVE, labels == NEGATIVE
    if is_n.any():
        heavier = known_weight(prior, int(is_p.sum()), int((labels == UNLABELLED).sum()))
        counts = counts * np.where(is_n, heavier, 1.0)
    # A group of rows that all count 0 keeps that.
    of_p, of_others = (float(counts[own].sum()) or 1.0 for own in (is_p, ~is_p))
    half = 0.5 * len(labels)
    weights: Floats = np.where(is_p, half / of_p, half / of_others) * counts
    return weights


def _fitted(binned: Values, categorical: Flags, labels: Labels, weights: Floats, seed: int) -> Any:
    """P against U and N."""
    model = boosting(categorical, seed, max_iter=60, max_leaf_nodes=4, min_samples_leaf=5, l2_regularization=5.0)
    return model.fit(binned, (labels == POSITIVE).astype(np.int64), sample_weight=weights)


def against_unlabelled(scores: Floats, labels: Labels, weights: Floats, prior: float) -> Floats:
    """log p_P/p_U from the log-odds of P against U and N together.

    With b the share of N in what P faces, the odds o are p_P/((1−b)·p_U + b·p_N). As p_N = (p_U − π·p_P)/(1−π),
    p_U/p_P = (1/o + bπ/(1−π)) / (1 − b + b/(1−π)). Shape: scores (m,); labels, weights (n,) of the bag.
    """
    of_negatives, of_others = (float(weights[own].sum()) for own in (labels == NEGATIVE, labels != POSITIVE))
    if of_negatives == 0.0:
        return scores
    b = of_negatives / of_others
    inverse = np.exp(-np.clip(scores, -_LOGIT_LIMIT, _LOGIT_LIMIT))
    ratio = (inverse + b * prior / (1.0 - prior)) / (1.0 - b + b / (1.0 - prior))
    return np.asarray(-np.log(ratio))

"""How likely is each unlabelled row to be positive? Bagged P-vs-U boosting, asked only about rows it did not see.

A P-vs-U model learns that hidden positives are not positive, the more the longer it trains. Three things hold it back:
small, heavily penalised trees; bags (Mordelet & Vert 2014) in which only three unlabelled rows face each labelled
one, so that each bag holds few hidden positives; and out-of-bag scores, so that no row is judged by a model that was
told it is negative. The averaged odds, rescaled so that their mean is the prior, are Elkan & Noto's (2008, §3) weights
w(x) = P(y=1 | x, unlabelled), from which the students learn.

The teachers of student k never see fold k: its labels must not reach the student through the weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.models.tabular.trees import Floats
from punce.risks.elkan_noto import rescale_to_prior

_BAGS = 6
_UNLABELLED_PER_POSITIVE = 3
_FEWEST_UNLABELLED = 150
_MOST_UNLABELLED_SHARE = 0.75  # the rest is what a bag can judge
_LOGIT_LIMIT = 15.0


def chances_without_fold(
    binned: npt.NDArray[np.float32],
    categorical: npt.NDArray[np.bool_],
    labels: Labels,
    folds: npt.NDArray[np.intp],
    prior: float,
    seed: int,
) -> Floats:
    """w(x) for each held-out fold: 1 for labelled rows, 0 (unused) for the fold itself. Shape: (K, n)."""
    n_folds = int(folds.max()) + 1
    chances = np.zeros((n_folds, len(labels)))
    for k in range(n_folds):
        rows = np.flatnonzero(folds != k)
        scores = _out_of_bag(binned[rows], categorical, labels[rows], seed + 100 * k)
        chances[k, rows] = _chances(scores, labels[rows], prior)
    return chances


def _chances(scores: Floats, labels: Labels, prior: float) -> Floats:
    hidden = labels == UNLABELLED
    chances = np.ones(len(labels))
    odds = np.exp(np.clip(scores[hidden], -_LOGIT_LIMIT, _LOGIT_LIMIT))
    chances[hidden] = rescale_to_prior(odds, prior)
    return chances


def _out_of_bag(
    binned: npt.NDArray[np.float32], categorical: npt.NDArray[np.bool_], labels: Labels, seed: int
) -> Floats:
    """Mean score of every row over the bags that do not hold it. Shape: (n,)."""
    rng = np.random.default_rng(seed)
    total, count = np.zeros(len(labels)), np.zeros(len(labels))
    for bag in range(_BAGS):
        rows = _bag(labels, count, rng)
        scores = _fitted(binned[rows], categorical, labels[rows], seed + bag).decision_function(binned)
        outside = np.ones(len(labels), dtype=bool)
        outside[rows] = False
        total[outside] += scores[outside]
        count[outside] += 1
    return total / np.maximum(count, 1)


def _bag(labels: Labels, count: Floats, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Labelled rows with replacement; of the unlabelled ones those the bags have judged most often so far."""
    positive, hidden = (np.flatnonzero(labels == kind) for kind in (POSITIVE, UNLABELLED))
    wanted = max(_UNLABELLED_PER_POSITIVE * len(positive), _FEWEST_UNLABELLED)
    size = max(1, min(wanted, int(_MOST_UNLABELLED_SHARE * len(hidden))))
    # Taking the rows judged most often keeps the number of judgements even, and above 0 for every row.
    order = np.argsort(-count[hidden] + rng.random(len(hidden)))
    return np.concatenate([rng.choice(positive, len(positive)), hidden[order[:size]]])


def _fitted(binned: npt.NDArray[np.float32], categorical: npt.NDArray[np.bool_], labels: Labels, seed: int) -> Any:
    """P against U, both groups weighing the same."""
    is_p = labels == POSITIVE
    weights = np.where(is_p, 0.5 * len(labels) / is_p.sum(), 0.5 * len(labels) / (~is_p).sum())
    model = boosting(categorical, seed, max_iter=60, max_leaf_nodes=4, min_samples_leaf=5, l2_regularization=5.0)
    return model.fit(binned, is_p.astype(np.int64), sample_weight=weights)


def boosting(categorical: npt.NDArray[np.bool_], seed: int, **options: Any) -> Any:
    """scikit-learn's histogram boosting on random halves of the columns."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        learning_rate=0.1,
        max_features=0.5,
        early_stopping=False,
        categorical_features=categorical if categorical.any() else None,
        random_state=seed,
        **options,
    )

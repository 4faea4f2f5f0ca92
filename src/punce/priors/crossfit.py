"""Out-of-fold scores: how labelled does each row look to a P-vs-U model that never saw it?

Every estimator that reads scores rests on one property: a labelled row and a hidden positive must be scored alike.
Scores of rows the model was trained on break it (labelled rows are pulled up, hidden ones down), so each row is scored
by models fitted on the other folds only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import has_fit_parameter

from punce.errors import InputError
from punce.priors.features import Float, Rows
from punce.training.cpus import threads_for
from punce.training.parallel import in_parallel

MAX_TRAINING_ROWS = 50_000
"""Unlabelled rows a fold's model is fitted on; all rows are still scored."""
_LOGIT_LIMIT = 15.0  # probabilities of 0 and 1 have infinite log-odds


@dataclass(frozen=True)
class OutOfFold:
    """Shape: scores (n,), larger means more like a labelled row. Only their order is meant."""

    scores: Float
    notes: tuple[str, ...] = ()


def default_classifier(rows: Rows, seed: int) -> Any:
    """Well-regularised gradient boosting; logistic regression where the rows are sparse.

    Small trees, a strong penalty and random columns: an over-fitted P-vs-U model is the commonest mistake in PU
    learning, and on few positives these settings had the smallest error of the estimates (docs/priors.md).
    """
    if rows.is_sparse:  # word counts, mostly: scikit-learn's boosting takes no sparse rows
        return LogisticRegression(C=1.0, class_weight="balanced", max_iter=1000)
    return HistGradientBoostingClassifier(
        learning_rate=0.1,
        max_iter=60,
        max_leaf_nodes=4,
        min_samples_leaf=5,
        l2_regularization=5.0,
        max_features=0.5,
        class_weight="balanced",
        categorical_features=rows.categorical if rows.categorical.any() else None,
        early_stopping=False,
        random_state=seed,
    )


def out_of_fold(
    X: Any,
    is_p: npt.NDArray[np.bool_],
    classifier: Any,
    seed: int,
    *,
    repeats: int | None = None,
    fold_with: npt.NDArray[np.intp] | None = None,
) -> OutOfFold:
    """Score every row by models that did not see it, averaged over repeated foldings.

    Few positives make the folding itself a source of noise, so it is repeated more often the fewer there are.
    Folds keep the share of labelled rows. `X` is anything rows can be taken from. `fold_with` (n,) names the row whose
    fold a row joins: a model that saw a row's copy with the other label has seen the row.
    """
    n_p, n_u = int(is_p.sum()), int((~is_p).sum())
    if n_u < 2:
        raise InputError("one unlabelled row cannot be both learned from and held out: give at least 2, or scores=")
    if n_p < 2:
        raise InputError(
            "one labelled positive cannot be both learned from and held out: label at least 2 rows (30 or more for a "
            "usable estimate), or pass scores= from a model that never saw the labels"
        )
    # With few positives every one that is held out is missed in training: more folds, and more foldings.
    folds = 5 if n_p >= 50 else min(10, n_p)
    repeats = repeats or (1 if n_p >= 500 else 2 if n_p >= 50 else 3)
    seeds = [(seed + k) % 2**32 for k in range(repeats)]  # scikit-learn takes none beyond
    splits = [split for own in seeds for split in _splits(is_p, own, min(folds, n_p, n_u), fold_with)]
    tasks = [partial(_held_out_scores, X, is_p, classifier, *split) for split in splits]
    total = np.zeros(len(is_p))
    found = in_parallel(tasks, threads_for(int(np.prod(np.shape(X)))))
    for (_, held_out), scores in zip(splits, found, strict=True):
        total[held_out] += scores
    return OutOfFold(total / repeats, _announce(is_p, folds))


def fit(classifier: Any, X: Any, is_p: npt.NDArray[np.bool_]) -> Any:
    """A fresh copy of `classifier`, fitted with both groups weighing the same where it takes weights."""
    model = clone(classifier)
    weighted = _weight_parameter(model)
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and (empty := np.isnan(X).all(axis=0)).any():
        X = np.where(empty, 0.0, X)  # boosting cannot bin a column that has no value in this fold
    if weighted is None:
        return model.fit(X, is_p.astype(np.int64))
    return model.fit(X, is_p.astype(np.int64), **{weighted: compute_sample_weight("balanced", is_p)})


def score(model: Any, X: Any) -> Float:
    """Real-valued scores of a fitted model: log-odds where it gives probabilities, else its decision function."""
    if hasattr(model, "predict_proba"):
        p = np.asarray(model.predict_proba(X), dtype=np.float64)[:, 1]
        with np.errstate(divide="ignore"):
            logits = np.log(p) - np.log1p(-p)
        return np.asarray(np.clip(logits, -_LOGIT_LIMIT, _LOGIT_LIMIT), dtype=np.float64)
    return np.asarray(model.decision_function(X), dtype=np.float64)


def check_classifier(classifier: Any) -> None:
    """Refuse what cannot give scores before any time is spent."""
    if isinstance(classifier, type):
        raise InputError(
            f"classifier is the class {classifier.__name__}; give an object of it: {classifier.__name__}()"
        )
    gives_scores = hasattr(classifier, "predict_proba") or hasattr(classifier, "decision_function")
    if not (hasattr(classifier, "fit") and gives_scores):
        raise InputError(
            f"classifier must have fit and predict_proba (or decision_function), got {type(classifier).__name__}"
        )


def _held_out_scores(
    X: Any, is_p: npt.NDArray[np.bool_], classifier: Any, train: npt.NDArray[np.intp], held_out: npt.NDArray[np.intp]
) -> Float:
    model = fit(classifier, take_rows(X, train), is_p[train])
    return score(model, take_rows(X, held_out))


def folds_of(
    is_p: npt.NDArray[np.bool_], seed: int, folds: int, fold_with: npt.NDArray[np.intp] | None
) -> npt.NDArray[np.intp]:
    """The fold of each row: folds keep the share of labelled rows, and copies stay together. Shape: (n,)."""
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    fold = np.empty(len(is_p), dtype=np.intp)
    for k, (_, held_out) in enumerate(splitter.split(np.zeros(len(is_p)), is_p)):
        fold[held_out] = k
    if fold_with is not None and all(len(np.unique(fold[fold_with][side])) > 1 for side in (is_p, ~is_p)):
        fold = fold[fold_with]  # unless all of one side would be held out together
    return fold


def _splits(
    is_p: npt.NDArray[np.bool_], seed: int, folds: int, fold_with: npt.NDArray[np.intp] | None
) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    rng = np.random.default_rng(seed)
    fold = folds_of(is_p, seed, folds, fold_with)
    for k in np.unique(fold):
        train, held_out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        parts = [train[is_p[train]], train[~is_p[train]]]
        # More rows than this cost time and change the scores hardly.
        kept = [rng.permutation(part)[:MAX_TRAINING_ROWS] for part in parts]
        yield np.sort(np.concatenate(kept)), held_out


def _announce(is_p: npt.NDArray[np.bool_], folds: int) -> tuple[str, ...]:
    largest = max(int(is_p.sum()), int((~is_p).sum())) * (folds - 1) // folds
    if largest <= MAX_TRAINING_ROWS:
        return ()
    return (f"each P-vs-U model was fitted on at most {MAX_TRAINING_ROWS} random rows a side; every row was scored",)


def _weight_parameter(model: Any) -> str | None:
    if getattr(model, "class_weight", None) is not None:  # it balances by itself
        return None
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        inner = _weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(model, "sample_weight") else None

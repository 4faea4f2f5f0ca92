"""Elkan & Noto (2008) for features in an array: out-of-fold P-vs-U scores → c → weighted duplicates.

    g(x) = P(labelled | x),  c = P(labelled | y=1),  w(x) = ((1−c)/c) · g/(1−g) = P(y=1 | x, unlabelled)

Two things decide whether this works, and both are done here: g is scored *out of fold* (a model that has seen a row
labelled 0 has learnt that it is not positive) and calibrated, and c comes from held-out positives. An over-fitted
P-vs-U model is the commonest mistake: the default is a regularised logistic regression on standardised columns.
Where the classes overlap, mean held-out g is below c and the weights come out too large; hand in a `prior` then.

scikit-learn is imported where it is used, so that training code which only needs the risks does not load it.

``PvU(correction="weighted")`` takes the weights. To decide for the population of ``single_set`` data with a risk that
targets the unlabelled mix, add :func:`punce.scenario.logit_shift` to the scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from punce.errors import InputError
from punce.labels import POSITIVE, UNLABELLED, check_vocabulary, refuse_negatives, require_positive_and_unlabelled
from punce.scenario import check_prior

Floats = npt.NDArray[np.float64]
_INNER_FOLDS = 3
_EDGE = 1e-6  # keeps g/(1−g) finite where a model is certain
_ROUNDING = 1e-12  # of prior·n, relative


def weighted_duplicates(
    X: Any,
    labels: npt.NDArray[Any],
    prior: float | None = None,
    *,
    model: Any = None,
    n_splits: int = 5,
    random_state: int = 0,
) -> Floats:
    """w(x) of each row for ``PvU(correction="weighted")``, 1 for labelled rows. Shape: (n,).

    With `prior` the mean over unlabelled rows is the prior, else c from held-out positives sets it.
    """
    labels = np.asarray(labels)
    g = out_of_fold_scores(X, labels, model=model, n_splits=n_splits, random_state=random_state)
    is_u = labels == UNLABELLED
    weights = np.ones(len(labels))
    if prior is None:
        weights[is_u] = duplicate_weights(g[is_u], label_frequency_from_positives(g, labels))
    else:
        # A known prior replaces c, whose estimate is too small where classes overlap.
        weights[is_u] = rescale_to_prior(_odds(g[is_u]), prior)
    return weights


def out_of_fold_scores(
    X: Any, labels: npt.NDArray[Any], *, model: Any = None, n_splits: int = 5, random_state: int = 0
) -> Floats:
    """g(x) = P(labelled | x) of every row by a model that did not see that row, calibrated inside the training folds.

    `model` is any scikit-learn classifier with probabilities or decision values; it is cloned for every fold.
    """
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    labels = np.asarray(labels)
    _check_rows(X, labels, n_splits)
    is_p = (labels == POSITIVE).astype(np.int64)
    folds = StratifiedKFold(n_splits=n_splits, shuffle=True, random_state=random_state)
    classifier = _calibrated(model, n_positive=int(is_p.sum()) * (n_splits - 1) // n_splits)
    # Out of fold: a model that saw a row labelled 0 has learned that this row is not positive.
    g: Floats = cross_val_predict(classifier, X, is_p, cv=folds, method="predict_proba")[:, 1]
    # Calibration can return exactly 1, which would be infinite odds.
    return np.clip(g, 0.0, 1.0 - _EDGE)


def label_frequency_from_positives(g: Floats, labels: npt.NDArray[Any]) -> float:
    """c = mean of held-out g over labelled positives: their estimator e1, exact for classes that do not overlap."""
    g, labels = np.asarray(g, dtype=np.float64), np.asarray(labels)
    if g.shape != labels.shape or not np.isfinite(g).all():
        raise InputError(f"g must be finite, one per label: got shapes {g.shape} and {labels.shape}")
    if not (labels == POSITIVE).any():
        raise InputError("c needs at least one labelled positive")
    return float(g[labels == POSITIVE].mean())


def duplicate_weights(g: Floats, c: float) -> Floats:
    """w(x) = ((1−c)/c) · g/(1−g), clipped to [0, 1]."""
    c = check_prior(c, "label_frequency", open_interval=True)
    return np.clip((1.0 - c) / c * _odds(g), 0.0, 1.0)


def rescale_to_prior(odds: Floats, prior: float) -> Floats:
    """min(1, k·odds) with the k whose mean is `prior`: the c that agrees with the prior, found exactly.

    Sorted from the largest, the first m weights are clipped to 1 and the rest share prior·n − m in proportion.
    """
    prior = check_prior(prior, open_interval=True)
    odds = np.asarray(odds, dtype=np.float64)
    if odds.ndim != 1 or len(odds) == 0 or not np.isfinite(odds).all() or (odds < 0).any():
        raise InputError(f"odds must be finite numbers >= 0, one per unlabelled row; got shape {odds.shape}")
    wanted, possible = prior * len(odds), int(np.count_nonzero(odds))
    # A weight of at most 1 on each row with any chance cannot reach this mean.
    if possible < wanted * (1.0 - _ROUNDING):
        raise InputError(
            f"only {possible} of {len(odds)} unlabelled rows have any chance of being positive, too few for prior "
            f"{prior:g}"
        )
    wanted = min(wanted, possible)  # 0.07 · 100 is a little more than 7
    ordered = np.sort(odds)[::-1]
    tails = np.cumsum(ordered[::-1])[::-1]  # tails[m] = sum of all but the m largest
    clipped = np.arange(len(odds))
    k = (wanted - clipped) / np.where(tails > 0, tails, np.inf)
    m = int(np.argmax(k * ordered <= 1.0))  # the first m at which the largest unclipped weight is at most 1
    weights: Floats = np.minimum(1.0, k[m] * odds)
    return weights


def decision_threshold(prior: float, labelled_share: float = 0.5, target_share: float = 0.0) -> float:
    """Where to cut σ(g) of a P-vs-U model so that the decision is right for a chosen mix of rows.

    `labelled_share` β' is the share of labelled rows the model was trained with (½ when P and U are balanced);
    `target_share` is their share in the rows one decides about: 0 for the unlabelled rows (the population in
    ``case_control``), n_P/n for the population in ``single_set``. With target_share = labelled_share this is Elkan &
    Noto's c/2 = ½·β'/(β' + (1−β')π), which after balancing would decide for a world half of which is labelled.

    With r = p_P/p_U the posterior in a mix with share t is one half at r* = (1−t)/(t + 2(1−t)π), and
    σ(g) = β'r/(β'r + 1−β').
    """
    prior = check_prior(prior, open_interval=True)
    share = check_prior(labelled_share, "labelled_share", open_interval=True)
    target = check_prior(target_share, "target_share")
    if target == 1.0:
        raise InputError("target_share 1 means every row is a labelled positive: there is nothing to decide")
    ratio = (1.0 - target) / (target + 2.0 * (1.0 - target) * prior)
    return share * ratio / (share * ratio + 1.0 - share)


def _odds(g: Floats) -> Floats:
    g = np.clip(np.asarray(g, dtype=np.float64), 0.0, 1.0 - _EDGE)
    return g / (1.0 - g)


def _calibrated(model: Any, n_positive: int) -> Any:
    from sklearn.base import clone
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if model is None:
        # Needs no calibration: an unweighted logistic regression matches its own base rate.
        return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    # Isotonic needs about a thousand rows of the rarer class; Platt's sigmoid has two parameters.
    method = "isotonic" if n_positive >= 1000 else "sigmoid"
    return CalibratedClassifierCV(clone(model), method=method, cv=_INNER_FOLDS)


def _check_rows(X: Any, labels: npt.NDArray[Any], n_splits: int) -> None:
    check_vocabulary(labels)
    refuse_negatives(labels, "Elkan–Noto weighting")
    require_positive_and_unlabelled(labels)
    if len(labels) != _n_rows(X):
        raise InputError(f"X has {_n_rows(X)} rows but there are {len(labels)} labels")
    fewest = int(min((labels == POSITIVE).sum(), (labels == UNLABELLED).sum()))
    # Rows of the rarer kind that remain when the largest fold is held out (−(−a // b) rounds up).
    in_training = fewest - -(-fewest // max(n_splits, 1))
    if n_splits < 2 or fewest < n_splits or in_training < _INNER_FOLDS:
        raise InputError(
            f"with n_splits={n_splits} and {fewest} rows of the rarer kind (labelled or unlabelled), a training part "
            f"holds {in_training} of them; it needs {_INNER_FOLDS}, and a held-out part 1: label more rows"
        )


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)

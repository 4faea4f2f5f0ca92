"""Logistic regression on the labelled rows of both classes (PNU, Table 4); unlabelled rows take no part.

The penalty is chosen by cross-validation among the labelled rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from punce.errors import InputError
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels
from punce.stages.given import check_call
from punce.stages.probe import LinearHead, checked_features

_FEWEST = 2  # of each class: one to learn from, one to judge by
_MOST_STEPS = 1000  # scikit-learn's default of 100 is too few for weak penalties


@dataclass(frozen=True)
class SupervisedConfig:
    """`folds` of cross-validation over `strengths` penalties, C from 10⁻⁴ to 10²."""

    folds: int = 5
    strengths: int = 10
    seed: int = 0


def supervised(
    features: Tensor,
    labels: Labels,
    config: SupervisedConfig = SupervisedConfig(),  # noqa: B008  frozen
    *,
    observer: Callable[[LinearHead], Mapping[str, float] | None] | None = None,
) -> LinearHead:
    """A linear layer in float64. Its history has a row for each penalty, with the observer's numbers in it.

    Features are standardised over all rows. Shape: features (n, D); labels (n,) of {1, 0, −1}.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.preprocessing import StandardScaler

    check_call("supervised", config, SupervisedConfig, {})
    features = checked_features(features, labels)
    _check_both_classes(labels)
    h = features.cpu().double().numpy()
    scaler = StandardScaler().fit(h)
    is_labelled = labels != UNLABELLED
    x, y = scaler.transform(h)[is_labelled], labels[is_labelled] == POSITIVE
    folds = min(config.folds, int(y.sum()), int((~y).sum()))  # each fold needs a row of both classes
    strengths = np.logspace(-4, 2, config.strengths)
    split = StratifiedKFold(folds, shuffle=True, random_state=config.seed)
    model = LogisticRegression(max_iter=_MOST_STEPS)
    search = GridSearchCV(model, {"C": strengths}, cv=split, scoring="neg_log_loss").fit(x, y)
    history: list[dict[str, Any]] = []
    for strength in strengths if observer is not None else ():
        tried = _linear_head(LogisticRegression(C=strength, max_iter=_MOST_STEPS).fit(x, y), scaler, features, [])
        history.append({"C": float(strength), **(observer(tried) or {})})  # type: ignore[misc]
    return _linear_head(search.best_estimator_, scaler, features, history)


def _check_both_classes(labels: Labels) -> None:
    counts = {name: int((labels == code).sum()) for name, code in (("positives", POSITIVE), ("negatives", NEGATIVE))}
    for name, count in counts.items():
        if count < _FEWEST:
            raise InputError(
                f"logistic regression on labelled rows needs at least {_FEWEST} labelled {name}, got {count}: its "
                "penalty is chosen by cross-validation; label more rows"
            )


def _linear_head(model: Any, scaler: Any, features: Tensor, history: list[dict[str, Any]]) -> LinearHead:
    parts = (model.coef_[0], model.intercept_[0], scaler.mean_, scaler.scale_)
    weight, bias, mean, scale = (torch.as_tensor(part, device=features.device) for part in parts)
    return LinearHead(weight, bias, mean, scale, history)

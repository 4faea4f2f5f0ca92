"""Linear layers trained on true labels: Table 4's downstream step, and the oracle that says what features hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.experiments.job import Job
from punce.experiments.trained import Trained
from punce.labels import POSITIVE, UNLABELLED
from punce.stages.probe import extract_features

_MOST_STEPS = 1000


def supervised_probe(job: Job) -> Trained:
    """Cross-entropy on the labelled rows alone (PNU, Table 4), its penalty chosen by cross-validation on them.

    The history has a row for each penalty instead of each epoch, so that the oracle is the best of them.
    """
    is_there = job.cache.has(job.cell.encoder_name or "")
    encoder, made = job.pretrained()
    features = extract_features(encoder, job.view, job.inputs)
    test = extract_features(encoder, job.view, job.test_inputs)
    x, x_test = _standardised(features, test)
    is_labelled = job.labels != UNLABELLED
    chosen, history = _chosen_penalty(job, x[is_labelled], job.labels[is_labelled] == POSITIVE, x_test)
    scores = torch.from_numpy(chosen.decision_function(x_test))
    return Trained(scores, 0.0, history, None, test, made.seconds, pretrained_here=not is_there)


def _chosen_penalty(
    job: Job, x: npt.NDArray[Any], y: npt.NDArray[np.bool_], x_test: npt.NDArray[Any]
) -> tuple[Any, list[dict[str, Any]]]:
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    settings = dict(job.cell.transfer.settings)
    folds = min(int(settings["folds"]), int(y.sum()), int((~y).sum()))  # type: ignore[arg-type]
    strengths = np.logspace(-4, 2, int(settings["strengths"]))  # type: ignore[arg-type]
    split = StratifiedKFold(folds, shuffle=True, random_state=job.cell.seed)
    search = GridSearchCV(_logistic(), {"C": strengths}, cv=split, scoring="neg_log_loss").fit(x, y)
    history = []
    for strength in strengths:
        scores = torch.from_numpy(_logistic(strength).fit(x, y).decision_function(x_test))
        history.append({"C": float(strength), "oracle_accuracy": job.accuracy(scores, 0.0)})
    return search.best_estimator_, history


def oracle_linear_accuracy(job: Job, features: Tensor, test: Tensor) -> float:
    """Test accuracy of a linear layer trained on *all true labels*: what the representation holds."""
    x, x_test = _standardised(features, test)
    y = job.rows.y_true[job.sample.rows] == 1
    model = _logistic().fit(x, y)
    return 100.0 * float((model.predict(x_test) == job.is_positive).mean())


def _logistic(strength: float = 1.0) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, max_iter=_MOST_STEPS)


def _standardised(features: Tensor, test: Tensor) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(features.cpu().double().numpy())
    return scaler.transform(features.cpu().double().numpy()), scaler.transform(test.cpu().double().numpy())

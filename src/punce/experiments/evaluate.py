"""From a trained classifier to the numbers of a result file. Here, and only here, true labels are looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from punce.experiments.job import Job
from punce.experiments.supervised import oracle_linear_accuracy
from punce.experiments.trained import Trained
from punce.judging.metrics import true_metrics
from punce.scenario import logit_shift
from punce.stages.probe import extract_features

_DRAWN = 1000  # rows in a t-SNE picture
_PERPLEXITY = 30.0


def evaluate(job: Job, trained: Trained) -> dict[str, Any]:
    """The result of a cell; accuracies in per cent."""
    scores = trained.scores.cpu().double().numpy()
    accuracy = job.accuracy(trained.scores, trained.cut)
    curve = [float(row["oracle_accuracy"]) for row in trained.history]
    result: dict[str, Any] = {
        "test_accuracy": accuracy,
        "oracle_accuracy": max([accuracy, *curve]),
        "auc": true_metrics(job.rows.y_test, scores).auc,
        "prior": {"true": job.sample.prior, "loss": job.loss_prior, "risk": job.risk_prior},
    }
    risks = [float(row["held_out_risk"]) for row in trained.history if "held_out_risk" in row]
    if risks:
        result["held_out_pu_risk"] = min(risks)
    if job.cell.data.setting == "pu":
        result["curve"] = curve
        result["shifted_accuracy"] = _shifted(job, trained)
    if trained.features is not None and trained.test_features is not None:
        result["oracle_linear_accuracy"] = oracle_linear_accuracy(job, trained.features, trained.test_features)
    if job.cell.embedding:
        result["embedding"] = embedding(job, trained)
    return {key: _rounded(value) for key, value in result.items()}


def _shifted(job: Job, trained: Trained) -> float:
    """Accuracy with the cut moved from the unlabelled mix to the population (see :mod:`punce.risks`)."""
    sample = job.sample
    return job.accuracy(trained.scores, trained.cut - logit_shift(sample.prior, sample.population_prior))


def embedding(job: Job, trained: Trained) -> dict[str, list[float]]:
    """Two t-SNE coordinates of a fixed part of the test rows, with their true class."""
    from sklearn.manifold import TSNE

    features = trained.test_features
    if features is None:
        encoder, _ = job.pretrained()
        features = extract_features(encoder, job.view, job.test_inputs)
    drawn = np.sort(np.random.RandomState(0).permutation(len(features))[:_DRAWN])
    h: npt.NDArray[Any] = features.cpu().double().numpy()[drawn]
    perplexity = min(_PERPLEXITY, (len(drawn) - 1) / 3)
    points = TSNE(perplexity=perplexity, init="pca", random_state=job.cell.seed).fit_transform(h)
    return {
        "x": [round(float(value), 2) for value in points[:, 0]],
        "y": [round(float(value), 2) for value in points[:, 1]],
        "is_positive": [int(value) for value in job.is_positive[drawn]],
    }


def _rounded(value: Any) -> Any:
    """Six decimals: more would only say which machine it was."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value

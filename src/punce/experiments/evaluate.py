"""From a trained classifier to the numbers of a result file. Here, and only here, true labels are looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from punce.experiments.job import Job
from punce.experiments.true_metrics import true_metrics
from punce.scenario import logit_shift
from punce.stages.supervised import SupervisedConfig
from punce.stages.transfer import TrainedHead

_DRAWN = 1000  # rows in a t-SNE picture
_PERPLEXITY = 30.0
_MOST_STEPS = 1000


def evaluate(job: Job, head: TrainedHead) -> dict[str, Any]:
    """The result of a cell; accuracies in per cent."""
    scores, cut = head.scores(job.test_inputs), head.decision_score
    accuracy = job.accuracy(scores, cut)
    curve = [float(row["oracle_accuracy"]) for row in head.history]
    result: dict[str, Any] = {
        "test_accuracy": accuracy,
        "oracle_accuracy": max([accuracy, *curve]),
        "auc": true_metrics(job.rows.y_test, scores.cpu().double().numpy()).auc,
        "prior": {"true": job.sample.prior, "loss": job.loss_prior, "risk": job.risk_prior},
    }
    risks = [float(row["held_out_risk"]) for row in head.history if "held_out_risk" in row]
    if risks:
        result["held_out_pu_risk"] = min(risks)
    if job.cell.data.setting == "pu":
        result["curve"] = curve
        # The cut moved from the unlabelled mix to the population (see punce.risks).
        shift = logit_shift(job.sample.prior, job.sample.population_prior)
        result["shifted_accuracy"] = job.accuracy(scores, cut - shift)
    if head.is_frozen and not isinstance(job.cell.transfer.config, SupervisedConfig):
        result["oracle_linear_accuracy"] = oracle_linear_accuracy(job, head)
    if job.cell.embedding:
        result["embedding"] = embedding(job, head)
    return {key: _rounded(value) for key, value in result.items()}


def oracle_linear_accuracy(job: Job, head: TrainedHead) -> float:
    """Test accuracy of a linear layer trained on *all true labels*: what the representation holds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features, test = (head.features_of(X).cpu().double().numpy() for X in (job.inputs, job.test_inputs))
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=_MOST_STEPS))
    model.fit(features, job.rows.y_true[job.sample.rows] == 1)
    return 100.0 * float((model.predict(test) == job.is_positive).mean())


def embedding(job: Job, head: TrainedHead) -> dict[str, list[float]]:
    """Two t-SNE coordinates of a fixed part of the test rows, with their true class."""
    from sklearn.manifold import TSNE

    features = head.features_of(job.test_inputs)
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

"""Execute one cell: get the encoder, train the classifier, look at the test rows."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from punce.encoders.allocator import kept_memory
from punce.experiments.cell import Cell
from punce.experiments.encoder_cache import EncoderCache
from punce.experiments.fewshot import run_fewshot
from punce.experiments.job import Job
from punce.experiments.machine import reproducible
from punce.experiments.true_metrics import true_metrics
from punce.scenario import logit_shift
from punce.stages.transfer import TrainedHead

_DRAWN = 1000  # rows in a t-SNE picture; more points hide each other
_PERPLEXITY = 30.0  # scikit-learn's default, less where a picture has few rows
_MOST_STEPS = 1000
_ONE_AT_A_TIME = Lock()  # threads and seeds are those of the whole process


@dataclass(frozen=True)
class Outcome:
    """The result of a cell and where its time went."""

    result: dict[str, Any]
    seconds: dict[str, float] = field(default_factory=dict)


def run_cell(cell: Cell, encoders: Path, folder: Path | None = None) -> Outcome:
    """The numbers of one cell. Encoders are shared below `encoders`; checkpoints of the transfer go into `folder`."""
    with _ONE_AT_A_TIME, reproducible(cell.threads), kept_memory():
        if cell.transfer.kind == "fewshot":
            return _run_few_shot(cell, folder)
        job = Job(cell, EncoderCache(encoders), folder)
        with torch.random.fork_rng():
            torch.manual_seed(cell.seed)
            return _run(job)


def _run(job: Job) -> Outcome:
    began, was_there = time.perf_counter(), job.cache.has(job.cell.encoder_name or "")
    encoder, made = job.first_encoder()
    head = job.train(encoder)
    ended = time.perf_counter()
    result = evaluate(job, head)
    seconds = {"transfer": ended - began, "evaluate": time.perf_counter() - ended}
    if made is not None:
        # An encoder that another cell pretrained still counts as pretraining, but took none of this cell's time.
        seconds["transfer"] -= 0.0 if was_there else made.seconds
        seconds["pretrain"] = made.seconds
    return Outcome(result, {name: round(value, 2) for name, value in seconds.items()})


def _run_few_shot(cell: Cell, folder: Path | None) -> Outcome:
    data, config, began = cell.data, asdict(cell.transfer.config), time.perf_counter()
    result = run_fewshot(
        source=data.source,
        encoder=cell.encoder.name,
        precision=cell.encoder.precision,
        n_labelled=data.n_labelled,
        n_unlabelled=data.n_unlabelled or 0,
        folder=folder,
        **{**config, "seed": cell.seed},
    )
    result.pop("history", None)  # validation per step; of no use in a table
    return Outcome(result, {"transfer": round(time.perf_counter() - began, 2)})


# Evaluation: here, and in no training stage, true labels are looked at -----------------------------------------------


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
    rates = {row["rate"] for row in head.history if "rate" in row}
    if rates:
        result["rate"] = rates.pop()  # of those tried, the one that the held-out PU risk chose
    risks = [float(row["held_out_risk"]) for row in head.history if "held_out_risk" in row]
    if risks:
        result["held_out_pu_risk"] = min(risks)
    variational = [float(row["held_out_variational"]) for row in head.history if "held_out_variational" in row]
    if variational:
        result["held_out_variational"] = min(variational)
    if job.cell.data.setting == "pu":
        result["curve"] = curve
        # The cut moved from the unlabelled mix to the population (see punce.risks).
        shift = logit_shift(job.sample.prior, job.sample.population_prior)
        result["shifted_accuracy"] = job.accuracy(scores, cut - shift)
    if head.is_frozen:
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
    # The same test rows for every encoder and seed.
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

"""Execute one cell: get the encoder, train the classifier, look at the test rows. One path for each transfer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from punce.encoders import Encoder
from punce.experiments.cell import Cell, TransferKind
from punce.experiments.encoder_cache import EncoderCache
from punce.experiments.evaluate import evaluate
from punce.experiments.fewshot import run_fewshot
from punce.experiments.job import Job
from punce.experiments.machine import device, reproducible
from punce.experiments.supervised import supervised_probe
from punce.experiments.trained import Trained
from punce.risks.vpu import phi_decision_score, phi_scale
from punce.stages.finetune import FinetuneConfig, finetune, train_from_scratch
from punce.stages.probe import LinearHead, ProbeConfig, extract_features, probe
from punce.stages.selfpu import SelfPUConfig, selfpu
from punce.stages.vpu import VPUConfig, train_vpu

_ONE_AT_A_TIME = Lock()  # threads and seeds are those of the whole process


@dataclass(frozen=True)
class Outcome:
    """The result of a cell and where its time went."""

    result: dict[str, Any]
    seconds: dict[str, float] = field(default_factory=dict)


def run_cell(cell: Cell, encoders: Path, folder: Path | None = None) -> Outcome:
    """The numbers of one cell. Encoders are shared below `encoders`; checkpoints of the transfer go into `folder`."""
    with _ONE_AT_A_TIME, reproducible(cell.threads):
        if cell.transfer.kind == "fewshot":
            return _run_few_shot(cell, folder)
        job = Job(cell, EncoderCache(encoders), folder)
        with torch.random.fork_rng():
            torch.manual_seed(cell.seed)
            began = time.perf_counter()
            trained = PATHS[cell.transfer.kind](job)
            ended = time.perf_counter()
            result = evaluate(job, trained)
    built = trained.pretrain_seconds if trained.pretrained_here else 0.0
    seconds = {"transfer": ended - began - built, "evaluate": time.perf_counter() - ended}
    if cell.pretraining is not None:
        seconds["pretrain"] = trained.pretrain_seconds
    return Outcome(result, {name: round(value, 2) for name, value in seconds.items()})


def _probe(job: Job) -> Trained:
    if job.cell.data.setting == "pnu":
        return supervised_probe(job)
    encoder, trained = _start(job)
    features = extract_features(encoder, job.view, job.inputs)
    test, risk = extract_features(encoder, job.view, job.test_inputs), job.risk()

    def watch(head: LinearHead) -> dict[str, float]:
        return {"oracle_accuracy": job.accuracy(head(test), risk.decision_score)}

    head = probe(features, job.labels, risk, job.stage(ProbeConfig), prior=job.risk_prior, observer=watch)
    return trained(head(test), risk.decision_score, head.history, features, test)


def _finetune(job: Job) -> Trained:
    encoder, trained = _start(job)
    risk, config = job.risk(), job.stage(FinetuneConfig)
    watch = job.watcher(lambda _: risk.decision_score)
    head = finetune(
        encoder, job.view, job.inputs, job.labels, risk, config, prior=job.risk_prior, folder=job.folder, observer=watch
    )
    return trained(head(_test_features(job, encoder)), risk.decision_score, head.history)


def _joint(job: Job) -> Trained:
    encoder, risk, config = job.new_encoder(), job.risk(), job.stage(FinetuneConfig)
    watch = job.watcher(lambda _: risk.decision_score)
    head = train_from_scratch(
        encoder, job.view, job.inputs, job.labels, risk, config, prior=job.risk_prior, folder=job.folder, observer=watch
    )
    return Trained(head(_test_features(job, encoder)), risk.decision_score, head.history)


def _selfpu(job: Job) -> Trained:
    encoder, config, watch = job.new_encoder(), job.stage(SelfPUConfig), job.watcher(lambda _: 0.0)
    head = selfpu(
        encoder, job.view, job.inputs, job.labels, config, prior=job.risk_prior, folder=job.folder, observer=watch
    )
    return Trained(head(_test_features(job, encoder)), 0.0, head.history)


def _vpu(job: Job) -> Trained:
    encoder, config = job.new_encoder(), job.stage(VPUConfig)
    # While it trains the scale is not fixed yet; the watcher takes the test rows' own quantile.
    watch = job.watcher(lambda scores: phi_decision_score(phi_scale(scores, config.quantile)))
    head = train_vpu(encoder, job.view, job.inputs, job.labels, config, folder=job.folder, observer=watch)
    return Trained(head(_test_features(job, encoder)), head.decision_score, head.history)


PATHS: dict[TransferKind, Callable[[Job], Trained]] = {
    "probe": _probe,
    "finetune": _finetune,
    "joint": _joint,
    "selfpu": _selfpu,
    "vpu": _vpu,
}


def _start(job: Job) -> tuple[Encoder, Callable[..., Trained]]:
    """The pretrained encoder, and a Trained that knows what the pretraining took."""
    is_there = job.cache.has(job.cell.encoder_name or "")
    encoder, made = job.pretrained()

    return encoder, partial(Trained, pretrain_seconds=made.seconds, pretrained_here=not is_there)


def _test_features(job: Job, encoder: Encoder) -> Tensor:
    return extract_features(encoder, job.view, job.test_inputs)


def _run_few_shot(cell: Cell, folder: Path | None) -> Outcome:
    data, settings, began = cell.data, dict[str, Any](cell.transfer.settings), time.perf_counter()
    result = run_fewshot(
        source=data.source,
        encoder=cell.encoder.name,
        n_labelled=data.n_labelled,
        n_unlabelled=data.n_unlabelled or 0,
        seed=cell.seed,
        folder=folder,
        device=device(),
        download=False,
        **settings,
    )
    result.pop("history", None)  # validation per step; of no use in a table
    return Outcome(result, {"transfer": round(time.perf_counter() - began, 2)})

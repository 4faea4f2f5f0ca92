"""Execute one cell: get the encoder, train the classifier, look at the test rows."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from punce.experiments.cell import Cell
from punce.experiments.encoder_cache import EncoderCache
from punce.experiments.evaluate import evaluate
from punce.experiments.fewshot import run_fewshot
from punce.experiments.job import Job
from punce.experiments.machine import device, reproducible

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
            return _run(job)


def _run(job: Job) -> Outcome:
    began, was_there = time.perf_counter(), job.cache.has(job.cell.encoder_name or "")
    encoder, made = (job.new_encoder(), None) if job.cell.pretraining is None else job.pretrained()
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
        n_labelled=data.n_labelled,
        n_unlabelled=data.n_unlabelled or 0,
        folder=folder,
        device=device(),
        download=False,
        **{**config, "seed": cell.seed},
    )
    result.pop("history", None)  # validation per step; of no use in a table
    return Outcome(result, {"transfer": round(time.perf_counter() - began, 2)})

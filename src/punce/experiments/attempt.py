"""One attempt at one cell, as a worker makes it: claim, run, write. Nothing a worker does is lost or done twice."""

from __future__ import annotations

import os
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from punce import __version__
from punce.errors import PunceError
from punce.experiments.cell import Cell
from punce.experiments.encoder_cache import EncoderBusyError
from punce.experiments.store import Record, ResultStore

_WATCH_EVERY = 1.0


@dataclass(frozen=True)
class Task:
    """A cell and where its result goes; all that a worker needs to be told.

    `runner` is the process whose end must end the worker too; None where something else looks after workers.
    """

    cell: Cell
    results: Path
    scale: str
    runner: int | None = None


@dataclass(frozen=True)
class Report:
    """What became of an attempt.

    "busy": another process has the cell, or pretrains its encoder; ask again later. `may_pass` says of a failure
    that it may be chance (not enough memory, a full disk) rather than wrong input.
    """

    status: Literal["done", "there", "failed", "busy"]
    seconds: float = 0.0
    accuracy: float | None = None
    error: str | None = None
    may_pass: bool = False


def attempt(task: Task) -> Report:
    """Do the cell unless it is done or another process is at it."""
    _end_with(task.runner)
    store = ResultStore(task.results, task.scale)
    with store.claim(task.cell) as is_ours:
        if not is_ours:
            return Report("busy")
        before = store.read(task.cell)
        if before is not None and before.is_done:
            return Report("there", accuracy=before.result.get("test_accuracy"))
        return _claimed(task, store, before.attempts if before is not None else 0)


def _claimed(task: Task, store: ResultStore, attempts: int) -> Report:
    from punce.experiments.machine import facts
    from punce.experiments.run_cell import run_cell

    cell, began, folder = task.cell, time.perf_counter(), store.work_folder(task.cell)
    try:
        outcome = run_cell(cell, task.results / "encoders", folder)
    except EncoderBusyError:
        return Report("busy")
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        record_failure(store, cell, text)
        return Report("failed", time.perf_counter() - began, error=text, may_pass=not isinstance(error, PunceError))
    seconds = {**outcome.seconds, "total": round(time.perf_counter() - began, 2)}
    config, machine = cell.config(), facts()
    store.write(Record(cell.key, config, "done", outcome.result, None, attempts + 1, seconds, machine, __version__))
    shutil.rmtree(folder, ignore_errors=True)
    return Report("done", seconds["total"], outcome.result.get("test_accuracy"))


def record_failure(store: ResultStore, cell: Cell, error: str) -> None:
    """Write down that and why a cell failed; a result that is there is never replaced by this."""
    before = store.read(cell)
    if before is not None and before.is_done:
        return
    attempts = before.attempts + 1 if before is not None else 1
    store.write(Record(cell.key, cell.config(), "failed", {}, error, attempts, punce=__version__))


_watched: set[int] = set()


def _end_with(runner: int | None) -> None:
    """End this process soon after the runner: a killed runner must not leave workers that hold cells and cores."""
    if runner is None or runner == os.getpid() or runner in _watched:
        return
    _watched.add(runner)

    def watch() -> None:
        while os.getppid() == runner:
            time.sleep(_WATCH_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="ends with the runner").start()

"""One attempt at one cell, as a worker makes it: claim, run, write. Nothing a worker does is lost or done twice.

What goes wrong is in the report, and on disk where that is possible. It is never raised: one full disk must not end a
matrix of hundreds of cells.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from punce import __version__
from punce.errors import InputError, PunceError, WriteError
from punce.experiments.cell import Cell
from punce.experiments.encoder_cache import EncoderBusyError
from punce.experiments.store import Record, ResultStore
from punce.storage.checkpoint import CheckpointError

if TYPE_CHECKING:
    from punce.experiments.run_cell import Outcome

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
    store, began = ResultStore(task.results, task.scale), time.perf_counter()
    try:
        with store.claim(task.cell) as is_ours:
            return _claimed(task, store) if is_ours else Report("busy")
    except Exception as error:  # no locks to be had, no folder for them: without a claim nothing is written either
        return failure(error, time.perf_counter() - began)


def _claimed(task: Task, store: ResultStore) -> Report:
    cell, began = task.cell, time.perf_counter()
    try:
        before = store.read(cell)
        if before is not None and before.is_done:
            return Report("there", accuracy=before.result.get("test_accuracy"))
        return _done(task, store, 1 if before is None else before.attempts + 1)
    except EncoderBusyError:
        return Report("busy")
    except Exception as error:
        report = failure(error, time.perf_counter() - began)
        _write_failure(store, cell, report.error or "")
        return report


def _done(task: Task, store: ResultStore, attempts: int) -> Report:
    from punce.experiments.machine import facts

    cell, began, folder = task.cell, time.perf_counter(), store.work_folder(task.cell)
    outcome = _outcome(cell, task.results / "encoders", folder)
    seconds = {**outcome.seconds, "total": round(time.perf_counter() - began, 2)}
    config, machine = cell.config(), facts()
    store.write(Record(cell.key, config, "done", outcome.result, None, attempts, seconds, machine, __version__))
    shutil.rmtree(folder, ignore_errors=True)
    return Report("done", seconds["total"], outcome.result.get("test_accuracy"))


def _outcome(cell: Cell, encoders: Path, folder: Path) -> Outcome:
    """Run the cell; from the start where its checkpoints are of another configuration, or can no longer be read."""
    from punce.experiments.run_cell import run_cell

    has_begun = folder.exists()
    try:
        return run_cell(cell, encoders, folder)
    except (InputError, CheckpointError) as error:
        if not has_begun or isinstance(error, WriteError):
            raise
        shutil.rmtree(folder)
        return run_cell(cell, encoders, folder)


def failure(error: Exception, seconds: float = 0.0) -> Report:
    """The report of an attempt that ended in an error."""
    may_pass = isinstance(error, WriteError) or not isinstance(error, PunceError)
    return Report("failed", seconds, error=f"{type(error).__name__}: {error}", may_pass=may_pass)


def record_failure(store: ResultStore, cell: Cell, error: str) -> None:
    """Write down that and why a cell failed, unless another process is at it now or it cannot be written."""
    with suppress(OSError), store.claim(cell) as is_ours:
        if is_ours:
            _write_failure(store, cell, error)


def _write_failure(store: ResultStore, cell: Cell, error: str) -> None:
    """Under the cell's claim; a result that is there is never replaced by this."""
    with suppress(OSError, PunceError):  # a full disk: then it is in the report alone
        before = store.read(cell)
        if before is None or not before.is_done:
            attempts = 1 if before is None else before.attempts + 1
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

"""One attempt at one cell, as a worker makes it: claim the cell, run it, write the result.

An attempt never raises. What goes wrong is in its report, and on disk where that is possible: one full disk must not
end a matrix of hundreds of cells.
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
from punce.errors import PunceError, WriteError
from punce.experiments.cell import Cell
from punce.experiments.encoder_cache import EncoderBusyError, from_checkpoints_or_start
from punce.experiments.machine import code_hashes, facts
from punce.experiments.store import Record, ResultStore

if TYPE_CHECKING:
    from punce.experiments.run_cell import Outcome

_WATCH_EVERY = 1.0  # seconds


@dataclass(frozen=True)
class Task:
    """A cell and where its result goes. `runner` is the process whose end must end the worker too, if any."""

    cell: Cell
    results: Path
    scale: str
    runner: int | None = None


@dataclass(frozen=True)
class Report:
    """The outcome of an attempt.

    "busy": another process has the cell, or pretrains its encoder; ask again later. `may_pass`: the failure may be
    chance (not enough memory, a full disk) rather than wrong input, so another attempt is worth it.
    """

    status: Literal["done", "there", "failed", "busy"]
    seconds: float = 0.0
    accuracy: float | None = None
    error: str | None = None
    may_pass: bool = False


def attempt(task: Task) -> Report:
    """Do the cell unless it is done or another process is working on it."""
    _end_with(task.runner)
    store, began = ResultStore(task.results, task.scale), time.perf_counter()
    try:
        with store.claim(task.cell) as is_ours:
            if not is_ours:
                return Report("busy")
            try:
                return _run(task, store)
            except EncoderBusyError:
                return Report("busy")
            except Exception as error:
                _write_failure(store, task.cell, describe(error))
                raise
    except Exception as error:
        return failure(error, time.perf_counter() - began)


def _run(task: Task, store: ResultStore) -> Report:
    cell, began, folder = task.cell, time.perf_counter(), store.work_folder(task.cell)
    # Read under the lock: another runner may have finished the cell since this one made its plan, which has warned.
    before = store.read(cell, warn=False)
    if before is not None and before.is_done:
        return Report("there", accuracy=before.result.get("test_accuracy"))
    outcome = _outcome(cell, task.results / "encoders", folder)
    seconds = {**outcome.seconds, "total": round(time.perf_counter() - began, 2)}
    attempts = 1 if before is None else before.attempts + 1
    made_by = (facts(), __version__, code_hashes())
    store.write(Record(cell.key, cell.config(), "done", outcome.result, None, attempts, seconds, *made_by))
    # Only now: checkpoints must outlive anything that can go wrong before the result is on disk.
    shutil.rmtree(folder, ignore_errors=True)
    return Report("done", seconds["total"], outcome.result.get("test_accuracy"))


def _outcome(cell: Cell, encoders: Path, folder: Path) -> Outcome:
    """Run the cell, from its checkpoints if there are any that can be taken up."""
    # Here, because it brings scikit-learn and transformers, which a runner that only waits for workers never needs.
    from punce.experiments.run_cell import run_cell

    return from_checkpoints_or_start(folder, lambda: run_cell(cell, encoders, folder))


def describe(error: Exception) -> str:
    """The error as it is stored and shown."""
    return f"{type(error).__name__}: {error}"


def failure(error: Exception, seconds: float = 0.0) -> Report:
    """The report of an attempt that ended in an error."""
    may_pass = isinstance(error, WriteError) or not isinstance(error, PunceError)
    return Report("failed", seconds, error=describe(error), may_pass=may_pass)


def record_failure(store: ResultStore, cell: Cell, error: str) -> None:
    """Store that and why a cell failed, unless another process is working on it now or it cannot be written."""
    with suppress(OSError), store.claim(cell) as is_ours:
        if is_ours:
            _write_failure(store, cell, error)


def _write_failure(store: ResultStore, cell: Cell, error: str) -> None:
    """For the process that has claimed the cell; a result that is there is never replaced by this."""
    with suppress(OSError, PunceError):  # a full disk: then the failure is in the report alone
        before = store.read(cell, warn=False)
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
        while os.getppid() == runner:  # an orphan gets another parent
            time.sleep(_WATCH_EVERY)
        os._exit(1)  # sys.exit would end this thread alone

    threading.Thread(target=watch, daemon=True, name="ends with the runner").start()

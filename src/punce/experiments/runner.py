"""Do all cells, each once, on any pool, until every one is done or has failed for good.

The queue keeps the order of the tables, but passes over a cell whose encoder is being pretrained at the moment, so that
no worker waits for another. A cell that another runner has is asked for again later.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field
from types import FrameType

from punce.errors import PunceError
from punce.experiments.attempt import Report, Task, failure, record_failure
from punce.experiments.cell import Cell
from punce.experiments.encoder_cache import EncoderCache
from punce.experiments.pools import InProcess
from punce.experiments.store import ResultStore
from punce.training.signals import handled

EXIT_TERMINATED = 128 + signal.SIGTERM
_ASK_AGAIN = 1.0  # seconds


class RunnerError(PunceError):
    """The run cannot continue; finished cells are kept."""


Watcher = Callable[[Cell, Report], None]
"""Is told of each cell that is done or has failed for good."""


@dataclass
class Summary:
    """Cells by what became of them."""

    done: list[Cell] = field(default_factory=list)
    failed: list[tuple[Cell, str]] = field(default_factory=list)


def run_cells(
    cells: Sequence[Cell], store: ResultStore, pool: InProcess, watcher: Watcher, *, most_attempts: int = 2
) -> Summary:
    """Do the cells that are not done. SIGTERM and Ctrl-C end the workers; a repeated run does the rest."""
    runner = _Runner(store, pool, watcher, most_attempts)
    with handled(_leave, signal.SIGTERM):  # so that workers are ended on the way out
        try:
            summary = runner.run(cells)
        except BaseException:
            pool.close(now=True)
            raise
    pool.close(now=False)
    return summary


class _Runner:
    def __init__(self, store: ResultStore, pool: InProcess, watcher: Watcher, most_attempts: int) -> None:
        self._store, self._pool, self._watcher, self._most = store, pool, watcher, most_attempts
        self._encoders = EncoderCache(store.results / "encoders")
        self._queue: list[Cell] = []
        self._suspects: list[Cell] = []  # were running when a worker died; each is tried on its own
        self._running: dict[Future[Report], Cell] = {}
        self._failures: Counter[Cell] = Counter()
        self._not_before: dict[Cell, float] = {}
        self._summary = Summary()

    def run(self, cells: Sequence[Cell]) -> Summary:
        """Hand out cells and take reports until nothing is left."""
        self._queue = list(dict.fromkeys(cells))  # tables share cells
        while self._queue or self._suspects or self._running:
            self._hand_out()
            if self._running:
                # A queue may hold cells that are only waiting for their time: look again even if nothing ends.
                patience = _ASK_AGAIN if self._queue else None
                ended, _ = wait(self._running, patience, FIRST_COMPLETED)
                for future in ended:
                    self._take(future)
            else:
                time.sleep(_ASK_AGAIN)  # only cells of another runner are left
        return self._summary

    def _hand_out(self) -> None:
        while len(self._running) < self._pool.slots and (cell := self._next()) is not None:
            # An absolute path: a worker may have another current folder.
            task = Task(cell, self._store.results.resolve(), self._store.scale, self._pool.runner)
            self._running[self._pool.submit(task)] = cell

    def _next(self) -> Cell | None:
        """The first cell that need not wait for an encoder another worker is making; suspects last and alone."""
        making, now = {cell.encoder_name for cell in self._running.values()}, time.monotonic()
        for cell in self._queue:
            name, is_due = cell.encoder_name, self._not_before.get(cell, 0.0) <= now
            if is_due and (name is None or name not in making or self._encoders.has(name)):
                self._queue.remove(cell)
                return cell
        return self._suspects.pop(0) if self._suspects and not self._queue and not self._running else None

    def _take(self, future: Future[Report]) -> None:
        """Book what a worker reported."""
        cell = self._running.pop(future)
        try:
            report = future.result()
        except self._pool.lost as error:
            self._lost(cell, error)
            return
        except CancelledError:
            raise RunnerError(
                "the workers' scheduler is gone; finished cells are kept, the same command does the rest"
            ) from None
        except Exception as error:  # an attempt raises nothing, but what carries its report may
            report = failure(error)
        if report.status == "busy":
            # To the end of the queue, and not at once: its owner may need minutes.
            self._not_before[cell] = time.monotonic() + _ASK_AGAIN
            self._queue.append(cell)
        elif report.status == "failed":
            self._failures[cell] += 1
            if report.may_pass and self._failures[cell] < self._most:
                self._queue.append(cell)
            else:
                self._end(cell, report)
        else:
            self._end(cell, report)

    def _lost(self, cell: Cell, error: BaseException) -> None:
        """A worker died. All cells that ran then are suspects; which one kills its worker shows when it runs alone."""
        self._failures[cell] += 1
        if self._failures[cell] <= self._most:  # once more than others: the first death may be another cell's fault
            self._suspects.append(cell)
            return
        text = f"its worker process died {self._failures[cell]} times (too little memory?): {error}"
        record_failure(self._store, cell, text)
        self._end(cell, Report("failed", error=text))

    def _end(self, cell: Cell, report: Report) -> None:
        if report.status == "failed":
            self._summary.failed.append((cell, report.error or "no reason given"))
        else:
            self._summary.done.append(cell)
        self._watcher(cell, report)


def _leave(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(EXIT_TERMINATED)

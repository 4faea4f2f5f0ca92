"""What a person sees of a run: one line per cell, a bar on a terminal, and the time left for the whole matrix."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from punce.errors import number_of
from punce.experiments.attempt import Report
from punce.experiments.cell import Cell
from punce.experiments.costs import CostModel
from punce.experiments.plan import Plan
from punce.experiments.store import ResultStore
from punce.training.progress import duration


class MatrixProgress:
    """The view of a run; call it with each cell that ended.

    Time left is the expected work that is left, at the pace of the cells this run computed: failed cells, and those
    another runner did, say nothing about the pace.
    """

    def __init__(self, plan: Plan, store: ResultStore, console: Console) -> None:
        self._console, self._costs = console, CostModel(store, plan.done)
        self._left = self._costs.seconds_of(plan.to_do)
        self._total, self._done = len(plan.cells), len(plan.done)
        self._worked, self._seconds, self._in_vain = 0.0, 0.0, 0.0
        self._began = time.monotonic()
        columns = (TextColumn("[bold]cells"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        note = TextColumn("{task.fields[note]}")
        self._bar = Progress(*columns, note, console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("cells", total=self._total, completed=self._done, note="")

    def __enter__(self) -> Self:
        self._bar.start()
        self._say(f"{_cells(self._total)}, {self._done} done before, {len(self._left)} to do")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.stop()
        if error is not None:
            self._say(f"stopped with {self._done} of {_cells(self._total)} done; the same command does the rest")

    def __call__(self, cell: Cell, report: Report) -> None:
        """Count a cell that ended, and print one line about it."""
        self._done += 1
        expected = self._left.pop(cell, 0.0)
        if report.status == "done":
            self._worked += expected  # in expected seconds, so that a wrong guess of the speed cancels
            self._seconds += report.seconds
        else:  # an encoder that was counted with this cell may now be made by another cell, or by none
            self._in_vain += report.seconds
            self._left = self._costs.seconds_of(self._left)
        left = f"{duration(self.seconds_left)} left"
        self._say(f"[{self._done}/{self._total}] {_outcome(cell, report)}; {left}")
        self._bar.update(self._task, completed=self._done, note=left)

    @property
    def seconds_left(self) -> float:
        """Seconds until all cells are done."""
        expected = sum(self._left.values())
        if not self._worked:
            return expected
        # Workers also lost time to cells that gave nothing: that part of the clock is not the pace.
        useful = self._seconds / (self._seconds + self._in_vain) if self._seconds else 1.0
        return expected * (time.monotonic() - self._began) * useful / self._worked

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True, markup=False)


def _cells(number: int) -> str:
    return number_of(number, "cell", "cells")


def _outcome(cell: Cell, report: Report) -> str:
    if report.status == "failed":
        return f"failed: {cell.describe()}: {report.error}"
    number = "" if report.accuracy is None else f"{report.accuracy:.2f} %  "
    took = "by another runner" if report.status == "there" else f"{report.seconds:.0f} s"
    return f"{number}{cell.describe()} ({took})"


def show_plan(console: Console, plan: Plan, store: ResultStore, jobs: int) -> None:
    """The dry run: every cell with its state and the time it is expected to take."""
    expected = CostModel(store, plan.done).seconds_of(plan.to_do)
    states = {**dict.fromkeys(plan.done, "done"), **dict.fromkeys(plan.failed, "failed before")}
    table = Table("cell", "state", "expected", "what", box=None, header_style="dim")
    for cell in plan.cells:
        time_left = duration(expected[cell]) if cell in expected else ""
        table.add_row(cell.name, states.get(cell, "to do"), time_left, cell.describe())
    console.print(table)
    total = sum(expected.values())
    console.print(
        f"{_cells(len(plan.cells))}: {len(plan.done)} done, {len(plan.to_do)} to do ({len(plan.failed)} failed "
        f"before); about {duration(total)} of work, {duration(total / jobs)} with {jobs} at a time",
        highlight=False,
    )

"""What a person sees of a run: one line per cell, or one bar, with the time that is left for the whole matrix."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from punce.experiments.attempt import Report
from punce.experiments.cell import Cell
from punce.experiments.costs import CostModel
from punce.experiments.plan import Plan
from punce.experiments.store import ResultStore


class MatrixProgress:
    """The view of a run. Time left is the expected work that is left, at the pace of this run so far.

    The pace is that of cells this run computed: what failed, or what another runner did, says nothing about it.
    """

    def __init__(self, plan: Plan, store: ResultStore, console: Console) -> None:
        self._console, self._costs = console, CostModel(store, plan.done)
        self._left = self._costs.seconds_of(plan.to_do)
        self._total, self._ended, self._there = len(plan.cells), 0, len(plan.done)
        self._worked, self._seconds, self._in_vain = 0.0, 0.0, 0.0
        self._began = time.monotonic()
        self._bar = self._make_bar() if console.is_terminal else None

    def _make_bar(self) -> Progress:
        columns = (
            TextColumn("[bold]cells"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
        )
        bar = Progress(*columns, console=self._console)
        bar.add_task("cells", total=self._total, completed=self._there, note="")
        return bar

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        self._say(f"{self._total} cells, {self._there} done before, {len(self._left)} to do")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()
        if error is not None:
            self._say(f"stopped with {self._there + self._ended} of {self._total} cells done; the same command goes on")

    def started(self, cell: Cell) -> None:
        """Nothing to show yet."""

    def ended(self, cell: Cell, report: Report) -> None:
        """One line for the cell."""
        self._ended += 1
        self._count(self._left.pop(cell, 0.0), report)
        outcome = _outcome(cell, report)
        left = f"{spoken(self.seconds_left)} left"
        self._say(f"[{self._there + self._ended}/{self._total}] {outcome}; {left}")
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=self._there + self._ended, note=left)

    @property
    def seconds_left(self) -> float:
        """For the whole matrix."""
        if not self._worked:
            return sum(self._left.values())
        useful = self._seconds / (self._seconds + self._in_vain) if self._seconds else 1.0
        pace = (time.monotonic() - self._began) * useful / self._worked
        return sum(self._left.values()) * pace

    def _count(self, expected: float, report: Report) -> None:
        if report.status == "done":
            self._worked += expected
            self._seconds += report.seconds
        else:  # an encoder that was counted with this cell may be another's to make now, or no one's
            self._in_vain += report.seconds
            self._left = self._costs.seconds_of(self._left)

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True, markup=False)


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
        time_left = spoken(expected[cell]) if cell in expected else ""
        table.add_row(cell.name, states.get(cell, "to do"), time_left, cell.describe())
    console.print(table)
    total = sum(expected.values())
    console.print(
        f"{len(plan.cells)} cells: {len(plan.done)} done, {len(plan.to_do)} to do ({len(plan.failed)} failed before); "
        f"about {spoken(total)} of work, {spoken(total / jobs)} with {jobs} at a time",
        highlight=False,
    )


def spoken(seconds: float) -> str:
    """A duration in the two units that matter."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    if minutes < 90:
        return f"{minutes:.0f} min"
    hours = minutes / 60
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"

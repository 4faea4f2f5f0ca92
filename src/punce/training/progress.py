"""Progress a person can see: a bar with rate and time left on a terminal, plain lines elsewhere.

A run that will take long says so, with the memory it needs, after its first few steps.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from punce.training.time_left import Estimator

_LINE_EVERY_SECONDS = 15.0


class StageProgress:
    """Progress of one stage, counted in steps; says nothing if not `shown`. It goes to stderr unless told otherwise."""

    def __init__(
        self,
        stage: str,
        total: int,
        rows_per_step: int,
        *,
        shown: bool = True,
        start: int = 0,
        console: Console | None = None,
    ) -> None:
        self._stage, self._total, self._rows = stage, total, rows_per_step
        self._start, self._done = start, start
        self._began = self._last_line = time.monotonic()
        self._console = console or Console(stderr=True)
        self._estimator = Estimator(total, start)
        self._bar: Progress | None = self._make_bar() if shown and self._console.is_terminal else None
        self._lines = shown and self._bar is None

    def _make_bar(self) -> Progress:
        columns = (
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        bar = Progress(*columns, console=self._console)
        bar.add_task(self._stage, total=self._total, completed=self._start, note="")
        return bar

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()
        elif self._lines and self._done > self._start:
            self._line("done" if self._done == self._total else "stopped")

    def advance(self, note: str) -> None:
        """One step done; `note` are the numbers to show beside it."""
        self._done += 1
        if (self._bar or self._lines) and (estimate := self._estimator.step_done(self._done)):
            self._say(estimate)
        if self._bar:
            rate = f"{self.rows_per_second:,.0f} rows/s"
            self._bar.update(self._bar.task_ids[0], completed=self._done, note=f"{rate} {note}")
        elif self._lines and time.monotonic() - self._last_line > _LINE_EVERY_SECONDS:
            self._line(note)

    @property
    def rows_per_second(self) -> float:
        """Rows seen per second since this process began."""
        return (self._done - self._start) * self._rows / max(1e-9, time.monotonic() - self._began)

    def _line(self, note: str) -> None:
        self._last_line = time.monotonic()
        steps = max(1, self._done - self._start)
        left = (self._total - self._done) * (self._last_line - self._began) / steps
        rate = f"{self.rows_per_second:,.0f} rows/s"
        self._say(f"{self._done}/{self._total} steps, {rate}, {left:.0f} s left  {note}".rstrip())

    def _say(self, text: str) -> None:
        """A line of plain text; above the bar if there is one."""
        self._console.print(f"{self._stage}: {text}", highlight=False, soft_wrap=True, markup=False)

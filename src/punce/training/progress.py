"""Progress a person can see: a bar with rate and time left on a terminal, plain lines elsewhere.

A run that will take long says so, with the memory it needs, after its first few steps. Nothing is modelled: the first
step is left out (it allocates and warms caches), the next few are timed, and memory is the process's peak after them,
when data, weights, gradients, optimiser state and activations have all been there together.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_LINE_EVERY_SECONDS = 15.0  # without a terminal: a log file should not fill up
_REFRESH_EVERY_SECONDS = 0.1  # on a terminal
_STEPS = 3  # timed, at least
_SECONDS = 0.5  # of timed steps, at least
LONG_RUN = 10.0  # seconds; shorter runs are not announced


def say(text: str) -> None:
    """A line of plain text on stderr, where progress is shown."""
    Console(stderr=True).print(text, highlight=False, soft_wrap=True, markup=False)


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
        # No thread that refreshes it: a process with one thread can be forked (punce.training.parallel).
        bar = Progress(*columns, console=self._console, auto_refresh=False)
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
            if time.monotonic() - self._last_line > _REFRESH_EVERY_SECONDS:
                self._last_line = time.monotonic()
                self._bar.refresh()
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


class Estimator:
    """Of a stage that has done `start` of `total` steps. Call :meth:`step_done` after every step."""

    def __init__(self, total: int, start: int = 0) -> None:
        self._total, self._start = total, start
        self._began: float | None = None
        self._said = False

    def step_done(self, done: int) -> str | None:
        """When enough steps are timed and much is left: "about 3 min, 0.6 GB of memory". Once; otherwise None."""
        if self._said:
            return None
        now, timed = time.monotonic(), done - self._start - 1  # without the first step
        if self._began is None:
            self._began = now
        if timed < _STEPS or now - self._began < _SECONDS:
            return None
        self._said = True
        left = (self._total - done) * (now - self._began) / timed
        return f"about {duration(left)}, {peak_memory()}" if left >= LONG_RUN else None


def duration(seconds: float) -> str:
    """A time span to two digits or so: "40 s", "3 min", "2.5 h", "3.1 days"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"


def peak_memory() -> str:
    """The most this process has held so far: "0.6 GB of memory", with that of its GPU if it uses one."""
    import torch  # only now: who shows progress has not always need of it

    parts = [f"{peak_resident_bytes() / 1e9:.1f} GB of memory"]
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        parts.append(f"{torch.cuda.max_memory_allocated() / 1e9:.1f} GB of GPU memory")
    return ", ".join(parts)


def peak_resident_bytes() -> int:
    """Peak resident memory. Linux's own count where there is one: getrusage's begins with the parent's peak."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

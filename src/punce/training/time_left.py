"""How long a stage will take and how much memory it needs, measured on its own first steps.

Nothing is modelled: the first step is left out (it allocates and warms caches), the next few are timed, and memory is
the process's peak after them, when data, weights, gradients, optimiser state and activations have all been there
together. So the announcement comes a few steps into the run, and the run loses nothing for it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

_STEPS = 3  # timed, at least
_SECONDS = 0.5  # of timed steps, at least
LONG_RUN = 10.0  # seconds; shorter runs are not announced


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
        now, timed = time.monotonic(), done - self._start - 1
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

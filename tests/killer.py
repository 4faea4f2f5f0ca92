"""A thread that kills worker processes in the middle of their work."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress


class Killer(threading.Thread):
    """Kills processes that are `at_work`, each once, until so many are killed."""

    def __init__(self, at_work: Callable[[], Iterable[int]], kills: int) -> None:
        super().__init__(daemon=True)
        self.killed: list[int] = []
        self._at_work, self._kills = at_work, kills

    def run(self) -> None:
        until = time.monotonic() + 120
        while len(self.killed) < self._kills and time.monotonic() < until:
            for pid in self._at_work():
                if pid not in self.killed and len(self.killed) < self._kills:
                    with suppress(ProcessLookupError):  # it ended in between
                        os.kill(pid, signal.SIGKILL)
                        self.killed.append(pid)
            time.sleep(0.002)

"""Signals in other hands for a while."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None] | signal.Handlers


@contextmanager
def handled(handler: Handler, *numbers: signal.Signals) -> Iterator[None]:
    """Inside, these signals go to `handler`; afterwards to whoever had them before.

    Python gives signals to the main thread only: inside another one, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            # None: set by the program that Python runs in (a web server), which Python cannot set again.
            signal.signal(number, signal.SIG_DFL if earlier is None else earlier)

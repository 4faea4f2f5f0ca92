"""Signals in other hands: they go back to whoever had them, in any thread and in any program."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

import pytest

from punce.training.signals import handled


def test_inside_the_handler_is_called_and_afterwards_the_earlier_one() -> None:
    heard: list[str] = []

    def outer(signum: int, frame: FrameType | None) -> None:
        heard.append("outer")

    def inner(signum: int, frame: FrameType | None) -> None:
        heard.append("inner")

    with handled(outer, signal.SIGTERM):
        with handled(inner, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
    assert heard == ["inner", "outer"]
    assert signal.getsignal(signal.SIGTERM) is not outer
    assert signal.getsignal(signal.SIGINT) is not inner


def test_a_handler_of_the_program_around_python_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a handler that a web server set before it started Python, signal.signal() returns None."""
    given: list[Any] = []
    monkeypatch.setattr(signal, "signal", lambda number, handler: given.append(handler))
    with handled(signal.SIG_IGN, signal.SIGTERM):
        pass
    assert given == [signal.SIG_IGN, signal.SIG_DFL]


def test_other_threads_leave_signals_alone() -> None:
    seen: list[Any] = []
    before = signal.getsignal(signal.SIGTERM)

    def work() -> None:
        with handled(signal.SIG_IGN, signal.SIGTERM):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]

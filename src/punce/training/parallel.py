"""Independent pieces of work side by side, each on one thread, in copies of this process.

Threads do not help where most of the time is Python's own (boosting of small tables: trees of a tenth of a
millisecond), and fresh processes import for seconds what a copy has already. A copy made by fork has only the thread
that made it: a lock that another thread held stays locked in it for ever. So copies are made where that cannot happen,
and elsewhere the pieces run one after the other, with the same results to the last bit.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import TypeVar, cast

from punce.training.cpus import limited_threads, usable_cpus

T = TypeVar("T")
_MOST_TASKS = 256  # a task's place is one byte


def in_parallel(tasks: Sequence[Callable[[], T]], threads: int = 1) -> Iterator[T]:
    """The results in the order of the tasks. A task may be any callable; its result is pickled on the way back.

    A task that fails raises here what it raised there, and its warnings are given here too. Tasks that are worth more
    than one of the `threads` each (:func:`~punce.training.cpus.threads_for`) run one after the other.
    """
    count = min(len(tasks), _copies()) if threads == 1 else 1
    if count < 2 or len(tasks) > _MOST_TASKS:
        for task in tasks:
            with limited_threads(threads):
                result = task()
            yield result  # outside: the caller's threads are its own
        return
    yield from _by_copies(tasks, count)


def _copies() -> int:
    """How many processes may work at once: the usable CPUs where forking is safe, else this one alone."""
    torch = sys.modules.get("torch")
    is_safe = (
        sys.platform == "linux"  # macOS's own libraries do not survive a fork
        and threading.active_count() == 1
        and not multiprocessing.current_process().daemon  # which may have no children
        and not (torch and torch.cuda.is_initialized())
    )
    return usable_cpus() if is_safe else 1


def beside(task: Callable[[], T]) -> Callable[[], T]:
    """Start the task in a copy; calling what is returned waits for its result, or computes it where no copy can be."""
    if _copies() < 2:
        return lambda: next(in_parallel([task]))
    running = _started([task], 1)
    return lambda: next(_results(*running, 1))


def _by_copies(tasks: Sequence[Callable[[], T]], count: int) -> Iterator[T]:
    yield from _results(*_started(tasks, count), len(tasks))


def _started(tasks: Sequence[Callable[[], T]], count: int) -> tuple[list[ForkProcess], list[Connection]]:
    """Copies at work, and where their results come from."""
    # Whoever is free reads the next byte. The pipe ends after the last one, as nobody can write to it any more: no copy
    # waits for ever, even if this process is killed.
    places, writing = os.pipe()
    os.write(writing, bytes(range(len(tasks))))
    os.close(writing)
    fork, copies, sources = multiprocessing.get_context("fork"), [], []
    for _ in range(count):
        source, sink = fork.Pipe(duplex=False)
        copies.append(fork.Process(target=_work, args=(tasks, places, sink), daemon=True))
        with warnings.catch_warnings():
            # Python 3.12 counts the idle threads of BLAS, which has its own provision for a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            copies[-1].start()
        sink.close()
        sources.append(source)
    os.close(places)
    return copies, sources


def _results(copies: list[ForkProcess], sources: list[Connection], count: int) -> Iterator[T]:
    try:
        yield from _in_order(sources, count)
    finally:
        for copy in copies:
            copy.terminate()  # only where something failed is one of them still at work
            copy.join()


def _work(tasks: Sequence[Callable[[], T]], places: int, sink: Connection) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # what the first process does to leave is not for its copies
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the first one ends the others
    with limited_threads(1):
        while place := os.read(places, 1):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    result, error = tasks[place[0]](), None
                except Exception as raised:
                    result, error = None, _sendable(raised)
            # Plain pickle: send() would leave a tensor in memory of this copy, which is gone when the other side looks.
            sink.send_bytes(pickle.dumps((place[0], result, error, [warning.message for warning in caught])))


def _sendable(error: Exception) -> Exception:
    """The error, or its words where it does not survive the way back."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # pickle raises whatever the error's own code does
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _in_order(sources: list[Connection], count: int) -> Iterator[T]:
    early: dict[int, T] = {}
    for place in range(count):
        while place not in early:
            for source in cast("list[Connection]", wait(sources)):
                try:
                    done, result, error, warned = source.recv()
                except EOFError:
                    sources.remove(source)
                    continue
                for message in warned:
                    warnings.warn(message, stacklevel=3)
                if error is not None:
                    raise error
                early[done] = result
            if not sources and place not in early:
                raise MemoryError("a process of this command was ended from outside, most likely for want of memory")
        yield early.pop(place)

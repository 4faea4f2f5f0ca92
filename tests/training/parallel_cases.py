"""Cases of punce.training.parallel, for a process with one thread and no children: test_parallel.py starts one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from punce.errors import InputError
from punce.training import parallel
from punce.training.parallel import beside, in_parallel


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "usable_cpus", lambda: 2)


def _slow(k: int) -> tuple[int, int]:
    time.sleep(0.05 if k == 0 else 0.0)  # the first is the last to finish
    return k, os.getpid()


@pytest.mark.usefixtures("two")
def test_results_come_in_order_from_other_processes() -> None:
    results = list(in_parallel([lambda k=k: _slow(k) for k in range(7)]))  # type: ignore[misc]
    assert [k for k, _ in results] == list(range(7))
    assert os.getpid() not in {pid for _, pid in results}


def test_one_cpu_or_a_second_thread_means_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "usable_cpus", lambda: 1)
    assert list(in_parallel([os.getpid, os.getpid])) == [os.getpid()] * 2
    monkeypatch.setattr(parallel, "usable_cpus", lambda: 2)
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert list(in_parallel([os.getpid, os.getpid])) == [os.getpid()] * 2
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_task_beside_gives_its_result_when_asked(cpus: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parallel, "usable_cpus", lambda: cpus)
    result = beside(lambda: ((tmp_path / "began").touch(), os.getpid())[1])
    deadline = time.monotonic() + 60
    while cpus == 2 and not (tmp_path / "began").exists():
        assert time.monotonic() < deadline, "it waits until it is asked"
        time.sleep(0.01)
    assert (result() == os.getpid()) == (cpus == 1)


def _warns() -> int:
    warnings.warn("few rows", UserWarning, stacklevel=1)
    return 3


def _fails() -> int:
    raise InputError("not these rows")


@pytest.mark.usefixtures("two")
def test_errors_and_warnings_are_those_of_the_task() -> None:
    with pytest.warns(UserWarning, match="few rows"):
        assert list(in_parallel([_warns, int])) == [3, 0]
    with pytest.raises(InputError, match="not these rows"):
        list(in_parallel([int, _fails]))


class _OddError(Exception):
    """Cannot be made again from what pickle keeps of it."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(f"{what} at row {row}")


def _fails_oddly() -> int:
    raise _OddError(7, "nothing")


@pytest.mark.usefixtures("two")
def test_an_error_that_cannot_be_sent_keeps_its_words() -> None:
    with pytest.raises(RuntimeError, match="_OddError: nothing at row 7"):
        list(in_parallel([int, _fails_oddly]))


def _dies() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


@pytest.mark.usefixtures("two")
def test_a_process_that_is_ended_from_outside_is_noticed() -> None:
    with pytest.raises(MemoryError, match="ended from outside"):
        list(in_parallel([_dies, _dies]))


@pytest.mark.usefixtures("two")
def test_large_results_fit_through_and_leaving_early_leaves_nobody_behind() -> None:
    results = in_parallel([lambda: np.arange(10**6)] * 4)
    assert next(results)[-1] == 10**6 - 1
    results.close()  # type: ignore[attr-defined]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.usefixtures("two")
def test_tensors_outlive_the_copy_that_made_them() -> None:
    results = in_parallel([lambda k=k: torch.full((1000,), k) for k in range(4)])  # type: ignore[misc]
    time.sleep(0.5)  # the copies are done and gone before anyone looks
    assert [int(tensor.sum()) for tensor in results] == [0, 1000, 2000, 3000]


_KILLED = """
import os, sys, time
from pathlib import Path
from punce.training import parallel
parallel.usable_cpus = lambda: 2
def note(k):
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(0.2)
list(parallel.in_parallel([lambda k=k: note(k) for k in range(100)]))
"""


def test_a_killed_process_leaves_no_copies_behind(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", _KILLED, str(tmp_path)])
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.wait()
    copies = [int(file.name) for file in tmp_path.iterdir()]
    while any(Path(f"/proc/{pid}").exists() and "Z" not in _state(pid) for pid in copies):
        assert time.monotonic() < deadline, "a copy goes on without its parent"
        time.sleep(0.05)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0]
    except OSError:
        return "Z"

"""A Dask cluster of real worker processes on this machine: workers are killed in the middle of cells."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from punce.errors import InputError
from punce.experiments.pools import Cluster, InProcess
from punce.experiments.runner import run_cells
from punce.experiments.store import ResultStore
from tests.experiments.test_runner import holders
from tests.experiments.tiny import Told, cells, numbers

distributed = pytest.importorskip("distributed", reason="the extra punce[cluster] is not installed")
KILLS = 2


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as started:
        yield started


class Killer(threading.Thread):
    """Kills a worker that is at a cell, so many times."""

    def __init__(self, results: Path) -> None:
        super().__init__(daemon=True)
        self.killed: list[int] = []
        self._locks = results / "work" / "locks"

    def run(self) -> None:
        until = time.monotonic() + 120
        while len(self.killed) < KILLS and time.monotonic() < until:
            for pid in holders(os.getpid(), self._locks):
                if pid not in self.killed and len(self.killed) < KILLS:
                    os.kill(pid, signal.SIGKILL)
                    self.killed.append(pid)
            time.sleep(0.01)


def test_killed_workers_lose_nothing_and_the_numbers_are_those_of_one_process(cluster: object, tmp_path: Path) -> None:
    results, store = tmp_path / "cluster", ResultStore(tmp_path / "cluster", "smoke")
    (killer := Killer(results)).start()
    pool = Cluster(cluster.scheduler_address)  # type: ignore[attr-defined]
    summary = run_cells(cells(), store, pool, told := Told())
    killer.join()
    assert len(killer.killed) == KILLS
    assert not summary.failed
    assert Counter(name for name, _ in told.ends) == Counter(cell.name for cell in cells())
    assert {status for _, status in told.ends} == {"done"}
    run_cells(cells(), ResultStore(tmp_path / "alone", "smoke"), InProcess(), Told())
    assert numbers(results, cells()) == numbers(tmp_path / "alone", cells())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "tcp://127.0.0.1:port", "nonsense://here"])
def test_a_scheduler_that_is_not_there_is_one_clear_error(address: str) -> None:
    with pytest.raises(InputError, match=f"no Dask scheduler answers at {address}"):
        Cluster(address, patience=1)

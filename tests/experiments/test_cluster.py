"""A Dask cluster of real worker processes on this machine: workers are killed in the middle of cells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from punce.errors import InputError
from punce.experiments.pools import Cluster, InProcess
from punce.experiments.runner import run_cells
from punce.experiments.store import ResultStore
from tests.experiments.test_runner import PATIENCE, holders, wait_until
from tests.experiments.tiny import SMOKE, Told, cells, numbers
from tests.killer import Killer

distributed = pytest.importorskip("distributed", reason="the extra punce[cluster] is not installed")
KILLS = 2


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as started:
        yield started


@pytest.mark.slow
@pytest.mark.faults
def test_killed_workers_lose_nothing_and_the_numbers_are_those_of_one_process(cluster: object, tmp_path: Path) -> None:
    results, store = tmp_path / "cluster", ResultStore(tmp_path / "cluster", "smoke")
    Cluster(cluster.scheduler_address).close(now=True)  # type: ignore[attr-defined] # as Ctrl-C ends a run
    (killer := Killer(lambda: holders(os.getpid(), results / "work" / "locks"), KILLS)).start()
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
@pytest.mark.faults
def test_a_scheduler_that_is_not_there_is_one_clear_error(address: str) -> None:
    with pytest.raises(InputError, match=f"no Dask scheduler answers at {address}"):
        Cluster(address, patience=1)


# The command line, with a scheduler and workers that were started by hand --------------------------------------------


@contextmanager
def running(log: Path, *line: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own, with its words in a file; ended by its id whatever happens."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("wb") as words, subprocess.Popen(line, stdout=words, stderr=words, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where a scheduler with two workers listens, as docs/training.md starts them."""
    dask, told = [sys.executable, "-m", "dask"], tmp_path / "scheduler.json"
    with ExitStack() as stack:
        line = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(told)]
        stack.enter_context(running(tmp_path / "scheduler.log", *dask, *line))
        wait_until(lambda: told.exists() and told.read_text().endswith("}"), "the scheduler starts")
        where = str(json.loads(told.read_text())["address"])
        for number in range(2):
            line = ["worker", where, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", f"hand-{number}"]
            stack.enter_context(running(tmp_path / f"worker-{number}.log", *dask, *line))
        yield where


@pytest.mark.slow
def test_the_command_has_its_cells_done_by_the_workers_of_a_cluster(address: str, tmp_path: Path) -> None:
    results = tmp_path / "results"
    options = ["--only", "1k", "--only", "mnist", "--only", "punce, infonce", "--results", str(results)]
    line = [sys.executable, "-m", "punce", "reproduce", "table1", *options, "--cluster", address]
    with running(tmp_path / "punce.log", *line) as command:
        assert command.wait(2 * PATIENCE) == 0, (tmp_path / "punce.log").read_text()
    asked = [SMOKE.contrastive("mnist", "mlp", loss, "1k", seed) for loss in ("punce", "infonce") for seed in (0, 1)]
    assert len(list((results / "smoke").glob("*.json"))) == len(asked)
    run_cells(asked, ResultStore(tmp_path / "alone", "smoke"), InProcess(), Told())
    assert numbers(results, asked) == numbers(tmp_path / "alone", asked)
    assert (results / "smoke" / "report" / "index.html").exists()

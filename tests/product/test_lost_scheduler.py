"""A Dask scheduler that is killed, and one that comes back at the same address: real processes on 127.0.0.1."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen

import pytest

from punce.product.predict_parts import predict_parts
from tests.experiments.test_cluster import running
from tests.experiments.test_runner import PATIENCE, wait_until
from tests.models.stored.write import HERE, labels, table
from tests.product.parts import contents
from tests.runs.killing import free_port

pytest.importorskip("distributed", reason="the extra punce[cluster] is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.faults]
PARTS, ROWS, BATCH = 12, 1_000, 100
_SYSTEM, _BAD_INPUT = 3, 2


class Dask:
    """A scheduler with workers at an address that stays; every process is ended by its id."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack, self._port, self._started = folder, stack, free_port(), 0
        self.address = f"tcp://127.0.0.1:{self._port}"
        self.scheduler = self.begin()

    def begin(self, workers: int = 0) -> Popen[bytes]:
        """The scheduler, and so many workers."""
        line = ["scheduler", "--host", "127.0.0.1", "--port", str(self._port), "--no-dashboard"]
        self.scheduler = self._start(*line)
        wait_until(lambda: "Scheduler at" in self._said(0), "the scheduler starts")
        self.add(workers)
        return self.scheduler

    def add(self, workers: int) -> None:
        """More workers; they end by themselves when they lose the scheduler."""
        for _ in range(workers):
            options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60"]
            self._start("worker", self.address, *options, "--local-directory", str(self._folder))

    def kill(self) -> None:
        """As a machine that goes down: no word to anybody."""
        self.scheduler.send_signal(signal.SIGKILL)
        self.scheduler.wait(PATIENCE)

    def _start(self, *line: str) -> Popen[bytes]:
        self._started += 1
        log = self._folder / f"dask-{self._started}.log"
        return self._stack.enter_context(running(log, sys.executable, "-m", "dask", *line))

    def _said(self, back: int) -> str:
        return (self._folder / f"dask-{self._started - back}.log").read_text()


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Dask]:
    (tmp_path / "dask").mkdir()
    with ExitStack() as stack:
        yield Dask(tmp_path / "dask", stack)


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    folder = tmp_path / "parts"
    folder.mkdir()
    for k in range(PARTS):
        rows = table((k + 1) * ROWS).iloc[k * ROWS :]
        rows.assign(label=labels(ROWS)).to_parquet(folder / f"part-{k:02}.parquet", index=False)
    return folder


class Command:
    """``punce ARGUMENTS`` with its words in a file."""

    def __init__(self, log: Path, stack: ExitStack, *arguments: object) -> None:
        self._log = log
        self.process = stack.enter_context(running(log, sys.executable, "-m", "punce", *map(str, arguments)))

    def ended(self) -> tuple[int, list[str]]:
        """Exit code and lines."""
        return self.process.wait(PATIENCE), self._log.read_text().strip().splitlines()


def one_line(ended: tuple[int, list[str]], code: int, words: str) -> None:
    found, lines = ended
    assert found == code, lines
    assert len(lines) == 1, lines
    assert lines[0].startswith("punce: ")
    assert words in lines[0]


@pytest.mark.parametrize("returns", [False, True], ids=["gone", "restarted at once"])
def test_a_scheduler_that_is_killed_loses_no_finished_part(
    dask: Dask, parts: Path, tmp_path: Path, returns: bool
) -> None:
    out, alone = tmp_path / "out", tmp_path / "alone"
    asked = ["predict", HERE / "table", parts, "--out", out, "--batch-rows", BATCH, "--cluster", dask.address]
    dask.add(2)
    with ExitStack() as stack:
        command = Command(tmp_path / "first.log", stack, *asked)
        wait_until(lambda: any(out.glob("*.parquet")), "a part is finished")
        dask.kill()
        if returns:
            dask.begin(workers=2)
        one_line(command.ended(), _SYSTEM, "the Dask scheduler was lost")
    kept = contents_of_parts(out)
    assert 0 < len(kept) < PARTS
    if not returns:
        with ExitStack() as stack:
            one_line(Command(tmp_path / "gone.log", stack, *asked).ended(), _BAD_INPUT, "no Dask scheduler answers")
        dask.begin(workers=2)
    with ExitStack() as stack:
        code, lines = Command(tmp_path / "again.log", stack, *asked).ended()
    assert code == 0, lines
    assert "of them were done before" in " ".join(lines)
    predict_parts(HERE / "table", parts, alone, batch_rows=BATCH)
    assert contents(out) == contents(alone)  # and no temporary file is left
    assert kept.items() <= contents(out).items()


def contents_of_parts(out: Path) -> dict[str, bytes]:
    return {name: content for name, content in contents(out).items() if not name.startswith(".")}


def test_a_scheduler_that_is_killed_under_punce_prior_is_one_line(dask: Dask, parts: Path, tmp_path: Path) -> None:
    """There is no worker yet, so the command waits: the kill comes while the rows are asked for."""
    more = ["--label", "label", "--method", "bbe", "--max-rows", "1500", "--drop", "day"]
    with ExitStack() as stack:
        asked = ["prior", parts, *more, "--out", tmp_path / "far.json", "--cluster", dask.address]
        command = Command(tmp_path / "first.log", stack, *asked)
        wait_until(lambda: "Receive client connection" in dask._said(0), "the command connects")
        dask.kill()
        one_line(command.ended(), _SYSTEM, "the Dask scheduler was lost")
    assert not (tmp_path / "far.json").exists()

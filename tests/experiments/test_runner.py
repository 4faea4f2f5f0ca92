"""The runner: every cell once, whoever dies, and no more tries than agreed."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from pathlib import Path
from typing import IO

import psutil
import pytest

from punce.errors import InputError, WriteError
from punce.experiments import attempt as attempt_module
from punce.experiments.attempt import Report, Task, attempt
from punce.experiments.cell import Cell
from punce.experiments.pools import InProcess
from punce.experiments.run_cell import Outcome, run_cell
from punce.experiments.runner import EXIT_TERMINATED, RunnerError, run_cells
from punce.experiments.store import ResultStore
from punce.storage.checkpoint import CheckpointWriteError
from tests.experiments.tiny import Told, cells, infonce, joint, numbers, punce

PATIENCE = 150.0  # starting Python with torch takes a minute where ten processes share two cores


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The numbers of all cells, made one after the other in this process."""
    results = tmp_path_factory.mktemp("undisturbed")
    summary = run_cells(cells(), ResultStore(results, "smoke"), InProcess(), Told())
    assert not summary.failed
    return numbers(results, cells())


def start(results: Path, *options: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "tests.experiments.tiny", str(results), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment, cwd=Path(__file__).parents[2])


def test_cells_run_in_another_thread_too(tmp_path: Path) -> None:
    """A notebook server or a test runner may call from one; Python gives signals to the main thread only."""
    done: list[Cell] = []

    def work() -> None:
        done.extend(run_cells([joint()], ResultStore(tmp_path, "smoke"), InProcess(), Told()).done)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE)
    assert done == [joint()]


def lines(stream: IO[str] | None) -> list[tuple[str, str]]:
    assert stream is not None
    return [tuple(json.loads(line)) for line in stream]


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until, f"{what}: not within {PATIENCE:.0f} s"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# Several runners, and killed ones ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.faults
def test_two_runners_on_one_folder_share_the_cells_between_them(tmp_path: Path, undisturbed: dict[str, object]) -> None:
    with start(tmp_path) as first, start(tmp_path) as second:
        said = [lines(first.stdout), lines(second.stdout)]
    assert (first.returncode, second.returncode) == (0, 0)
    done = Counter(name for part in said for status, name in part if status == "done")
    assert done == Counter(cell.name for cell in cells())  # each by one runner
    assert all({name for _, name in part} == set(done) for part in said)  # and both know of all
    assert numbers(tmp_path, cells()) == undisturbed
    assert attempts(tmp_path) == {1}


def attempts(results: Path) -> set[int]:
    found = [ResultStore(results, "smoke").read(cell) for cell in cells()]
    return {record.attempts for record in found if record is not None}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.faults
def test_a_killed_worker_is_replaced_and_a_killed_runner_loses_nothing(
    tmp_path: Path, undisturbed: dict[str, object]
) -> None:
    store, locks = ResultStore(tmp_path, "smoke"), tmp_path / "work" / "locks"
    with start(tmp_path, "--jobs", "2") as runner:
        wait_until(lambda: bool(holders(runner.pid, locks)), "a worker at a cell")
        os.kill(holders(runner.pid, locks)[0], signal.SIGKILL)
        results = set(store.folder.glob("*.json"))
        wait_until(lambda: set(store.folder.glob("*.json")) > results, "results after a worker died")
        workers = [child.pid for child in psutil.Process(runner.pid).children(recursive=True)]
        runner.send_signal(signal.SIGKILL)
    before = {path.name: path.stat().st_mtime_ns for path in store.folder.glob("*.json")}
    assert 0 < len(before) < len(cells())
    wait_until(lambda: all(map(is_gone, workers)), "the workers of a killed runner end")
    summary = run_cells(cells(), store, InProcess(), told := Told())
    assert not summary.failed
    assert {status for name, status in told.ends if f"{name}.json" in before} == {"there"}
    assert all((store.folder / name).stat().st_mtime_ns == when for name, when in before.items())
    assert numbers(tmp_path, cells()) == undisturbed


@pytest.mark.slow
@pytest.mark.faults
def test_sigterm_ends_the_workers_and_says_so(tmp_path: Path) -> None:
    with start(tmp_path, "--jobs", "2") as runner:
        wait_until(lambda: bool(holders(runner.pid, tmp_path / "work" / "locks")), "a worker at a cell")
        workers = [child.pid for child in psutil.Process(runner.pid).children(recursive=True)]
        runner.send_signal(signal.SIGTERM)
        assert runner.wait(PATIENCE) == EXIT_TERMINATED
    wait_until(lambda: all(map(is_gone, workers)), "the workers end")


def holders(runner: int, locks: Path) -> list[int]:
    """Workers that have a cell's lock open."""
    found = []
    for child in psutil.Process(runner).children(recursive=True):
        try:
            if any(Path(file.path).parent == locks for file in child.open_files()):
                found.append(child.pid)
        except psutil.Error:
            continue
    return found


# Failures ----------------------------------------------------------------------------------------------------------


def failing(times: int, error: Exception) -> Callable[..., Outcome]:
    """A run_cell that raises so many times and then succeeds."""
    left = [times]

    def run(cell: Cell, *_: object) -> Outcome:
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return Outcome({"test_accuracy": 90.0})

    return run


def test_a_failure_is_recorded_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punce.experiments.run_cell.run_cell", failing(1, MemoryError("7 GB")))
    store = ResultStore(tmp_path, "smoke")
    summary = run_cells([joint()], store, InProcess(), Told(), most_attempts=2)
    record = store.read(joint())
    assert (summary.done, summary.failed) == ([joint()], [])
    assert record is not None
    assert (record.status, record.attempts, record.error) == ("done", 2, None)


def test_tries_are_bounded_and_the_error_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punce.experiments.run_cell.run_cell", failing(99, MemoryError("7 GB")))
    store, told = ResultStore(tmp_path, "smoke"), Told()
    summary = run_cells([joint(), joint("upu")], store, InProcess(), told, most_attempts=3)
    assert [error for _, error in summary.failed] == ["MemoryError: 7 GB"] * 2
    record = store.read(joint())
    assert record is not None
    assert (record.status, record.attempts, record.error) == ("failed", 3, "MemoryError: 7 GB")
    assert told.ends == [(joint().name, "failed"), (joint("upu").name, "failed")]


def test_wrong_input_is_not_tried_again_but_does_not_stop_the_others(tmp_path: Path) -> None:
    wrong = replace(joint(), data=replace(joint().data, n_labelled=10_000))
    store = ResultStore(tmp_path, "smoke")
    summary = run_cells([wrong, joint()], store, InProcess(), Told(), most_attempts=5)
    record = store.read(wrong)
    assert record is not None
    assert record.attempts == 1
    assert "cannot label 10000 rows" in str(record.error)
    assert summary.done == [joint()]


def test_a_repeated_run_tries_failed_cells_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ResultStore(tmp_path, "smoke")
    with monkeypatch.context() as patched:
        patched.setattr("punce.experiments.run_cell.run_cell", failing(99, OSError("disk full")))
        run_cells([joint()], store, InProcess(), Told(), most_attempts=1)
    summary = run_cells([joint()], store, InProcess(), Told())
    assert summary.done == [joint()]


def test_a_late_failure_never_replaces_a_result(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, "smoke")
    run_cells([joint()], store, InProcess(), Told())
    before = store.read(joint())
    attempt_module.record_failure(store, joint(), "its worker died")
    assert store.read(joint()) == before


@pytest.mark.faults
def test_a_failure_is_not_recorded_over_the_head_of_another_runner(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, "smoke")
    with store.claim(joint()):
        attempt_module.record_failure(store, joint(), "its worker died")
    assert store.read(joint()) is None


# Disks, locks and numbers that fail: the other cells go on --------------------------------------------------------

THREE = [joint("pn"), joint("upu"), joint("nnpu")]


def accuracies(**of_risk: float) -> Callable[..., Outcome]:
    """A run_cell with these accuracies, else 90."""
    return lambda cell, *_: Outcome({"test_accuracy": of_risk.get(cell.transfer.risk or "", 90.0)})


def refusing(names: set[str]) -> Callable[[Path, str], None]:
    """A write_text on a disk that is full when a cell of these names is written."""
    from punce.storage.files import write_text

    def write(path: Path, text: str) -> None:
        if path.stem in names:
            raise WriteError(f"cannot write {path}: No space left on device")
        write_text(path, text)

    return write


@pytest.mark.faults
def test_a_disk_that_is_full_for_a_while_costs_one_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, full = ResultStore(tmp_path, "smoke"), {THREE[0].name}
    monkeypatch.setattr("punce.experiments.run_cell.run_cell", accuracies())
    monkeypatch.setattr("punce.experiments.store.write_text", refusing(full))

    class Tidy(Told):
        def __call__(self, cell: Cell, report: Report) -> None:
            super().__call__(cell, report)
            full.clear()

    summary = run_cells(THREE, store, InProcess(), Tidy(), most_attempts=2)
    assert summary.done == [*THREE[1:], THREE[0]]
    assert not summary.failed


@pytest.mark.faults
def test_a_disk_that_stays_full_fails_its_cells_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, told = ResultStore(tmp_path, "smoke"), Told()
    monkeypatch.setattr("punce.experiments.run_cell.run_cell", accuracies())
    monkeypatch.setattr("punce.experiments.store.write_text", refusing({THREE[0].name}))
    summary = run_cells(THREE, store, InProcess(), told, most_attempts=2)
    assert summary.done == THREE[1:]
    ((cell, error),) = summary.failed
    assert (cell, told.ends[-1]) == (THREE[0], (THREE[0].name, "failed"))
    assert "No space left" in error
    assert store.read(THREE[0]) is None  # that it failed had no room either


@pytest.mark.faults
def test_a_checkpoint_that_finds_no_room_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punce.experiments.run_cell.run_cell", failing(1, WriteError("no room for a checkpoint")))
    assert run_cells([joint()], ResultStore(tmp_path, "smoke"), InProcess(), Told()).done == [joint()]


def test_a_number_that_is_not_finite_fails_its_cell_once_and_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResultStore(tmp_path, "smoke")
    monkeypatch.setattr("punce.experiments.run_cell.run_cell", accuracies(upu=float("nan")))
    summary = run_cells(THREE, store, InProcess(), Told(), most_attempts=5)
    assert [cell for cell, _ in summary.failed] == [joint("upu")]
    record = store.read(joint("upu"))
    assert record is not None
    assert (record.status, record.attempts) == ("failed", 1)
    assert "not finite in test_accuracy" in str(record.error)


@pytest.mark.faults
def test_no_locks_to_be_had_fails_cells_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    monkeypatch.setattr("punce.experiments.run_cell.run_cell", accuracies())
    store = ResultStore(tmp_path, "smoke")
    summary = run_cells(THREE, store, InProcess(), Told())
    assert {cell for cell, _ in summary.failed} == set(THREE)
    assert all("No locks available" in error for _, error in summary.failed)
    assert not store.folder.exists()  # what is not claimed is not written


# Checkpoints that were left ----------------------------------------------------------------------------------------


def test_checkpoints_of_another_configuration_are_dropped_and_the_cell_is_done(tmp_path: Path) -> None:
    """As an older version of the code leaves them behind: same cell, other defaults."""
    store = ResultStore(tmp_path, "smoke")
    slower = replace(joint().transfer.config, lr=2e-3)  # type: ignore[arg-type]
    other = replace(joint(), transfer=replace(joint().transfer, config=slower))
    run_cell(other, tmp_path / "encoders", store.work_folder(joint()))
    with pytest.raises(InputError, match="of another configuration"):
        run_cell(joint(), tmp_path / "encoders", store.work_folder(joint()))
    assert attempt(Task(joint(), tmp_path, "smoke")).status == "done"
    assert not store.work_folder(joint()).exists()
    assert numbers(tmp_path, [joint()])[joint().name] == run_cell(joint(), tmp_path / "encoders").result


@pytest.mark.filterwarnings("ignore::punce.storage.checkpoint.CheckpointWarning")
@pytest.mark.faults
def test_checkpoints_that_cannot_be_read_are_dropped_and_the_cell_is_done(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, "smoke")
    run_cell(joint(), tmp_path / "encoders", store.work_folder(joint()))
    for file in store.work_folder(joint()).rglob("tensors.safetensors"):
        file.write_bytes(b"")
    assert attempt(Task(joint(), tmp_path, "smoke")).status == "done"


@pytest.mark.faults
def test_a_full_disk_drops_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ResultStore(tmp_path, "smoke")
    (store.work_folder(joint()) / "kept").mkdir(parents=True)
    monkeypatch.setattr("punce.experiments.run_cell.run_cell", failing(1, CheckpointWriteError("full")))
    assert attempt(Task(joint(), tmp_path, "smoke")).may_pass
    assert (store.work_folder(joint()) / "kept").exists()


# A pool that does what a test wants --------------------------------------------------------------------------------


class Script(InProcess):
    """Two slots; answers each submission at once, with the next line of the cell's script."""

    lost: tuple[type[BaseException], ...] = (ConnectionError,)

    @property
    def slots(self) -> int:
        return 2

    def __init__(self, script: dict[Cell, list[Report | Exception]]) -> None:
        self.script = script
        self.log: list[Cell] = []
        self.pending: list[Future[Report]] = []

    def submit(self, task: Task) -> Future[Report]:
        self.log.append(task.cell)
        future: Future[Report] = Future()
        answer = self.script[task.cell].pop(0)
        future.set_exception(answer) if isinstance(answer, Exception) else future.set_result(answer)
        return future


@pytest.mark.faults
def test_sigterm_closes_the_pool_at_once_and_is_the_exit_code(tmp_path: Path) -> None:
    closed: list[bool] = []

    class Terminated(Script):
        def submit(self, task: Task) -> Future[Report]:
            os.kill(os.getpid(), signal.SIGTERM)
            return super().submit(task)

        def close(self, *, now: bool) -> None:
            closed.append(now)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as left:
        run_cells([joint()], ResultStore(tmp_path, "smoke"), Terminated({joint(): [Report("done")]}), Told())
    assert (left.value.code, closed) == (EXIT_TERMINATED, [True])
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.fixture
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punce.experiments.runner._ASK_AGAIN", 0.01)


@pytest.mark.usefixtures("_no_waiting")
def test_a_busy_cell_is_asked_for_again_until_it_is_there(tmp_path: Path) -> None:
    busy, there = Report("busy"), Report("there")
    pool = Script({joint(): [busy, busy, there], joint("upu"): [Report("done")]})
    summary = run_cells([joint(), joint("upu")], ResultStore(tmp_path, "smoke"), pool, Told())
    assert set(summary.done) == {joint(), joint("upu")}


@pytest.mark.faults
def test_a_cell_that_kills_its_worker_is_given_up_and_the_one_beside_it_is_not(tmp_path: Path) -> None:
    died, store = ConnectionError("worker gone"), ResultStore(tmp_path, "smoke")
    pool = Script({joint(): [died, died, died], joint("upu"): [died, Report("done")]})
    summary = run_cells([joint(), joint("upu")], store, pool, Told(), most_attempts=2)
    assert summary.done == [joint("upu")]
    ((cell, error),) = summary.failed
    assert cell == joint()
    assert "died 3 times" in error
    record = store.read(joint())
    assert record is not None
    assert record.status == "failed"


def test_no_worker_is_made_to_wait_for_an_encoder_that_another_is_making(tmp_path: Path) -> None:
    class Slow(Script):
        def submit(self, task: Task) -> Future[Report]:
            self.log.append(task.cell)
            self.pending.append(Future())
            if len(self.log) == 2:  # both slots are full: answer them, and everything after at once
                for future in self.pending:
                    future.set_result(Report("done"))
            elif len(self.log) > 2:
                self.pending[-1].set_result(Report("done"))
            return self.pending[-1]

    pool = Slow({})
    order = [infonce("1k"), infonce("3k"), punce()]
    run_cells(order, ResultStore(tmp_path, "smoke"), pool, Told())
    assert pool.log == [infonce("1k"), punce(), infonce("3k")]


@pytest.mark.faults
def test_a_scheduler_that_goes_away_is_one_clear_error(tmp_path: Path) -> None:
    pool = Script({joint(): [CancelledError()]})
    with pytest.raises(RunnerError, match="the same command does the rest"):
        run_cells([joint()], ResultStore(tmp_path, "smoke"), pool, Told())


def test_a_report_that_cannot_be_carried_is_a_failure_of_its_cell_alone(tmp_path: Path) -> None:
    pool = Script(
        {joint(): [TypeError("cannot unpickle"), TypeError("cannot unpickle")], joint("upu"): [Report("done")]}
    )
    summary = run_cells([joint(), joint("upu")], ResultStore(tmp_path, "smoke"), pool, Told(), most_attempts=2)
    assert summary.done == [joint("upu")]
    assert summary.failed == [(joint(), "TypeError: cannot unpickle")]


def test_cells_asked_for_twice_are_done_once(tmp_path: Path) -> None:
    pool = Script({joint(): [Report("done")]})
    assert run_cells([joint(), joint()], ResultStore(tmp_path, "smoke"), pool, Told()).done == [joint()]

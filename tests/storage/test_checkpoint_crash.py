"""Checkpoints when the disk is full and when the process is killed while it saves."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError

from punce.errors import PunceError
from punce.storage import tensor_folder
from punce.storage.checkpoint import CheckpointError, CheckpointStore
from tests.runs.conftest import small_disk
from tests.storage.test_checkpoint import content, store, visible

pytestmark = pytest.mark.faults

ROOT = Path(__file__).resolve().parents[2]
__all__ = ["small_disk", "store"]  # fixtures: a file system of 1 MB, and two checkpoints


@pytest.mark.parametrize(
    "failure",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
        SafetensorError("Error while serializing: I/O error: Disk quota exceeded (os error 122)"),
    ],
    ids=["ENOSPC", "EDQUOT", "safetensors-ENOSPC", "safetensors-EDQUOT"],
)
@pytest.mark.parametrize("where", ["save_file", "sync"])
def test_a_full_disk_is_explained_and_leaves_the_rest_intact(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch, failure: Exception, where: str
) -> None:
    before = visible(store)

    def fail(*args: Any) -> None:
        raise failure

    monkeypatch.setattr(tensor_folder, where, fail)
    message = r"checkpoint of step 3 \(4\.0 MB\) .*(No space|quota).* are free .*the last is checkpoint-000002-step-2"
    with pytest.raises(PunceError, match=message):
        store.save(3, *content(3, size=1_000_000))
    monkeypatch.undo()
    assert visible(store) == before
    assert store.load_latest().step == 2  # type: ignore[union-attr]


def test_other_write_errors_are_explained(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(tensor_folder, "save_file", fail)
    with pytest.raises(CheckpointError, match=r"could not write the checkpoint of step 3 .*Input/output error"):
        store.save(3, *content(3))


def test_two_runs_in_one_folder_are_suspected(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one took the half-written checkpoint for what a killed run left."""

    def save_after_the_other(tensors: dict[str, torch.Tensor], path: Path) -> None:
        monkeypatch.undo()
        CheckpointStore(store.folder).save(3, *content(3))
        tensor_folder.save_file(tensors, path)

    monkeypatch.setattr(tensor_folder, "save_file", save_after_the_other)
    with pytest.raises(CheckpointError, match=r"Does another run write to this folder\?"):
        store.save(3, *content(3))


def test_ctrl_c_leaves_no_half_checkpoint(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    before = visible(store)

    def interrupt(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tensor_folder, "_listed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.save(3, *content(3))
    assert visible(store) == before


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot make the checkpoint folder"):
        CheckpointStore(tmp_path / "file" / "run")


def test_a_disk_that_really_fills_up(small_disk: Path) -> None:
    store = CheckpointStore(small_disk / "run")
    for step in (1, 2):
        store.save(step, *content(step, size=100_000))  # 0.4 MB each: the third does not fit
    with pytest.raises(PunceError, match=r"checkpoint of step 3 \(0\.4 MB\) .*No space.*; 0\.\d MB are free"):
        store.save(3, *content(3, size=100_000))
    assert visible(store) == ["checkpoint-000001-step-1", "checkpoint-000002-step-2"]
    assert store.load_latest().step == 2  # type: ignore[union-attr]
    store.save(3, *content(3, size=1000))  # and goes on when there is room
    assert store.load_latest().step == 3  # type: ignore[union-attr]


# Temporary folders


def test_the_next_save_removes_what_killed_runs_left_but_opening_removes_nothing(
    store: CheckpointStore, tmp_path: Path
) -> None:
    left, link = store.folder / ".tmp-host-1-0123abcd", store.folder / ".tmp-link"
    left.mkdir()
    (left / "tensors.safetensors").write_bytes(b"half")
    link.symlink_to(tmp_path)
    again = CheckpointStore(store.folder)
    assert again.load_latest().step == 2  # type: ignore[union-attr]
    assert left.exists()  # it may be a save in progress, and this a reader
    again.save(3, *content(3))
    assert not left.exists()
    assert link.is_symlink()


def test_a_second_store_leaves_a_save_in_progress_alone(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tensor_folder.save_file

    def save_while_another_opens(*args: Any) -> None:
        assert CheckpointStore(store.folder).load_latest().step == 2  # type: ignore[union-attr]
        real(*args)

    monkeypatch.setattr(tensor_folder, "save_file", save_while_another_opens)
    store.save(3, *content(3))
    assert store.load_latest().step == 3  # type: ignore[union-attr]


# Power loss


def test_everything_is_flushed_before_the_rename_and_the_rename_after(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill -9 leaves the page cache alone; only the order of flushes protects from a loss of power."""
    events: list[str] = []
    sync, rename = os.fsync, Path.rename

    def record_sync(descriptor: int) -> None:
        events.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        sync(descriptor)

    def record_rename(self: Path, target: Path) -> Path:
        events.append(f"rename to {target.name}")
        return rename(self, target)

    if not Path("/proc/self/fd").exists():
        pytest.skip("names of open files are read from /proc")
    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(Path, "rename", record_rename)
    store.save(3, *content(3))
    published = events.index("rename to checkpoint-000003-step-3")
    assert set(events[: published - 1]) == {"tensors.safetensors", "state.json", "manifest.json"}
    assert events[published - 1].startswith(".tmp-")
    assert events[published + 1] == store.folder.name
    assert events[published + 2].startswith("rename to .tmp-")  # the oldest goes only now


# kill -9


def test_runs_killed_before_pruning_do_not_add_up(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    prune = CheckpointStore._prune
    for step in (3, 4, 5):
        calls: list[int] = []

        def killed_at_the_second(self: CheckpointStore, calls: list[int] = calls) -> None:
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
            prune(self)

        monkeypatch.setattr(CheckpointStore, "_prune", killed_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            store.save(step, *content(step))
        assert len(store.names()) == 3


def save_for_ever(folder: Path) -> None:
    """What the killed process does: resume, then save and save."""
    store = CheckpointStore(folder)
    latest = store.load_latest()
    step = 0 if latest is None else latest.step
    while True:
        step += 1
        store.save(step, *content(step, size=100_000))


def wait_for_a_new_checkpoint(folder: Path) -> None:
    before, patience = set(folder.glob("checkpoint-*")), time.monotonic() + 20.0
    while time.monotonic() < patience:
        if set(folder.glob("checkpoint-*")) - before:
            return
        time.sleep(0.001)


def kill_many_times(folder: Path, kills: int) -> None:
    """Fork, let it save for a random moment, kill -9, check; prints how often a save was cut short."""
    rng, last, cut_short = random.Random(0), 0, 0
    warnings.simplefilter("error")
    began = time.perf_counter()
    CheckpointStore(folder).save(0, *content(0, size=100_000))
    duration = time.perf_counter() - began
    for kill in range(kills):
        child = os.fork()
        if child == 0:
            save_for_ever(folder)
        if kill % 2:  # let every other one get somewhere, however slow the machine
            wait_for_a_new_checkpoint(folder)
        time.sleep(rng.uniform(0.0, 3 * duration))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        cut_short += any(path.name.startswith(".tmp-") for path in folder.iterdir())
        store = CheckpointStore(folder)
        latest = store.load_latest()
        step = 0 if latest is None else latest.step
        assert step >= last, (step, last)
        if latest is not None:
            assert latest.state["step"] == step
            assert latest.tensors["w"].tolist() == [float(step)] * 100_000
        assert sum(path.name.startswith(".tmp-") for path in folder.iterdir()) <= 1  # the next save removes it
        assert len(store.names()) <= 3  # two, and one more if it died between renaming and pruning
        last = step
    sys.stdout.write(json.dumps({"steps": last, "cut_short": cut_short}))


def test_kill_9_at_any_moment_leaves_a_loadable_checkpoint(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.storage.test_checkpoint_crash", str(tmp_path), "40"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["steps"] >= 20  # it made progress between kills
    assert outcome["cut_short"] >= 5  # and the kills did hit saves


if __name__ == "__main__":
    torch.set_num_threads(1)
    kill_many_times(Path(sys.argv[1]), int(sys.argv[2]))

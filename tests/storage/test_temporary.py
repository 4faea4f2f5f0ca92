"""What a killed process leaves behind is removed by the next that writes there, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from punce.errors import WriteError
from punce.storage.files import replacing, write_text
from punce.storage.model_file import read_model, write_model
from punce.storage.temporary import beside, held_temporary, remove_left

pytestmark = pytest.mark.faults

_DIES = """
import os, signal, sys
from pathlib import Path
from punce.storage.temporary import held_temporary
with held_temporary(Path(sys.argv[1]), is_folder=sys.argv[2] == "folder") as temporary:
    if sys.argv[3] == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    print("held", flush=True)
    sys.stdin.read()
"""


def _other(path: Path, kind: str, what: str) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-c", _DIES, str(path), kind, what]
    return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_goes_with_the_next_write(tmp_path: Path, kind: str) -> None:
    with _other(tmp_path / "a", kind, "dies") as killed:
        killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob(".a.*"))) == 1
    write_text(tmp_path / "b", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_living_process_writes_is_left_alone(tmp_path: Path, kind: str) -> None:
    with _other(tmp_path / "a", kind, "lives") as living:
        assert living.stdout is not None
        living.stdout.readline()
        write_text(tmp_path / "b", "text")
        assert len(list(tmp_path.glob(".a.*"))) == 1
        living.communicate()
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


_WRITES = """
import sys
from pathlib import Path
import numpy as np
from punce.storage.row_cache import RowCache
folder = Path(sys.argv[1])
for _ in range(10_000):
    cache = RowCache(folder)
    cache.add([b"key"], {"h": np.zeros(5_000_000)})
    cache.flush()
    for piece in folder.glob("*.safetensors"):
        piece.unlink()
"""


def _is_in_a_write(folder: Path) -> bool:
    """Whether a temporary file of safetensors itself is there."""
    return any(name.startswith(".tmp") for _, _, names in os.walk(folder) for name in names)


def _stop_in_a_write(writing: subprocess.Popen[bytes], folder: Path) -> None:
    while True:
        assert writing.poll() is None
        if _is_in_a_write(folder):
            writing.send_signal(signal.SIGSTOP)
            os.waitpid(writing.pid, os.WUNTRACED)  # until it has stopped
            if _is_in_a_write(folder):
                return
            writing.send_signal(signal.SIGCONT)  # it was renamed in between


@pytest.mark.timeout(60)
def test_a_cache_killed_within_a_write_leaves_no_file_of_safetensors_either(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _WRITES, str(tmp_path)]) as writing:
        try:
            _stop_in_a_write(writing, tmp_path)
        finally:
            writing.kill()
    assert _is_in_a_write(tmp_path)
    write_text(tmp_path / "b", "text")
    assert not [path.name for path in tmp_path.glob(".*")]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_another_process_may_sweep_between_making_and_holding(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds the temporary file, which nobody holds yet. The writer makes another one."""
    real, swept = os.open, []

    def opened(path: Path, flags: int, *mode: int, **place: int | None) -> int:
        if flags == os.O_RDONLY and not swept:  # not where it is made
            swept.append(path)
            remove_left(tmp_path)
        return real(path, flags, *mode, **place)

    monkeypatch.setattr("punce.storage.temporary.os.open", opened)
    with held_temporary(tmp_path / "a", is_folder=kind == "folder") as temporary:
        assert temporary.exists()
        assert not swept[0].exists()
    assert not list(tmp_path.iterdir())


def test_a_pipe_of_such_a_name_is_not_waited_for(tmp_path: Path) -> None:
    pipe = beside(tmp_path / "a")
    os.mkfifo(pipe)
    write_text(tmp_path / "b", "text")
    assert pipe.exists()


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    names = [".a.1.tmp", ".a.12-01234567.tmp", "a.punce-tmp", ".~lock.a#", ".a.x-01234567.punce-tmp"]
    for name in names:
        (tmp_path / name).write_text("mine")
    link = beside(tmp_path / "a")
    link.symlink_to(tmp_path / names[0])
    write_text(tmp_path / "b", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, link.name, "b"])


def test_nothing_is_left_by_a_failure(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="No space"), replacing(tmp_path / "a"):
        raise OSError(28, "No space left on device")
    with pytest.raises(KeyboardInterrupt), held_temporary(tmp_path / "a", is_folder=True):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_a_file_of_tensors_can_be_read_by_whoever_can_read_a_text(tmp_path: Path) -> None:
    write_text(tmp_path / "text", "text")
    with replacing(tmp_path / "tensors") as temporary:
        save_file({"w": torch.ones(1)}, temporary)
    assert (tmp_path / "tensors").stat().st_mode == (tmp_path / "text").stat().st_mode


def test_a_kill_between_the_two_renames_loses_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path / "model", {"w": torch.ones(1)}, {"kind": "first"})
    rename = Path.rename

    def killed(self: Path, target: Path) -> Path:
        if target.name == "model":
            os._exit(9)
        return rename(self, target)

    if (child := os.fork()) == 0:
        monkeypatch.setattr(Path, "rename", killed)
        write_model(tmp_path / "model", {"w": torch.zeros(1)}, {"kind": "second"})
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert not (tmp_path / "model").exists()
    assert read_model(tmp_path / "model")[1]["kind"] == "first"
    write_model(tmp_path / "model", {"w": torch.zeros(1)}, {"kind": "third"})
    assert [path.name for path in tmp_path.iterdir()] == ["model"]

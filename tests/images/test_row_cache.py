"""Rows kept on disk: found again, and never the reason why something fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from punce.storage import row_cache
from punce.storage.row_cache import RowCache


def _rows(n: int, start: int = 0) -> tuple[list[bytes], dict[str, np.ndarray]]:
    keys = [f"{start + k:016d}".encode() for k in range(n)]
    return keys, {"features": np.arange(start, start + n, dtype=np.float32)[:, None] * np.ones(3, np.float32)}


def test_rows_are_found_again_across_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_cache, "_ROWS", 10)
    cache = RowCache(tmp_path / "new")
    for start in range(0, 50, 5):
        cache.add(*_rows(5, start))
    cache.flush()
    again = RowCache(tmp_path / "new")
    assert all(again.get(key)["features"].tolist() == [k] * 3 for k, key in enumerate(_rows(50)[0]))
    assert b"0000000000000050" not in again
    assert len(list((tmp_path / "new").iterdir())) == 5


@pytest.mark.faults
def test_a_damaged_piece_is_left_out(tmp_path: Path) -> None:
    for start in (0, 5):
        cache = RowCache(tmp_path)
        cache.add(*_rows(5, start))
        cache.flush()
    first, second = sorted(tmp_path.iterdir())
    first.write_bytes(first.read_bytes()[:-7])
    (tmp_path / "empty.safetensors").write_bytes(b"")
    again = RowCache(tmp_path)
    assert [key in again for key in _rows(10)[0]] == [False] * 5 + [True] * 5


@pytest.mark.faults
def test_a_piece_with_a_changed_bit_is_left_out(tmp_path: Path) -> None:
    """Wrong features would pass for right ones: nothing else in the file tells."""
    for start in (0, 5):
        cache = RowCache(tmp_path)
        cache.add(*_rows(5, start))
        cache.flush()
        assert all(key in cache for key in _rows(start + 5)[0])
    first, _ = sorted(tmp_path.iterdir())
    content = bytearray(first.read_bytes())
    content[content.index(np.float32(3).tobytes())] ^= 1
    first.write_bytes(content)
    again = RowCache(tmp_path)
    assert [key in again for key in _rows(10)[0]] == [False] * 5 + [True] * 5
    again.add(*_rows(5))
    again.flush()
    repaired = RowCache(tmp_path)
    assert all(key in repaired and repaired.get(key)["features"][0] == k for k, key in enumerate(_rows(10)[0]))


def test_pieces_of_earlier_versions_are_believed(tmp_path: Path) -> None:
    keys, columns = _rows(5)
    whole = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(5, -1)
    save_file({**columns, "keys": whole}, tmp_path / "1.safetensors")
    assert all(key in RowCache(tmp_path) for key in keys)


@pytest.mark.faults
def test_a_disk_that_takes_nothing_is_trouble_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = RowCache(tmp_path / "file" / "folder")  # cannot be made, as on a full or read-only disk
    cache.add(*_rows(5))
    cache.flush()
    assert "cannot write" in cache.trouble
    assert _rows(1)[0][0] not in cache


_FULL = """
import resource, signal, sys, numpy as np
from pathlib import Path
from punce.storage.row_cache import RowCache
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # every file ends there, as on a full disk
cache = RowCache(Path(sys.argv[1]))
cache.add([b"0" * 16], {"features": np.zeros((1, 5000), np.float32)})
cache.flush()
print(cache.trouble, list(Path(sys.argv[1]).iterdir()))
"""


@pytest.mark.faults
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(("cannot write", "Error"))
    assert done.stdout.rstrip().endswith("[]")


_WRITER = """
import sys, numpy as np
from pathlib import Path
from punce.storage.row_cache import RowCache
cache = RowCache(Path(sys.argv[1]))
for start in range(10**6):
    cache.add([f"{start:016d}".encode()], {"features": np.full((1, 3), start, np.float32)})
    cache.flush()
    print(start, flush=True)
"""


@pytest.mark.faults
def test_what_was_written_survives_kill_9(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(20):
        last = int(process.stdout.readline())
    time.sleep(0.01)  # somewhere in the middle of a row
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    cache = RowCache(tmp_path)
    for row in range(last + 1):
        assert cache.get(f"{row:016d}".encode())["features"].tolist() == [row] * 3

"""A command in a process that may do less, or whose clock is wrong; and small disks."""

from __future__ import annotations

import datetime
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.copies import command

_HOUR = 3600.0


def limited(file_limit: int | None, backwards: bool, *arguments: str) -> None:
    """``punce ARGUMENTS``. A write beyond `file_limit` bytes of a file fails as one to a full disk does."""
    if file_limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    if backwards:
        turn_clock_backwards()
    command(*arguments)


def turn_clock_backwards() -> None:
    """The time of day is an hour less at every look. Files keep the system's times: those are set by the tests."""
    now, looks = time.time(), count(1)

    def earlier() -> float:
        return now - next(looks) * _HOUR

    class Backwards(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return cls.fromtimestamp(earlier(), tz)

    time.time, time.time_ns = earlier, lambda: int(earlier() * 1e9)  # type: ignore[assignment]
    datetime.datetime = Backwards  # type: ignore[misc]


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A real file system of so many bytes; the test is skipped where none can be mounted."""
    folder.mkdir(exist_ok=True)
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small tmpfs needs root")
    mounted = mount("-t", "tmpfs", "-o", f"size={size}", "punce", str(folder))
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def remount(folder: Path, option: str) -> None:
    """Another size, or read-only (ro) and back (rw)."""
    mount("-o", f"remount,{option}", str(folder)).check_returncode()


def mount(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Call the system's command."""
    return subprocess.run(["mount", *arguments], capture_output=True)

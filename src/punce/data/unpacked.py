"""Packed files that unpack to absurd sizes are refused before they fill memory, at once or while they are read.

Tables shrink to a fifth, seldom to a fiftieth. A bomb shrinks to a thousandth (gzip) or less (bzip2, xz), and a file of
one megabyte would fill any memory.
"""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from punce.errors import InputError

_ALWAYS = 256 << 20  # bytes that any packed file may unpack to
_RATIO = 200
_FREE = Path("/proc/meminfo")
_ALLOWED = Path("/sys/fs/cgroup/memory.max")


def bounded(stream: IO[bytes], path: Path) -> IO[bytes]:
    """The stream, which raises once more comes out of it than the packed file at `path` can honestly hold."""
    return cast("IO[bytes]", io.BufferedReader(_Counted(stream, path)))


def refuse_bomb(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse an archive whose members together unpack to too much; zipfile unpacks no more than they announce."""
    if sum(member.file_size for member in archive.infolist()) > _most(path):
        raise _bomb(path)


def refuse_beyond_memory(path: Path, rows: int, row_bytes: int) -> None:
    """Refuse rows that cannot fit into the memory that is free; a gigabyte of equal rows packs to a few bytes."""
    needed, free = rows * row_bytes, free_memory()
    if free is not None and needed > free:
        raise InputError(
            f"{path}: {rows:,} rows need at least {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are free; "
            "leave out rows or columns, or use a machine with more memory"
        )


def free_memory() -> int | None:
    """Bytes that the system, or the limit of a container, leaves to this process; None where it is not known."""
    found = []
    with suppress(OSError, ValueError, StopIteration):
        line = next(line for line in _FREE.read_text().splitlines() if line.startswith("MemAvailable:"))
        found.append(int(line.split()[1]) * 1024)
    with suppress(OSError, ValueError):  # "max" where there is no limit
        found.append(int(_ALLOWED.read_text()))
    return min(found, default=None)


class _Counted(io.RawIOBase):
    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path, self._left = stream, path, _most(path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._left = _most(self._path)  # what was read before is read again
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        part = self._stream.read(len(view))
        view[: len(part)] = part
        self._left -= len(part)
        if self._left < 0:
            raise _bomb(self._path)
        return len(part)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _most(path: Path) -> int:
    return max(_ALWAYS, _RATIO * path.stat().st_size)


def _bomb(path: Path) -> InputError:
    return InputError(
        f"{path} unpacks to more than {_RATIO} times its size, as files made to fill memory do; if you trust it, "
        "unpack it and name the unpacked file"
    )

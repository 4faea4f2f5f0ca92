"""Unpacking what others packed: no links, no paths outside, bounded size and count, all or nothing."""

from __future__ import annotations

import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from punce.datasets.catalogue import Benchmark
from punce.datasets.download import DownloadError, file_sha256, sync_folder
from punce.errors import InputError

LARGEST_TOTAL = 2 << 30
LARGEST_COUNT = 1_000
_CHUNK = 1 << 20


class ArchiveError(InputError):
    """The archive is damaged or would do more than put files into its own folder."""


def extract_benchmark(archive_path: Path, benchmark: Benchmark, destination: Path) -> None:
    """Unpack the set beside its archive, verify each file, then rename the folder to `destination`."""
    assert benchmark.archive is not None
    content = archive_path.parent / "content"
    content.mkdir()
    extract(archive_path, content)
    top = content / benchmark.archive.top
    for file in benchmark.files:
        _verify(top / file.name, file.sha256)
    _move(top, destination, [file.name for file in benchmark.files])


def extract(archive_path: Path, folder: Path, *, limit: int = LARGEST_TOTAL, count: int = LARGEST_COUNT) -> None:
    """Unpack regular files of a .tar(.gz) or .zip into `folder`; refuse everything a data archive has no use for."""
    members = _zip_members if zipfile.is_zipfile(archive_path) else _tar_members
    written = seen = 0
    try:
        for name, stream in members(archive_path):
            seen += 1
            if seen > count:
                raise ArchiveError(f"{archive_path.name} holds more than {count:,} files; refused")
            target = _inside(folder, name, archive_path)
            if stream is not None:
                written += _write(stream, target, limit - written, archive_path)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        raise ArchiveError(f"{archive_path.name} cannot be unpacked: {error}") from error


def _tar_members(path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    with tarfile.open(path, mode="r:*") as archive:
        for member in archive:
            if member.isdir():
                yield member.name, None
            elif member.isreg():
                yield member.name, archive.extractfile(member)
            else:
                raise ArchiveError(f"{path.name} holds {member.name!r}, a link or device; refused")


def _zip_members(path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            kind = (member.external_attr >> 16) & 0o170000
            if member.is_dir():
                yield member.filename, None
            elif kind in (0, 0o100000):  # written without Unix modes, or a regular file
                with archive.open(member) as stream:
                    yield member.filename, stream
            else:
                raise ArchiveError(f"{path.name} holds {member.filename!r}, a link or device; refused")


def _inside(folder: Path, name: str, archive_path: Path) -> Path:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in name or "\0" in name:
        raise ArchiveError(f"{archive_path.name} wants to write outside its folder, to {name!r}; refused")
    return folder.joinpath(*parts.parts)


def _write(stream: IO[bytes], target: Path, limit: int, archive_path: Path) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with target.open("wb") as out:
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if size > limit:  # counted while unpacking: sizes in headers can lie
                raise ArchiveError(f"{archive_path.name} unpacks to more than the allowed size; refused")
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    return size


def _verify(path: Path, sha256: str) -> None:
    if not path.is_file():
        raise DownloadError(f"the archive holds no {path.name}")
    if (seen := file_sha256(path)) != sha256:
        raise DownloadError(f"wrong content of {path.name}: sha256 is {seen}, expected {sha256}")


def _move(top: Path, destination: Path, names: list[str]) -> None:
    try:
        top.rename(destination)
    except OSError:  # the folder exists (with some of the files, or another process was faster): file by file
        if not destination.is_dir():
            raise
        for name in names:
            (top / name).replace(destination / name)
        sync_folder(destination)
    sync_folder(destination.parent)

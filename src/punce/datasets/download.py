"""Fetch the files of a benchmark set: verified by sha256, bounded in size, placed whole or not at all.

pooch knows no mirrors and bounds neither a download nor what it unpacks, and it would bring requests and five more
packages for the few lines of HTTP below; so these stay.
"""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from punce.datasets.catalogue import Benchmark, DataFile
from punce.errors import InputError
from punce.storage.files import file_sha256
from punce.storage.temporary import held_temporary

LARGEST_DOWNLOAD = 1 << 30  # several times the largest set here
LARGEST_UNPACKED = 2 << 30
_CHUNK = 1 << 18
_DIGITS = 18  # of a length that a server announces
_TIMEOUT = 30.0  # seconds without a byte, not of the whole download
# RuntimeError is what zipfile raises for an encrypted member.
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, UnicodeDecodeError)


class DownloadError(InputError):
    """No address gave the file with the pinned content."""


def fetch(benchmark: Benchmark, folder: Path, files: Sequence[DataFile]) -> None:
    """Put these files of the set into `folder`, which is made only when there is something to put into it."""
    if benchmark.archive is None:
        for file in files:  # one by one: what has arrived stays when the next one fails
            with _scratch(folder) as scratch:
                download(file.urls, scratch / file.name, file.sha256, compressed=file.compressed)
                _place(scratch, folder, [file])
        return
    with _scratch(folder) as scratch:
        download(benchmark.archive.urls, scratch / "archive", benchmark.archive.sha256)
        unpack(scratch / "archive", benchmark.archive.top, files, scratch)
        _place(scratch, folder, files)


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A temporary folder on the same file system as `folder`, so that a rename can place files."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
    # Held: what a killed download leaves, up to a gigabyte, is removed by the next one.
    with held_temporary(existing / "download", is_folder=True) as scratch:
        yield scratch


def _place(scratch: Path, folder: Path, files: Sequence[DataFile]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        (scratch / file.name).replace(folder / file.name)


def download(
    urls: Sequence[str],
    target: Path,
    sha256: str | None,
    *,
    compressed: bool = False,
    limit: int = LARGEST_DOWNLOAD,
) -> None:
    """Write `target` from the first address that has it with the pinned sha256 (of the unpacked file if `compressed`).

    ``sha256=None`` is for archives whose members are pinned one by one.
    """
    failures = []
    for url in urls:
        try:
            _get(url, target, limit)
            if compressed:
                _uncompress(target, limit)
            _verify(target, sha256)
        # ValueError: a server may lead on to an address that is none, such as http://[ or one that no codec takes.
        except (OSError, http.client.HTTPException, ValueError) as error:
            failures.append(f"{url}: {_reason(error)}")
        else:
            return
    raise DownloadError(f"could not fetch {target.name}: {'; '.join(failures) or 'no public address is known'}")


def _get(url: str, target: Path, limit: int) -> None:
    if not url.startswith(("https://", "http://")):  # urllib would also open file:// addresses
        raise DownloadError(f"not an http address: {url}")
    request = urllib.request.Request(url, headers={"User-Agent": "punce"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
        expected = response.headers.get("Content-Length") or ""
        size = _copy(response, target, limit)
    # A length that is no number says nothing; the sha256 decides.
    if expected.isdecimal() and len(expected) <= _DIGITS and size != int(expected):
        raise DownloadError(f"connection closed after {size:,} of {int(expected):,} bytes")


def _uncompress(packed: Path, limit: int) -> None:
    """Unpack a file of Unix ``compress`` (.Z) in place, with gzip: no Python library reads this format."""
    gzip = shutil.which("gzip")
    if gzip is None:
        raise DownloadError("it is packed with Unix compress (.Z), and there is no gzip on this system to unpack it")
    plain = packed.with_name(f"{packed.name}.plain")
    with (
        packed.open("rb") as source,
        subprocess.Popen([gzip, "-dc"], stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            _copy(process.stdout, plain, limit)
        except BaseException:  # an interrupt too: gzip would wait for its full pipe to be read
            process.kill()
            raise
        said = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise DownloadError(f"the .Z file cannot be unpacked: {said}")
    plain.replace(packed)


def unpack(packed: Path, top: str, files: Sequence[DataFile], folder: Path, *, limit: int = LARGEST_UNPACKED) -> None:
    """Write the pinned files of a .tar(.gz) or .zip into `folder`, and nothing else.

    Only names of the catalogue are opened and written, so no path or link in the archive can lead anywhere else.
    """
    try:
        with zipfile.ZipFile(packed) if zipfile.is_zipfile(packed) else tarfile.open(packed) as archive:
            for file in files:
                with _member(archive, f"{top}/{file.name}".lstrip("/")) as stream:
                    limit -= _copy(stream, folder / file.name, limit)
                _verify(folder / file.name, file.sha256)
    except MemoryError as error:  # the first bytes of lzma announce how much memory unpacking takes: up to 4 GB
        raise DownloadError("the archive cannot be unpacked: it announces more than fits into memory") from error
    except _BROKEN as error:
        raise DownloadError(f"the archive cannot be unpacked: {error}") from error


def _member(archive: zipfile.ZipFile | tarfile.TarFile, name: str) -> IO[bytes]:
    try:
        if isinstance(archive, zipfile.ZipFile):
            return archive.open(name)
        member = archive.getmember(name)
        stream = archive.extractfile(member) if member.isreg() else None
    except KeyError:
        stream = None
    if stream is None:
        raise DownloadError(f"the archive holds no file {name}")
    return stream


def _copy(stream: IO[bytes], target: Path, limit: int) -> int:
    """Bytes written to `target`; they are counted here because announced sizes can be wrong on purpose."""
    size = 0
    with target.open("wb") as out:
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if size > limit:
                raise DownloadError(f"more than {limit:,} bytes; stopped")
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    return size


def _verify(path: Path, sha256: str | None) -> None:
    if sha256 is not None and (seen := file_sha256(path)) != sha256:
        raise DownloadError(f"wrong content of {path.name}: sha256 is {seen}, expected {sha256}")


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return f"no connection ({error.reason})"
    if isinstance(error, http.client.IncompleteRead):
        return f"connection closed early, {error.expected or 'some'} bytes missing"
    return str(error) or type(error).__name__

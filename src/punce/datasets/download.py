"""One file over HTTP: to a temporary file in the same folder, verified, synced, renamed. All or nothing."""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from punce.errors import InputError

_CHUNK = 1 << 18
_TIMEOUT = 30.0
LARGEST_DOWNLOAD = 1 << 30

Transform = Callable[[Path, Path], None]


class DownloadError(InputError):
    """No address gave the file with the pinned content."""


def download(
    urls: Sequence[str],
    destination: Path,
    sha256: str | None,
    *,
    timeout: float = _TIMEOUT,
    limit: int = LARGEST_DOWNLOAD,
    unpack: Transform | None = None,
) -> None:
    """Fetch `destination` from the first address that has it with the pinned sha256.

    `unpack` turns the fetched file into the one that is kept (and whose hash is pinned). `sha256=None` is for archives
    whose members are pinned one by one by the caller.
    """
    failures = []
    for url in urls:
        try:
            _download_one(url, destination, sha256, timeout, limit, unpack)
        except (OSError, http.client.HTTPException, InputError) as error:
            failures.append(f"{url}: {_reason(error)}")
        else:
            return
    raise DownloadError(f"could not fetch {destination.name}: {'; '.join(failures) or 'no public address is known'}")


def _download_one(
    url: str, destination: Path, sha256: str | None, timeout: float, limit: int, unpack: Transform | None
) -> None:
    with temporary_beside(destination) as fetched:
        with fetched.open("wb") as stream:
            _copy(url, stream, timeout, limit)
        if unpack is None:
            _publish(fetched, destination, sha256)
            return
        with temporary_beside(destination) as unpacked:
            unpack(fetched, unpacked)
            _publish(unpacked, destination, sha256)


def _copy(url: str, stream: IO[bytes], timeout: float, limit: int) -> None:
    if not url.startswith(("https://", "http://")):
        raise DownloadError(f"not an http address: {url}")
    request = urllib.request.Request(url, headers={"User-Agent": "punce"})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        expected = response.headers.get("Content-Length")
        size = 0
        while chunk := response.read(_CHUNK):
            size += len(chunk)
            if size > limit:
                raise DownloadError(f"more than {limit:,} bytes; stopped")
            stream.write(chunk)
    if expected is not None and expected.isdigit() and size != int(expected):
        raise DownloadError(f"connection closed after {size:,} of {int(expected):,} bytes")


def _publish(temporary: Path, destination: Path, sha256: str | None) -> None:
    if sha256 is not None and (seen := file_sha256(temporary)) != sha256:
        raise DownloadError(f"wrong content: sha256 is {seen}, expected {sha256}")
    with temporary.open("rb") as stream:
        os.fsync(stream.fileno())
    temporary.chmod(0o666 & ~_umask())
    temporary.replace(destination)
    sync_folder(destination.parent)


@contextmanager
def temporary_beside(destination: Path) -> Iterator[Path]:
    """A new empty file in the folder of `destination`, gone afterwards unless it was renamed; made folders too."""
    made = _make_folder(destination.parent)
    handle, name = tempfile.mkstemp(dir=destination.parent, prefix=f".{destination.name}.", suffix=".part")
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
        remove_empty(made)


def _make_folder(folder: Path) -> list[Path]:
    """Make `folder`; return the folders that did not exist, innermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove the folders this download made if nothing came to lie in them."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:  # not empty: the download succeeded, or a neighbour uses it
            return


def file_sha256(path: Path) -> str:
    """Hex digest of a file, read in chunks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sync_folder(folder: Path) -> None:
    """Make a rename durable where the system lets a folder be synced."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return f"no connection ({error.reason})"
    if isinstance(error, http.client.IncompleteRead):
        return f"connection closed early, {error.expected or 'some'} bytes missing"
    return str(error) or type(error).__name__

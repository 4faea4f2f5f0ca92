"""Load a benchmark set by name: find its files in the data directories, fetch what is missing, build the rows."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from punce.datasets.catalogue import Benchmark, DataFile
from punce.datasets.dataset import Dataset
from punce.datasets.download import DownloadError, fetch
from punce.errors import InputError, number_of
from punce.storage.files import file_sha256

VARIABLE = "PUNCE_DATA"


class MissingFilesError(InputError):
    """Files of a benchmark set are in no data directory and could not be fetched."""


def load_benchmark(
    benchmark: Benchmark,
    root: str | Path | None = None,
    *,
    positive: Collection[Any] | None = None,
    download: bool = True,
) -> Dataset:
    """The set's rows and true labels; see :func:`punce.data.load`."""
    is_collection = isinstance(positive, Collection) and not isinstance(positive, str)
    if positive is not None and not (is_collection and len(positive)):
        raise InputError(f"positive must be a collection of classes such as (1, 3, 5), got {positive!r}")
    dataset = benchmark.build(locate(benchmark, root, download=download), positive)
    for name, part in (("training", dataset.train), ("test", dataset.test)):
        if part.n_positive == 0 or part.n_negative == 0:
            raise InputError(f"{benchmark.name}: every {name} row is on one side of positive={positive!r}")
    return dataset


def locate(benchmark: Benchmark, root: str | Path | None = None, *, download: bool = True) -> dict[str, Path]:
    """Paths of the set's files; missing ones are fetched (unless `download` is false) or named in the error."""
    found = _find_files(benchmark, data_directories(root))
    if len(found) == len(benchmark.files):
        return found
    if not download:
        raise _missing_files(benchmark, found, root, "downloads are off")
    try:
        directory = download_directory(root)
        # Files of a set must lie in one folder: those in other directories do not save a download.
        present = _find_files(benchmark, [directory])
        fetch(benchmark, directory / benchmark.folders[0], [f for f in benchmark.files if f.name not in present])
        return _find_files(benchmark, [directory])
    except (DownloadError, OSError) as error:
        raise _missing_files(benchmark, found, root, str(error)) from error


def verify(benchmark: Benchmark, found: dict[str, Path]) -> dict[str, bool | None]:
    """Canonical name -> whether the content is the pinned one; None where this form of the file has no pin."""
    return {file.name: _matches(file, found[file.name]) for file in benchmark.files}


def _matches(file: DataFile, path: Path) -> bool | None:
    pinned = file.forms[path.name]
    return file_sha256(path) == pinned if pinned else None


def cache_directory() -> Path:
    """``$XDG_CACHE_HOME/punce``, by default ``~/.cache/punce``."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "punce"


def data_directories(root: str | Path | None = None) -> list[Path]:
    """Directories to search in order: `root` alone if given, else those in PUNCE_DATA, then the user's cache."""
    if root is not None:
        return [Path(root).expanduser()]
    named = [part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part.strip()]
    return [*(Path(part).expanduser() for part in named), cache_directory()]


def download_directory(root: str | Path | None = None) -> Path:
    """The first data directory that can be written to; directories that do not exist yet are made when needed."""
    candidates = data_directories(root)
    for directory in candidates:
        existing = next(p for p in (directory, *directory.absolute().parents) if p.exists())
        if existing.is_dir() and os.access(existing, os.W_OK):
            return directory
    raise InputError(
        f"no data directory can be written to: {', '.join(map(str, candidates))}; name another with root= (--root) or "
        "PUNCE_DATA"
    )


def _find_files(benchmark: Benchmark, directories: list[Path]) -> dict[str, Path]:
    """Canonical name -> path, of the first folder that holds every file; of the fullest one if none does."""
    best: dict[str, Path] = {}
    for folder in (directory / name for directory in directories for name in benchmark.folders):
        paths = {file.name: [folder / form for form in file.forms] for file in benchmark.files}
        found = {name: path for name, forms in paths.items() if (path := next(filter(Path.is_file, forms), None))}
        best = max(best, found, key=len)
        if len(best) == len(benchmark.files):
            break
    return best


def _missing_files(benchmark: Benchmark, found: dict[str, Path], root: str | Path | None, why: str) -> InputError:
    """The error that says which files to put where."""
    absent = [file for file in benchmark.files if file.name not in found]
    here = data_directories(root)[0] / benchmark.folders[0]
    if benchmark.archive is not None:
        addresses = list(benchmark.archive.urls)
    else:
        addresses = [f"{f.urls[0]}{' (unpack it with: gzip -d)' * f.compressed}" for f in benchmark.files if f.urls]
    files = number_of(len(benchmark.files), "file", "files")
    return MissingFilesError(
        f"{benchmark.name}: {number_of(len(absent), f'of {files} is', f'of {files} are')} missing ({why}). "
        f"Put {', '.join(file.name for file in absent)} into {here}, "
        f"or name a directory that has the folder {benchmark.folders[0]}/ with root= or {VARIABLE}. "
        f"Published at: {', '.join(addresses)}"
    )

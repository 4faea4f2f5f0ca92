"""Loading a benchmark set by name: find its files, fetch what is missing, build the rows."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from punce.datasets.archives import extract_benchmark
from punce.datasets.catalogue import Benchmark, DataFile
from punce.datasets.compress import unpack_compress
from punce.datasets.dataset import Dataset
from punce.datasets.directories import data_directories, download_directory, find_files, missing_files
from punce.datasets.download import DownloadError, download, file_sha256, remove_empty
from punce.errors import InputError


def load_benchmark(
    benchmark: Benchmark,
    root: str | Path | None = None,
    *,
    positive: Collection[Any] | None = None,
    download: bool = True,
) -> Dataset:
    """The set's rows and true labels; see :func:`punce.data.load`."""
    if positive is not None and (isinstance(positive, str) or not len(positive)):
        raise InputError(f"positive must be a collection of classes such as (1, 3, 5), got {positive!r}")
    dataset = benchmark.build(locate(benchmark, root, download=download), positive)
    for name, part in (("training", dataset.train), ("test", dataset.test)):
        if part.n_positive == 0 or part.n_negative == 0:
            raise InputError(f"{benchmark.name}: every {name} row is on one side of positive={positive!r}")
    return dataset


def locate(benchmark: Benchmark, root: str | Path | None = None, *, download: bool = True) -> dict[str, Path]:
    """Paths of the set's files; missing ones are fetched (unless `download` is false) or named in the error."""
    found = find_files(benchmark, data_directories(root))
    if len(found) == len(benchmark.files):
        return found
    if not download:
        raise missing_files(benchmark, found, root, "downloads are off")
    try:
        return _fetch(benchmark, download_directory(root) / benchmark.folders[0])
    except (DownloadError, OSError) as error:
        raise missing_files(benchmark, found, root, str(error)) from error


def verify(benchmark: Benchmark, found: dict[str, Path]) -> dict[str, bool | None]:
    """Canonical name -> whether the content is the pinned one; None where this form of the file has no pin."""
    return {file.name: _matches(file, found[file.name]) for file in benchmark.files}


def _matches(file: DataFile, path: Path) -> bool | None:
    pinned = file.forms[path.name]
    return file_sha256(path) == pinned if pinned else None


def _fetch(benchmark: Benchmark, folder: Path) -> dict[str, Path]:
    if benchmark.archive is not None:
        _fetch_archive(benchmark, folder)
    else:
        _fetch_files(benchmark, folder)
    return find_files(benchmark, [folder.parents[benchmark.folders[0].count("/")]])


def _fetch_files(benchmark: Benchmark, folder: Path) -> None:
    present = find_files(benchmark, [folder.parents[benchmark.folders[0].count("/")]])
    for file in benchmark.files:
        if file.name not in present:
            unpack = unpack_compress if file.compressed else None
            download(file.urls, folder / file.name, file.sha256, unpack=unpack)


def _fetch_archive(benchmark: Benchmark, folder: Path) -> None:
    assert benchmark.archive is not None
    made = [path for path in (folder.parent, *folder.parent.parents) if not path.exists()]
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.", suffix=".part") as scratch:
            packed = Path(scratch) / Path(benchmark.archive.urls[0]).name
            download(benchmark.archive.urls, packed, benchmark.archive.sha256)
            extract_benchmark(packed, benchmark, folder)
    finally:
        remove_empty(made)

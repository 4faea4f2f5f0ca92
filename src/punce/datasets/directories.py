"""Where files of benchmark sets are looked for and where downloads go."""

from __future__ import annotations

import os
from pathlib import Path

from punce.datasets.catalogue import Benchmark
from punce.errors import InputError

VARIABLE = "PUNCE_DATA"


class MissingFilesError(InputError):
    """Files of a benchmark set are on no data directory and could not be fetched."""


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
    raise InputError(f"no data directory can be written to: {', '.join(map(str, candidates))}")


def find_files(benchmark: Benchmark, directories: list[Path]) -> dict[str, Path]:
    """Canonical name -> path, of the first folder that holds every file; of the fullest one if none does."""
    best: dict[str, Path] = {}
    for folder in (directory / name for directory in directories for name in benchmark.folders):
        found = _in_folder(benchmark, folder)
        if len(found) == len(benchmark.files):
            return found
        best = max(best, found, key=len)
    return best


def _in_folder(benchmark: Benchmark, folder: Path) -> dict[str, Path]:
    found = {}
    for file in benchmark.files:
        path = next((folder / form for form in file.forms if (folder / form).is_file()), None)
        if path is not None:
            found[file.name] = path
    return found


def missing_files(benchmark: Benchmark, found: dict[str, Path], root: str | Path | None, why: str) -> InputError:
    """The error that says which files to put where."""
    absent = [file for file in benchmark.files if file.name not in found]
    here = data_directories(root)[0] / benchmark.folders[0]
    return MissingFilesError(
        f"{benchmark.name}: {len(absent)} of {len(benchmark.files)} files are missing ({why}). "
        f"Put {', '.join(file.name for file in absent)} into {here}, "
        f"or name a directory that has the folder {benchmark.folders[0]}/ with root= or {VARIABLE}. "
        f"Published at: {', '.join(_addresses(benchmark))}"
    )


def _addresses(benchmark: Benchmark) -> list[str]:
    if benchmark.archive is not None:
        return list(benchmark.archive.urls)
    return [file.urls[0] for file in benchmark.files if file.urls]

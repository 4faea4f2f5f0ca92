"""A table in many Parquet files: a folder of them, or a pattern such as ``sales/2026-*.parquet``."""

from __future__ import annotations

import glob
import hashlib
from pathlib import Path

from punce.errors import InputError

_FOOTER = 8  # the length of the footer and "PAR1"


def is_pattern(path: str | Path) -> bool:
    """Whether it names files by wildcards; a file that is called so is a file."""
    return glob.has_magic(str(path)) and not Path(path).expanduser().exists()


def part_files(path: Path) -> list[Path]:
    """The Parquet files of a folder, of a pattern, or the one file, by name."""
    path = path.expanduser()
    if is_pattern(path):
        root = folder_of(path)
        found = root.glob(str(Path(*path.parts[len(root.parts) :])))
        return sorted(file for file in found if file.is_file())
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def has_parts(path: Path) -> bool:
    """Whether it is a folder of Parquet files or a pattern, not one file."""
    return is_pattern(path) or (path.is_dir() and any(path.glob("*.parquet")))


def folder_of(path: Path) -> Path:
    """The folder in which the parts lie: for a pattern, what stands before the first wildcard."""
    if not is_pattern(path):
        return path
    fixed = []
    for piece in path.expanduser().parts:
        if glob.has_magic(piece):
            break
        fixed.append(piece)
    return Path(*fixed)


def require_matches(pattern: Path) -> Path:
    """The pattern, if a file matches it and it names Parquet files."""
    if pattern.suffix.lower() != ".parquet":
        raise InputError(f"{pattern}: a pattern must name Parquet files, such as 'parts/*.parquet'")
    if not part_files(pattern):
        raise InputError(f"no file matches {pattern}; a relative pattern begins at the current folder")
    return pattern


def fingerprint(file: Path) -> str:
    """What tells one Parquet file from another, without reading its rows: its size and its footer.

    The footer has the number of rows and the least and the largest value of every column, of each group of rows.
    """
    with file.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - _FOOTER))
        end = stream.read(_FOOTER)
        length = int.from_bytes(end[:4], "little") if len(end) == _FOOTER else 0
        stream.seek(max(0, size - _FOOTER - length))
        return hashlib.sha256(f"{size} ".encode() + stream.read(length + _FOOTER)).hexdigest()

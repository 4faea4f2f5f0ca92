"""The file of ``punce predict``: its columns, how it is written, and which rows it says it is of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from punce.errors import InputError
from punce.storage.files import file_and_table
from punce.storage.formulas import defused_frame
from punce.storage.parts import folder_of

# Fixed before the first batch: ids of whole numbers in one batch and of text in another must not change the file.
SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("id", pa.string()),
        ("probability", pa.float64()),
        ("called", pa.bool_()),
        ("status", pa.string()),
    ]
)
_COLUMNS: list[str] = list(SCHEMA.names)
_LONGEST_HEADER = 1000
_SOURCE = b"punce.source"


def is_result(file: Path) -> bool:
    """Whether it has the columns that a result has."""
    try:
        if file.suffix == ".parquet":
            return list(pq.read_schema(file).names) == _COLUMNS
        with file.open(encoding="utf-8") as lines:
            return lines.readline(_LONGEST_HEADER).strip().split(",") == _COLUMNS
    except (pa.ArrowException, OSError, ValueError):  # not UTF-8, no Parquet file
        return False


def beside(data: Path, ending: str) -> Path:
    """NAME and `ending` beside NAME."""
    place = _place(file_and_table(data)[0])
    return place.parent / f"{place.stem}{ending}"


def source_name(data: Path, table: str | None = None) -> str:
    """What was scored, as seen from the folder it lies in: new.xlsx, book.xlsx::May, parts/2026-*.parquet."""
    file, table = file_and_table(data, table)
    file = file.expanduser()
    wildcards = file.parts[len(folder_of(file).parts) :]
    name = "/".join([_place(file).name, *wildcards])
    return name if table is None else f"{name}::{table}"


def _place(file: Path) -> Path:
    """The file, or the folder of a pattern; "." and ".." say where a folder is, not how it is called."""
    place = folder_of(file.expanduser())
    return place.resolve() if place.name in ("", "..") else place


def refuse_scores_of_another(out: Path, source: str) -> None:
    """Refuse to replace scores of other rows by default: new.csv, new.xlsx and the sheets of new.xlsx share a name.

    A result of an earlier version does not say of which rows it is, and is replaced.
    """
    try:
        other = (pq.read_metadata(out).metadata or {}).get(_SOURCE, source.encode()).decode(errors="replace")
    except (OSError, pa.ArrowException):  # none there yet, or no result: refused by its columns
        return
    if other != source:
        raise InputError(f"{out} holds the scores of {other}, not of {source}; name another file with --out")


@contextmanager
def writing(out: Path, temporary: Path, source: str) -> Iterator[Callable[[pd.DataFrame], Any]]:
    """A function that appends a batch to the file, in the form that the name of `out` asks for."""
    if out.suffix == ".csv":
        with temporary.open("w", newline="", encoding="utf-8") as file:
            yield lambda frame: defused_frame(frame).to_csv(file, index=False, header=file.tell() == 0)
    elif out.suffix == ".parquet":
        with pq.ParquetWriter(temporary, SCHEMA) as writer:
            writer.add_key_value_metadata({_SOURCE: source.encode(errors="replace")})
            yield lambda frame: writer.write_table(pa.Table.from_pandas(frame, SCHEMA, preserve_index=False))
    else:
        raise InputError(f"the result must be a .csv or .parquet file, got {out.name}")

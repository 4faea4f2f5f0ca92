"""CSV and Parquet files: a frame of features, the label column, the row names."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pandas as pd

from punce.columns.kinds import missing_column, refuse_duplicates
from punce.errors import InputError

CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
_SEPARATORS = ",;\t|"
_LONGEST_HEADER = 1 << 20  # bounded: a file without newlines must not be read whole
_MANY_COLUMNS, _MOST_COPIED = 500, 20_000_000  # cells: a copy of more would cost memory that matters


@dataclass(frozen=True)
class Roles:
    """Which columns are not features: the label, the row names, and those the user drops."""

    label: str | None = None
    id: str | None = None
    drop: tuple[str, ...] = ()
    text: str | None = None

    @property
    def all(self) -> list[str]:
        """Every named column."""
        return [name for name in (self.label, self.id, self.text, *self.drop) if name is not None]

    @property
    def set_aside(self) -> list[str]:
        """Columns that are not features."""
        return [name for name in (self.label, self.id, *self.drop) if name is not None]


def is_csv(path: Path) -> bool:
    """Whether the name says CSV or TSV, possibly gzipped."""
    return path.name.lower().endswith(CSV_SUFFIXES)


def is_parquet(path: Path) -> bool:
    """Whether the path is a Parquet file or a folder that holds some."""
    if path.is_dir():
        return any(path.glob("*.parquet"))
    return path.suffix.lower() in PARQUET_SUFFIXES


def column_names(path: Path) -> list[str]:
    """The header; refuses duplicate names, which pandas would silently rename."""
    names = _csv_header(path)[0] if is_csv(path) else _parquet_names(path)
    refuse_duplicates(names, str(path))
    return names


def check_roles(names: Sequence[str], roles: Roles, path: Path) -> None:
    """Every column the caller named must exist; near names are suggested."""
    for wanted in roles.all:
        if wanted not in names:
            raise missing_column(wanted, names, str(path))
    if len(set(roles.all)) != len(roles.all):
        raise InputError(f"{path}: a column was named twice among label, id, text and drop: {roles.all}")


def read_frame(path: Path, columns: list[str] | None = None, *, as_text: Collection[str] = ()) -> pd.DataFrame:
    """A whole file; `columns` reads only those, `as_text` keeps those columns' spelling in CSV (007 stays 007)."""
    frames = list(frames_of(path, None, columns, as_text=as_text))
    frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    if len(frame) == 0:
        raise InputError(f"{path} has a header but no rows")
    # pandas keeps each column of a file apart until a copy; taking rows from 10,000 pieces takes seconds each time
    return frame.copy() if frame.shape[1] > _MANY_COLUMNS and frame.size <= _MOST_COPIED else frame


def frames_of(
    path: Path, rows: int | None, columns: list[str] | None = None, *, as_text: Collection[str] = ()
) -> Iterator[pd.DataFrame]:
    """The file in frames of about `rows` rows, or in one piece per file; what is text in the first frame stays text."""
    return _csv_frames(path, rows, columns, as_text) if is_csv(path) else _parquet_frames(path, rows, columns)


def _csv_frames(
    path: Path, rows: int | None, columns: list[str] | None, as_text: Collection[str]
) -> Iterator[pd.DataFrame]:
    options: dict[str, Any] = {
        "sep": _csv_header(path)[1],
        "usecols": columns,
        "dtype": dict.fromkeys(as_text, "str"),  # names the file does not have are ignored
        "encoding": "utf-8-sig",
        "low_memory": False,
    }
    try:
        if rows is None:
            yield pd.read_csv(path, **options)
            return
        options["dtype"] |= _text_at_first(path, rows, options)
        with pd.read_csv(path, chunksize=rows, **options) as reader:
            yield from reader
    except (OSError, EOFError, ValueError) as error:  # pandas' parser errors and UnicodeDecodeError are ValueErrors
        raise _unreadable(path, error) from error


def _text_at_first(path: Path, rows: int, options: dict[str, Any]) -> dict[str, str]:
    """The type of columns that are text in the first rows: later rows with digits only must keep their spelling too."""
    first = pd.read_csv(path, nrows=rows, **options)
    return {name: "str" for name in first.columns if pd.api.types.is_string_dtype(first[name])}


def _csv_header(path: Path) -> tuple[list[str], str]:
    """Column names as pandas gives them, and the separator: the commonest of , ; tab | in the first line."""
    try:
        with _open_text(path) as stream:
            line = stream.readline(_LONGEST_HEADER)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    if not line.strip():
        raise InputError(f"{path} is empty: the first line must name the columns")
    # The first line alone decides: quoted commas are rarer in names of columns than in values.
    separator = "\t" if ".tsv" in path.name.lower() else max(_SEPARATORS, key=line.count)
    names = next(csv.reader([line], delimiter=separator))
    # a table saved with its index has a first column without a name
    return [name or f"Unnamed: {k}" for k, name in enumerate(names)], separator


def _open_text(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _parquet_files(path: Path) -> list[Path]:
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def _parquet_names(path: Path) -> list[str]:
    first, *others = [list(_open_parquet(file).schema_arrow.names) for file in _parquet_files(path)]
    if any(names != first for names in others):
        raise InputError(f"{path}: its Parquet files do not have the same columns")
    return first


def _parquet_frames(path: Path, rows: int | None, columns: list[str] | None) -> Iterator[pd.DataFrame]:
    import pyarrow as pa

    for file in _parquet_files(path):
        parquet = _open_parquet(file)
        try:  # without pandas' metadata a stored index stays a column, as the header says
            if rows is None:
                yield parquet.read(columns=columns).to_pandas(ignore_metadata=True)
                continue
            for batch in parquet.iter_batches(batch_size=rows, columns=columns):
                yield batch.to_pandas(ignore_metadata=True)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(file, error) from error


def _open_parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:  # buffered: without it the whole column chunks of a row group are read at once
        return pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    if not path.exists():
        return InputError(f"{path} does not exist")
    if path.is_file() and path.stat().st_size == 0:
        return InputError(f"{path} is empty")
    if isinstance(error, UnicodeDecodeError):
        return InputError(f"{path} is not UTF-8 text (byte {error.start}); save it again with encoding UTF-8")
    return InputError(f"{path} cannot be read as a table: {str(error).strip()}")


def first_frame(path: Path, rows: int, *, as_text: Collection[str] = ()) -> pd.DataFrame:
    """The first rows, for decisions that must not depend on the rest."""
    frame = next(frames_of(path, rows, as_text=as_text), None)
    if frame is None or len(frame) == 0:
        raise InputError(f"{path} has a header but no rows")
    return frame

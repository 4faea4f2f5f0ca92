"""A table file by its name: which reader opens it, whose columns have which role, its rows as frames."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from punce.columns.kinds import missing_column, refuse_duplicates
from punce.columns.written import Decimal
from punce.data.csv_files import open_csv
from punce.data.sqlite_files import open_sqlite
from punce.data.table_file import MOST_COLUMNS, FileOptions, TableFile
from punce.data.text_files import BROKEN, PACKED, zip_member
from punce.data.typed_files import open_arrow, open_excel, open_json, open_parquet
from punce.errors import InputError, first_of

_MANY_COLUMNS, _MOST_COPIED = 500, 20_000_000  # cells: a copy of more would cost memory that matters


def _open_zip(path: Path, asked: FileOptions) -> TableFile:
    """The CSV file in an archive. One of another form would be read as text, and refused for what is not wrong."""
    form: str | None = None
    member = ""
    with suppress(*BROKEN, UnicodeDecodeError, InputError), zipfile.ZipFile(path) as archive:  # open_csv tells why
        member = zip_member(path, archive.namelist(), asked.table)
        form = form_of(Path(member))
    if form not in (None, "a CSV file"):
        raise InputError(f"{path} holds {member}, and only CSV files are read from an archive: unpack it")
    return open_csv(path, asked)


_FORMS: dict[str, tuple[tuple[str, ...], Callable[[Path, FileOptions], TableFile]]] = {
    "a CSV file": ((".csv", ".tsv", ".tab", ".txt", ".data"), open_csv),
    "a Parquet file": ((".parquet", ".pq"), open_parquet),
    "an Arrow file": ((".feather", ".arrow", ".ipc"), open_arrow),
    "an Excel file": ((".xlsx", ".xlsm"), open_excel),
    "a JSON file": ((".jsonl", ".ndjson", ".json"), open_json),
    "an SQLite file": ((".sqlite", ".sqlite3", ".db"), open_sqlite),
    "a zip archive": ((".zip",), _open_zip),
}
"""Endings and readers, by the names that :data:`punce.data.reading_options.READING` has for the forms."""
_PACKABLE = ("a CSV file", "a JSON file")
KNOWN = ".csv, .tsv, .txt, .data, .parquet, .feather, .arrow, .xlsx, .jsonl, .sqlite"


@dataclass(frozen=True)
class Roles:
    """Which columns are not features: the label, the row names, and those the user drops or does not keep."""

    label: str | None = None
    id: str | None = None
    drop: tuple[str, ...] = ()
    text: str | None = None
    keep: tuple[str, ...] = ()
    """The only features, if any are named."""

    @property
    def all(self) -> list[str]:
        """Every named column."""
        return [name for name in (self.label, self.id, self.text, *self.drop, *self.keep) if name is not None]

    @property
    def set_aside(self) -> list[str]:
        """Columns that are not features."""
        return [name for name in (self.label, self.id, *self.drop) if name is not None]


def form_of(path: Path) -> str | None:
    """What the name says the file is, in the words of :data:`_FORMS`; None if it is no table."""
    if path.is_dir():
        return "a Parquet file" if any(path.glob("*.parquet")) else None
    name = path.name.lower()
    packed = next((end for end in PACKED if name.endswith(end)), "")
    for form, (endings, _) in _FORMS.items():
        if name.endswith(endings) or (form in _PACKABLE and name.removesuffix(packed).endswith(endings)):
            # whichever of its files is read, an archive has them by name
            return "a zip archive" if form == "a CSV file" and packed == ".zip" else form
    return None


def open_table(path: Path, asked: FileOptions | None = None) -> TableFile:
    """The file with its columns known; refuses duplicate names, which pandas would silently rename."""
    form = form_of(path)
    if form is None:
        raise InputError(f"{path} is no table file; {KNOWN} are")
    table = _FORMS[form][1](path, asked or FileOptions())
    if len(table.names) > MOST_COLUMNS:
        raise InputError(
            f"{path} has {len(table.names):,} columns, and at most {MOST_COLUMNS:,} are read; leave some out, "
            "or give a matrix of numbers as .npy"
        )
    try:
        refuse_duplicates(table.names, str(path))
    except InputError as error:
        raise with_hint(error, table) from None
    table.notes.extend(_about_others(path))
    return table


def _about_others(path: Path) -> list[str]:
    """What to tell of a folder that holds other tables than Parquet files."""
    forms = {file.name: form_of(file) for file in path.iterdir() if file.is_file()} if path.is_dir() else {}
    others = sorted(name for name, form in forms.items() if form not in (None, "a Parquet file"))
    return [f"{path}: only the .parquet files are read, not {first_of(others)}"] if others else []


def with_hint(error: InputError, table: TableFile) -> InputError:
    """The error with what may explain it: names that are not found are often no names."""
    return InputError(f"{error}; {table.hint}") if table.hint else error


def no_column(wanted: str, table: TableFile) -> InputError:
    """What to say where a file has no such column. One column alone was often not split."""
    error = with_hint(missing_column(wanted, table.names, str(table.path)), table)
    is_whole = len(table.names) == 1 and table.separator is not None
    mend = "if that is several columns, --sep names what separates them, such as whitespace"
    return InputError(f"{error}; {mend}") if is_whole else error


def check_roles(table: TableFile, roles: Roles) -> None:
    """Every column the caller named must exist; near names are suggested."""
    for wanted in roles.all:
        if wanted not in table.names:
            raise no_column(wanted, table)
    if twice := [repr(name) for name, times in Counter(roles.all).items() if times > 1]:
        raise InputError(
            f"{table.path}: named twice among label, id, text, drop and keep: {first_of(twice)}; name a column once"
        )


def read_frame(
    table: TableFile, columns: list[str] | None = None, *, as_text: Collection[str] = (), decimal: Decimal = "."
) -> pd.DataFrame:
    """A whole file, or these columns of it."""
    frames = list(table.frames(None, columns, as_text, decimal))
    frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    if len(frame) == 0:
        raise InputError(f"{table.path} has a header but no rows")
    # pandas keeps each column of a file apart until a copy; taking rows from 10,000 pieces takes seconds each time
    return frame.copy() if frame.shape[1] > _MANY_COLUMNS and frame.size <= _MOST_COPIED else frame


def first_frame(table: TableFile, rows: int, *, as_text: Collection[str] = (), decimal: Decimal = ".") -> pd.DataFrame:
    """The first rows, for decisions that must not depend on the rest."""
    frame = next(table.frames(rows, None, as_text, decimal), None)
    if frame is None or len(frame) == 0:
        raise InputError(f"{table.path} has a header but no rows")
    return frame

"""Table files that know their types: Parquet, Arrow, Excel and JSON lines (SQLite: ``sqlite_files.py``)."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from punce.columns.written import Decimal
from punce.data.table_file import MOST_COLUMNS, FileOptions, Typed, about_header, names_of, numbered
from punce.data.text_files import BROKEN, find_encoding, open_bytes, unreadable
from punce.data.unpacked import refuse_beyond_memory, refuse_bomb
from punce.errors import InputError, number_of
from punce.storage.parts import part_files

_SHOWN = 8
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a character that JSON writes as two
_MOST_EMPTY, _EMPTY = 10_000_000, 100  # cells that may be empty in any file of JSON, and beside each that is filled


@dataclass(frozen=True)
class WholeTable(Typed):
    """Rows of a form that is read as a whole, in memory."""

    path: Path
    names: list[str]
    frame: pd.DataFrame
    notes: list[str]
    hint: str = ""
    spelled: Mapping[str, pd.Series[Any]] = field(default_factory=dict)
    """Whole numbers with gaps, as text: pandas makes floats of them, and 17 would be the row 17.0."""

    def frames(
        self, rows: int | None, columns: list[str] | None, as_text: Collection[str], decimal: Decimal
    ) -> Iterator[pd.DataFrame]:
        """Slices of the frame."""
        frame = self.frame if columns is None else self.frame[columns]
        if spelled := {name: self.spelled[name] for name in as_text if name in self.spelled and name in frame}:
            frame = frame.assign(**spelled)
        for start in range(0, max(len(frame), 1), rows or max(len(frame), 1)):
            yield frame.iloc[start : start + (rows or len(frame))].reset_index(drop=True)


# --- Parquet and Arrow ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParquetFiles(Typed):
    """One Parquet file or the parts of a folder or pattern."""

    path: Path
    files: list[Path]
    names: list[str]
    notes: list[str]

    @property
    def metadata(self) -> list[Any]:
        """The footer of each part: how many rows and bytes it has."""
        return [_open_parquet(file).metadata for file in self.files]

    def frames(
        self, rows: int | None, columns: list[str] | None, as_text: Collection[str], decimal: Decimal
    ) -> Iterator[pd.DataFrame]:
        """Row groups are read one after the other; all rows at once only if they can fit into memory."""
        import pyarrow as pa

        if rows is None:
            self._require_room(columns)
        for file in self.files:
            parquet = _open_parquet(file)
            try:  # without pandas' metadata a stored index stays a column, as the header says
                if rows is None:
                    yield _plain_frame(parquet.read(columns=columns), as_text)
                    continue
                for batch in parquet.iter_batches(batch_size=rows, columns=columns):
                    yield _plain_frame(batch, as_text)
            except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
                raise unreadable(file, error) from error

    def _require_room(self, columns: list[str] | None) -> None:
        opened = [_open_parquet(file) for file in self.files]
        names = self.names if columns is None else columns
        widths = [_least_bytes(field.type) for field in opened[0].schema_arrow if field.name in names]
        refuse_beyond_memory(self.path, sum(one.metadata.num_rows for one in opened), sum(widths))


def _least_bytes(kind: Any) -> int:
    """Of a cell in a frame: a number as it is stored, 8 for a pointer to anything else."""
    import pyarrow as pa

    return max(1, kind.bit_width // 8) if pa.types.is_primitive(kind) else 8


def open_parquet(path: Path, asked: FileOptions) -> ParquetFiles:
    """Parts must have the same columns."""
    files = part_files(path)
    names = [list(_open_parquet(file).schema_arrow.names) for file in files]
    for file, own in zip(files, names, strict=True):
        if own != names[0]:
            odd = sorted(set(own) ^ set(names[0]))[:_SHOWN]
            what = f"only one of them has {', '.join(map(repr, odd))}" if odd else "the order differs"
            raise InputError(
                f"{path}: {files[0].name} and {file.name} do not have the same columns ({what}); write all parts alike"
            )
    return ParquetFiles(path, files, names[0], [])


def _open_parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:  # buffered: without it the whole column chunks of a row group are read at once
        return pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:  # names of columns need not be UTF-8
        raise unreadable(path, error) from error


def _plain_frame(table: Any, as_text: Collection[str] = ()) -> pd.DataFrame:
    """A table or batch of Arrow as a frame. It is checked first: Arrow believes what a file says of its own bytes."""
    table.validate(full=True)
    frame: pd.DataFrame = table.replace_schema_metadata(None).to_pandas()  # pandas' notes in it are not needed
    spelled = _spelled(table, as_text)
    return frame.assign(**spelled) if spelled else frame


def _spelled(table: Any, names: Collection[str]) -> dict[str, pd.Series[Any]]:
    """Columns of whole numbers with gaps as text: floats of large ones would give many rows one name."""
    import pyarrow as pa

    own = {name: table.column(k) for k, name in enumerate(table.schema.names) if name in names}
    gaps = {name: column for name, column in own.items() if pa.types.is_integer(column.type) and column.null_count}
    return {name: column.cast(pa.string()).to_pandas() for name, column in gaps.items()}


def open_arrow(path: Path, asked: FileOptions) -> WholeTable:
    """Feather and Arrow's two forms of a file; mapped into memory, not copied, unless it is compressed."""
    import pyarrow as pa
    import pyarrow.feather

    try:
        with pa.memory_map(str(path)) as stream:
            if stream.read(6) in (b"ARROW1", b"FEA1"):
                table = pyarrow.feather.read_table(path, memory_map=True)
            else:
                stream.seek(0)
                table = pa.ipc.open_stream(stream).read_all()
        names = [str(name) for name in table.column_names]
        # names that occur twice are refused later
        frame = _plain_frame(table.rename_columns([str(k) for k in range(len(names))]))
        spelled = _spelled(table, names)
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
    return WholeTable(path, names, frame.set_axis(names, axis=1), [], spelled=spelled)


# --- Excel ------------------------------------------------------------------------------------------------------------


def open_excel(path: Path, asked: FileOptions) -> WholeTable:
    """One sheet of a workbook; its first row that is not empty names the columns."""
    try:
        with zipfile.ZipFile(path) as packed:
            refuse_bomb(path, packed)
        with pd.ExcelFile(path, engine="openpyxl") as book:
            sheet, note = _sheet(book, path, asked.table)
            cells = pd.read_excel(book, sheet_name=sheet, header=None, dtype=object).dropna(how="all")
    except InputError:
        raise
    except ImportError as error:
        raise InputError(
            f"{path}: Excel files are read by openpyxl, which is not installed: pip install 'punce[excel]'"
        ) from error
    except Exception as error:  # a damaged workbook can raise anything from within openpyxl
        raise InputError(
            f"{path} cannot be read as a table: it is no .xlsx workbook, damaged or protected by a password ({error})"
        ) from error
    if not len(cells):
        raise InputError(f"{path} is empty: sheet {sheet!r} has no cells")
    first = ["" if pd.isna(cell) else f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in cells.iloc[0]]
    has_header = asked.header != "no"
    names = names_of(first) if has_header else numbered(len(first))
    rows = cells.iloc[1:] if has_header else cells
    # columns without name and values are cells that were formatted once
    used = [k for k, cell in enumerate(first) if cell or rows[k].notna().any()]
    frame = rows[used].set_axis([names[k] for k in used], axis=1).reset_index(drop=True).infer_objects()
    hint = about_header([first[k] for k in used]) if asked.header == "auto" else ""
    return WholeTable(path, list(frame.columns), frame, [note] if note else [], hint)


def _sheet(book: pd.ExcelFile, path: Path, wanted: str | None) -> tuple[str, str]:
    sheets = [str(name) for name in book.sheet_names]
    if wanted is not None:
        if wanted not in sheets:
            raise InputError(f"{path} has no sheet {wanted!r} (it has: {', '.join(sheets[:_SHOWN])})")
        return wanted, ""
    if len(sheets) == 1:
        return sheets[0], ""
    filled = [name for name in sheets if _is_filled(book, name)]
    if len(filled) != 1:
        raise InputError(f"{path} has several sheets ({', '.join(filled[:_SHOWN])}); name one with --table")
    return filled[0], f"sheet {filled[0]!r} is read; the other sheets are empty"


def _is_filled(book: pd.ExcelFile, name: str) -> bool:
    """Whether any cell holds something; a table may begin below empty rows. Stops at the first such cell."""
    sheet: Any = book.book[name]
    sheet.reset_dimensions()  # some programs write a wrong size of the sheet, beyond which nothing is read
    return any(cell not in (None, "") for row in sheet.iter_rows(values_only=True) for cell in row)


# --- JSON and SQLite --------------------------------------------------------------------------------------------------


def open_json(path: Path, asked: FileOptions) -> WholeTable:
    """One object a line, or a list of objects. Read whole, because any line may bring a new column."""
    encoding, note = find_encoding(path, asked.table, asked.encoding)
    try:
        with open_bytes(path, asked.table) as packed, io.TextIOWrapper(packed, encoding=encoding) as stream:
            records, n_cut = _records(stream, path)
    except BROKEN as error:
        raise unreadable(path, error) from error
    if not records:
        raise InputError(f"{path} is empty")
    _refuse_columns(records, path)
    _refuse_sparse(records, path)
    frame = pd.DataFrame.from_records(records)
    floats = [str(name) for name, kind in frame.dtypes.items() if kind == "float64"]
    spelled = {name: own for name in floats if (own := _spelled_records(name, records)) is not None}
    have = number_of(n_cut, "record has a text", "records have texts")
    notes = [note] if note else []
    notes += [f"{have} cut in the middle of a character, such as an emoji; ? stands for the half"] if n_cut else []
    return WholeTable(path, [str(name) for name in frame.columns], frame, notes, spelled=spelled)


def _spelled_records(name: str, records: list[dict[str, Any]]) -> pd.Series[Any] | None:
    """A column of whole numbers with gaps as text; None for any other."""
    values = [record.get(name) for record in records]
    if any(value is not None and type(value) is not int for value in values):
        return None
    return pd.Series([None if value is None else str(value) for value in values], dtype="str")


def _refuse_columns(records: list[dict[str, Any]], path: Path) -> None:
    """One object that holds the whole table, by columns as pandas writes it, or under a name, is no row."""
    values = list(records[0].values())
    by_column = len(values) > 1 and all(isinstance(v, dict) and v and v.keys() == values[0].keys() for v in values)
    under_a_name = len(values) == 1 and isinstance(values[0], list) and bool(values[0])
    if len(records) == 1 and (by_column or (under_a_name and isinstance(values[0][0], dict))):
        what = "one object for each column" if by_column else f"a list of objects under {next(iter(records[0]))!r}"
        mend = "write a list of objects or one object a line (pandas: to_json(path, orient='records', lines=True))"
        raise InputError(f"{path} holds {what}, not one for each row; {mend}")


def _refuse_sparse(records: list[dict[str, Any]], path: Path) -> None:
    """Lines that each name other columns would make a table far larger than the file."""
    names = set[str]().union(*records)
    filled = sum(map(len, records))
    if len(names) > MOST_COLUMNS or len(names) * len(records) > _MOST_EMPTY + _EMPTY * filled:
        raise InputError(
            f"{path}: {len(records):,} records name {len(names):,} columns and fill {filled:,} cells; so many "
            "empty cells do not fit into memory. Give the records the same names"
        )


def _records(stream: io.TextIOWrapper, path: Path) -> tuple[list[dict[str, Any]], int]:
    """The objects, and how many of them had a text that was cut in the middle of a character."""
    is_list = stream.readline().lstrip().startswith("[")
    stream.seek(0)
    records: list[Any] = []
    n_cut = 0
    for line, text in enumerate([stream.read()] if is_list else stream, start=1):
        if not text.strip():
            continue
        try:
            found, n = _parsed(text)
        except (ValueError, RecursionError) as error:
            where = getattr(error, "lineno", 1) if is_list else line
            raise InputError(f"{path}, line {where}: no JSON ({error})") from error
        records += found
        n_cut += n
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise InputError(f'{path}, record {number}: expected an object such as {{"a": 1}}, got {str(record)[:40]}')
    return records, n_cut


def _parsed(text: str) -> tuple[list[Any], int]:
    """The records in a piece of JSON, and in how many a half of a character, which no other text can hold, became ?."""
    found = json.loads(text)
    records = found if isinstance(found, list) else [found]
    if not _HALF.search(text):
        return records, 0
    written = [json.dumps(record, ensure_ascii=False) for record in records]
    whole = [text.encode(errors="replace").decode() for text in written]
    n_cut = sum(before != after for before, after in zip(written, whole, strict=True))
    return [json.loads(text) for text in whole] if n_cut else records, n_cut

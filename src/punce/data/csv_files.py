"""CSV and its relatives: separator, header and encoding are found, and said where they were guessed."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from punce.columns.written import Decimal
from punce.data.table_file import FileOptions, about_header, names_of, numbered
from punce.data.text_files import BROKEN, find_encoding, open_bytes, unreadable
from punce.errors import InputError, number_of

_SEPARATORS = ",;\t|"
_WHITESPACE = r"\s+"  # as pandas spells it: any number of spaces and tabs
_WORDS = {
    **{"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "},
    "whitespace": _WHITESPACE,
}
_LONGEST_HEADER = 1 << 24  # characters; bounded: a file without newlines must not be read whole
_SAMPLED, _RECORDS = 1 << 18, 50  # characters and lines after the header that decide separator and header
_LARGEST_CELL = 2**31 - 1  # characters, the most that csv takes on every system
_SHOWN = 40  # characters of a line
_RAGGED = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
_CELLS, _FEWEST_ROWS, _MOST_ROWS = 300_000, 100, 10_000  # that are looked at for leading zeros
_DIGITS_OR_GAP = re.compile(r" *(?:[0-9]*|n/?an?|null|none|#n/a|<na>) *", re.IGNORECASE)  # as pandas has gaps
_BLANKS = re.compile(r"[ \t]+")
_UNCLOSED = re.compile(r"EOF inside string starting at row (\d+)")


@dataclass(frozen=True)
class CsvFile:
    """A CSV file whose form is known: open it with :func:`open_csv`."""

    path: Path
    names: list[str]
    notes: list[str]
    separator: str
    encoding: str
    hint: str
    has_header: bool
    member: str | None
    skipped: int
    """Lines before the header: Excel writes ``sep=;`` there."""

    def frames(
        self, rows: int | None, columns: list[str] | None, as_text: Collection[str], decimal: Decimal
    ) -> Iterator[pd.DataFrame]:
        """What is text in the first frame stays text. After the last one, `notes` tell of lines with too few cells."""
        options: dict[str, Any] = {
            "sep": self.separator,
            "names": self.names,
            "header": 0 if self.has_header else None,
            "skiprows": self.skipped,
            "usecols": columns,
            "dtype": dict.fromkeys(as_text, "str"),  # names the file does not have are ignored
            "encoding": self.encoding,
            "decimal": decimal,
            "low_memory": False,
            "index_col": False,  # else pandas takes the first column for row names where a line has a cell too many
        }
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)  # cells that it would cut off
                has_gaps = False
                for frame in self._parsed(rows, options):
                    # a line with too few cells has none in the last column: few files need a second look
                    has_gaps = has_gaps or bool(len(frame) and frame.iloc[:, -1].isna().any())
                    yield frame
                if has_gaps and columns is None:
                    self.notes.extend(note for note in self._about_short_lines() if note not in self.notes)
        except (*BROKEN, ValueError, pd.errors.ParserWarning) as error:  # pandas' and decoding errors are ValueErrors
            raise self._explained(error) from error

    def _parsed(self, rows: int | None, options: dict[str, Any]) -> Iterator[pd.DataFrame]:
        if rows is None:
            with open_bytes(self.path, self.member) as stream:
                yield pd.read_csv(stream, **options)
            return
        with open_bytes(self.path, self.member) as stream:
            first = pd.read_csv(stream, nrows=rows, **options)
        # later rows with digits only must keep their spelling too
        options["dtype"] |= {name: "str" for name in first.columns if pd.api.types.is_string_dtype(first[name])}
        with (
            open_bytes(self.path, self.member) as stream,
            pd.read_csv(stream, chunksize=rows, **options) as reader,
        ):
            yield from reader

    def codes(self) -> list[str]:
        """Columns of digits with leading zeros, as zip codes have them: as numbers they would lose these.

        The first rows tell. Without pandas, which takes a second to look for this in 10,000 columns.
        """
        rows: list[list[str]] = []
        most = max(_FEWEST_ROWS, min(_MOST_ROWS, _CELLS // len(self.names)))
        with suppress(csv.Error, *BROKEN, ValueError), self._lines() as lines:  # whoever reads all rows tells of it
            rows = list(islice(filter(None, lines), self.skipped + self.has_header, most))
        padded = {k for row in rows for k, cell in enumerate(row) if cell[:1] == "0" and cell[1:2].isdigit()}
        codes = {k for k in padded if all(_DIGITS_OR_GAP.fullmatch(row[k]) for row in rows if k < len(row))}
        return [name for k, name in enumerate(self.names) if k in codes]

    def _about_short_lines(self) -> list[str]:
        """A note on lines with fewer cells than there are columns, which pandas fills without a word."""
        wanted, short, line, cells = len(self.names), [], 0, 0
        # what csv cannot read pandas could: then nothing is known about the lines
        with suppress(csv.Error), self._lines() as lines:
            for record in lines:
                is_blank = len(record) < 2 and not "".join(record).strip()
                if lines.line_num > self.skipped and not is_blank:
                    line, cells = lines.line_num, len(record)
                    short += [line] if cells < wanted else []
        if not short:
            return []
        have = number_of(len(short), "line has", "lines have")
        said = f"{have} fewer cells than the {wanted} columns, first line {short[0]:,}; absent ones count as missing"
        is_cut = short[-1] == line
        return [said + (f"; the last line, {line:,}, has {cells}: the file may be cut off" if is_cut else "")]

    @contextmanager
    def _lines(self) -> Iterator[Any]:
        """All lines as cells, by csv's reader, which knows their numbers."""
        limit = csv.field_size_limit(_LARGEST_CELL)
        try:
            with (
                open_bytes(self.path, self.member) as stream,
                io.TextIOWrapper(stream, encoding=self.encoding, newline="") as text,
            ):
                yield _reader(text, self.separator)
        finally:
            csv.field_size_limit(limit)

    def _explained(self, error: Exception | Warning) -> InputError:
        said = str(error)
        if found := _RAGGED.search(said):
            return _ragged(self.path, int(found[2]) + self.skipped, int(found[3]), self.names)
        if isinstance(error, pd.errors.ParserWarning):
            return InputError(f"{self.path}: some lines have more cells than the header has names ({len(self.names)})")
        if found := _UNCLOSED.search(said):
            return InputError(f"{self.path}: a quote opened near line {int(found[1]) + 1} is never closed")
        return unreadable(self.path, error)


def _ragged(path: Path, line: int, cells: int, names: list[str]) -> InputError:
    where = f"{path}, line {line}: {cells} cells where the header names"
    if len(names) == 1:  # a title, a remark, or another separator
        mend = "remove what stands above the names of the columns, or name the separator (--sep)"
        return InputError(f"{where} only {names[0][:_SHOWN]!r}; {mend}")
    mend = "a separator inside a cell needs quotes (--sep names the separator)"
    return InputError(f"{where} {len(names)} columns; {mend}")


def open_csv(path: Path, asked: FileOptions) -> CsvFile:
    """Find encoding, separator and column names."""
    encoding, note = find_encoding(path, asked.table, asked.encoding)
    text = _beginning(path, asked.table, encoding)
    skipped = 0
    given = _separator(asked.sep, path)
    if said := re.match(r"sep=(.)\r?\n", text):
        given, skipped, text = given or said[1], 1, text[said.end() :]
    separator = given or _sniffed(text)
    records = _records(text, separator)
    if not records:
        raise InputError(f"{path} is empty: the first line must name the columns")
    first = records[0][1]
    has_header = asked.header != "no"
    for line, cells in records:
        if any(cells[len(first) :]):  # empty ones are separators at the end of a line
            raise _ragged(path, line + skipped, len(cells), first)
    return CsvFile(
        path,
        names_of(first) if has_header else numbered(len(first)),
        [note] if note else [],
        separator,
        encoding,
        about_header(first) if asked.header == "auto" else "",
        has_header,
        asked.table,
        skipped,
    )


def _beginning(path: Path, member: str | None, encoding: str) -> str:
    try:
        with open_bytes(path, member) as packed, io.TextIOWrapper(packed, encoding=encoding, newline="") as stream:
            header = stream.readline(_LONGEST_HEADER)
            if len(header) == _LONGEST_HEADER and not header.endswith("\n"):
                raise InputError(
                    f"{path}: its first line is longer than {_LONGEST_HEADER >> 20} MB, so it does not name columns"
                )
            return header + stream.read(_SAMPLED)
    except (*BROKEN, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error


def _separator(asked: str | None, path: Path) -> str | None:
    if asked is None:
        return "\t" if re.search(r"\.(tsv|tab)\b", path.name.lower()) else None
    found = _WORDS.get(asked, asked)
    if (found != _WHITESPACE and len(found) != 1) or found in '"\r\n':
        raise InputError(f"--sep must be one character or one of {', '.join(_WORDS)}, got {asked!r}")
    return found


def _reader(lines: Iterable[str], separator: str) -> Any:
    """The lines as cells by csv's reader, which knows one character between cells only."""
    if separator == _WHITESPACE:
        lines, separator = (_BLANKS.sub(" ", line.strip(" \t\r\n")) for line in lines), " "
    return csv.reader(lines, delimiter=separator)


def _sniffed(text: str) -> str:
    """The separator under which most lines have as many cells as the first; quotes are respected."""

    def agreement(separator: str) -> tuple[float, int]:
        widths = [len(cells) for _, cells in _records(text, separator)]
        is_split = bool(widths) and widths[0] > 1
        return (sum(width == widths[0] for width in widths) / len(widths), widths[0]) if is_split else (0.0, 0)

    return max(_SEPARATORS, key=agreement)


def _records(text: str, separator: str) -> list[tuple[int, list[str]]]:
    """The first lines with their numbers, as cells; blank ones are left out, and a last one that may be cut off."""
    lines = _reader(io.StringIO(text, newline=""), separator)
    limit = csv.field_size_limit(len(text) + 1)  # a cell may hold a whole document
    try:
        found = [(lines.line_num, cells) for cells in islice(lines, _RECORDS) if cells]
    finally:
        csv.field_size_limit(limit)
    is_cut = len(text) >= _SAMPLED and len(found) < _RECORDS
    return found[:-1] if is_cut and len(found) > 1 else found

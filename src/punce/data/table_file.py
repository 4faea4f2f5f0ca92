"""What every kind of table file offers, and what the caller may say about it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import pandas as pd

from punce.columns.written import Decimal, is_number
from punce.errors import InputError

Header = Literal["auto", "yes", "no"]
MOST_COLUMNS = 100_000
"""Of a table. A column costs kilobytes and milliseconds before its first row is read."""
_SHOWN = 3
_TITLE = 40  # characters of it
_FEWEST_UNDER_A_TITLE = 3  # columns: one of two may have no name because it is the index of a frame
_LONGEST = 100  # characters of a number that may count columns


@dataclass(frozen=True)
class FileOptions:
    """How a file is written; what is None or "auto" is found out."""

    sep: str | None = None
    encoding: str | None = None
    header: Header = "auto"
    table: str | None = None
    """The table, the sheet, or the file in an archive."""

    def __post_init__(self) -> None:
        if self.header not in ("auto", "yes", "no"):
            raise InputError(f"--header must be auto, yes or no, got {self.header!r}")


class TableFile(Protocol):
    """An opened file; its rows are read when asked for."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def names(self) -> list[str]:
        """The columns."""

    @property
    def notes(self) -> list[str]:
        """What was guessed."""

    @property
    def hint(self) -> str:
        """What to say when a column is not found."""

    @property
    def separator(self) -> str | None:
        """Of a file that does not itself tell numbers from text; None for one that does."""

    def frames(
        self, rows: int | None, columns: list[str] | None, as_text: Collection[str], decimal: Decimal
    ) -> Iterator[pd.DataFrame]:
        """The rows in frames of about `rows` rows, or in as few as possible (None).

        `as_text` names columns that keep their spelling: 007 stays 007, and 17 stays 17 where other rows have no
        number. `decimal` is the mark for plain numbers; it matters only where the file does not tell numbers from text.
        """


class Typed:
    """What a file that tells numbers from text need not say."""

    hint: str = ""
    separator: str | None = None


def names_of(cells: Sequence[str]) -> list[str]:
    """As pandas gives them: a table saved with its index has a first column without a name."""
    return [cell.strip() or f"Unnamed: {k}" for k, cell in enumerate(cells)]


def numbered(width: int) -> list[str]:
    """Names for the columns of a file without a header."""
    return [f"column_{k + 1}" for k in range(width)]


def about_header(first: Sequence[str]) -> str:
    """Advice for a file whose first line does not seem to name its columns; empty for any other."""
    return _titled(first) or _headerless(first)


def _titled(first: Sequence[str]) -> str:
    """Advice where the first cell alone is filled: a person wrote a title above the table."""
    if len(first) < _FEWEST_UNDER_A_TITLE or not first[0].strip() or any(cell.strip() for cell in first[1:]):
        return ""
    return f"its first line holds only {first[0][:_TITLE]!r}: remove what stands above the names of the columns"


def _headerless(first: Sequence[str]) -> str:
    """Advice for a file whose first line looks like rows rather than names; empty for any other.

    Half of its cells are numbers, in no order of their own: 0, 1, 2 … and 2019, 2020, 2021 are names of columns.
    """
    numbers = [cell for cell in first if is_number(cell)]
    if not numbers or 2 * len(numbers) < sum(bool(cell.strip()) for cell in first):
        return ""
    # Cells that str.strip trims may hold separators that int refuses, and int refuses thousands of digits.
    plain = [int(cell.strip()) for cell in numbers if cell.strip().isdecimal() and len(cell) <= _LONGEST]
    if len(plain) == len(numbers) > 1 and plain == list(range(plain[0], plain[0] + len(plain))):
        return ""
    shown = ", ".join(first[:_SHOWN]) + (", …" if len(first) > _SHOWN else "")
    return f"its first line looks like data ({shown}): --header no names the columns column_1 to column_{len(first)}"

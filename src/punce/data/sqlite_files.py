"""Tables of SQLite databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from punce.columns.written import Decimal
from punce.data.table_file import FileOptions, Typed
from punce.data.text_files import unreadable
from punce.errors import InputError

_SHOWN = 8  # tables in a message
_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class SqliteTable(Typed):
    """A table or view of an SQLite database, opened for reading only."""

    path: Path
    table: str
    names: list[str]
    notes: list[str]
    has_row_numbers: bool = True
    """Not of a view, nor of a table WITHOUT ROWID."""

    def frames(
        self, rows: int | None, columns: list[str] | None, as_text: Collection[str], decimal: Decimal
    ) -> Iterator[pd.DataFrame]:
        """Fetched in pieces, in an order that does not depend on the columns: labels are read apart from their rows."""
        # SQLite reads a column alone from an index where there is one, and so in the order of its values. Without row
        # numbers only the same query gives the same order: it goes through all columns, of a few in pieces.
        if self.has_row_numbers:
            asked, size, how = columns or self.names, rows, " NOT INDEXED"
        else:
            asked, size, how = self.names, rows or (_ROWS_AT_ONCE if columns else None), ""
        wanted = (_as_spelled(name) if name in as_text else _quoted(name) for name in asked)
        query = f"SELECT {', '.join(wanted)} FROM {_quoted(self.table)}{how}"
        try:
            with closing(_connected(self.path)) as database:
                found = pd.read_sql_query(query, database, chunksize=size)
                for frame in [found] if isinstance(found, pd.DataFrame) else found:
                    yield frame if columns is None else frame[columns]
        except (sqlite3.Error, pd.errors.DatabaseError, UnicodeDecodeError) as error:
            raise unreadable(self.path, error) from error


def open_sqlite(path: Path, asked: FileOptions) -> SqliteTable:
    """The table asked for, or the only one."""
    try:
        with closing(_connected(path)) as database:
            listed = database.execute("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY 1")
            kinds = {name: kind for name, kind in listed if not name.startswith("sqlite_")}
            table = _table(kinds, path, asked.table)
            names = [row[1] for row in database.execute(f"PRAGMA table_info({_quoted(table)})")]
            has_row_numbers = kinds[table] == "table" and _has_row_numbers(database, table)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error
    return SqliteTable(path, table, names, [], has_row_numbers)


def _has_row_numbers(database: sqlite3.Connection, table: str) -> bool:
    try:
        database.execute(f"SELECT _rowid_ FROM {_quoted(table)} LIMIT 0")
    except sqlite3.OperationalError:  # there is no such column
        return False
    return True


def _table(kinds: dict[str, str], path: Path, wanted: str | None) -> str:
    """A view is read only by its name: it is a query of whoever made the file, and may never end."""
    listed = ", ".join(list(kinds)[:_SHOWN])
    if wanted is not None and wanted not in kinds:
        raise InputError(f"{path} has no table {wanted!r} (it has: {listed})")
    if wanted is None and (len(kinds) != 1 or "view" in kinds.values()):
        several = "only a view" if len(kinds) == 1 else "several tables"
        raise InputError(f"{path} has " + (f"{several} ({listed}); name one with --table" if kinds else "no table"))
    return wanted or next(iter(kinds))


def _connected(path: Path) -> sqlite3.Connection:
    if path.stat().st_size == 0:  # for SQLite an empty file is a database without tables
        raise InputError(f"{path} is empty")
    database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    try:
        database.execute("PRAGMA trusted_schema = OFF")  # a view of somebody else's file calls harmless functions only
    except sqlite3.Error:
        database.close()
        raise
    return database


def _as_spelled(name: str) -> str:
    """A column whose whole numbers come as text: beside gaps pandas would make floats of them."""
    own = _quoted(name)
    return f"CASE typeof({own}) WHEN 'integer' THEN CAST({own} AS TEXT) ELSE {own} END AS {own}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""Rows drawn from a table that is too large to learn from at once: up to half of them labelled, all at random.

What a label means can depend on the other rows, so the label column is read first, alone. It says how many rows there
are of each kind; which of them are drawn follows from it and the seed. One more pass over the file takes them.

A reservoir would need one pass, but it must keep rows of every value of the label column until the last row has told
what the values mean, and which rows it keeps depends on the order in which parts arrive. Here each kind is a simple
random sample of known size, the same whether one process reads the parts or many workers do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.columns.written import Decimal
from punce.data.table_file import TableFile
from punce.data.typed_files import ParquetFiles
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels
from punce.training.cluster import Map

MOST_CELLS = 50_000_000
MOST_BYTES = 1 << 30
"""A table of more cells, or of more bytes as a file (Parquet: unpacked), is not learned from as a whole: learning takes
several times the memory of the rows."""
MOST_DRAWN = 1_000_000
"""Where rows must be drawn, more of them would cost time only: the models learn from fewer."""
_BATCH = 65_536
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Drawn:
    """Which rows of a file were drawn, in order, and the labels of all its rows."""

    rows: Rows
    labels: Labels

    def in_words(self) -> str:
        """How many of which rows, for a person."""
        pairs = ((POSITIVE, "labelled"), (NEGATIVE, "labelled negative"), (UNLABELLED, "unlabelled"))
        kinds = [
            _some_of(int((self.labels[self.rows] == kind).sum()), int((self.labels == kind).sum()), name)
            for kind, name in pairs
            if (self.labels == kind).any()
        ]
        return f"of {len(self.labels):,} rows some were drawn to learn from: {', '.join(kinds)}"


def _some_of(drawn: int, total: int, name: str) -> str:
    return f"all {total:,} {name} rows" if drawn == total else f"{drawn:,} of {total:,} {name} rows, at random"


def draw(labels: Labels, most: int, seed: int) -> Rows:
    """At most `most` row numbers, in order: half of them at most are labelled, so that both kinds are there.

    Each kind is a simple random sample of its rows, whole if there are few. Shape: (n,) -> (m,).
    """
    rng = np.random.default_rng([seed, len(labels)])
    taken: list[Rows] = []
    # Labelled rows may take half of the room, negatives half of what is then left, unlabelled rows the rest.
    for kind, share in ((POSITIVE, 2), (NEGATIVE, 2), (UNLABELLED, 1)):
        own = np.flatnonzero(labels == kind)
        left = (most - sum(map(len, taken))) // share
        taken.append(own if len(own) <= left else rng.choice(own, left, replace=False, shuffle=False))
    return np.sort(np.concatenate(taken))


def size_of(table: TableFile) -> int:
    """Bytes of the file; of Parquet, of its columns unpacked."""
    if isinstance(table, ParquetFiles):
        return sum(
            parquet.row_group(k).total_byte_size for parquet in table.metadata for k in range(parquet.num_row_groups)
        )
    return table.path.stat().st_size


def is_large(table: TableFile) -> bool:
    """Whether it should not be read as a whole, as far as can be told before a row is read."""
    cells = 0
    if isinstance(table, ParquetFiles):
        cells = len(table.names) * sum(parquet.num_rows for parquet in table.metadata)
    return cells > MOST_CELLS or size_of(table) > MOST_BYTES


def rows_that_fit(table: TableFile, rows: int) -> int:
    """How many of its `rows` stay within the limits above; all, unless it is large."""
    by_cells, by_bytes = MOST_CELLS // max(1, len(table.names)), MOST_BYTES * rows // max(1, size_of(table))
    fit = min(by_cells, by_bytes)
    return rows if rows <= fit else max(1, min(fit, MOST_DRAWN))


@dataclass(frozen=True)
class DrawnTable:
    """Some rows of a table file, which otherwise is the file."""

    table: TableFile
    rows: Rows
    on_workers: Map = map
    """Takes the rows of the parts, here or elsewhere."""

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self.table.path

    @property
    def names(self) -> list[str]:
        """Its columns."""
        return self.table.names

    @property
    def notes(self) -> list[str]:
        """What was guessed about it."""
        return self.table.notes

    @property
    def hint(self) -> str:
        """What to say when a column is not found."""
        return self.table.hint

    @property
    def separator(self) -> str | None:
        """What stands between the cells of the file."""
        return self.table.separator

    def frames(
        self, rows: int | None, columns: list[str] | None, as_text: Collection[str], decimal: Decimal
    ) -> Iterator[pd.DataFrame]:
        """The drawn rows in one frame."""
        if isinstance(self.table, ParquetFiles):
            taken = self.on_workers(take_part, list(self._jobs(self.table, columns)))
        else:
            taken = _taken(self.table.frames(_BATCH, columns, as_text, decimal), self.rows)
        yield same_types(pd.concat(list(taken), ignore_index=True))

    def _jobs(self, table: ParquetFiles, columns: list[str] | None) -> Iterator[PartRows]:
        start = 0
        for file, parquet in zip(table.files, table.metadata, strict=True):
            ends = np.searchsorted(self.rows, [start, start + parquet.num_rows])
            yield PartRows(file.resolve(), self.rows[slice(*ends)] - start, columns)
            start += parquet.num_rows


@dataclass(frozen=True)
class PartRows:
    """Rows to take from one part."""

    file: Path
    rows: Rows
    columns: list[str] | None


def take_part(job: PartRows) -> pd.DataFrame:
    """The rows of one part; runs on a worker."""
    part = ParquetFiles(job.file, [job.file], [], [])
    return pd.concat(list(_taken(part.frames(_BATCH, job.columns, (), "."), job.rows)), ignore_index=True)


def _taken(frames: Iterator[pd.DataFrame], rows: Rows) -> Iterator[pd.DataFrame]:
    """The rows with these numbers, batch by batch; of the first batch in any case, as it has the columns' types."""
    start = 0
    for frame in frames:
        ends = np.searchsorted(rows, [start, start + len(frame)])
        if start == 0 or ends[0] < ends[1]:
            yield frame.iloc[rows[slice(*ends)] - start]
        start += len(frame)


def same_types(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns that are text in some batches and numbers in others, as text: a CSV file's types are guessed by batch."""
    mixed = [name for name in frame.columns if frame[name].dtype == object and _is_mixed(frame[name])]
    return frame.assign(**{name: frame[name].map(str, na_action="ignore") for name in mixed}) if mixed else frame


def _is_mixed(column: pd.Series[Any]) -> bool:
    return len(set(column.dropna().map(type))) > 1

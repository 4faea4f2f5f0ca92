"""Options that ``punce fit``, ``prior`` and ``predict`` share: where the rows are and how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

FILE = ("sep", "encoding", "header", "decimal", "table", "skip_unreadable")
"""Options that say how a file is written, for every command that reads one."""
Data = Annotated[
    Path,
    typer.Argument(
        help="CSV, Excel, Parquet (a file, folder or 'pattern-*.parquet'), JSON lines, SQLite (FILE::TABLE), .npy, "
        ".npz, a folder of images."
    ),
]
Label = Annotated[str | None, typer.Option(help="Column that marks labelled positives.")]
Positive = Annotated[
    list[str] | None, typer.Option(help="Value of the label column that means positive; may be repeated.")
]
Negative = Annotated[
    list[str] | None, typer.Option(help="Value that means known to be negative, with --positive; may be repeated.")
]
Id = Annotated[str | None, typer.Option("--id", help="Column with row names.")]
Text = Annotated[str | None, typer.Option(help="Column with the text to learn from.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")]
Keep = Annotated[list[str] | None, typer.Option(help="Column to learn from, and no other; may be repeated.")]
Category = Annotated[
    list[str] | None, typer.Option(help="Column whose numbers are names (of regions, codes); may be repeated.")
]
Sep = Annotated[
    str | None,
    typer.Option(help="Separator of a CSV file: a character, tab, space, or whitespace (spaces and tabs, any number)."),
]
Encoding = Annotated[str | None, typer.Option(help="Encoding of a text file: utf-8, utf-16, cp1252, ...")]
Header = Annotated[str, typer.Option(help="yes, or no: columns are called column_1, column_2, ...")]
Decimal = Annotated[str | None, typer.Option(help="Decimal mark: . or a comma.")]
Table = Annotated[str | None, typer.Option(help="Table of a database, sheet of a workbook, file in a zip archive.")]
SkipUnreadable = Annotated[bool, typer.Option("--skip-unreadable", help="Leave out images that cannot be read.")]
LabelsFile = Annotated[Path | None, typer.Option(help="Separate file with the labels (embeddings, images).")]
ScenarioName = Annotated[
    str, typer.Option(help="single_set (labelled rows are part of one sample) or case_control (collected separately).")
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything random.")]
Cluster = Annotated[
    str | None, typer.Option(help="Dask scheduler (tcp://HOST:PORT) whose workers read the Parquet parts of DATA.")
]
MaxRows = Annotated[
    int | None,
    typer.Option(
        min=100,
        help="Use at most so many rows of a table, up to half of them labelled; by default as many as fit into memory.",
    ),
]


def named_values(given: dict[str, Any]) -> dict[str, Any]:
    """The values of the label column that a command names. One is no list: so the folders of runs have it."""
    found = {name: tuple(given[name] or ()) for name in ("positive", "negative")}
    return {name: values[0] if len(values) == 1 else values or None for name, values in found.items()}

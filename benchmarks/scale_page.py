"""The section of docs/benchmarks.md about growing data, from results/scale.json."""

from __future__ import annotations

from typing import Any

from rows import rows_of

_ALONG = {
    "rows": "10 columns, by rows",
    "columns": "1,000 rows, by columns",
    "views": "One forward and backward pass of the loss, by views",
}

_WHY = """**Where the curves bend.** `punce predict` reads rows in batches: its memory is that of the libraries and one
batch. Its time depends on the model: one of 1,000 rows has small trees, one of 100,000 rows (the large model) large
ones. `punce fit` and `punce prior` read a table whole up to 50 million cells, and draw a million rows of a larger one.
Above 50,000 unlabelled rows a random 50,000 train; from there on `punce fit` spends its time on scoring every row with
all members: about an eighth of a millisecond a row. The other classifiers get one array: at 10,000 columns their
memory is mostly what this script needs to read it."""


def scale_section(found: dict[str, Any]) -> str:
    """A table for rows, one for columns and one for views; the figure shows the same."""
    tables = [f"{title}:\n\n{_table(found['curves'], along)}" for along, title in _ALONG.items()]
    return "\n\n".join(
        [
            "### Growing data (`benchmarks/scale.py`)",
            "Each entry is one command or call in a process of its own: CPU seconds, start of Python included, and the "
            "largest resident memory. All methods of a table read the same rows. A method that failed at one size was "
            "not tried at larger ones; – was not measured. “Over” was stopped at its limit, 20 minutes on busy cores.",
            *tables,
            _WHY,
            "![CPU seconds and memory by rows, columns and views](images/scale.svg)",
        ]
    )


def _table(curves: dict[str, Any], along: str) -> str:
    mine = {name.removesuffix(f", by {along}"): curve for name, curve in curves.items() if name.endswith(f"by {along}")}
    sizes = sorted({int(size) for curve in mine.values() for size in curve})
    header = ["CPU seconds / MB", *(f"{size:,}" for size in sizes)]
    return rows_of(header, [[name, *(_entry(curve.get(str(size))) for size in sizes)] for name, curve in mine.items()])


def _entry(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "–"
    if cell["failed"]:
        return f"over {cell['cpu_seconds']:,.0f}" if cell["failed"] == "took too long" else "failed"
    return f"{cell['cpu_seconds']:,.1f} / {cell['peak_mb']:,.0f}"

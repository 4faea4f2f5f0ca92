"""``punce data``: get a benchmark set, verified by checksum, and say what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from punce.data import Benchmark, Dataset, Part


def data(
    name: Annotated[str | None, typer.Argument(help="A benchmark set; without it the sets are listed.")] = None,
    root: Annotated[
        Path | None, typer.Option(help="Data directory; by default those in PUNCE_DATA, then the user's cache.")
    ] = None,
    list_sets: Annotated[bool, typer.Option("--list", help="List the sets and stop.")] = False,
) -> None:
    """Get a benchmark data set, verified by checksum."""
    from punce.cli.terminal import Terminal
    from punce.data import DATASETS, find_benchmark
    from punce.datasets.benchmarks import load_benchmark, locate
    from punce.errors import InputError

    if name is not None and list_sets:
        raise InputError(f"--list shows all sets; leave out {name!r}, or leave out --list to get this set")
    console = Terminal()
    if name is None:
        console.print(_catalogue(DATASETS))
        return
    benchmark = find_benchmark(name)
    paths = locate(benchmark, root)
    _report_files(benchmark, paths, console.print)
    console.print(_parts(load_benchmark(benchmark, root)))


def _report_files(benchmark: Benchmark, paths: dict[str, Path], show: Callable[..., None]) -> None:
    """Say where each file lies and whether it is the pinned one; refuse a changed file."""
    from punce.datasets.benchmarks import verify
    from punce.errors import InputError

    verdicts = verify(benchmark, paths)
    words = {True: "sha256 as pinned", None: "no sha256 is pinned for this form", False: "differs"}
    for file, verdict in verdicts.items():
        show(f"{paths[file]}: {words[verdict]}", soft_wrap=True, markup=False, highlight=False)
    changed = [str(paths[file]) for file, verdict in verdicts.items() if verdict is False]
    if changed:
        raise InputError(f"{', '.join(changed)}: not the pinned content; remove and run again to fetch it")


def _catalogue(datasets: dict[str, Benchmark]) -> Table:
    from rich.table import Table

    table = Table("set", "kind", "positive class", "what it is")
    for name, benchmark in datasets.items():
        table.add_row(name, benchmark.kind, benchmark.positive, benchmark.about)
    return table


def _parts(dataset: Dataset) -> Table:
    from rich.table import Table

    table = Table("part", "rows", "positive", "share", title=f"{dataset.name}: positive is {dataset.positive}")
    for name in ("train", "validation", "test"):
        part: Part | None = getattr(dataset, name)
        if part is not None:
            table.add_row(name, f"{len(part):,}", f"{part.n_positive:,}", f"{part.n_positive / len(part):.4f}")
    return table

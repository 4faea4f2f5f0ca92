"""``punce predict``: score a new file with the model of a run, batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from punce.cli import reading
from punce.cli.importing import without_collection


def predict(
    ctx: typer.Context,
    run: Annotated[Path, typer.Argument(help="Run folder of punce fit, or a model folder.")],
    data: Annotated[Path, typer.Argument(help="New rows, in the form the model learned from.")],
    out: Annotated[Path | None, typer.Option(help="Result file, .parquet or .csv; by default beside DATA.")] = None,
    deploy_prior: Annotated[
        float | None, typer.Option(help="Share of positives among the new rows, if another than in training.")
    ] = None,
    batch_rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = 20_000,
    sep: reading.Sep = None,
    encoding: reading.Encoding = None,
    header: reading.Header = "auto",
    decimal: reading.Decimal = None,
    table: reading.Table = None,
    skip_unreadable: reading.SkipUnreadable = False,
) -> None:
    """Score the rows of a new file."""
    from rich.console import Console

    from punce.storage.files import existing, file_and_table

    for path in (run, file_and_table(data)[0]):  # before the seconds that importing torch takes
        existing(path)
    with without_collection():
        from punce.product.predict import run_predict
    target = out or _beside(data)
    written = {name: ctx.params[name] for name in reading.FILE}
    done = run_predict(run, data, target, deploy_prior=deploy_prior, batch_rows=batch_rows, written=written)
    console = Console()
    for note in done.notes:
        console.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True, style="yellow")
    console.print(
        f"{done.rows:,} rows scored, {done.called:,} called positive (probability ≥ {done.threshold:.3f}): {target}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _beside(data: Path) -> Path:
    """NAME.scores.parquet beside NAME; "." and ".." say where a folder is, not how it is called."""
    named = data.resolve() if data.name in ("", "..") else data
    return named.parent / f"{named.stem}.scores.parquet"

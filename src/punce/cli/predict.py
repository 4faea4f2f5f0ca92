"""``punce predict``: score a new file with the model of a run, batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from punce.cli import reading
from punce.cli.importing import without_collection

if TYPE_CHECKING:
    from punce.product.predict import PredictOutcome

_SHARE = "Share of positives that the probabilities are for, if another than in training; auto: that of the new rows."


def predict(
    ctx: typer.Context,
    run: Annotated[Path, typer.Argument(help="Run folder of punce fit, or a model folder.")],
    data: Annotated[Path, typer.Argument(help="New rows, in the form the model learned from.")],
    out: Annotated[Path | None, typer.Option(help="Result file, .parquet or .csv; by default beside DATA.")] = None,
    share: Annotated[str | None, typer.Option("--share", "--deploy-prior", help=_SHARE)] = None,
    batch_rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = 20_000,
    sep: reading.Sep = None,
    encoding: reading.Encoding = None,
    header: reading.Header = "auto",
    decimal: reading.Decimal = None,
    table: reading.Table = None,
    skip_unreadable: reading.SkipUnreadable = False,
) -> None:
    """Score the rows of a new file, and say how they differ from those the model learned from."""
    from punce.storage.files import existing, file_and_table

    for path in (run, file_and_table(data)[0]):  # before the seconds that importing torch takes
        existing(path)
    wanted = _share(share)
    with without_collection():
        from punce.product.predict import run_predict

    target = out or _beside(data)
    written = {name: ctx.params[name] for name in reading.FILE}
    done = run_predict(run, data, target, share=wanted, batch_rows=batch_rows, written=written)
    _say(done, target, is_shifted=share is not None)


def _share(given: str | None) -> float | Literal["auto"] | None:
    from punce.scenario import check_prior

    if given is None:
        return None
    return "auto" if given == "auto" else check_prior(given, "--share", open_interval=True)


def _say(done: PredictOutcome, target: Path, *, is_shifted: bool) -> None:
    from punce.cli.terminal import Terminal

    console = Terminal()
    plain: dict[str, Any] = {"highlight": False, "markup": False, "soft_wrap": True}
    for note in done.notes:
        console.print(f"note: {note}", style="yellow", **plain)
    how = "to which they were shifted" if is_shifted else "the model's own; not shifted"
    console.print(f"share of positives in these rows: {done.share.in_words()}", **plain)
    console.print(f"the probabilities assume {done.assumed:.3f} ({how})", **plain)
    if done.known:
        console.print(f"the model learned from {done.known} beside the labelled positives", **plain)
    unknown = f", {done.unknown:,} unknown" if done.unknown else ""
    called = f"{done.called:,} called positive (probability ≥ {done.threshold:.3f}){unknown}"
    console.print(f"{done.rows:,} rows scored, {called}: {target}", **plain)


def _beside(data: Path) -> Path:
    """NAME.scores.parquet beside NAME; "." and ".." say where a folder is, not how it is called."""
    named = data.resolve() if data.name in ("", "..") else data
    return named.parent / f"{named.stem}.scores.parquet"

"""``punce predict``: score a new file with the model of a run, batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from punce.cli import reading
from punce.cli.importing import without_collection
from punce.errors import InputError, number_of

if TYPE_CHECKING:
    from punce.product.predict import PredictOutcome

_OUT = "Result file, .parquet or .csv; by default beside DATA. Of parts: a folder gets a file for each."
_SHARE = "Shift the probabilities to this share of positives; auto: to the share estimated in the new rows."


def predict(
    ctx: typer.Context,
    run: Annotated[Path, typer.Argument(help="Run folder of punce fit, or a model folder.")],
    data: Annotated[Path, typer.Argument(help="New rows, in the form the model learned from.")],
    out: Annotated[Path | None, typer.Option(help=_OUT)] = None,
    share: Annotated[str | None, typer.Option(help=_SHARE)] = None,
    batch_rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = 20_000,
    sep: reading.Sep = None,
    encoding: reading.Encoding = None,
    header: reading.Header = "auto",
    decimal: reading.Decimal = None,
    table: reading.Table = None,
    skip_unreadable: reading.SkipUnreadable = False,
    cluster: reading.Cluster = None,
) -> None:
    """Score the rows of a new file, and say how they differ from those the model learned from.

    A folder or pattern of Parquet files ('parts/*.parquet') is scored into one file, or, if --out names a folder, part
    by part: then a repeated command skips the parts that are done, and --cluster spreads them over Dask workers.
    """
    from punce.storage.files import existing, file_and_table

    for path in (run, file_and_table(data)[0]):  # before the seconds that importing torch takes
        existing(path)
    if run.is_file():
        raise InputError(f"{run} is a file; the folder of a run comes first: punce predict RUN DATA")
    wanted = _share(share)
    written = {name: ctx.params[name] for name in reading.FILE}
    options: dict[str, Any] = {"share": wanted, "batch_rows": batch_rows, "written": written}
    with without_collection():
        from punce.product.score_file import beside, refuse_scores_of_another, source_name
    if cluster is not None or _is_folder_for(data, out):
        _predict_parts(run, data, out or beside(data, ".scores"), cluster=cluster, **options)
        return
    target = out or beside(data, ".scores.parquet")
    if out is None:
        refuse_scores_of_another(target, source_name(data, table))
    with without_collection():
        from punce.product.predict import run_predict
    _say(run_predict(run, data, target, **options), str(target), is_shifted=share is not None)


def _predict_parts(run: Path, data: Path, out: Path, **options: Any) -> None:
    with without_collection():
        from punce.product.predict_parts import predict_parts

    done = predict_parts(run, data, out, **options)
    before = f", {number_of(done.skipped, 'of them was', 'of them were')} done before" if done.skipped else ""
    parts = f"{out} ({number_of(done.parts, 'part', 'parts')}{before})"
    _say(done.together, parts, is_shifted=options["share"] is not None)


def _is_folder_for(data: Path, out: Path | None) -> bool:
    """Whether every part of the data is to get a file of its own."""
    from punce.storage.parts import has_parts

    return out is not None and out.suffix not in (".parquet", ".csv") and has_parts(data)


def _share(given: str | None) -> float | Literal["auto"] | None:
    from punce.scenario import check_prior

    if given is None:
        return None
    if given == "auto":
        return "auto"
    try:
        share = float(given)
    except ValueError:
        raise InputError(f"--share must be a number between 0 and 1 or auto, got {given!r}") from None
    return check_prior(share, "--share", open_interval=True)


def _say(done: PredictOutcome, target: str, *, is_shifted: bool) -> None:
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
    rows = number_of(done.rows, "row", "rows")
    console.print(f"{rows} scored, {called}: {target}", **plain)

"""``punce fit``: learn from a file and leave a run folder with model, ranked rows, numbers and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from punce.product.fit import FitOutcome


def fit(
    data: Annotated[Path, typer.Argument(help="CSV, Parquet, .npy/.npz, or a folder of images.")],
    label: Annotated[str | None, typer.Option(help="Column that marks labelled positives.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; by default runs/NAME.")] = None,
    positive: Annotated[str | None, typer.Option(help="Value of the label column that means positive.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="Column with row names.")] = None,
    text: Annotated[str | None, typer.Option(help="Column with the text to learn from.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Separate file with the labels (embeddings, images).")] = None,
    kind: Annotated[str, typer.Option(help="auto, table, text, image or embedding.")] = "auto",
    prior: Annotated[str, typer.Option(help="Share of positives among the unlabelled rows, or auto.")] = "auto",
    scenario: Annotated[str, typer.Option(help="single_set or case_control.")] = "single_set",
    threshold: Annotated[
        str, typer.Option(help="accuracy, f1, precision=0.9, recall=0.95 or a probability.")
    ] = "accuracy",
    loss: Annotated[str, typer.Option(help="punce, scl, infonce, dcl, or none to train without.")] = "punce",
    risk: Annotated[str, typer.Option(help="nnpu, upu, pvu, pn, vpu, pupl or selfpu.")] = "nnpu",
    transfer: Annotated[str, typer.Option(help="probe or finetune.")] = "probe",
    encoder: Annotated[
        str,
        typer.Option(
            help="auto, mlp, allconv, resnet18, identity, linear; for text tfidf or an encoder's name or folder."
        ),
    ] = "auto",
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs of pretraining; by default by number of rows.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    image_size: Annotated[int | None, typer.Option(min=4, help="Side to which images are scaled.")] = None,
    scores: Annotated[str, typer.Option(help="Form of the ranked list: parquet or csv.")] = "parquet",
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and check, say what would happen, stop.")] = False,
) -> None:
    """Learn from a few labelled positives and a pile of unlabelled rows."""
    from rich.console import Console

    from punce.errors import InputError
    from punce.product.fit import DataOptions, ModelOptions, plan_fit, run_fit
    from punce.training import collectives

    with collectives.joined():  # under torchrun every rank runs this command
        console = Console(quiet=collectives.rank() > 0)
        if scores not in ("parquet", "csv"):
            raise InputError(f"--scores must be parquet or csv, got {scores!r}")
        source = DataOptions(
            path=str(data),
            label=label,
            positive=positive,
            id=id,
            text=text,
            kind=kind,
            labels=None if labels is None else str(labels),
            drop=tuple(drop or ()),
            image_size=image_size,
        )
        model = ModelOptions(
            loss=None if loss == "none" else loss,
            risk=risk,
            transfer=transfer,
            encoder=encoder,
            prior=_number_or_word(prior),
            scenario=scenario,  # type: ignore[arg-type]
            threshold=_number_or_word(threshold),
            epochs=epochs,
            device=device,
            random_state=seed,
        )
        folder = out or Path("runs") / data.resolve().stem
        if dry_run:
            plan = plan_fit(source, model, folder, scores=scores, say=console.print)
            console.print(f"{plan}; nothing was written", highlight=False, markup=False, soft_wrap=True)
            return
        _say_outcome(console, run_fit(source, model, folder, scores=scores, say=console.print))


def _number_or_word(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def _say_outcome(console: Console, outcome: FitOutcome) -> None:
    from rich.markup import escape
    from rich.table import Table

    from punce.labels import UNLABELLED

    classifier, labels = outcome.classifier, outcome.data.labels
    assert labels is not None
    n_u, prior, metrics = int((labels == UNLABELLED).sum()), classifier.prior_, classifier.metrics_
    called = int((classifier.scores_[labels == UNLABELLED] >= classifier.threshold_).sum())
    console.print(
        f"\n[bold]About {prior.value * n_u:,.0f} of {n_u:,} unlabelled rows are positive[/bold] "
        f"({prior.low * n_u:,.0f} to {prior.high * n_u:,.0f}); {called:,} are called positive."
    )
    table = Table("estimated without negatives", "value", "90 % interval", box=None, header_style="dim")
    mix = metrics.unlabelled
    named = {
        "of the positives, found (recall)": metrics.recall,
        "of those called positive, right (precision)": mix.precision,
        "of all rows, right (accuracy)": mix.accuracy,
        "F1": mix.f1,
        "AUC": metrics.auc,
    }
    for name, estimate in named.items():
        table.add_row(name, f"{estimate.value:.3f}", f"{estimate.low:.3f} – {estimate.high:.3f}")
    console.print(table)
    for text in outcome.warnings:
        console.print(f"[yellow]note:[/yellow] {escape(text)}", highlight=False)
    where = f"\nthe page: {outcome.folder / 'report.html'}    everything: {outcome.folder}"
    console.print(where, highlight=False, markup=False, soft_wrap=True)

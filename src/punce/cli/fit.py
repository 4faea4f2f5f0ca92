"""``punce fit``: learn from a file and leave a run folder with model, ranked rows, numbers and a page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punce.cli import reading
from punce.cli.importing import without_collection
from punce.errors import InputError, number_of

if TYPE_CHECKING:
    from punce.classifier import PUClassifier
    from punce.cli.terminal import Terminal
    from punce.product.fit import FitOutcome
    from punce.product.plan import DataOptions, ModelOptions
    from punce.product.review.refit import Reviewed

_THRESHOLD = "What the threshold is chosen for: accuracy, f1, precision=0.9, recall=0.95; or a probability."
_TARGET = "Which rows numbers and model are for: unlabelled (those of this file) or population (new rows)."
_AS_GIVEN = ("risk", "transfer", "encoder", "scenario", "target", "labelling", "epochs", "device")
_LABELLING = "Labelled rows are a random sample of the positives (random) or prefer some of them (biased)."
_LOSS = "Loss of the pretraining: auto, punce, scl, infonce, dcl, or none to train without pretraining."
_TRANSFER = "probe (the encoder stays frozen) or finetune (it is trained further with the head)."
_ENCODER = (
    "auto, mlp, allconv, resnet18, identity, linear, tfidf; for texts or images also the name or folder of an encoder."
)
_REASONS = "Add a column to the ranked list: the columns or words that moved each row most (first 1,000 rows)."
_REVIEW = "Run on the same file whose rows people judged (punce review): learn from their verdicts."
_IN_WORDS = {
    "recall": "of the positives, found (recall)",
    "precision": "of those called positive, right (precision)",
    "accuracy": "of all rows, right (accuracy)",
    "f1": "F1",
    "auc": "AUC",
}


def fit(
    ctx: typer.Context,
    data: reading.Data,
    label: reading.Label = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; by default runs/NAME.")] = None,
    positive: reading.Positive = None,
    negative: reading.Negative = None,
    id: reading.Id = None,
    text: reading.Text = None,
    drop: reading.Drop = None,
    keep: reading.Keep = None,
    category: reading.Category = None,
    labels: reading.LabelsFile = None,
    kind: Annotated[str, typer.Option(help="Kind of input: auto, table, text, image or embedding.")] = "auto",
    prior: Annotated[str, typer.Option(help="Share of positives among the unlabelled rows, or auto.")] = "auto",
    scenario: reading.ScenarioName = "single_set",
    target: Annotated[str, typer.Option(help=_TARGET)] = "unlabelled",
    labelling: Annotated[str, typer.Option(help=_LABELLING)] = "random",
    threshold: Annotated[str, typer.Option(help=_THRESHOLD)] = "accuracy",
    loss: Annotated[str, typer.Option(help=_LOSS)] = "auto",
    risk: Annotated[
        str, typer.Option(help="Risk of the head: auto, nnpu, upu, pvu, pn, vpu, pupl or selfpu.")
    ] = "auto",
    transfer: Annotated[str, typer.Option(help=_TRANSFER)] = "probe",
    encoder: Annotated[str, typer.Option(help=_ENCODER)] = "auto",
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs; by default by number of rows.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    image_size: Annotated[int | None, typer.Option(min=4, help="Side to which images are scaled.")] = None,
    skip_unreadable: reading.SkipUnreadable = False,
    scores: Annotated[str, typer.Option(help="Form of the ranked list: parquet or csv.")] = "parquet",
    sep: reading.Sep = None,
    encoding: reading.Encoding = None,
    header: reading.Header = "auto",
    decimal: reading.Decimal = None,
    table: reading.Table = None,
    reasons: Annotated[bool, typer.Option("--reasons", help=_REASONS)] = False,
    review: Annotated[Path | None, typer.Option(help=_REVIEW)] = None,
    max_rows: reading.MaxRows = None,
    seed: reading.Seed = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and check, say what would happen, stop.")] = False,
) -> None:
    """Train on a few labelled positives and many unlabelled rows, and on known negatives if there are any.

    The label column holds 1 (or yes, positive) for labelled positives, 0 or nothing for unlabelled rows and -1 (or
    negative) for known negatives. Images lie in the folders labelled/, unlabelled/ and negative/.

    On a table an ensemble is trained; on images, embeddings and texts several features and heads, weighted by held-out
    labelled rows. --loss and --risk train one pair alone instead: the paper's is punce and nnpu (on a table add
    --encoder mlp). An option that would have no effect is refused.
    """
    from punce.storage.files import file_and_table
    from punce.storage.parts import folder_of

    # Paths as they come: in older versions of typer the context has them as text.
    given = {**ctx.params, "data": data, "out": out, "labels": labels, "review": review}
    sources = {name: ctx.get_parameter_source(name) for name in given}
    chosen = frozenset(name for name, source in sources.items() if source and source.name == "COMMANDLINE")
    place = folder_of(file_and_table(data)[0])  # of book.xlsx::2026.May the name of the file, not of the sheet
    _run(given, chosen, out or Path("runs") / Path(os.path.realpath(place)).stem)


def _options(given: dict[str, Any], chosen: frozenset[str]) -> tuple[DataOptions, ModelOptions]:
    """What is asked of the reader and of the classifier; refuses what cannot work before torch is imported."""
    from punce.storage.files import check_output_folder, existing, file_and_table

    existing(file_and_table(given["data"])[0])  # before pandas is imported, too
    if given["out"] is not None:
        check_output_folder(given["out"])
    if given["review"] is not None:
        existing(given["review"])
    from punce.options import DEFAULTS
    from punce.product.plan import DataOptions, ModelOptions

    if given["scores"] not in ("parquet", "csv"):
        raise InputError(f"--scores must be parquet or csv, got {given['scores']!r}")
    labels, loss = given["labels"], given["loss"]
    source = DataOptions(
        path=str(given["data"]),
        labels=None if labels is None else str(labels),
        drop=tuple(given["drop"] or ()),
        keep=tuple(given["keep"] or ()),
        category=tuple(given["category"] or ()),
        **reading.named_values(given),
        **{name: given[name] for name in ("label", "id", "text", "kind", "image_size")},
        **{name: given[name] for name in reading.FILE},
    )
    model = ModelOptions(
        loss=None if loss == "none" else loss,
        prior=_number_or_word(given["prior"]),
        threshold=_number_or_word(given["threshold"]),
        random_state=given["seed"],
        chosen=tuple(sorted(chosen & set(DEFAULTS))),
        **{name: given[name] for name in _AS_GIVEN},
    )
    source.check()
    model.check()
    return source, model


def _run(given: dict[str, Any], chosen: frozenset[str], folder: Path) -> None:
    from punce.cli.terminal import Terminal

    with without_collection():
        source, model = _options(given, chosen)
        from punce.product.plan import RunOptions, plan_fit

    run = RunOptions(**{name: given[name] for name in ("scores", "reasons", "review", "max_rows")})
    if given["dry_run"]:
        console = Terminal()
        plan = plan_fit(source, model, folder, run, say=console.print)
        console.print(f"{plan}; nothing was written", highlight=False, markup=False, soft_wrap=True)
        return
    with without_collection():
        from punce.product.fit import run_fit  # here: a dry run needs no torch
        from punce.training import collectives
    with collectives.joined():  # under torchrun every rank runs this command
        console = Terminal(quiet=collectives.rank() > 0)
        outcome = run_fit(source, model, folder, run, say=console.print)
        _say_outcome(console, outcome)


def _number_or_word(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def _say_outcome(console: Terminal, outcome: FitOutcome) -> None:
    """How many rows are positive, how good the calls are, what was learned from, and what to know about it."""
    from rich.markup import escape

    from punce.product.insight import telling_columns_in_words
    from punce.ran import ran_in_words

    classifier = outcome.classifier
    _say_share(console, outcome)
    _say_quality(console, classifier)
    console.print(f"learned by {ran_in_words(classifier.ran_)}", highlight=False, markup=False, soft_wrap=True)
    if columns := telling_columns_in_words(classifier):
        console.print(f"columns that matter most: {escape(columns)}", highlight=False)
    if outcome.reviewed is not None:
        _say_verdicts(console, outcome, outcome.reviewed)
    for text in outcome.beyond_check:
        console.print(f"[yellow]note:[/yellow] {escape(text)}", highlight=False)
    where = f"\nreport: {outcome.folder / 'report.html'}    run folder: {outcome.folder}"
    console.print(where, highlight=False, markup=False, soft_wrap=True)


def _say_share(console: Terminal, outcome: FitOutcome) -> None:
    from punce.judging.used_prior import is_given
    from punce.labels import UNLABELLED

    classifier, is_u = outcome.classifier, outcome.ranking.labels == UNLABELLED
    n_u, prior = int(is_u.sum()), classifier.prior_
    called = int((outcome.ranking.probability[is_u] >= classifier.threshold_).sum())
    said = f"About {prior.value * n_u:,.0f} of {n_u:,} unlabelled rows are positive"
    interval = f" ({prior.low * n_u:,.0f} to {prior.high * n_u:,.0f})"
    assumed = ""
    if is_given(prior) and prior.low == prior.high:
        interval = f", if the given share of {prior.value:g} is right"
    if prior.reason:
        said, interval = f"How many of {n_u:,} unlabelled rows are positive cannot be estimated", ""
        assumed = f", with an assumed share of {prior.value:.3f}"
    are_called = number_of(called, "is called positive", "are called positive")
    console.print(f"\n[bold]{said}[/bold]{interval}; {are_called}{assumed}.")


def _say_quality(console: Terminal, classifier: PUClassifier) -> None:
    from rich.markup import escape
    from rich.table import Table

    rows = "unlabelled rows" if classifier.metrics_.target == "unlabelled" else "rows of the population"
    table = Table(f"for the {rows}", "estimate", "90 % interval", box=None, header_style="dim")
    for name, estimate in classifier.metrics_.five.items():
        shown = (f"{estimate.value:.3f}", f"{estimate.low:.3f} – {estimate.high:.3f}")
        table.add_row(_IN_WORDS[name], *(("cannot be estimated", "") if estimate.reason else shown))
    console.print(table)
    if classifier.setting_ == "pnu":  # without labelled negatives there is nothing to tell apart
        console.print(f"the numbers are {classifier.metrics_.basis_in_words}", highlight=False)
    for reason, names in classifier.metrics_.reasons.items():
        console.print(f"{', '.join(names)} cannot be estimated: {escape(reason)}", highlight=False)


def _say_verdicts(console: Terminal, outcome: FitOutcome, reviewed: Reviewed) -> None:
    from punce.ran import KNOWN_UNUSED
    from punce.storage.files import as_argument

    verdicts = number_of(len(reviewed.state.settled.positive), "verdict", "verdicts")
    is_learned = KNOWN_UNUSED not in outcome.classifier.ran_
    but = "and" if is_learned else "but"
    them = "them and on the labels" if reviewed.state.share_rests_on_labels else "them"
    also = f", {but} the share of positives is based on {them}" if outcome.rests_on_verdicts else ""
    said = f"the model {'learned' if is_learned else 'did not learn'} from {verdicts}{also}"
    command = f"punce review {as_argument(outcome.folder)}"
    console.print(f"{said}; to see the gain: {command}", highlight=False, markup=False, soft_wrap=True)

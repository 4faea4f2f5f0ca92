"""``punce prior``: how many positives are among the unlabelled rows, by every estimator, with a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punce import __version__
from punce.cli import reading
from punce.errors import InputError, number_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from rich.table import Table

    from punce.cli.terminal import Terminal
    from punce.data import UserData
    from punce.labels import Labels
    from punce.priors import PriorEstimate, PriorTable

    Floats = npt.NDArray[np.float64]

_BARS = "▁▂▃▄▅▆▇█"
_PICTURE = 56
_INTERVAL = 17
_MARGIN = 13  # before the bars
_SCALE = 30  # characters, for words at both ends of the bars
_NARROW = 76  # the whole table is this wide


def prior(
    ctx: typer.Context,
    data: reading.Data,
    label: reading.Label = None,
    positive: reading.Positive = None,
    negative: reading.Negative = None,
    method: Annotated[str, typer.Option(help="One estimator (bbe, tedn, dedpul, ...), or all.")] = "all",
    scenario: reading.ScenarioName = "single_set",
    id: reading.Id = None,
    text: reading.Text = None,
    drop: reading.Drop = None,
    keep: reading.Keep = None,
    category: reading.Category = None,
    labels: reading.LabelsFile = None,
    skip_unreadable: reading.SkipUnreadable = False,
    sep: reading.Sep = None,
    encoding: reading.Encoding = None,
    header: reading.Header = "auto",
    decimal: reading.Decimal = None,
    table: reading.Table = None,
    max_rows: reading.MaxRows = None,
    cluster: reading.Cluster = None,
    seed: reading.Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Write the estimates to this JSON file.")] = None,
) -> None:
    """Estimate the share of positives among the unlabelled rows."""
    from punce.cli.terminal import Terminal
    from punce.scenario import check_scenario
    from punce.storage.files import existing, file_and_table, write_text

    check_scenario(scenario)
    file = existing(file_and_table(data)[0])  # before the second that importing scikit-learn takes
    if out is not None:
        _check_out(out, file, labels)
    columns = {"drop": tuple(drop or ()), "keep": tuple(keep or ()), "category": tuple(category or ())}
    named = ("id", "text", "labels", *reading.FILE)
    drawing = {"max_rows": max_rows, "cluster": cluster, "seed": seed}
    values = reading.named_values(ctx.params)
    rows = _read(data, label, **columns, **drawing, **values, **{name: ctx.params[name] for name in named})
    if rows.labels is None:
        raise InputError(f"{data}: no labels; name the column that marks labelled positives with --label COL")
    features, about = _features(rows)
    scores, found = _estimated(features, rows, method, scenario=scenario, random_state=seed)
    console = Terminal()
    _show(console, found, scores, rows)
    _tell_of_file(console, rows, data.name, about)
    if out is not None:
        record = {"punce": __version__, "data": str(data), "scenario": scenario, "seed": seed, **found.as_dict()}
        write_text(out, json.dumps(record, indent=2) + "\n")
        console.print(f"written: {out}", highlight=False, markup=False, soft_wrap=True, style="dim")


def _check_out(out: Path, *inputs: Path | None) -> None:
    from punce.storage.files import check_output, refuse_to_replace_input, refuse_to_replace_others

    check_output(out)
    refuse_to_replace_input(out, *inputs)
    refuse_to_replace_others(out, "a result of punce prior", _is_result)


def _is_result(file: Path) -> bool:
    try:
        found = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"punce", "scenario", "seed"} <= found.keys()


def _read(data: Path, label: str | None, **options: Any) -> UserData:
    """The rows with labelled negatives kept apart; a column of only 1 and -1 is read as ``punce fit`` reads it."""
    from punce.data import read_at_most

    try:
        return read_at_most(data, label, setting="pnu", **options)
    except InputError:
        try:
            return read_at_most(data, label, setting="pu", **options)
        except InputError:
            pass  # the first refusal says what is wrong; this one would name a setting that was not asked for
        raise


def _features(rows: UserData) -> tuple[Any, tuple[str, ...]]:
    """The rows as ``punce fit`` reads them, and which columns are left out or read in a way one should know of."""
    from punce.data import TableEncoder

    features = rows.load()
    if rows.kind != "table":
        return features, ()
    encoder = TableEncoder.fit(features)
    table = encoder.unscaled(features, is_resolved=True)
    return table, (*encoder.notes, *table.notes)


def _leaks(rows: UserData) -> list[str]:
    """Columns that give the label away, as the check of ``punce fit`` names them: no estimate survives one."""
    from punce.data import check

    if rows.kind != "table":
        return []
    return [finding.message for finding in check(rows).findings if finding.code == "leak"]


def _estimated(features: Any, rows: UserData, method: str, **options: Any) -> tuple[Floats, PriorEstimate | PriorTable]:
    """Every row's score by a model that did not see it (NaN if labelled negative), and the estimates."""
    from punce.priors import estimate_with_scores

    scores, found = estimate_with_scores(features, rows.labels, method, **options)
    return scores, found if rows.drawn is None else found.among(rows.drawn.labels, options["scenario"])


def _show(console: Terminal, found: PriorEstimate | PriorTable, scores: Floats, rows: UserData) -> None:
    from rich.markup import escape

    from punce.priors import PriorTable

    estimates = list(found) if isinstance(found, PriorTable) else [found]
    assert rows.labels is not None
    first, labels = estimates[0], rows.labels if rows.drawn is None else rows.drawn.labels
    n_u, n_p = int((labels == 0).sum()), int((labels == 1).sum())
    said = f"About {first.value * n_u:,.0f} of {n_u:,} unlabelled rows are positive"
    interval = f" ({first.low * n_u:,.0f} to {first.high * n_u:,.0f}, by {first.method})"
    # A placeholder, or the default could not be run and the others err more; the notes below say why.
    if first.reason or (isinstance(found, PriorTable) and "combined" in found.failures):
        said, interval = f"How many of {n_u:,} unlabelled rows are positive cannot be estimated", ""
    console.print(
        f"\n[bold]{said}[/bold]{interval}; {number_of(n_p, 'row is', 'rows are')} labelled.\n", highlight=False
    )
    console.print(_picture(scores, rows.labels, min(_PICTURE, console.width - _MARGIN)))
    console.print(_table(estimates, is_narrow=console.width < _NARROW))
    shared: list[str] = []
    if isinstance(found, PriorTable):
        console.print(found.agreement, highlight=False)
        for name, reason in found.failures.items():
            console.print(f"[yellow]{name} could not be run:[/yellow] {escape(reason)}", highlight=False)
        shared = list(found.warnings)
    for caution in [*shared, *(text for estimate in estimates for text in estimate.warnings)]:
        console.print(f"[yellow]note:[/yellow] {escape(caution)}", highlight=False)


def _tell_of_file(console: Terminal, rows: UserData, name: str, about: tuple[str, ...]) -> None:
    """Columns that give the label away, and how the file was read."""
    from rich.markup import escape

    for leak in _leaks(rows):
        console.print(f"[yellow]note:[/yellow] {escape(leak)}", highlight=False)
    for note in dict.fromkeys([*rows.notes, *about]):
        console.print(f"{name}: {note}", highlight=False, markup=False, style="dim")


def _table(estimates: list[PriorEstimate], *, is_narrow: bool = False) -> Table:
    """Share among the unlabelled rows, in the population, and the share of the positives that is labelled.

    A narrow terminal gets the estimates without what follows from them: cut numbers say nothing.
    """
    from rich.table import Table

    table = Table(box=None, header_style="dim")
    names = ("estimator", "share", "90 % interval", "0" + " " * (_INTERVAL - 2) + "1", "population", "labelled")
    shown = 3 if is_narrow else len(names)
    for name in names[:shown]:
        table.add_column(name, no_wrap=True, justify="right" if name in ("share", "population", "labelled") else "left")
    for e in estimates:
        numbers = (
            f"{e.value:.3f}",
            f"{e.low:.3f} – {e.high:.3f}",
            _interval(e.low, e.value, e.high),
            f"{e.population_prior:.3f}",
            f"{e.label_frequency:.3f}",
        )
        table.add_row(e.method, *(("–", "cannot be known") if e.reason else numbers[: shown - 1]))
    return table


def _interval(low: float, value: float, high: float) -> str:
    """An interval drawn between 0 and 1."""
    cells = [" "] * _INTERVAL
    start, middle, end = (round(x * (_INTERVAL - 1)) for x in (low, value, high))
    for k in range(start, end + 1):
        cells[k] = "─"
    cells[middle] = "●"
    return "".join(cells)


def _picture(scores: Floats, labels: Labels, width: int = _PICTURE) -> str:
    """The held-out scores of both groups as two rows of bars on one scale."""
    import numpy as np

    p, u = scores[labels == 1], scores[labels == 0]
    both = np.concatenate([p, u])
    low, high = np.quantile(both, [0.005, 0.995])
    if low == high:
        low, high = both.min(), both.max()
    edges = np.linspace(low, high, max(width, 1) + 1)
    lines = [
        f"  {name:<10} {_bars(np.histogram(np.clip(group, low, high), edges)[0])}"
        for name, group in (("labelled", p), ("unlabelled", u))
    ]
    scale = ("unlike the labelled rows" if width >= _SCALE else "unlike").ljust(width - 4) + "like"
    return "\n".join([*lines, f"  {'':<10} [dim]{scale}[/dim]", ""])


def _bars(counts: npt.NDArray[np.intp]) -> str:
    """Bars of eighths; an occupied cell always shows."""
    top = max(int(counts.max()), 1)
    return "".join(" " if c == 0 else _BARS[max(0, -(-8 * int(c) // top) - 1)] for c in counts)

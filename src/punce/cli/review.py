"""``punce review``: rows for people to judge, by file or on a local page, and what their verdicts show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from punce.cli import reading
from punce.cli.importing import without_collection
from punce.errors import InputError, number_of

if TYPE_CHECKING:
    from punce.cli.terminal import Terminal
    from punce.judging.sampling import Quantity
    from punce.product.review.job import Goal, State
    from punce.product.review.run import ScoredRun
    from punce.product.review.store import Verdict

_ROWS = "Rows to draw; 60 for the first draw, or if --serve finds no row to judge; else only if given."
_FOR = "Which number the rows should estimate best: share, precision, recall or accuracy."
_VERDICTS = "A file with verdicts (yes, no, unsure or empty); may be repeated."
_STOP = "Say whether enough rows are judged for this: precision±0.03 (or precision+-0.03)."
_SHOW = "Show the classifier's probability. It influences the judge, and so the numbers."
_PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "soft_wrap": True}
_FIRST_ROWS = 60


def review(
    run: Annotated[Path, typer.Argument(help="Run folder of punce fit.")],
    rows: Annotated[int | None, typer.Option(min=1, help=_ROWS)] = None,
    quantity: Annotated[str | None, typer.Option("--for", help=_FOR)] = None,
    verdicts: Annotated[list[Path] | None, typer.Option(help=_VERDICTS)] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Judge on a local page, with the keyboard.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of --serve; 0 takes a free one.")] = 0,
    judge: Annotated[str | None, typer.Option(help="Name of the judge; by default the file's name, or page.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to fill in; by default RUN/review/review.csv.")] = None,
    show_probability: Annotated[bool, typer.Option("--show-probability", help=_SHOW)] = False,
    stop_when: Annotated[str | None, typer.Option(help=_STOP)] = None,
    data: Annotated[Path | None, typer.Option(help="The file of the run, if it has moved.")] = None,
    seed: reading.Seed = 0,
) -> None:
    """Draw rows for a person to judge, and report numbers that do not depend on how the rows were labelled.

    Without options: draw 60 rows and write review.csv; later, report what the verdicts show. Then
    punce fit DATA --label COL --review RUN learns from the verdicts.
    """
    from punce.cli.terminal import Terminal
    from punce.storage.files import check_output, existing

    existing(run)
    if out is not None:
        check_output(out)
    with without_collection():
        from punce.product.review import job
    is_written = not serve and (not verdicts or rows is not None)
    _refuse_unused(
        ("--port", port != 0, serve, "--serve"),
        ("--judge", judge is not None, serve or bool(verdicts), "--serve or --verdicts"),
        ("--out", out is not None, is_written, "rows that are written to a file"),
        ("--show-probability", show_probability, serve or is_written, "rows that are shown"),
    )
    judge = None if judge is None else _name_of(judge)
    goal = job.Goal.of(stop_when) if stop_when else None
    wanted = job.quantity_of(quantity or (goal.quantity if goal else "share"))
    scored, console = _opened(run, data), Terminal()
    # Whatever can be refused is refused before verdicts are kept: a refusal must change nothing.
    new, problems = job.new_verdicts(scored, verdicts, judge) if verdicts else ([], [])
    state = job.state_of(scored)
    drawn = _rows_to_draw(state, rows, new, is_served=serve, judge=judge)
    _refuse_unused(("--for", quantity is not None, bool(drawn), "a draw; add --rows"))
    _refuse_without_rows(state, serve or bool(drawn), out=out, show_probability=show_probability)
    if drawn:
        job.check_draw(scored, state.plan if state else None, wanted)
    target = out or run / "review" / "review.csv"
    _check_file(scored, target, new, is_named=out is not None, is_written_anew=is_written and rows is not None)
    if serve or drawn:
        scored.data()  # refuses a file that has gone or changed
    if verdicts:
        _take(console, scored, new, problems)
    if drawn:
        _draw(console, scored, wanted, drawn, seed)
    if serve:
        is_corrected = state is not None and not drawn and not job.open_to(state, judge, new)
        _serve(console, scored, goal, port, judge, is_corrected=is_corrected, show_probability=show_probability)
    elif is_written:
        _write(console, scored, target, show_probability=show_probability)
    _say(console, scored, goal)


def _opened(run: Path, data: Path | None) -> ScoredRun:
    """The run, with its rows where they are now."""
    from punce.product.review.run import moved_to, scored_run
    from punce.storage.files import existing

    scored = scored_run(run)
    return scored if data is None else moved_to(scored, str(existing(data)))


def _check_file(scored: ScoredRun, target: Path, new: list[Verdict], *, is_named: bool, is_written_anew: bool) -> None:
    """Refuse to replace something else than rows to judge, or verdicts that are not kept yet."""
    from punce.product.review import job

    if is_named:
        job.check_review_file(scored, target)
    if is_written_anew:
        job.check_open_verdicts(scored, target, new)


def _refuse_unused(*options: tuple[str, bool, bool, str]) -> None:
    """Refuse an option that is given and not used; of each its name, is it given, is it used, and what it needs."""
    for name, is_given, is_used, needs in options:
        if is_given and not is_used:
            raise InputError(f"{name} has no effect here: it needs {needs}")


def _name_of(judge: str) -> str:
    """The name of a judge. An empty one would be that of the file or the page, whose last word it then replaces."""
    if not judge.strip():
        raise InputError("--judge is empty; give the name of the person, or leave it out")
    return judge.strip()


def _rows_to_draw(
    state: State | None, rows: int | None, new: Sequence[Verdict], *, is_served: bool, judge: str | None
) -> int:
    """How many rows to draw: the first time, when asked for, or for a page on which nothing is open to the judge.

    `new` are the verdicts of this command. 0 where no row is left and none was asked for: the page then shows those
    that are judged, because a verdict may be a mistake.
    """
    from punce.product.review.job import is_all_drawn, open_to

    if rows is not None or state is None:
        return rows or _FIRST_ROWS
    if not is_served or open_to(state, judge, new) or is_all_drawn(state.run, state.plan):
        return 0
    return _FIRST_ROWS


def _refuse_without_rows(state: State | None, is_sure: bool, *, out: Path | None, show_probability: bool) -> None:
    """Refuse a file, or a column of it, where no row is left to be written; `is_sure` that one is, or a page is."""
    is_left = is_sure or bool(state and state.open)
    judged = "rows to judge, and all that were drawn are judged; add --rows"
    _refuse_unused(
        ("--out", out is not None, is_left, judged),
        ("--show-probability", show_probability, is_left, judged),
    )


def _take(console: Terminal, scored: ScoredRun, new: Sequence[Verdict], problems: Sequence[str]) -> None:
    from punce.product.review.store import ReviewFolder

    ReviewFolder(scored.folder).append(new)
    for problem in problems:
        console.print(f"note: {problem}", style="yellow", **_PLAIN)
    console.print(f"{number_of(len(new), 'verdict', 'verdicts')} taken", **_PLAIN)


def _draw(console: Terminal, scored: ScoredRun, quantity: Quantity, n_rows: int, seed: int) -> None:
    from punce.product.review.job import draw_rows

    made = draw_rows(scored, scored.data(), quantity, n_rows, seed).rounds[-1]
    of = f"{len(scored.rows):,} unlabelled rows"
    strata = number_of(len(made.free), "stratum", "strata")
    console.print(f"drew {len(made.drawn):,} of {of}, {strata}", **_PLAIN)


def _write(console: Terminal, scored: ScoredRun, target: Path, *, show_probability: bool) -> None:
    from punce.product.review.job import state_of, write_open_rows
    from punce.storage.files import as_argument

    state = state_of(scored)
    if state is None or not state.open:
        return
    write_open_rows(state, scored.data(), target, show_probability=show_probability)
    console.print(f"{number_of(len(state.open), 'row', 'rows')} to judge: {target}", **_PLAIN)
    console.print("fill in the column verdict (yes, no, or leave it empty), then", **_PLAIN)
    command = f"punce review {as_argument(scored.folder)}"
    console.print(f"    {command} --verdicts {as_argument(target)}", **_PLAIN)
    console.print(f"or judge on a page: {command} --serve", **_PLAIN)


def _serve(
    console: Terminal,
    scored: ScoredRun,
    goal: Goal | None,
    port: int,
    judge: str | None,
    *,
    is_corrected: bool,
    show_probability: bool,
) -> None:
    """The page, until it is ended. `is_corrected`: no row is open, so that it shows the judged ones."""
    from punce.product.review.server import serve_review

    if is_corrected:
        console.print("every unlabelled row is drawn and judged: the page shows them, to be corrected", **_PLAIN)
    serve_review(scored, goal, port, judge, show_probability=show_probability, say=partial(console.print, **_PLAIN))


def _say(console: Terminal, scored: ScoredRun, goal: Goal | None) -> None:
    from punce.product.review.job import finding, gain, progress_to, state_of, why_no_audit, write_audit
    from punce.product.review.page import show_on_page

    state = state_of(scored)
    if state is None:
        return
    _say_counts(console, state)
    if state.audit is not None:
        console.print(_table(state))
        for said in filter(None, (finding(state), gain(state))):
            console.print(said, **_PLAIN)
        write_audit(state)
        show_on_page(state)
        console.print(f"report: {scored.folder / 'report.html'}", **_PLAIN)
    elif state.settled.positive and goal is None:
        console.print(why_no_audit(state), **_PLAIN)
    if goal is not None:
        console.print(progress_to(goal, state), style="bold", **_PLAIN)


def _say_counts(console: Terminal, state: State) -> None:
    settled = state.settled
    said = f"{number_of(len(settled.positive), 'row', 'rows')} judged, {len(state.open):,} open"
    if settled.unsure:
        said += f", {len(settled.unsure):,} unsure (left out: taken to be like the others of their stratum)"
    console.print(said, **_PLAIN)
    if settled.disagreed:
        without = number_of(len(settled.disputed), "without a majority is", "without a majority are")
        left_out = f", {without} left out" if settled.disputed else ""
        few = ", ".join(sorted(settled.disagreed)[:5])
        rows = number_of(len(settled.disagreed), "row", "rows")
        console.print(f"note: people disagree on {rows} ({few}){left_out}", **_PLAIN)


def _table(state: State) -> Any:
    from rich.table import Table

    from punce.judging.sampling import QUANTITIES
    from punce.product.review.page import IN_WORDS, gained

    assert state.audit is not None
    table = Table("of the unlabelled rows", "said by the fit", "judged, 90 % interval", box=None, header_style="dim")
    before = gained(state)
    for name in before:
        table.add_column(name)
    for name in QUANTITIES:
        said, found = state.run.claims[name].in_words(), state.audit.of(name).in_words()
        earlier = [numbers[name] for numbers in before.values()]
        table.add_row(IN_WORDS[name], said.partition(":")[0], found.partition(":")[0], *earlier)
    return table

"""``punce report``: build the page of a run again from its report.json, or one page that compares several runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from punce.report import ReportContent
    from punce.report.content import Cell

_DOCTYPE = b"<!doctype html>"


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of punce fit.")],
    out: Annotated[Path | None, typer.Option(help="The page; by default RUN/report.html.")] = None,
) -> None:
    """Rebuild the page of a run, or compare several."""
    from dataclasses import replace

    from punce.cli.terminal import Terminal
    from punce.errors import InputError
    from punce.report import ReportContent, write_report
    from punce.storage.files import check_output

    if out is not None:
        check_output(out)
    if out is not None and _is_foreign(out):
        raise InputError(f"{out} is not a page that punce made and would be replaced; name another file with --out")
    names = [run.name for run in runs]
    contents = {}
    for run in runs:
        if not (run / "report.json").exists():
            raise InputError(
                f"{run} holds no report.json: it is not a finished run of punce fit; name one, or finish it first"
            )
        contents[run.name if names.count(run.name) == 1 else str(run)] = ReportContent.read(run / "report.json")
    content = next(iter(contents.values()))
    if len(contents) > 1:
        content = replace(content, comparison=comparison(contents))
    target = out or runs[0] / "report.html"
    write_report(content, target)
    Terminal().print(f"the page: {target}", highlight=False, markup=False, soft_wrap=True)


def _is_foreign(out: Path) -> bool:
    """Whether something else than a page stands there; an empty file is nothing to lose."""
    if not out.is_file():
        return False
    with out.open("rb") as file:  # which may be data of any size: the rest is read only if it begins like a page
        begins = file.read(len(_DOCTYPE))
        is_page = begins == _DOCTYPE and b"Made by punce" in file.read()
    return bool(begins) and not is_page


def comparison(contents: dict[str, ReportContent]) -> dict[str, dict[str, Cell]]:
    """Run name to its numbers, for the table of several runs."""
    rows: dict[str, dict[str, Cell]] = {}
    for name, content in contents.items():
        estimates = content.quality.estimates if content.quality else {}
        prior: Cell = content.prior.value if content.prior else None
        rows[name] = {"prior": prior, **{key: interval.value for key, interval in estimates.items()}}
    return rows

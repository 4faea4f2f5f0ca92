"""``punce report``: build the page of a run again from its report.json, or one page that compares several runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from punce.report import ReportContent
    from punce.report.content import Cell

_DOCTYPE = b"<!doctype html>"
_PAGES = (".html", ".htm", "")


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of punce fit.")],
    out: Annotated[Path | None, typer.Option(help="The report; by default report.html of the first run.")] = None,
) -> None:
    """Rebuild the report of a run, or compare several runs in one report."""
    from dataclasses import replace

    from punce.cli.terminal import Terminal
    from punce.errors import InputError
    from punce.report import ReportContent, write_report
    from punce.storage.files import check_output, existing

    if out is not None:
        check_output(out)
    if out is not None and out.suffix.lower() not in _PAGES:
        raise InputError(f"the report is a page, whose name ends in .html, got {out.name}; name it so with --out")
    if out is not None and _is_foreign(out):
        raise InputError(f"{out} is not a page that punce made and would be replaced; name another file with --out")
    names = [run.name for run in runs]
    if len({os.path.realpath(run) for run in runs}) < len(runs):  # resolve() raises on a link to itself
        raise InputError("a run is named twice; name each run once")
    contents = {}
    for run in runs:
        existing(run)
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
    Terminal().print(f"report: {target}", highlight=False, markup=False, soft_wrap=True)


def _is_foreign(out: Path) -> bool:
    """Whether something else than a page stands there; an empty file is nothing to lose."""
    if not out.is_file():
        return False
    with out.open("rb") as file:  # which may be data of any size: the rest is read only if it begins like a page
        begins = file.read(len(_DOCTYPE))
        is_page = begins == _DOCTYPE and b"Made by punce" in file.read()
    return bool(begins) and not is_page


def comparison(contents: dict[str, ReportContent]) -> dict[str, dict[str, Cell]]:
    """Run name to its numbers, for the table of several runs; with what they are of where it is not the same."""
    rows: dict[str, dict[str, Cell]] = {}
    sources = [
        None if content.data is None else (content.data.name, content.data.rows) for content in contents.values()
    ]
    targets = {content.quality.over for content in contents.values() if content.quality}
    for name, content in contents.items():
        estimates = content.quality.estimates if content.quality else {}
        # a share that cannot be known has a placeholder, which is no estimate to compare
        prior: Cell = content.prior.value if content.prior and not content.prior.unknown else None
        data: dict[str, Cell] = {"data": content.data.name} if content.data and len(set(sources)) > 1 else {}
        over: dict[str, Cell] = {"over": content.quality.over} if content.quality and len(targets) > 1 else {}
        rows[name] = {**data, **over, "prior": prior, **{key: interval.value for key, interval in estimates.items()}}
    return rows

"""``docs/results.md`` and its appendix from the results: the same bytes from the same files, on any machine and day.

The page says which claims hold. Behind it, ``results/claims.md`` has the numbers of every claim and
``results/tables.md`` every table and figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from punce.experiments.present import reading, tables
from punce.experiments.present.claims import further_questions, paper_claims
from punce.experiments.present.figures import Drawn, Picture
from punce.experiments.present.grid import Grid
from punce.experiments.present.markup import Cell, Table, escape_markdown, markdown
from punce.experiments.present.paper_numbers import plotted_table, slips
from punce.experiments.present.verdicts import RULES, Finding, Verdict
from punce.experiments.scales import Scale

IMAGES, APPENDIX = Path("images", "results"), Path("results")
"""Folders of the figures and of the appendix, seen from the document."""
_OPEN = (Verdict.ONE_SEED, Verdict.NOT_MEASURED)


def render_doc(scale: Scale, grids: Mapping[str, Grid], by_hand: str = "") -> str:
    """The page that a person reads, as Markdown."""
    claims = paper_claims(grids)
    settled = [claim for claim in claims if claim.verdict not in _OPEN]
    blocks = [
        "# Results: which claims of the paper hold",
        f"For a reader who asks what of the paper can be confirmed here. {_command(scale)} "
        "writes this page from `results/`; only the commentary is typed by hand. "
        f"[Every claim with its numbers]({APPENDIX.as_posix()}/claims.md) and "
        f"[every table and figure]({APPENDIX.as_posix()}/tables.md) are behind it.",
        escape_markdown(reading.tally(claims)),
        *(["## Commentary", by_hand] if by_hand else []),
        *(["## Claims that two or more seeds settle", _findings(settled)] if settled else []),
        "## How it was run",
        *(escape_markdown(paragraph) for paragraph in reading.opening(scale, grids)),
    ]
    return _joined(blocks)


def doc_appendix(scale: Scale, grids: Mapping[str, Grid], drawn: Drawn) -> dict[Path, str]:
    """The pages and figures behind the document: path from the document, and text."""
    claims = [
        "# Every claim with its numbers",
        f"Written by {_command(scale)}.",
        *(escape_markdown(rule) for rule in RULES),
        _findings(paper_claims(grids)),
        "## Beyond the paper",
        _findings(further_questions(grids)),
    ]
    parts = (block for grid in grids.values() for block in _part(grid, drawn[grid.experiment.name]))
    tables_ = ["# Every table and figure", f"Written by {_command(scale)}.", *parts]
    return {
        APPENDIX / "claims.md": _joined(claims),
        APPENDIX / "tables.md": _joined(tables_),
        **{IMAGES / f"{picture.name}.svg": picture.svg for some in drawn.values() for picture in some},
    }


def _command(scale: Scale) -> str:
    return f"`punce reproduce all --scale {scale.name} --no-run --docs docs/results.md`"


def _joined(blocks: Sequence[str]) -> str:
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def _part(grid: Grid, drawn: Sequence[Picture]) -> list[str]:
    experiment = grid.experiment
    title = f"{experiment.paper}: {experiment.title}" if experiment.paper else f"Beyond the paper: {experiment.title}"
    blocks = [f"## {escape_markdown(title)}"]
    if not grid.is_shown:
        command = f"punce reproduce {experiment.name} --scale {grid.scale.name}"
        return [*blocks, f"Not measured at this scale yet: `{command}`."]
    for picture in drawn:
        blocks.append(f"![{escape_markdown(picture.alt)}](../{(IMAGES / picture.name).as_posix()}.svg)")
        blocks.append(f"*{escape_markdown(picture.caption)}*")
    same = plotted_table(experiment.paper)
    if same:  # a figure that plots a table of the paper: its numbers stand there
        return [*blocks, f"The numbers are those of {same}."]
    blocks.append(markdown(tables.compact(grid)))
    full = markdown(tables.full(grid)).strip("\n")
    blocks.append(f"<details><summary>Every number</summary>\n\n{full}\n\n</details>")
    notes = [f"- {escape_markdown(note)}" for note in slips(experiment.paper)]
    return [*blocks, "About the paper's own table:\n\n" + "\n".join(notes)] if notes else blocks


def _findings(findings: Sequence[Finding]) -> str:
    head = tuple(Cell(name) for name in ("claim", "where", "here", "numbers"))
    rows = tuple(
        (Cell(f.text), Cell(f.source), Cell(f.verdict.word), Cell("\n".join(f.numbers) or "not measured"))
        for f in findings
    )
    return markdown(Table("Claims", head, rows))

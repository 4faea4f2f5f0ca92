"""``docs/results.md`` from the results: the same bytes from the same files, on any machine and on any day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from punce.experiments.present import reading, tables
from punce.experiments.present.claims import further_questions, paper_claims
from punce.experiments.present.figures import Drawn, Picture
from punce.experiments.present.grid import Grid
from punce.experiments.present.markup import Cell, Table, escape_markdown, markdown
from punce.experiments.present.paper_numbers import plotted_table, slips
from punce.experiments.present.verdicts import RULES, Finding
from punce.experiments.scales import Scale

IMAGES = Path("images", "results")
"""Where the figures stand, from the document."""


def render_doc(scale: Scale, grids: Mapping[str, Grid], drawn: Drawn, by_hand: str = "") -> str:
    """The document as Markdown."""
    claims = paper_claims(grids)
    blocks = [
        "# Results",
        f"Written by `punce reproduce all --scale {scale.name} --no-run --docs docs/results.md` from the files in "
        f"`results/{scale.name}`; nothing in it is typed by hand but the commentary, if there is one.",
        *(escape_markdown(paragraph) for paragraph in reading.opening(scale, grids)),
        "## Which claims of the paper show",
        escape_markdown(reading.tally(claims)),
        *(escape_markdown(rule) for rule in RULES),
        _findings(claims),
        "### Beyond the paper",
        _findings(further_questions(grids)),
        *(["## Commentary", by_hand] if by_hand else []),
        *(block for grid in grids.values() for block in _part(grid, drawn[grid.experiment.name])),
    ]
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def doc_pictures(drawn: Drawn) -> dict[Path, str]:
    """The figures that the document shows: path from the document, and SVG."""
    return {IMAGES / f"{picture.name}.svg": picture.svg for some in drawn.values() for picture in some}


def _part(grid: Grid, drawn: Sequence[Picture]) -> list[str]:
    experiment = grid.experiment
    title = f"{experiment.paper}: {experiment.title}" if experiment.paper else f"Beyond the paper: {experiment.title}"
    blocks = [f"## {escape_markdown(title)}"]
    if grid.is_empty and not any(grid.failures()):
        command = f"punce reproduce {experiment.name} --scale {grid.scale.name}"
        return [*blocks, f"Not measured at this scale yet: `{command}`."]
    for picture in drawn:
        blocks.append(f"![{escape_markdown(picture.alt)}]({(IMAGES / picture.name).as_posix()}.svg)")
        blocks.append(f"*{escape_markdown(picture.caption)}*")
    same = plotted_table(experiment.paper)
    if same:
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

"""``docs/results.md`` and its appendix from the results: the same bytes from the same files, on any machine and day.

The page says which claims hold. Behind it, ``results/claims.md`` has the numbers of every claim and
``results/tables.md`` every table and figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from punce.experiments.present import reading, tables
from punce.experiments.present.figures import Picture, pictures
from punce.experiments.present.grid import Grid
from punce.experiments.present.markup import Cell, Table, escape_markdown, markdown
from punce.experiments.present.paper_numbers import plotted_table, slips
from punce.experiments.present.settled import Books, Settled, settled_claims
from punce.experiments.present.verdicts import RULES
from punce.experiments.scales import Scale

IMAGES, APPENDIX = Path("images", "results"), Path("results")
"""Folders of the figures and of the appendix, seen from the document."""


def render_doc(scale: Scale, books: Books, by_hand: str = "") -> str:
    """The page that a person reads, as Markdown. `books` are the scale and those on its page, with their grids."""
    papers = [one for one in settled_claims(books) if one.is_papers]
    blocks = [
        "# Results: which claims of the paper hold",
        f"For a reader who asks what of the paper can be confirmed here. {_command(scale)} "
        "writes this page from `results/`; only the commentary is typed by hand. "
        f"Behind it are [every claim with its numbers]({APPENDIX.as_posix()}/claims.md) and every table and figure "
        f"{_tables_links(scale, books)}.",
        escape_markdown(reading.tally(one.finding for one in papers)),
        *(["## Commentary", by_hand] if by_hand else []),
        "## Which claims hold",
        "Each column is a scale and uses its own results alone. An empty place was not measured there. The encoders of "
        "the scale frozen were trained on ImageNet with labels: compare its rows with each other only.",
        _matrix(papers, books),
        "## How it was run",
        *(escape_markdown(paragraph) for paragraph in _openings(books)),
    ]
    return _joined(blocks)


def doc_appendix(scale: Scale, books: Books) -> dict[Path, str]:
    """The pages and figures behind the document: path from the document, and text."""
    settled = settled_claims(books)
    claims = [
        "# Every claim with its numbers",
        "For a reader who checks the [results](../results.md): the comparisons behind every claim. "
        f"Written by {_command(scale)}.",
        *(escape_markdown(rule) for rule in RULES),
        "No comparison mixes two scales. A claim has a line for every scale that measured any of it.",
        _findings([one for one in settled if one.is_papers]),
        "## Beyond the paper",
        _findings([one for one in settled if not one.is_papers]),
    ]
    found = {APPENDIX / "claims.md": _joined(claims)}
    for own, grids in books:
        if own is scale or any(grid.is_shown for grid in grids.values()):
            found |= _tables(scale, own, grids)
    return found


def _tables(scale: Scale, own: Scale, grids: Mapping[str, Grid]) -> dict[Path, str]:
    """The page of one scale's tables, and its figures. Those of the document's scale have the plain names."""
    first = "" if own.name == scale.name else f"{own.name}-"
    drawn = {name: [replace(one, name=first + one.name) for one in pictures(grid)] for name, grid in grids.items()}
    parts = (block for name, grid in grids.items() for block in _part(grid, drawn[name], is_main=not first))
    title = f"# Every table and figure at scale {own.name}"
    about = "For a reader who checks the [results](../results.md): the numbers behind every comparison. "
    blocks = [title, f"{about}Written by {_command(scale)}. The scale: {own.about}.", *parts]
    images = {IMAGES / f"{picture.name}.svg": picture.svg for some in drawn.values() for picture in some}
    return {APPENDIX / f"{first}tables.md": _joined(blocks), **images}


def _openings(books: Books) -> list[str]:
    """How every scale with results was run; what is said of several stands once."""
    shown = [(own, grids) for own, grids in books if any(grid.is_shown for grid in grids.values())] or books[:1]
    return list(dict.fromkeys(paragraph for own, grids in shown for paragraph in reading.opening(own, grids)))


def _tables_links(scale: Scale, books: Books) -> str:
    shown = [own for own, grids in books if own is scale or any(grid.is_shown for grid in grids.values())]
    names = {own.name: "tables.md" if own is scale else f"{own.name}-tables.md" for own in shown}
    return ", ".join(f"[at scale {name}]({APPENDIX.as_posix()}/{page})" for name, page in names.items())


def _matrix(settled: Sequence[Settled], books: Books) -> str:
    """Claims against scales, with the verdict's word at each place."""
    scales = [own for own, _ in books if any(one.at(own) for one in settled)]
    head = tuple(Cell(name) for name in ("claim", "where", *(own.name for own in scales)))

    def word(one: Settled, own: Scale) -> Cell:
        finding = one.at(own)
        return Cell("" if finding is None else finding.verdict.word)

    rows = tuple(
        (Cell(one.finding.text), Cell(one.finding.source), *(word(one, own) for own in scales)) for one in settled
    )
    return markdown(Table("Claims", head, rows))


def _command(scale: Scale) -> str:
    return f"`punce reproduce all --scale {scale.name} --no-run --docs docs/results.md`"


def _joined(blocks: Sequence[str]) -> str:
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def _part(grid: Grid, drawn: Sequence[Picture], *, is_main: bool) -> list[str]:
    experiment = grid.experiment
    title = f"{experiment.paper}: {experiment.title}" if experiment.paper else f"Beyond the paper: {experiment.title}"
    blocks = [f"## {escape_markdown(title)}"]
    if not grid.is_shown and not is_main:
        return []
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
    blocks.append(f"<details markdown><summary>Every number</summary>\n\n{full}\n\n</details>")
    notes = [f"- {escape_markdown(note)}" for note in slips(experiment.paper)]
    return [*blocks, "About the paper's own table:\n\n" + "\n".join(notes)] if notes else blocks


def _findings(settled: Sequence[Settled]) -> str:
    head = tuple(Cell(name) for name in ("claim", "where", "scale", "here", "numbers"))
    rows = tuple(
        (
            Cell(finding.text),
            Cell(finding.source),
            Cell(name),
            Cell(finding.verdict.word),
            Cell("\n".join(finding.numbers) or "not measured"),
        )
        for one in settled
        for name, finding in [(own.name, found) for own, found in one.by_scale] or [("–", one.finding)]
    )
    return markdown(Table("Claims", head, rows))

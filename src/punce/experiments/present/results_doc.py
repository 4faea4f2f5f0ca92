"""``docs/results.md`` and its appendix from the results: the same bytes from the same files, on any machine and day.

The page says which claims hold. Behind it, ``results/claims.md`` has the numbers of every claim,
``results/tables.md`` every table and figure, and ``results/how.md`` how each scale was run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from punce.experiments.present import reading, tables
from punce.experiments.present.figures import Picture, claim_pictures, pictures
from punce.experiments.present.grid import Grid
from punce.experiments.present.markup import Cell, Table, escape_markdown, markdown
from punce.experiments.present.paper_numbers import plotted_table, slips
from punce.experiments.present.settled import Books, Settled, settled_claims
from punce.experiments.present.verdicts import RULES
from punce.experiments.scales import Scale

IMAGES, APPENDIX = Path("images", "results"), Path("results")
"""Folders of the figures and of the appendix, seen from the document."""
CLAIM_FIGURES = ("claims-mnist", "claims-others")
_FROZEN = (
    "At the scale frozen an MLP on features of frozen encoders takes the place of ResNet18 and of AllConv, so claims "
    "about the two have the same numbers there. These encoders were trained on ImageNet with labels: compare the rows "
    "of this scale with each other only."
)


def render_doc(scale: Scale, books: Books, by_hand: str = "") -> str:
    """The page that a person reads, as Markdown. `books` are the scale and those on its page, with their grids."""
    papers = [one for one in settled_claims(books) if one.is_papers]
    blocks = [
        "# Results: which claims of the paper hold",
        f"For a reader who asks what of the paper can be confirmed here. {_command(scale)} "
        "writes this page from `results/`; only the commentary is typed by hand. "
        f"Behind it are [every claim with its numbers]({APPENDIX.as_posix()}/claims.md), "
        f"[how it was run]({APPENDIX.as_posix()}/how.md), and every table and figure {_tables_links(scale, books)}.",
        escape_markdown(reading.tally(one.finding for one in papers)),
        *(["## Commentary", by_hand] if by_hand else []),
        "## Every claim in a figure",
        *_with_captions(_claim_figures(papers), IMAGES),
        "## Every claim in a table",
        f"Each column is a scale and uses its own results alone. An empty place was not measured there. {_FROZEN}",
        *_matrices(papers, books),
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
        f"No comparison mixes two scales. A claim has a line for every scale that measured any of it. {_FROZEN}",
        _findings([one for one in settled if one.is_papers]),
        "## Beyond the paper",
        _findings([one for one in settled if not one.is_papers]),
    ]
    how = [
        "# How the experiments were run",
        "For a reader who checks the [results](../results.md): sizes, epochs and choices of every scale. "
        f"Written by {_command(scale)}.",
        *(escape_markdown(paragraph) for paragraph in _openings(books)),
    ]
    found = {APPENDIX / "claims.md": _joined(claims), APPENDIX / "how.md": _joined(how)}
    drawn = _claim_figures([one for one in settled if one.is_papers])
    found |= {IMAGES / f"{picture.name}.svg": picture.svg for picture in drawn}
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


def _claim_figures(settled: Sequence[Settled]) -> list[Picture]:
    """The figures of all claims; none where nothing was measured."""
    return [picture for name, some in _parts(settled).items() for picture in claim_pictures(name, some)]


def _parts(settled: Sequence[Settled]) -> dict[str, list[Settled]]:
    """Two figures that fit on a screen: MNIST, and everything else."""
    is_mnist = [("MNIST" in one.finding.text) for one in settled]
    return {
        name: [one for one, own in zip(settled, is_mnist, strict=True) if own == wanted]
        for name, wanted in zip(CLAIM_FIGURES, (True, False), strict=True)
    }


def _with_captions(drawn: Sequence[Picture], folder: Path) -> list[str]:
    """Figures and their captions; one that several figures share stands once, after the last of them."""
    blocks = [block for picture in drawn for block in _shown(picture, folder)]
    return [block for i, block in enumerate(blocks) if block not in blocks[i + 1 :]]


def _shown(picture: Picture, folder: Path) -> list[str]:
    """A figure and its caption."""
    image = f"![{escape_markdown(picture.alt)}]({(folder / picture.name).as_posix()}.svg)"
    return [image, f"*{escape_markdown(picture.caption)}*"]


def _matrices(settled: Sequence[Settled], books: Books) -> list[str]:
    """For each data set and network a heading and a table of its claims."""
    about: dict[str, list[Settled]] = {}
    for one in settled:
        about.setdefault(one.finding.text.partition(": ")[0], []).append(one)
    return [block for place, some in about.items() for block in (f"### {escape_markdown(place)}", _matrix(some, books))]


def _matrix(settled: Sequence[Settled], books: Books) -> str:
    """Claims against the scales that measured one of them, with the verdict's word at each place."""
    scales = [own for own, _ in books if any(one.at(own) for one in settled)]
    head = tuple(Cell(name) for name in ("claim", "where", *(own.name for own in scales)))

    def word(one: Settled, own: Scale) -> Cell:
        finding = one.at(own)
        return Cell("" if finding is None else finding.verdict.word)

    rows = tuple(
        (
            Cell(one.finding.text.partition(": ")[2]),
            Cell(one.finding.source),
            *(word(one, own) for own in scales),
        )
        for one in settled
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
        blocks += _shown(picture, ".." / IMAGES)
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

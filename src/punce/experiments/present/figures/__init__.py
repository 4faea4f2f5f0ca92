"""The figures of an experiment as SVG text: curves against labels, accuracy over epochs, t-SNE panels, bars.

Each is a pure function of the numbers: the same results give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from punce.experiments.present.figures.claims import draw_claims
from punce.experiments.present.figures.draw import draw_against, draw_epochs, draw_scatter, draw_transfer
from punce.experiments.present.figures.style import as_svg, drawing, for_page
from punce.experiments.present.grid import Grid
from punce.experiments.present.settled import Settled
from punce.experiments.tables import shown


@dataclass(frozen=True)
class Picture:
    """A figure ready to be written: its file name, the SVG, what it shows, and the same in words."""

    name: str
    svg: str
    caption: str
    alt: str


Drawn = Mapping[str, Sequence[Picture]]
"""The figures of each experiment by its name."""

_DRAW = {"curves": draw_against, "epochs": draw_epochs, "scatter": draw_scatter}
_BARS = ("ablation_probing", "table3")  # three numbers of labels and two or three methods: bars are easier to read


def pictures(grid: Grid) -> list[Picture]:
    """The figures of a grid; none for an empty one, and none for most tables."""
    if grid.is_empty:
        return []
    name = grid.experiment.name
    draw = draw_transfer if name in _BARS else _DRAW.get(grid.experiment.kind)
    if draw is None:
        return []
    with drawing():
        figure, caption, alt = draw(grid)
        svg = as_svg(figure)
    return [Picture(name, svg, caption + _stand_ins(grid), alt)]


def _stand_ins(grid: Grid) -> str:
    """A sentence for each encoder that a figure names as the paper does, and another one that made its numbers."""
    measured = [row for row, column in grid.all_places if grid[row, column].pu_selected]
    used = {row: encoder for row in measured if (encoder := grid.encoder_of(row)) is not None}
    named = {row: shown(row.split("/")[grid.experiment.row_heads.index("encoder")]) for row in used}
    others = dict.fromkeys((named[row], used[row]) for row in used if named[row] != used[row])
    return "".join(f" In place of {paper}: {own}." for paper, own in others)


def claim_pictures(name: str, settled: Sequence[Settled]) -> list[Picture]:
    """The figure of some claims; none where no comparison has an interval."""
    with drawing():
        found = draw_claims(settled)
        if found is None:
            return []
        figure, caption, alt = found
        return [Picture(name, as_svg(figure), caption, alt)]


__all__ = ["Drawn", "Picture", "claim_pictures", "for_page", "pictures"]

"""t-SNE panels of test features (the paper's Figure 3), coloured by the true class."""

from __future__ import annotations

from matplotlib.axes import Axes

from punce.experiments.present.curves import Embedding, embedding_of
from punce.experiments.present.figures.against import Drawn, panel_title
from punce.experiments.present.figures.series import say_nothing_measured
from punce.experiments.present.figures.style import PALETTE, QUIET, panels
from punce.experiments.present.grid import Grid, Measured
from punce.experiments.tables import shown


def draw_scatter(grid: Grid) -> Drawn:
    """A panel for each pretraining, data sets one after the other."""
    places = [
        (row, column)
        for row in grid.experiment.rows
        if any(_first(grid[row, c]) for c in grid.experiment.columns)
        for column in grid.experiment.columns
    ]
    figure, all_axes = panels(max(1, len(places)), columns=len(grid.experiment.columns), width=2.8, height=3.1)
    for axes, (row, column) in zip(all_axes, places, strict=False):
        _draw_panel(axes, _first(grid[row, column]), f"{panel_title(row)}\n{shown(column)}")
    caption = f"{grid.experiment.title}, one seed. Blue: positives, orange: negatives; the classes are the true ones."
    caption += " The number is the share of each point's ten nearest neighbours in the picture that are of its class."
    return figure, caption, _in_words(grid)


def _first(measured: Measured) -> Embedding | None:
    found = [embedding_of(result) for _, result in sorted(measured.by_seed.items())]
    return next((one for one in found if one is not None), None)


def _draw_panel(axes: Axes, embedding: Embedding | None, title: str) -> None:
    axes.set_title(title, fontsize=8.5)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines[["top", "right"]].set_visible(True)
    if embedding is None:
        say_nothing_measured(axes)
        return
    for is_positive, colour in ((False, PALETTE[1]), (True, PALETTE[0])):
        chosen = embedding.is_positive == is_positive
        x, y = embedding.points[chosen].T
        axes.plot(x, y, ls="none", marker="o", ms=2.4, mew=0, color=colour, alpha=0.65)
    axes.set_xlabel(f"{100 * embedding.purity():.1f} % of neighbours alike", fontsize=8.5, color=QUIET)
    axes.set_aspect("equal", adjustable="datalim")


def _in_words(grid: Grid) -> str:
    said = []
    for row in grid.experiment.rows:
        for column in grid.experiment.columns:
            embedding = _first(grid[row, column])
            if embedding is not None:
                share = f"{100 * embedding.purity():.1f} %"
                said.append(f"{panel_title(row)}, {shown(column)}: {share} of nearest neighbours share the class")
    return "Pictures of test features by t-SNE. " + "; ".join(said) + "."

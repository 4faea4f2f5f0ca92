"""Test accuracy over the epochs of PU training (Figure 4c): from puNCE's encoder and from random weights."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from punce.experiments.present.curves import curves_by_seed
from punce.experiments.present.figures.against import Drawn, panel_title
from punce.experiments.present.figures.series import ACCURACY, draw_band, say_nothing_measured
from punce.experiments.present.figures.style import DASHES, PALETTE, panels, places_of
from punce.experiments.present.grid import Grid, Measured
from punce.experiments.present.numbers import plain
from punce.experiments.present.statistics import Summary, summarise
from punce.experiments.tables import shown


def draw_epochs(grid: Grid) -> Drawn:
    """One panel for each row with a curve; lines are means over seeds, thin lines the seeds themselves."""
    rows = [row for row in grid.experiment.rows if any(over_epochs(grid[row, c]) for c in grid.experiment.columns)]
    figure, all_axes = panels(max(1, len(rows)))
    for axes, row in zip(all_axes, rows, strict=False):
        _draw_panel(axes, grid, row)
    if not rows:
        say_nothing_measured(all_axes[0])
    caption = f"{grid.experiment.title}. Means over seeds with 95 % intervals; thin lines are single seeds."
    caption += " The curves are drawn with true test labels; no epoch was chosen by them."
    return figure, caption, _in_words(grid, rows)


def over_epochs(measured: Measured) -> list[Summary]:
    """Over seeds, at each epoch that every seed has."""
    curves = list(curves_by_seed(measured).values())
    return [summarise(values) for values in zip(*curves, strict=False)]


def _draw_panel(axes: Axes, grid: Grid, row: str) -> None:
    columns = grid.experiment.columns
    for column, place in zip(columns, places_of(columns), strict=True):
        colour = PALETTE[place]
        summaries = over_epochs(grid[row, column])
        epochs = [float(epoch) for epoch in range(1, len(summaries) + 1)]
        for curve in curves_by_seed(grid[row, column]).values():
            axes.plot(range(1, len(curve) + 1), curve, color=colour, lw=0.6, alpha=0.5)
        if summaries:
            axes.plot(epochs, _means(summaries), color=colour, ls=DASHES[place], label=shown(column))
            draw_band(axes, epochs, summaries, colour)
    axes.set_title(panel_title(row), fontsize=9.0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel(ACCURACY)
    axes.legend(fontsize=8.5)


def _means(summaries: Sequence[Summary]) -> list[float]:
    return [summary.mean for summary in summaries]


def _in_words(grid: Grid, rows: list[str]) -> str:
    said = []
    for row in rows:
        for column in grid.experiment.columns:
            means = _means(over_epochs(grid[row, column]))
            if means:
                peak = plain(max(means), 1)
                ends = f"{plain(means[0], 1)} after the first epoch, {peak} at best, {plain(means[-1], 1)} at the end"
                said.append(f"{panel_title(row)}, {shown(column)}: {ends}")
    return f"{grid.experiment.title}, test accuracy in per cent. " + "; ".join(said) + "."

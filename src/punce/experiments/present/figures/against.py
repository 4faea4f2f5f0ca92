"""Accuracy against the columns (labels, error of the prior, strength of a bias), a line for each row of a panel."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from punce.experiments.present.figures.series import (
    ACCURACY,
    Series,
    draw_lines,
    fit_accuracy_axis,
    say_nothing_measured,
)
from punce.experiments.present.figures.style import panels
from punce.experiments.present.grid import Grid
from punce.experiments.present.numbers import plain
from punce.experiments.present.selection import selection_of
from punce.experiments.tables import shown

Drawn = tuple[Figure, str, str]


def draw_against(grid: Grid) -> Drawn:
    """One panel for each data set and encoder (Figures 1 and 4a, and those beyond the paper)."""
    groups = panel_rows(grid)
    figure, all_axes = panels(len(groups))
    for axes, (panel, rows) in zip(all_axes, groups.items(), strict=True):
        _draw_panel(axes, grid, panel, rows)
    return figure, _caption(grid), in_words(grid)


def panel_rows(grid: Grid) -> dict[str, list[str]]:
    """Panels (rows but their last part) with a measured row, each with its rows."""
    groups: dict[str, list[str]] = {}
    for row in grid.experiment.rows:
        groups.setdefault(row.rpartition("/")[0], []).append(row)
    return {panel: rows for panel, rows in groups.items() if any(_is_measured(grid, row) for row in rows)}


def series_of(grid: Grid, row: str) -> Series:
    """The summaries and the paper's numbers of one row, along the columns."""
    places = [grid[row, column] for column in grid.experiment.columns]
    paper = tuple(measured.paper.value if measured.paper else None for measured in places)
    return Series(shown(row.rpartition("/")[2]), tuple(measured.summary() for measured in places), paper)


def panel_title(panel: str) -> str:
    """ "mnist/mlp" for a reader."""
    return ", ".join(shown(part) for part in panel.split("/"))


def _draw_panel(axes: Axes, grid: Grid, panel: str, rows: list[str]) -> None:
    columns = grid.experiment.columns
    series = [series_of(grid, row) for row in rows]
    places = [float(number) for number in range(len(columns))]
    draw_lines(axes, places, series)
    axes.set_title(panel_title(panel))
    axes.set_ylabel(ACCURACY)
    axes.set_xticks(places, columns)
    axes.set_xlim(-0.2, len(columns) - 0.8)
    axes.set_xlabel(_axis_name(grid))
    fit_accuracy_axis(axes, series)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=8.5, ncols=2 if len(series) > 4 else 1)
    else:
        say_nothing_measured(axes)


def _axis_name(grid: Grid) -> str:
    return "labelled positives" if grid.experiment.column_head == "n_P" else grid.experiment.column_head


def _is_measured(grid: Grid, row: str) -> bool:
    return any(grid[row, column].pu_selected for column in grid.experiment.columns)


def _caption(grid: Grid) -> str:
    has_paper = any(measured.paper for measured in grid.places.values())
    paper = " Open marks: the paper's numbers." if has_paper else ""
    chosen = selection_of(grid.cells.values())
    return f"{grid.experiment.title}. Test accuracy, {chosen.name}, mean over seeds; bands are 95 % intervals.{paper}"


def in_words(grid: Grid) -> str:
    """The figure for a reader who cannot see it."""
    said = []
    for row in grid.experiment.rows:
        known = [
            f"{plain(summary.mean, 1)} at {shown(column)}"
            for column in grid.experiment.columns
            if (summary := grid[row, column].summary()) is not None
        ]
        said += [f"{panel_title(row)}: {', '.join(known)}"] if known else []
    return f"{grid.experiment.title}, test accuracy in per cent. " + "; ".join(said) + "."

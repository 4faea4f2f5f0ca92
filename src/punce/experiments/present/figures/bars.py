"""Bars side by side: the probing risks (Figure 4b) and linear probe against fine-tuning (Table 3)."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from punce.experiments.present.figures.against import Drawn, in_words, panel_rows, panel_title, series_of
from punce.experiments.present.figures.series import ACCURACY, Series, draw_bars, fit_accuracy_axis
from punce.experiments.present.figures.style import panels
from punce.experiments.present.grid import Grid, columns_are_counts
from punce.experiments.present.selection import selection_of
from punce.experiments.tables import shown


def draw_transfer(grid: Grid) -> Drawn:
    """One panel for each data set and encoder; a group of bars for each number of labels."""
    groups = panel_rows(grid)
    figure, all_axes = panels(len(groups))
    for axes, (panel, rows) in zip(all_axes, groups.items(), strict=True):
        _draw_panel(axes, grid, panel, rows)
    chosen = selection_of(grid.cells.values())
    caption = f"{grid.experiment.title}. Test accuracy, {chosen.name}, mean over seeds, with 95 % intervals."
    caption += " Dotted: the paper." if _has_paper(grid, groups) else ""
    caption += " The axis does not start at zero."
    return figure, caption, in_words(grid)


def _has_paper(grid: Grid, groups: Mapping[str, list[str]]) -> bool:
    """Whether the paper has a number for any place that is drawn."""
    drawn = [row for rows in groups.values() for row in rows]
    return any(grid[row, column].paper for row in drawn for column in grid.experiment.columns)


def _draw_panel(axes: Axes, grid: Grid, panel: str, rows: list[str]) -> None:
    groups, series = _by_row(grid, rows) if columns_are_counts(grid.experiment) else _by_column(grid, rows)
    draw_bars(axes, groups, series)
    axes.set_title(panel_title(panel))
    axes.set_ylabel(ACCURACY)
    axes.set_xlabel("labelled positives")
    fit_accuracy_axis(axes, series, bars=True)
    axes.legend(fontsize=8.5, ncols=len(series), loc="upper left")
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top + 0.18 * (top - bottom))  # room for the legend


def _by_row(grid: Grid, rows: list[str]) -> tuple[list[str], list[Series]]:
    return [shown(column) for column in grid.experiment.columns], [series_of(grid, row) for row in rows]


def _by_column(grid: Grid, rows: list[str]) -> tuple[list[str], list[Series]]:
    series = []
    for column in grid.experiment.columns:
        places = [grid[row, column] for row in rows]
        paper = tuple(measured.paper.value if measured.paper else None for measured in places)
        series.append(Series(shown(column), tuple(measured.summary() for measured in places), paper))
    return [shown(row.rpartition("/")[2]) for row in rows], series

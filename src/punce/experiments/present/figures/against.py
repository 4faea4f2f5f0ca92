"""Accuracy against the columns (labels, error of the prior, strength of a bias): lines, or bars side by side."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from punce.experiments.present.figures.series import (
    ACCURACY,
    Series,
    draw_bars,
    draw_lines,
    fit_accuracy_axis,
    say_nothing_measured,
)
from punce.experiments.present.figures.style import panels
from punce.experiments.present.grid import Grid, columns_are_counts
from punce.experiments.present.numbers import plain
from punce.experiments.tables import shown

Drawn = tuple[Figure, str, str]
"""The figure, its caption, and the same in words."""


def draw_against(grid: Grid) -> Drawn:
    """Lines, with one panel for each data set and encoder (Figures 1 and 4a, and those beyond the paper)."""
    figure, _ = _draw_panels(grid, _draw_line_panel)
    has_paper = any(measured.paper for measured in grid.places.values())
    paper = " Open marks: the paper's numbers." if has_paper else ""
    return figure, f"{_caption(grid)}; bands are 95 % intervals.{paper}", _in_words(grid)


def draw_transfer(grid: Grid) -> Drawn:
    """Bars: the probing risks (Figure 4b) and linear probe against fine-tuning (Table 3), by number of labels."""
    figure, drawn = _draw_panels(grid, _draw_bar_panel)
    has_paper = any(grid[row, column].paper for row in drawn for column in grid.experiment.columns)
    paper = " Dotted: the paper." if has_paper else ""
    caption = f"{_caption(grid)}, with 95 % intervals.{paper} The axis does not start at zero."
    return figure, caption, _in_words(grid)


def _caption(grid: Grid) -> str:
    return f"{grid.experiment.title}. Test accuracy, {grid.selection.name}, mean over seeds"


def _draw_panels(grid: Grid, draw: Callable[[Axes, Grid, list[str]], None]) -> tuple[Figure, list[str]]:
    """A panel for each group of rows (all but their last part) with a measured one; also which rows are drawn."""
    groups: dict[str, list[str]] = {}
    for row in grid.experiment.rows:
        groups.setdefault(row.rpartition("/")[0], []).append(row)
    measured = {panel: rows for panel, rows in groups.items() if any(_is_measured(grid, row) for row in rows)}
    figure, all_axes = panels(len(measured))
    for axes, (panel, rows) in zip(all_axes, measured.items(), strict=True):
        draw(axes, grid, rows)
        axes.set_title(panel_title(panel))
        axes.set_ylabel(ACCURACY)
    return figure, [row for rows in measured.values() for row in rows]


def _is_measured(grid: Grid, row: str) -> bool:
    return any(grid[row, column].pu_selected for column in grid.experiment.columns)


def panel_title(panel: str) -> str:
    """ "mnist/mlp" for a reader."""
    return ", ".join(shown(part) for part in panel.split("/"))


def _series(grid: Grid, name: str, places: list[tuple[str, str]]) -> Series:
    """The summaries and the paper's numbers at these places."""
    measured = [grid[place] for place in places]
    paper = tuple(one.paper.value if one.paper else None for one in measured)
    return Series(shown(name), tuple(one.summary() for one in measured), paper)


def _by_row(grid: Grid, rows: list[str]) -> list[Series]:
    columns = grid.experiment.columns
    return [_series(grid, row.rpartition("/")[2], [(row, column) for column in columns]) for row in rows]


def _draw_line_panel(axes: Axes, grid: Grid, rows: list[str]) -> None:
    columns, series = grid.experiment.columns, _by_row(grid, rows)
    places = [float(number) for number in range(len(columns))]
    draw_lines(axes, places, series)
    axes.set_xticks(places, columns)
    axes.set_xlim(-0.2, len(columns) - 0.8)
    head = grid.experiment.column_head
    axes.set_xlabel("labelled positives" if head == "n_P" else head)
    fit_accuracy_axis(axes, series)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=8.5, ncols=2 if len(series) > 4 else 1)
    else:
        say_nothing_measured(axes)


def _draw_bar_panel(axes: Axes, grid: Grid, rows: list[str]) -> None:
    columns = grid.experiment.columns
    if columns_are_counts(grid.experiment):
        groups, series = [shown(column) for column in columns], _by_row(grid, rows)
    else:  # the methods are the columns, and the last part of a row is the number of labels
        groups = [shown(row.rpartition("/")[2]) for row in rows]
        series = [_series(grid, column, [(row, column) for row in rows]) for column in columns]
    draw_bars(axes, groups, series)
    axes.set_xlabel("labelled positives")
    fit_accuracy_axis(axes, series, bars=True)
    axes.legend(fontsize=8.5, ncols=len(series), loc="upper left")
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top + 0.18 * (top - bottom))  # room for the legend


def _in_words(grid: Grid) -> str:
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

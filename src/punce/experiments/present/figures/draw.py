"""The four kinds of figure: lines and bars against the columns, accuracy over epochs, and t-SNE panels."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from punce.experiments.present.curves import Embedding, curves_by_seed, embedding_of
from punce.experiments.present.figures.series import (
    ACCURACY,
    Series,
    draw_band,
    draw_bars,
    draw_lines,
    fit_accuracy_axis,
    say_nothing_measured,
)
from punce.experiments.present.figures.style import DASHES, PALETTE, QUIET, panels, places_of
from punce.experiments.present.grid import Grid, Measured, columns_are_counts, name_of
from punce.experiments.present.numbers import plain
from punce.experiments.present.statistics import Summary, summarise
from punce.experiments.tables import Place, shown

FigureInWords = tuple[Figure, str, str]
"""The figure, its caption, and the same for a reader who cannot see it."""


def _joined(opening: str, said: Iterable[str]) -> str:
    return f"{opening}. " + "; ".join(said) + "."


# Against the columns: numbers of labels, errors of the prior, strengths of a bias ----------------------------------


def draw_against(grid: Grid) -> FigureInWords:
    """Lines, with one panel for each data set and encoder (Figures 1 and 4a, and those beyond the paper)."""
    figure, _ = _draw_panels(grid, _draw_line_panel)
    has_paper = any(measured.paper for measured in grid.places.values())
    paper = " Open marks: the paper's numbers." if has_paper else ""
    return figure, f"{_caption(grid)}; bands are 95 % intervals.{paper}", _against_in_words(grid)


def draw_transfer(grid: Grid) -> FigureInWords:
    """Bars: the probing risks (Figure 4b) and linear probe against fine-tuning (Table 3), by number of labels."""
    figure, drawn = _draw_panels(grid, _draw_bar_panel)
    has_paper = any(grid[row, column].paper for row in drawn for column in grid.experiment.columns)
    paper = " Dotted: the paper." if has_paper else ""
    caption = f"{_caption(grid)}, with 95 % intervals.{paper} The axis does not start at zero."
    return figure, caption, _against_in_words(grid)


def _caption(grid: Grid) -> str:
    return f"{grid.experiment.title}. Test accuracy, {grid.selection.name}, mean over seeds"


def _draw_panels(grid: Grid, draw: Callable[[Axes, Grid, list[str]], None]) -> tuple[Figure, list[str]]:
    """A panel for each group of rows (all but their last part) with a measured one; also which rows are drawn."""
    groups: dict[str, list[str]] = {}
    for row in grid.experiment.rows:
        groups.setdefault(row.rpartition("/")[0], []).append(row)
    is_measured = {row for row, column in grid.all_places if grid[row, column].pu_selected}
    # A measured group is drawn whole: a method without a number then shows as a gap, not as if it did not exist.
    measured = {panel: rows for panel, rows in groups.items() if is_measured.intersection(rows)}
    figure, all_axes = panels(len(measured))
    for axes, (panel, rows) in zip(all_axes, measured.items(), strict=True):
        draw(axes, grid, rows)
        axes.set_title(name_of(panel))
        axes.set_ylabel(ACCURACY)
    return figure, [row for rows in measured.values() for row in rows]


def _series(grid: Grid, name: str, places: list[Place]) -> Series:
    """The summaries and the paper's numbers at these places."""
    measured = [grid[place] for place in places]
    paper = tuple(one.paper.value if one.paper else None for one in measured)
    return Series(shown(name), tuple(one.summary() for one in measured), paper)


def _by_row(grid: Grid, rows: list[str]) -> list[Series]:
    columns = grid.experiment.columns
    return [_series(grid, row.rpartition("/")[2], [(row, column) for column in columns]) for row in rows]


def _draw_line_panel(axes: Axes, grid: Grid, rows: list[str]) -> None:
    columns, series = grid.experiment.columns, _by_row(grid, rows)
    # Columns are equally far apart: 1k, 3k and 10k are even steps on a logarithmic axis.
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


def _against_in_words(grid: Grid) -> str:
    said: dict[str, list[str]] = {}
    for row, column in grid.all_places:
        if (summary := grid[row, column].summary()) is not None:
            said.setdefault(name_of(row), []).append(f"{plain(summary.mean, 1)} at {shown(column)}")
    rows = (f"{name}: {', '.join(known)}" for name, known in said.items())
    return _joined(f"{grid.experiment.title}, test accuracy in per cent", rows)


# Over the epochs of PU training (Figure 4c) --------------------------------------------------------------------------


def draw_epochs(grid: Grid) -> FigureInWords:
    """One panel for each row with a curve; lines are means over seeds, thin lines the seeds themselves."""
    rows = list(dict.fromkeys(row for row, column in grid.all_places if _over_epochs(grid[row, column])))
    figure, all_axes = panels(max(1, len(rows)))
    for axes, row in zip(all_axes, rows, strict=False):
        _draw_epoch_panel(axes, grid, row)
    if not rows:
        say_nothing_measured(all_axes[0])
    caption = f"{grid.experiment.title}. Means over seeds with 95 % intervals; thin lines are single seeds."
    caption += " The curves are drawn with true test labels; no epoch was chosen by them."
    return figure, caption, _epochs_in_words(grid)


def _over_epochs(measured: Measured) -> list[Summary]:
    """Over seeds, at each epoch that every seed has."""
    curves = curves_by_seed(measured).values()
    return [summarise(values) for values in zip(*curves, strict=False)]


def _draw_epoch_panel(axes: Axes, grid: Grid, row: str) -> None:
    columns = grid.experiment.columns
    for column, place in zip(columns, places_of(columns), strict=True):
        colour = PALETTE[place]
        summaries = _over_epochs(grid[row, column])
        epochs = [float(epoch) for epoch in range(1, len(summaries) + 1)]
        for curve in curves_by_seed(grid[row, column]).values():
            axes.plot(range(1, len(curve) + 1), curve, color=colour, lw=0.6, alpha=0.5)
        if summaries:
            means = [summary.mean for summary in summaries]
            axes.plot(epochs, means, color=colour, ls=DASHES[place], label=shown(column))
            draw_band(axes, epochs, summaries, colour)
    axes.set_title(name_of(row), fontsize=9.0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel(ACCURACY)
    axes.legend(fontsize=8.5)


def _epochs_in_words(grid: Grid) -> str:
    said = []
    for row, column in grid.all_places:
        means = [summary.mean for summary in _over_epochs(grid[row, column])]
        if means:
            first, best, last = (plain(value, 1) for value in (means[0], max(means), means[-1]))
            ends = f"{first} after the first epoch, {best} at best, {last} at the end"
            said.append(f"{name_of(row)}, {shown(column)}: {ends}")
    return _joined(f"{grid.experiment.title}, test accuracy in per cent", said)


# t-SNE of test features (Figure 3), coloured by the true class ------------------------------------------------------


def draw_scatter(grid: Grid) -> FigureInWords:
    """A panel for each pretraining, data sets one after the other."""
    found = {place: _first_embedding(grid[place]) for place in grid.all_places}
    rows = {row for (row, _), embedding in found.items() if embedding}
    places = [place for place in found if place[0] in rows]
    figure, all_axes = panels(max(1, len(places)), columns=len(grid.experiment.columns), width=2.8, height=3.1)
    for axes, (row, column) in zip(all_axes, places, strict=False):
        _draw_scatter_panel(axes, found[row, column], f"{name_of(row)}\n{shown(column)}")
    caption = f"{grid.experiment.title}, one seed. Blue: positives, orange: negatives; the classes are the true ones."
    caption += " The number is the share of each point's ten nearest neighbours in the picture that are of its class."
    said = (
        f"{name_of(row)}, {shown(column)}: {100 * one.purity():.1f} % of nearest neighbours share the class"
        for (row, column), one in found.items()
        if one is not None
    )
    return figure, caption, _joined("Pictures of test features by t-SNE", said)


def _first_embedding(measured: Measured) -> Embedding | None:
    found = (embedding_of(result) for _, result in sorted(measured.by_seed.items()))
    return next((one for one in found if one is not None), None)


def _draw_scatter_panel(axes: Axes, embedding: Embedding | None, title: str) -> None:
    axes.set_title(title, fontsize=8.5)
    # t-SNE's coordinates mean nothing: no ticks, no grid, a frame on all sides.
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

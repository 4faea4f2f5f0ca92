"""Lines, bars and scatters of numbers with intervals: the marks all figures are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from punce.experiments.present.figures.style import DASHES, INK, MARKERS, PALETTE, QUIET, places_of
from punce.experiments.present.statistics import Summary

ACCURACY = "test accuracy (%)"
_ASIDE = 0.035  # shift of each series along the axis, so that equal values do not hide each other


@dataclass(frozen=True)
class Series:
    """One method: a summary at each place of the axis (None where nothing was measured), the paper's value beside."""

    name: str
    summaries: tuple[Summary | None, ...]
    paper: tuple[float | None, ...] = ()


def draw_lines(axes: Axes, places: Sequence[float], series: Sequence[Series]) -> None:
    """A line with a band for each method; the paper's values as open marks of the same colour."""
    for order, (one, place) in enumerate(zip(series, _places(series), strict=True)):
        colour, marker = PALETTE[place], MARKERS[place]
        # Symmetric around the tick: the middle series stands on it.
        aside = (order - (len(series) - 1) / 2) * _ASIDE
        known = [(x + aside, s) for x, s in zip(places, one.summaries, strict=True) if s is not None]
        if known:
            x = [at for at, _ in known]
            axes.plot(x, [s.mean for _, s in known], color=colour, marker=marker, ls=DASHES[place], label=one.name)
            draw_band(axes, x, [s for _, s in known], colour)
        stated = [(x + aside, value) for x, value in zip(places, one.paper, strict=False) if value is not None]
        if stated:
            at, values = [x for x, _ in stated], [value for _, value in stated]
            axes.plot(
                at, values, color=colour, marker=marker, ls="none", mfc="none", mew=1.2, alpha=0.9, label="_paper"
            )


def draw_band(axes: Axes, x: Sequence[float], summaries: Sequence[Summary], colour: str) -> None:
    """The 95 % interval; a bar where it stands alone, nothing with one seed."""
    known = [(at, *bounds(s)) for at, s in zip(x, summaries, strict=True) if s.low is not None]
    places, lows, highs = ([one[i] for one in known] for i in range(3))
    if len(known) > 1:
        axes.fill_between(places, lows, highs, color=colour, alpha=0.16, lw=0)
    elif known:
        axes.plot(places * 2, [*lows, *highs], color=colour, lw=1.4)


def bounds(summary: Summary) -> tuple[float, float]:
    """Ends of the interval; the mean twice with one seed."""
    low, high = summary.low, summary.high
    return (summary.mean if low is None else low, summary.mean if high is None else high)


def draw_bars(axes: Axes, groups: Sequence[str], series: Sequence[Series]) -> None:
    """Bars side by side within each group, whiskers for the interval, a tick for the paper's value."""
    width = 0.8 / max(1, len(series))
    for order, (one, place) in enumerate(zip(series, _places(series), strict=True)):
        for group, summary in enumerate(one.summaries):
            at = group + (order - (len(series) - 1) / 2) * width
            if summary is not None:
                # matplotlib leaves labels with an underscore out of the legend: one entry for each series.
                label = one.name if group == _first_known(one) else "_more"
                axes.bar(at, summary.mean, width * 0.9, color=PALETTE[place], alpha=0.85, label=label)
                axes.plot([at, at], bounds(summary), color=INK, lw=1.3)
            paper = one.paper[group] if group < len(one.paper) else None
            if paper is not None:
                axes.plot([at - width * 0.42, at + width * 0.42], [paper, paper], color=INK, lw=1.2, ls=":")
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.grid(visible=False, axis="x")


def fit_accuracy_axis(axes: Axes, series: Sequence[Series], *, bars: bool = False) -> None:
    """Limits around what is drawn. Bars do not start at zero here (accuracies near 95 %): the axis says so itself."""
    values = [bound for one in series for s in one.summaries if s is not None for bound in (s.mean, s.low, s.high)]
    shown = [value for value in [*values, *(p for one in series for p in one.paper)] if value is not None]
    if shown:
        low, high = min(shown), max(shown)
        pad = max(0.5, 0.08 * (high - low))
        axes.set_ylim(max(0.0, low - pad * (3 if bars else 1)), min(100.0 + 0.15 * pad, high + pad))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))


def say_nothing_measured(axes: Axes) -> None:
    """An empty panel says that it is empty."""
    axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", va="center", color=QUIET)


def _places(series: Sequence[Series]) -> list[int]:
    return places_of([one.name for one in series])


def _first_known(series: Series) -> int:
    return next((i for i, summary in enumerate(series.summaries) if summary is not None), 0)

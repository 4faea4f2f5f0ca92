"""All claims in one figure: the differences behind each of them with their intervals, coloured by what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from punce.experiments.present.figures.style import INK, PALETTE, QUIET
from punce.experiments.present.numbers import signed
from punce.experiments.present.settled import Settled
from punce.experiments.present.verdicts import Answer, Line

_MOST = 8.0  # points: differences beyond are drawn at the edge, with their value
_LINE, _SPACE, _AROUND = 0.17, 0.9, 0.9  # inches of a line and around all; lines of space between two claims
_WIDTH, _LEFT = 9.6, 0.5  # inches, and the share of them for words
_WORDS = {Answer.YES: "show", Answer.NO: "do not show", Answer.OPPOSITE: "show the opposite"}
_COLOURS = {Answer.YES: PALETTE[0], Answer.NO: QUIET, Answer.OPPOSITE: PALETTE[1]}


@dataclass(frozen=True)
class _Drawn:
    """A claim and those of its comparisons that have an interval."""

    text: str
    scale: str
    lines: Sequence[Line]


def draw_claims(settled: Sequence[Settled]) -> tuple[Figure, str, str] | None:
    """The claims as a forest plot, each at the scale that decides it; levels, which are no differences, are left out.

    Also its caption, and the same in words. None where no comparison has an interval.
    """
    measured = [(one.finding.text, one.scale, _drawn(one)) for one in settled]
    claims = [_Drawn(text, scale.name, lines) for text, scale, lines in measured if scale and lines]
    if not claims:
        return None
    height = _LINE * sum(len(one.lines) + 1 + _SPACE for one in claims) + _AROUND
    figure = Figure(figsize=(_WIDTH, height))
    axes = figure.add_axes((_LEFT, 0.55 / height, 0.97 - _LEFT, 1.0 - _AROUND / height))
    place = 0.0
    for claim in claims:
        place = _draw_claim(axes, claim, place) + _SPACE
    axes.axvline(0.0, color=INK, linewidth=1.0)
    axes.set(xlim=(-_MOST, _MOST), ylim=(place - _SPACE, -0.9), yticks=[], xlabel="difference in points")
    axes.spines["left"].set_visible(False)
    caption = (
        "The differences behind every claim, with 95 % intervals over seeds. Blue: it shows. Grey: it does not. "
        f"Orange: the opposite shows. Differences beyond {_MOST:g} points stand at the edge with their value."
    )
    counts = Counter(line.answer for one in claims for line in one.lines)
    said = ", ".join(f"{counts[answer]} {word}" for answer, word in _WORDS.items())
    return figure, caption, f"{counts.total()} differences behind {len(claims)} claims: {said}."


def _drawn(one: Settled) -> list[Line]:
    return [line for line in one.finding.lines if line.difference is not None and line.difference.low is not None]


def _draw_claim(axes: Axes, claim: _Drawn, place: float) -> float:
    """A line of words, and one for each comparison below it; the place after them."""
    words = axes.get_yaxis_transform()  # x in shares of the panel, y in lines
    text = f"{claim.text} ({claim.scale})"
    axes.text(-1.02, place, text, transform=words, ha="left", va="center", fontsize=8.5, clip_on=False)
    for line in claim.lines:
        place += 1.0
        axes.text(-0.02, place, line.label, transform=words, ha="right", va="center", fontsize=8, color=QUIET)
        _draw_difference(axes, line, place)
    return place + 1.0


def _draw_difference(axes: Axes, line: Line, place: float) -> None:
    found, colour = line.difference, _COLOURS.get(line.answer, QUIET)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    if abs(found.mean) <= _MOST:
        ends = (max(found.low, -_MOST), min(found.high, _MOST))
        axes.plot(ends, (place, place), "-", color=colour, linewidth=1.4)
        axes.plot(found.mean, place, "o", color=colour, markersize=4)
        return
    side, marker, align = (1.0, ">", "right") if found.mean > 0.0 else (-1.0, "<", "left")
    axes.plot(side * (_MOST - 0.15), place, marker, color=colour, markersize=4.5, clip_on=False)
    value = signed(found.mean, 1)
    axes.text(side * (_MOST - 0.5), place, value, ha=align, va="center", fontsize=7.5, color=colour)

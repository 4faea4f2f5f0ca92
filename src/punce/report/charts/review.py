"""Precision and recall against the number of top rows reviewed, with bands."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from punce.report.charts.axes import Frame, Scale, element, group, line, path, svg, text, x_axis, y_axis
from punce.report.content import Interval, ReviewCurve


def review_chart(curve: ReviewCurve, prior: float | None, width: int) -> Markup:
    """Two lines over one axis; drawn up to where nearly every positive is found, where the decision lies."""
    last = _last_drawn(curve)
    rows = curve.rows[: last + 1]
    frame = Frame(46.0, 40.0, width - 16.0, 290.0)
    x = Scale(0.0, float(rows[-1]), frame.left, frame.right)
    y = Scale(0.0, 1.0, frame.bottom, frame.top)
    parts = [
        y_axis(frame, y, label=lambda value: f"{100 * value:.0f} %"),
        _band(rows, curve.recall, x, y, "band recall"),
        _band(rows, curve.precision, x, y, "band precision"),
        _line(rows, curve.recall, x, y, "series recall"),
        _line(rows, curve.precision, x, y, "series precision"),
        x_axis(frame, x, "Top-ranked rows reviewed", most=4 if width < 500 else 8),
        _legend(frame),
    ]
    if prior is not None:
        label = text(frame.right, y(prior) + 14, "precision in random order", text_anchor="end", cls="halo quiet")
        parts += [line(frame.left, y(prior), frame.right, y(prior), "reference"), label]
    return svg(width, frame.bottom + 44, _describe(curve, last), parts)


def _last_drawn(curve: ReviewCurve) -> int:
    for i, recall in enumerate(curve.recall):
        if recall.value is not None and recall.value >= 0.99:
            return i
    return len(curve.rows) - 1


def _line(rows: Sequence[int], values: Sequence[Interval], x: Scale, y: Scale, cls: str) -> Markup:
    points = [(x(k), y(v.value)) for k, v in zip(rows, values, strict=False) if v.value is not None]
    return path(points, cls) if points else Markup("")


def _band(rows: Sequence[int], values: Sequence[Interval], x: Scale, y: Scale, cls: str) -> Markup:
    bounded = [(x(k), v.low, v.high) for k, v in zip(rows, values, strict=False) if None not in (v.low, v.high)]
    outline = [(at, y(high)) for at, _, high in bounded if high is not None]
    outline += [(at, y(low)) for at, low, _ in reversed(bounded) if low is not None]
    return path(outline, cls) if outline else Markup("")


def _legend(frame: Frame) -> Markup:
    parts = []
    for i, (name, cls) in enumerate((("Precision", "series precision"), ("Recall", "series recall"))):
        left = frame.left + 110 * i
        parts.append(line(left, 18, left + 26, 18, cls))
        parts.append(text(left + 33, 22, name, cls="strong"))
    return group(parts)


def _describe(curve: ReviewCurve, last: int) -> str:
    places = sorted({max(0, last // 8), last // 2, last})
    said = [
        f"after {curve.rows[i]:,} rows {curve.precision[i].value or 0:.0%} of those reviewed are positive and "
        f"{curve.recall[i].value or 0:.0%} of all positives are found"
        for i in places
    ]
    return "Estimated precision and recall against rows reviewed: " + "; ".join(said) + "."


def share_bar(value: float, low: float | None, high: float | None, width: int) -> Markup:
    """All unlabelled rows as one bar: the estimated positives, and the part the interval leaves open."""
    x = Scale(0.0, 1.0, 0.0, float(width))
    parts = [element("rect", x=0, y=0, width=width, height=18, rx=4, cls="bar rest")]
    if low is not None and high is not None:
        parts.append(element("rect", x=x(low), y=0, width=x(high) - x(low), height=18, cls="bar open"))
    parts.append(element("rect", x=0, y=0, width=x(value if low is None else low), height=18, rx=4, cls="bar hidden"))
    parts.append(line(x(value), -2, x(value), 20, "threshold"))
    return svg(width, 18, f"{value:.1%} of the unlabelled rows are estimated to be positive", parts, "chart share")

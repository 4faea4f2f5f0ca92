"""Small pictures: an interval beside its number, and one training curve."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from punce.report.charts.axes import Frame, Scale, element, group, line, path, rect, svg, text, tick_label, ticks
from punce.report.content import Interval


def interval_mark(interval: Interval, true: float | None = None) -> Markup:
    """A dot with whiskers on the way from 0 to 100 %, and a diamond at the true value if there is one."""
    x = Scale(0.0, 1.0, 8.0, 192.0)
    parts = [rect(8, 10, 184, 2, "track")]
    if interval.low is not None and interval.high is not None:
        parts.append(rect(x(interval.low), 8, max(2.0, x(interval.high) - x(interval.low)), 6, "whisker"))
    if interval.value is not None:
        parts.append(element("circle", cx=x(interval.value), cy=11, r=5, cls="dot"))
    if true is not None:
        at = x(true)
        parts.append(element("path", d=f"M{at - 6:.1f},11L{at:.1f},4L{at + 6:.1f},11L{at:.1f},18Z", cls="diamond"))
    return element("svg", Markup("").join(parts), viewBox="0 0 200 22", aria_hidden="true", cls="chart mark")


def curve_panel(stage: str, name: str, epochs: Sequence[float], values: Sequence[float | None]) -> Markup:
    """One metric of one stage against epochs, its last value written out."""
    points = [(e, v) for e, v in zip(epochs, values, strict=True) if v is not None]
    if not points:
        return svg(270, 40, f"{stage}: {name} has no values", [text(8, 24, f"{name}: no values", cls="quiet")])
    frame = Frame(48.0, 34.0, 258.0, 130.0)
    lows, highs = min(v for _, v in points), max(v for _, v in points)
    pad = (highs - lows) * 0.06 or abs(highs) * 0.05 or 0.5
    x = Scale(min(e for e, _ in points), max(e for e, _ in points), frame.left, frame.right)
    y = Scale(lows - pad, highs + pad, frame.bottom, frame.top)
    drawn = [(x(e), y(v)) for e, v in points]
    (first, start), (last, end) = points[0], points[-1]
    label = f"{stage}, {name}: from {start:.4g} at epoch {first:g} to {end:.4g} at epoch {last:g}."
    parts = [
        text(frame.left, 18, name if len(name) <= 20 else name[:19] + "…", cls="panel-title"),
        text(frame.right, 18, f"{points[-1][1]:.4g}", text_anchor="end", cls="strong"),
        *_grid(frame, x, y),
        path(drawn, "series metric") if len(drawn) > 1 else Markup(""),
        element("circle", cx=drawn[-1][0], cy=drawn[-1][1], r=3.5, cls="dot"),
    ]
    return svg(270, 160, label, parts)


def _grid(frame: Frame, x: Scale, y: Scale) -> list[Markup]:
    parts = []
    for value in ticks(y.low, y.high, 4):
        parts.append(line(frame.left, y(value), frame.right, y(value), "grid"))
        parts.append(text(frame.left - 6, y(value) + 4, tick_label(value), text_anchor="end"))
    whole = [value for value in ticks(x.low, x.high, 4) if value == round(value)]
    parts += [text(x(value), frame.bottom + 18, tick_label(value), text_anchor="middle") for value in whole]
    return [group(parts), line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")]

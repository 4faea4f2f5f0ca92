"""The grammar all charts share: escaped SVG elements, linear scales, round ticks, axes.

Charts carry classes instead of colours, so that the page's style sheet decides between light, dark and paper; they are
drawn in page pixels at two widths, because a chart that is merely scaled down cannot be read on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDE, NARROW = 820, 340


@dataclass(frozen=True)
class Scale:
    """Data values low..high to pixels start..stop."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        span = self.high - self.low
        return self.start + (value - self.low) / (span if span else 1.0) * (self.stop - self.start)


@dataclass(frozen=True)
class Frame:
    """The plotting area inside a picture, in pixels."""

    left: float
    top: float
    right: float
    bottom: float


def element(name: str, body: Markup | str = "", **attributes: object) -> Markup:
    """An SVG element; attribute values and a body that is not Markup are escaped. ``cls`` is class, _ becomes -."""
    written = Markup("").join(
        Markup(' {}="{}"').format(Markup("class" if key == "cls" else key.replace("_", "-")), _short(value))
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, body)


def group(parts: Iterable[Markup], **attributes: object) -> Markup:
    """A <g> of parts."""
    return element("g", Markup("").join(parts), **attributes)


def text(x: float, y: float, body: str, **attributes: object) -> Markup:
    """A label; anchor with text_anchor."""
    return element("text", body, x=x, y=y, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> Markup:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, cls=cls)


def rect(x: float, y: float, width: float, height: float, cls: str, tip: str = "") -> Markup:
    """A bar; `tip` is the browser's own tooltip."""
    body = element("title", tip) if tip else ""
    return element("rect", body, x=x, y=y, width=max(0.0, width), height=max(0.0, height), cls=cls)


def path(points: Sequence[tuple[float, float]], cls: str) -> Markup:
    """A polyline through the points."""
    return element("path", d="M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points), cls=cls)


def svg(width: float, height: float, label: str, parts: Iterable[Markup], cls: str = "chart") -> Markup:
    """A picture with its text alternative."""
    return element(
        "svg", Markup("").join(parts), viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=label, cls=cls
    )


def both_widths(draw: Callable[[int], Markup]) -> Markup:
    """The chart for a desk and for a phone; the style sheet shows one of them."""
    return Markup('<div class="wide">{}</div><div class="narrow">{}</div>').format(draw(WIDE), draw(NARROW))


def ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` + 1 round numbers within [low, high], in steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / max(1, most)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def tick_label(value: float) -> str:
    """1,000 and 0.25, never 1e+03."""
    if value == round(value) and abs(value) < 1e15:
        return f"{round(value):,}"
    return f"{value:.3g}"


def x_axis(frame: Frame, scale: Scale, title: str, *, most: int = 6) -> Markup:
    """Ticks, numbers and a title below the frame."""
    parts = [line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")]
    for value in ticks(scale.low, scale.high, most):
        x = scale(value)
        parts.append(line(x, frame.bottom, x, frame.bottom + 4, "axis"))
        parts.append(text(x, frame.bottom + 17, tick_label(value), text_anchor="middle"))
    parts.append(
        text(
            (frame.left + frame.right) / 2,
            frame.bottom + 36,
            _fitting(title, frame),
            text_anchor="middle",
            cls="axis-title",
        )
    )
    return group(parts)


def y_axis(frame: Frame, scale: Scale, *, most: int = 4, label: Callable[[float], str] = tick_label) -> Markup:
    """Grid lines and numbers to the left of the frame."""
    parts = []
    for value in ticks(scale.low, scale.high, most):
        y = scale(value)
        parts.append(line(frame.left, y, frame.right, y, "grid"))
        parts.append(text(frame.left - 7, y + 4, label(value), text_anchor="end"))
    return group(parts)


def _fitting(title: str, frame: Frame) -> str:
    """A title cut to the frame: SVG text neither wraps nor stops by itself. About 6.5 pixels a letter."""
    most = int((frame.right - frame.left) / 6.5)
    return title if len(title) <= most else title[: most - 1] + "…"


def _short(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value

"""The page's charts as inline SVG, each with its text alternative; first the elements and axes that all of them use.

Charts carry classes instead of colours, so that the page's style sheet decides between light, dark and paper. They are
drawn in page pixels at two widths, because a chart that is merely scaled down cannot be read on a phone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from punce.report.content import Histogram, Interval, ReviewCurve

WIDE, NARROW = 820, 340
_PANEL, _SMALL, _GAP = 170.0, 90.0, 40.0  # heights of the score chart's panels and the space between them


@dataclass(frozen=True)
class Axis:
    """Data values low..high to pixels start..stop."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        span = self.high - self.low  # 0 for a single value, which then lies at the start
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
    # The tolerances keep 0.30000000000000004 from losing its tick.
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def tick_label(value: float) -> str:
    """1,000 and 0.25, never 1e+03."""
    if value == round(value) and abs(value) < 1e15:
        return f"{round(value):,}"
    return f"{value:.3g}"


def x_axis(frame: Frame, scale: Axis, title: str, *, most: int = 6) -> Markup:
    """Ticks, numbers and a title below the frame."""
    parts = [line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")]
    for value in ticks(scale.low, scale.high, most):
        x = scale(value)
        parts.append(line(x, frame.bottom, x, frame.bottom + 4, "axis"))
        parts.append(text(x, frame.bottom + 17, tick_label(value), text_anchor="middle"))
    middle, fitting = (frame.left + frame.right) / 2, _fitting(title, frame)
    parts.append(text(middle, frame.bottom + 36, fitting, text_anchor="middle", cls="axis-title"))
    return group(parts)


def y_axis(frame: Frame, scale: Axis, *, most: int = 4, label: Callable[[float], str] = tick_label) -> Markup:
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


# Scores of labelled and unlabelled rows ------------------------------------------------------------------------


def hidden_positives(histogram: Histogram, prior: float | None) -> list[float]:
    """π · n_U · (share of P in the bin): the positives expected among the unlabelled rows of each bin. Shape: (B,).

    At most as many as there are rows: a few labelled rows in a bin of two would else promise four.
    """
    labelled, unlabelled = sum(histogram.labelled), sum(histogram.unlabelled)
    if prior is None or labelled == 0:
        return [0.0] * len(histogram.labelled)
    expected = (prior * unlabelled * n / labelled for n in histogram.labelled)
    return [min(n, float(rows)) for n, rows in zip(expected, histogram.unlabelled, strict=True)]


def score_chart(histogram: Histogram, prior: float | None, threshold: float | None, width: int) -> Markup:
    """Two panels over one axis: unlabelled rows above, held-out labelled positives below."""
    hidden = hidden_positives(histogram, prior)
    upper = Frame(46.0, 52.0, width - 12.0, 52.0 + _PANEL)
    lower = Frame(upper.left, upper.bottom + _GAP, upper.right, upper.bottom + _GAP + _SMALL)
    x = Axis(histogram.edges[0], histogram.edges[-1], upper.left, upper.right)
    y_upper = Axis(0.0, max(1.0, *histogram.unlabelled, *hidden), upper.bottom, upper.top)
    y_lower = Axis(0.0, max(1.0, *histogram.labelled), lower.bottom, lower.top)
    parts = [
        y_axis(upper, y_upper),
        _bars(histogram, list(histogram.unlabelled), x, y_upper, "bar unlabelled", "unlabelled rows"),
        _bars(histogram, hidden, x, y_upper, "bar hidden", "expected positives") if any(hidden) else Markup(""),
        line(upper.left, upper.bottom, upper.right, upper.bottom, "axis"),
        text(upper.left, upper.top - 10, "Unlabelled rows held out", cls="panel-title"),
        y_axis(lower, y_lower, most=2),
        _bars(histogram, list(histogram.labelled), x, y_lower, "bar labelled", histogram.positives),
        text(lower.left, lower.top - 10, f"{histogram.positives.capitalize()} held out", cls="panel-title"),
        x_axis(lower, x, histogram.axis, most=5 if width < 500 else 10),
    ]
    if threshold is not None and x.low <= threshold <= x.high:
        # First in the picture, so that bars and labels are drawn over the line.
        parts.insert(0, _threshold(x(threshold), lower.bottom, threshold, width))
    return svg(width, lower.bottom + 44, _describe_scores(histogram, hidden, threshold), parts)


def _bars(histogram: Histogram, counts: list[float] | list[int], x: Axis, y: Axis, cls: str, what: str) -> Markup:
    bars = []
    for (low, high), n in zip(pairwise(histogram.edges), counts, strict=True):
        if n > 0:  # a bar of height 0 would still show its tooltip
            tip = f"{what} from {low:.3g} to {high:.3g}: {tick_label(round(n, 1))}"
            left, top = x(low) + 0.5, y(n)
            bars.append(rect(left, top, x(high) - 0.5 - left, y.start - top, cls, tip))
    return group(bars)


def _threshold(at: float, bottom: float, value: float, width: int) -> Markup:
    # Near an edge the label stands on the inner side of the line, or it would leave the picture.
    anchor = "end" if at > width * 0.75 else "start" if at < width * 0.25 else "middle"
    label = text(at, 14, f"threshold {value:.3g}", text_anchor=anchor, cls="strong")
    return group([line(at, 20, at, bottom, "threshold"), label])


def _describe_scores(histogram: Histogram, hidden: list[float], threshold: float | None) -> str:
    """The figure in words: what a reader who cannot see it needs."""
    sentence = (
        f"Histograms of {sum(histogram.unlabelled):,} unlabelled rows and {sum(histogram.labelled):,} "
        f"{histogram.positives}, all held out, by {histogram.axis.lower()}."
    )
    if any(hidden):
        sentence += f" About {sum(hidden):,.0f} of the unlabelled ones are expected to be positive."
    if threshold is None:
        return sentence
    above = [_share_above(histogram, counts, threshold) for counts in (histogram.labelled, histogram.unlabelled)]
    shares = f"{above[0]:.0%} of the {histogram.positives} and {above[1]:.0%} of the unlabelled rows"
    return f"{sentence} About {shares} lie above the threshold."


def _share_above(histogram: Histogram, counts: tuple[int, ...], threshold: float) -> float:
    """Share of rows above the threshold, bins that it cuts counted in part."""
    above = 0.0
    for (low, high), n in zip(pairwise(histogram.edges), counts, strict=True):
        above += n * min(1.0, max(0.0, (high - threshold) / (high - low)))
    return above / sum(counts) if sum(counts) else 0.0


# Precision and recall against the rows reviewed ---------------------------------------------------------------


def review_chart(curve: ReviewCurve, prior: float | None, width: int) -> Markup:
    """Two lines over one axis; drawn up to where nearly every positive is found, where the decision lies."""
    last = _last_drawn(curve)
    rows = curve.rows[: last + 1]
    frame = Frame(46.0, 40.0, width - 16.0, 290.0)
    x = Axis(0.0, float(rows[-1]), frame.left, frame.right)
    y = Axis(0.0, 1.0, frame.bottom, frame.top)
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
        at = y(prior) + 14 if y(prior) + 14 < frame.bottom else y(prior) - 10  # of a small share: not on the axis
        label = text(frame.right, at, "precision in random order", text_anchor="end", cls="halo quiet")
        parts += [line(frame.left, y(prior), frame.right, y(prior), "reference"), label]
    return svg(width, frame.bottom + 44, _describe_review(curve, last), parts)


def _last_drawn(curve: ReviewCurve) -> int:
    nearly_all = (i for i, recall in enumerate(curve.recall) if recall.value is not None and recall.value >= 0.99)
    return next(nearly_all, len(curve.rows) - 1)


def _line(rows: Sequence[int], values: Sequence[Interval], x: Axis, y: Axis, cls: str) -> Markup:
    """A line in pieces: none where the interval leaves the number open."""
    points = [(x(k), v.stated.value) for k, v in zip(rows, values, strict=False)]
    pieces = itertools.groupby(points, key=lambda point: point[1] is not None)
    return group(
        path([(at, y(value)) for at, value in piece if value is not None], cls)
        for is_known, piece in pieces
        if is_known
    )


def _band(rows: Sequence[int], values: Sequence[Interval], x: Axis, y: Axis, cls: str) -> Markup:
    # Along the upper ends to the right, back along the lower ends: one closed outline.
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


def _describe_review(curve: ReviewCurve, last: int) -> str:
    places = sorted({max(0, last // 8), last // 2, last})
    said = [
        f"after {curve.rows[i]:,} rows {_share(curve.precision[i])} of those reviewed are positive and "
        f"{_share(curve.recall[i])} of all positives are found"
        for i in places
    ]
    return "Estimated precision and recall against rows reviewed: " + "; ".join(said) + "."


def _share(interval: Interval) -> str:
    value = interval.stated.value
    return "a share that cannot be estimated" if value is None else f"{value:.0%}"


def share_bar(value: float, low: float | None, high: float | None, width: int) -> Markup:
    """All unlabelled rows as one bar: the estimated positives, and the part the interval leaves open."""
    x = Axis(0.0, 1.0, 0.0, float(width))
    parts = [element("rect", x=0, y=0, width=width, height=18, rx=4, cls="bar rest")]
    if low is not None and high is not None:
        parts.append(element("rect", x=x(low), y=0, width=x(high) - x(low), height=18, cls="bar open"))
    # The solid part ends at the low end: at least so many are positive.
    parts.append(element("rect", x=0, y=0, width=x(value if low is None else low), height=18, rx=4, cls="bar hidden"))
    parts.append(line(x(value), -2, x(value), 20, "threshold"))
    return svg(width, 18, f"{value:.1%} of the unlabelled rows are estimated to be positive", parts, "chart share")


# Small charts: an interval beside its number, one training curve ----------------------------------------------


def interval_mark(interval: Interval, other: float | None = None) -> Markup:
    """A dot with whiskers on the way from 0 to 100 %, and a diamond at the `other` value it is compared with."""
    x = Axis(0.0, 1.0, 8.0, 192.0)
    parts = [rect(8, 10, 184, 2, "track")]
    if interval.low is not None and interval.high is not None:
        parts.append(rect(x(interval.low), 8, max(2.0, x(interval.high) - x(interval.low)), 6, "whisker"))
    if interval.value is not None:
        parts.append(element("circle", cx=x(interval.value), cy=11, r=5, cls="dot"))
    if other is not None:
        at = x(other)
        parts.append(element("path", d=f"M{at - 6:.1f},11L{at:.1f},4L{at + 6:.1f},11L{at:.1f},18Z", cls="diamond"))
    return element("svg", Markup("").join(parts), viewBox="0 0 200 22", aria_hidden="true", cls="chart mark")


def curve_panel(stage: str, name: str, epochs: Sequence[float], values: Sequence[float | None]) -> Markup:
    """One metric of one stage against epochs, its last value written out."""
    points = [(e, v) for e, v in zip(epochs, values, strict=True) if v is not None]
    if not points:
        return svg(270, 40, f"{stage}: {name} has no values", [text(8, 24, f"{name}: no values", cls="quiet")])
    frame = Frame(48.0, 34.0, 258.0, 130.0)
    lows, highs = min(v for _, v in points), max(v for _, v in points)
    # Some room above and below; a curve that is flat gets room in proportion to its value.
    pad = (highs - lows) * 0.06 or abs(highs) * 0.05 or 0.5
    x = Axis(min(e for e, _ in points), max(e for e, _ in points), frame.left, frame.right)
    y = Axis(lows - pad, highs + pad, frame.bottom, frame.top)
    runs = [[(x(e), y(v)) for e, v in run] for run in _runs(points)]
    (first, start), (last, end) = points[0], points[-1]
    label = f"{stage}, {name}: from {start:.4g} at epoch {first:g} to {end:.4g} at epoch {last:g}."
    parts = [
        text(frame.left, 18, name if len(name) <= 20 else name[:19] + "…", cls="panel-title"),
        text(frame.right, 18, f"{points[-1][1]:.4g}", text_anchor="end", cls="strong"),
        *_grid(frame, x, y),
        *(path(run, "series metric") for run in runs if len(run) > 1),
        element("circle", cx=runs[-1][-1][0], cy=runs[-1][-1][1], r=3.5, cls="dot"),
    ]
    return svg(270, 160, label, parts)


def _runs(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """A stage that trained several times, such as once for each fold, begins again at its first epoch."""
    found = [[points[0]]]
    for before, point in itertools.pairwise(points):
        if point[0] > before[0]:
            found[-1].append(point)
        else:
            found.append([point])
    return found


def _grid(frame: Frame, x: Axis, y: Axis) -> list[Markup]:
    parts = []
    for value in ticks(y.low, y.high, 4):
        parts.append(line(frame.left, y(value), frame.right, y(value), "grid"))
        parts.append(text(frame.left - 6, y(value) + 4, tick_label(value), text_anchor="end"))
    # Epochs are whole numbers, and so are their ticks.
    whole = [value for value in ticks(x.low, x.high, 4) if value == round(value)]
    parts += [text(x(value), frame.bottom + 18, tick_label(value), text_anchor="middle") for value in whole]
    return [group(parts), line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")]

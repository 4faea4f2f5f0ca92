"""Scores of unlabelled and labelled rows, with the part of the unlabelled ones that the prior takes for positives."""

from __future__ import annotations

from markupsafe import Markup

from punce.report.charts.axes import Frame, Scale, group, line, rect, svg, text, tick_label, x_axis, y_axis
from punce.report.content import Histogram

_PANEL, _SMALL, _GAP = 170.0, 90.0, 40.0


def hidden_positives(histogram: Histogram, prior: float | None) -> list[float]:
    """π · n_U · (share of P in the bin): the positives expected among the unlabelled rows of each bin. Shape: (B,)."""
    labelled, unlabelled = sum(histogram.labelled), sum(histogram.unlabelled)
    if prior is None or labelled == 0:
        return [0.0] * len(histogram.labelled)
    return [prior * unlabelled * n / labelled for n in histogram.labelled]


def score_chart(histogram: Histogram, prior: float | None, threshold: float | None, width: int) -> Markup:
    """Two panels over one axis: unlabelled rows above, held-out labelled positives below."""
    hidden = hidden_positives(histogram, prior)
    upper = Frame(46.0, 52.0, width - 12.0, 52.0 + _PANEL)
    lower = Frame(upper.left, upper.bottom + _GAP, upper.right, upper.bottom + _GAP + _SMALL)
    x = Scale(histogram.edges[0], histogram.edges[-1], upper.left, upper.right)
    y_upper = Scale(0.0, max(1.0, *histogram.unlabelled, *hidden), upper.bottom, upper.top)
    y_lower = Scale(0.0, max(1.0, *histogram.labelled), lower.bottom, lower.top)
    parts = [
        y_axis(upper, y_upper),
        _bars(histogram, list(histogram.unlabelled), x, y_upper, "bar unlabelled", "unlabelled rows"),
        _bars(histogram, hidden, x, y_upper, "bar hidden", "of them expected positive") if any(hidden) else Markup(""),
        line(upper.left, upper.bottom, upper.right, upper.bottom, "axis"),
        text(upper.left, upper.top - 10, "Unlabelled rows held out", cls="panel-title"),
        y_axis(lower, y_lower, most=2),
        _bars(histogram, list(histogram.labelled), x, y_lower, "bar labelled", "labelled positives"),
        text(lower.left, lower.top - 10, "Labelled positives held out", cls="panel-title"),
        x_axis(lower, x, histogram.axis, most=5 if width < 500 else 10),
    ]
    if threshold is not None and x.low <= threshold <= x.high:
        parts.insert(0, _threshold(x(threshold), lower.bottom, threshold, width))
    return svg(width, lower.bottom + 44, _describe(histogram, hidden, threshold), parts)


def _bars(histogram: Histogram, counts: list[float] | list[int], x: Scale, y: Scale, cls: str, what: str) -> Markup:
    bars = []
    for low, high, n in zip(histogram.edges, histogram.edges[1:], counts, strict=False):
        if n > 0:
            tip = f"{low:.3g} to {high:.3g}: {tick_label(round(n, 1))} {what}"
            left, top = x(low) + 0.5, y(n)
            bars.append(rect(left, top, x(high) - 0.5 - left, y.start - top, cls, tip))
    return group(bars)


def _threshold(at: float, bottom: float, value: float, width: int) -> Markup:
    anchor = "end" if at > width * 0.75 else "start" if at < width * 0.25 else "middle"
    label = text(at, 14, f"threshold {value:.3g}", text_anchor=anchor, cls="strong")
    return group([line(at, 20, at, bottom, "threshold"), label])


def _describe(histogram: Histogram, hidden: list[float], threshold: float | None) -> str:
    """The figure in words: what a reader who cannot see it needs."""
    sentence = (
        f"Histograms of {sum(histogram.unlabelled):,} unlabelled and {sum(histogram.labelled):,} labelled "
        f"held-out rows by {histogram.axis.lower()}."
    )
    if any(hidden):
        sentence += f" About {sum(hidden):,.0f} of the unlabelled ones are expected to be positive."
    if threshold is None:
        return sentence
    above = [_share_above(histogram, counts, threshold) for counts in (histogram.labelled, histogram.unlabelled)]
    return (
        sentence
        + f" About {above[0]:.0%} of the labelled and {above[1]:.0%} of the unlabelled rows lie above the threshold."
    )


def _share_above(histogram: Histogram, counts: tuple[int, ...], threshold: float) -> float:
    """Share of rows above the threshold, bins that it cuts counted in part."""
    above = 0.0
    for low, high, n in zip(histogram.edges, histogram.edges[1:], counts, strict=False):
        above += n * min(1.0, max(0.0, (high - threshold) / (high - low)))
    return above / sum(counts) if sum(counts) else 0.0

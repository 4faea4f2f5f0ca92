"""Charts as inline SVG, coloured by the page's style sheet, each with its text alternative."""

from __future__ import annotations

from punce.report.charts.axes import both_widths
from punce.report.charts.review import review_chart, share_bar
from punce.report.charts.scores import hidden_positives, score_chart
from punce.report.charts.small import curve_panel, interval_mark

__all__ = [
    "both_widths",
    "curve_panel",
    "hidden_positives",
    "interval_mark",
    "review_chart",
    "score_chart",
    "share_bar",
]

"""The report: a page with pictures to show a colleague. `ReportContent` in, one self-contained HTML file out."""

from __future__ import annotations

from punce.report.content import (
    Cell,
    DataFacts,
    Histogram,
    Interval,
    OtherEstimate,
    PriorFacts,
    Quality,
    ReportContent,
    ReviewCurve,
    RowMap,
    Threshold,
    TopRow,
    TopRows,
)
from punce.report.page import render_report, write_report
from punce.report.pieces import prior_sensitivity, review_curve, score_histogram
from punce.report.rows import lay_out, map_rows, row_map, thumbnail, thumbnail_sheet, top_rows

__all__ = [
    "Cell",
    "DataFacts",
    "Histogram",
    "Interval",
    "OtherEstimate",
    "PriorFacts",
    "Quality",
    "ReportContent",
    "ReviewCurve",
    "RowMap",
    "Threshold",
    "TopRow",
    "TopRows",
    "lay_out",
    "map_rows",
    "prior_sensitivity",
    "render_report",
    "review_curve",
    "row_map",
    "score_histogram",
    "thumbnail",
    "thumbnail_sheet",
    "top_rows",
    "write_report",
]

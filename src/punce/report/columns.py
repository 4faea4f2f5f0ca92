"""The section on columns: one line each, on one scale."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from punce.report.charts import Axis, element, line, rect
from punce.report.content import ColumnImportance, Importances


def importance_lines(importances: Importances) -> Iterator[tuple[ColumnImportance, Markup]]:
    """Each column and its mark: a dot with its interval, and where 0 lies."""
    ends = [end for column in importances.columns for end in (column.drop, column.low, column.high) if end is not None]
    scale = Axis(min(0.0, *ends), max(0.0, *ends), 8.0, 192.0)
    for column in importances.columns:
        yield column, _mark(column, scale)


def _mark(column: ColumnImportance, x: Axis) -> Markup:
    parts = [rect(8, 10, 184, 2, "track"), line(x(0.0), 3, x(0.0), 19, "axis")]
    if column.low is not None and column.high is not None:
        parts.append(rect(x(column.low), 8, max(2.0, x(column.high) - x(column.low)), 6, "whisker"))
        parts.append(element("circle", cx=x(column.drop), cy=11, r=5, cls="dot"))
    return element("svg", Markup("").join(parts), viewBox="0 0 200 22", aria_hidden="true", cls="chart mark")

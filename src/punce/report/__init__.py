"""The report: a page with charts to show a colleague. `ReportContent` in, one self-contained HTML file out."""

from __future__ import annotations

from punce.report.content import ReportContent
from punce.report.page import render_report, write_report

__all__ = ["ReportContent", "render_report", "write_report"]

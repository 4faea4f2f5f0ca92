"""What the template asks of the content: which sections there are, their charts, and the tables' columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup

from punce.report import charts, words
from punce.report.content import Cell, ReportContent, TopRows

Section = tuple[str, str, bool]


def all_warnings(content: ReportContent) -> tuple[str, ...]:
    """The page's warnings and those of its parts, each once."""
    parts = content.warnings
    parts += content.prior.warnings if content.prior else ()
    parts += content.quality.notes if content.quality else ()
    return tuple(dict.fromkeys(parts))


def sections(content: ReportContent) -> list[Section]:
    """(anchor, name, whether it is there) in the order of the page."""
    return [
        ("comparison", "Runs", bool(content.comparison)),
        ("quality", "How good", content.quality is not None or content.prior is not None),
        ("scores", "Scores", content.histogram is not None),
        ("review", "Review", content.review is not None),
        ("map", "Map", content.map is not None),
        ("top", "Top rows", content.top is not None and bool(content.top.rows)),
        ("sensitivity", "What if", bool(content.sensitivity)),
        ("training", "Training", bool(content.training)),
        ("data", "Data", content.data is not None),
        ("configuration", "Configuration", bool(content.configuration)),
        ("warnings", "Warnings", bool(all_warnings(content))),
    ]


def drawings(content: ReportContent) -> dict[str, Callable[[int], Markup]]:
    """The charts that are drawn at two widths."""
    drawn: dict[str, Callable[[int], Markup]] = {}
    prior = content.prior.value if content.prior else None
    threshold = content.threshold.value if content.threshold else None
    if content.prior:
        drawn["share_bar"] = partial(charts.share_bar, content.prior.value, content.prior.low, content.prior.high)
    if content.histogram:
        drawn["score_chart"] = partial(charts.score_chart, content.histogram, prior, threshold)
    if content.review:
        drawn["review_chart"] = partial(charts.review_chart, content.review, prior)
    return drawn


def training_panels(stage: str, epochs: Sequence[dict[str, float | None]]) -> list[Markup]:
    """One small chart for each quantity of a stage; rows without an epoch are counted from 1."""
    names = [name for name in dict.fromkeys(name for row in epochs for name in row) if name != "epoch"]
    at = [float(number) for number in (row.get("epoch", i + 1) or i + 1 for i, row in enumerate(epochs))]
    return [charts.curve_panel(stage, name.replace("_", " "), at, [row.get(name) for row in epochs]) for name in names]


def comparison_decimals(comparison: dict[str, dict[str, Cell]]) -> dict[str, int]:
    """Every number any run has, in order of first appearance, with its decimals."""
    columns = dict.fromkeys(name for numbers in comparison.values() for name in numbers)
    return {name: words.decimals_of(numbers.get(name) for numbers in comparison.values()) for name in columns}


def top_columns(top: TopRows) -> list[tuple[str, str, int]]:
    """(name, class, decimals) of each column of the top rows; numbers and their heading stand on the right."""
    described = []
    for j, name in enumerate(top.columns):
        values = [row.values[j] for row in top.rows]
        is_number = any(words.sort_key(value) is not None for value in values)
        described.append((name, "num" if is_number else "", words.decimals_of(values)))
    return described


def map_payload(content: ReportContent) -> dict[str, Any] | None:
    """What the map's script reads; user text only ever reaches the page as text nodes."""
    if content.map is None:
        return None
    threshold = content.threshold.value if content.threshold else None
    return {**vars(content.map), "threshold": threshold}

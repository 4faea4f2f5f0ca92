"""The page: one HTML file that opens from disk, asks the network for nothing and runs only its own script.

Everything a user supplied reaches the page in one of three ways, each escaped by construction: Jinja2 with autoescape,
SVG through markupsafe, and one block of JSON in which ``<``, ``>``, ``&`` and the line separators are escapes. The
Content-Security-Policy admits the style sheet and the script by their hashes only, so that markup which slipped
through could still not run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from punce.report import charts, words
from punce.report.content import Cell, ColumnImportance, Importances, ReportContent, TopRows
from punce.storage.files import write_text
from punce.storage.json_tree import encode

_JSON_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def render_report(content: ReportContent) -> str:
    """The whole page as text. A pure function of `content`."""
    style, script = asset("report.css"), asset("report.js")
    # a share that cannot be known is drawn nowhere: a placeholder would look like an estimate
    prior = content.prior.value if content.prior and not content.prior.unknown else None
    threshold = content.threshold.value if content.threshold else None
    html = _template().render(
        c=content,
        title=words.shorten(content.title, 200),
        policy=content_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        headline=words.headline(content.data, content.prior),
        prior=prior,
        sections=sections(content),
        all_warnings=all_warnings(content),
        # What the map's script reads; user text only ever reaches the page as text nodes.
        map_data=script_json({**vars(content.map), "threshold": threshold}) if content.map else None,
        **_drawings(content, prior, threshold),
    )
    return words.printable(html)


def write_report(content: ReportContent, path: str | Path) -> Path:
    """Write the page, whole or not at all."""
    write_text(Path(path), render_report(content))
    return Path(path)


def script_json(tree: Any) -> Markup:
    """JSON that is safe inside <script type="application/json">: no character can end the element or open a comment."""
    return Markup(json.dumps(encode(tree), ensure_ascii=False, separators=(",", ":")).translate(_JSON_ESCAPES))


def page_environment(package: str = "punce.report") -> jinja2.Environment:
    """Templates of a package and of this one, escaped; an undefined name is an error and not an empty string."""
    packages = dict.fromkeys([package, "punce.report"])
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name, "templates") for name in packages]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _template() -> jinja2.Template:
    # The template calls these; it never sees Python beyond them.
    environment = page_environment()
    names = "capital count level number percent percent_range points shorten signed sort_key"
    environment.filters.update({name: getattr(words, name) for name in names.split()})
    environment.globals.update(
        charts=charts,
        importance_lines=importance_lines,
        measures=words.MEASURES,
        judged_measures={"share": words.SHARES["prior"], **words.MEASURES},
        measure_sentence=words.measure_sentence,
        review_goals=words.review_goals,
        flatten=words.flatten,
        comparison_decimals=comparison_decimals,
        shares=words.SHARES,
        top_columns=top_columns,
        training_panels=training_panels,
        zip=zip,
    )
    return environment.get_template("report.html")


# The style sheet and the script, and the policy that admits them and nothing else ----------------------------------


def content_policy(style: str, script: str | None = None) -> str:
    """A Content-Security-Policy that admits this style sheet and this script by their hashes; no script without one."""
    directives = {
        "default-src": "'none'",
        "style-src": f"'sha256-{_hash(style)}'",
        "script-src": "'none'" if script is None else f"'sha256-{_hash(script)}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        # Text can only become text nodes: assigning a string to innerHTML throws.
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())


def _hash(source: str) -> str:
    return base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii")


@cache
def asset(name: str, package: str = "punce.report") -> str:
    """A style sheet or script; line ends as the browser sees them, or the hash would not match."""
    text = resources.files(package).joinpath("templates", name).read_text(encoding="utf-8")
    # A checkout on Windows may have CRLF, but HTML parsing turns it into LF before the hash is taken.
    return text.replace("\r\n", "\n")


# What the template asks of the content -----------------------------------------------------------------------------


def all_warnings(content: ReportContent) -> tuple[str, ...]:
    """The page's warnings and those of its parts, each once."""
    from_prior = content.prior.warnings if content.prior else ()
    from_quality = content.quality.notes if content.quality else ()
    return tuple(dict.fromkeys([*content.warnings, *from_prior, *from_quality]))


def sections(content: ReportContent) -> list[tuple[str, str, bool]]:
    """(anchor, name, whether it is there) in the order of the page."""
    return [
        ("comparison", "Runs", bool(content.comparison)),
        ("quality", "How good", content.quality is not None or content.prior is not None),
        ("judged", "Judged by people", content.judged is not None),
        ("scores", "Scores", content.histogram is not None),
        ("review", "Review", content.review is not None),
        ("map", "Map", content.map is not None),
        ("columns", "Columns", content.importances is not None),
        ("top", "Top rows", content.top is not None and bool(content.top.rows)),
        ("unsure", "Unsure", content.unsure is not None and bool(content.unsure.rows)),
        ("sensitivity", "What if", bool(content.sensitivity)),
        ("training", "Training", bool(content.training)),
        ("data", "Data", content.data is not None),
        ("configuration", "Configuration", bool(content.configuration)),
        ("warnings", "Warnings", bool(all_warnings(content))),
    ]


def _drawings(
    content: ReportContent, prior: float | None, threshold: float | None
) -> dict[str, Callable[[int], Markup]]:
    """The charts that are drawn at two widths."""
    drawn: dict[str, Callable[[int], Markup]] = {}
    if content.prior and prior is not None:
        drawn["share_bar"] = partial(charts.share_bar, content.prior.value, content.prior.low, content.prior.high)
    if content.histogram:
        drawn["score_chart"] = partial(charts.score_chart, content.histogram, prior, threshold)
    if content.review:
        drawn["review_chart"] = partial(charts.review_chart, content.review, prior)
    return drawn


def training_panels(stage: str, epochs: Sequence[dict[str, float | None]]) -> list[Markup]:
    """One small chart for each quantity of a stage; rows without an epoch are counted from 1."""
    # Epochs may have different columns; keep the order of first appearance.
    names = [name for name in dict.fromkeys(name for row in epochs for name in row) if name != "epoch"]
    at = [float(row.get("epoch") or i + 1) for i, row in enumerate(epochs)]
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


def importance_lines(importances: Importances) -> Iterator[tuple[ColumnImportance, Markup]]:
    """Each column and its mark: a dot with its interval, and where 0 lies."""
    ends = [end for column in importances.columns for end in (column.drop, column.low, column.high) if end is not None]
    scale = charts.Axis(min(0.0, *ends), max(0.0, *ends), 8.0, 192.0)
    for column in importances.columns:
        yield column, _importance_mark(column, scale)


def _importance_mark(column: ColumnImportance, x: charts.Axis) -> Markup:
    parts = [charts.rect(8, 10, 184, 2, "track"), charts.line(x(0.0), 3, x(0.0), 19, "axis")]
    if column.low is not None and column.high is not None:
        parts.append(charts.rect(x(column.low), 8, max(2.0, x(column.high) - x(column.low)), 6, "whisker"))
        parts.append(charts.element("circle", cx=x(column.drop), cy=11, r=5, cls="dot"))
    return charts.element("svg", Markup("").join(parts), viewBox="0 0 200 22", aria_hidden="true", cls="chart mark")

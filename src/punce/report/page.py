"""The page: one HTML file that opens from disk, asks the network for nothing and runs only its own script.

Everything a user supplied reaches the page in one of three ways, each escaped by construction: Jinja2 with autoescape,
SVG through markupsafe, and one block of JSON in which ``<``, ``>``, ``&`` and the line separators are escapes. The
Content-Security-Policy admits the style sheet and the script by their hashes only, so that markup which slipped
through could still not run.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from punce.report import charts, parts, words
from punce.report.assets import asset, content_policy
from punce.report.content import ReportContent
from punce.report.json_tree import encode
from punce.storage.files import write_text

_JSON_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def render_report(content: ReportContent) -> str:
    """The whole page as text. A pure function of `content`."""
    style, script = asset("report.css"), asset("report.js")
    payload = parts.map_payload(content)
    html = (
        _environment()
        .get_template("report.html")
        .render(
            c=content,
            policy=content_policy(style, script),
            style=Markup(style),
            script=Markup(script),
            headline=words.headline(content.data, content.prior),
            prior=content.prior.value if content.prior else None,
            sections=parts.sections(content),
            all_warnings=parts.all_warnings(content),
            map_data=None if payload is None else script_json(payload),
            **parts.drawings(content),
        )
    )
    return words.printable(html)


def write_report(content: ReportContent, path: str | Path, *, json_path: str | Path | None = None) -> Path:
    """Write the page, and ``report.json`` too if asked; each file appears whole or not at all."""
    if json_path is not None:
        write_text(Path(json_path), json.dumps(content.to_json(), allow_nan=False))
    write_text(Path(path), render_report(content))
    return Path(path)


def script_json(tree: Any) -> Markup:
    """JSON that is safe inside <script type="application/json">: no character can end the element or open a comment."""
    return Markup(json.dumps(encode(tree), ensure_ascii=False, separators=(",", ":")).translate(_JSON_ESCAPES))


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("punce.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = ("count", "percent", "percent_range", "level", "number", "sort_key", "shorten")
    environment.filters.update({name: getattr(words, name) for name in names})
    environment.globals.update(
        charts=charts,
        measures=words.MEASURES,
        measure_sentence=words.measure_sentence,
        review_goals=words.review_goals,
        flatten=words.flatten,
        comparison_decimals=parts.comparison_decimals,
        shares=words.SHARES,
        top_columns=parts.top_columns,
        training_panels=parts.training_panels,
        zip=zip,
    )
    return environment

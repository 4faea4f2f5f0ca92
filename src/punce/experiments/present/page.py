"""One self-contained page with every table and figure: no script, no request, light and dark, desk and phone.

It uses the report's style sheet. Figures are images with their own colours for dark mode; texts pass through Jinja2's
autoescape, tables through markupsafe, and the policy admits the style sheet by its hash and nothing else.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from punce.experiments.present import reading, tables
from punce.experiments.present.claims import further_questions, paper_claims
from punce.experiments.present.figures import Drawn, Picture, for_page
from punce.experiments.present.grid import Grid, name_of
from punce.experiments.present.markup import html
from punce.experiments.present.paper_numbers import plotted_table, slips
from punce.experiments.present.verdicts import RULES
from punce.experiments.scales import Scale
from punce.report.page import asset, content_policy, page_environment
from punce.report.words import printable, shorten

_LONGEST_ERROR = 1000  # characters; the whole error is in the result file


def render_page(scale: Scale, grids: Mapping[str, Grid], drawn: Drawn, by_hand: str = "") -> str:
    """The page as text: a pure function of the results."""
    style = asset("report.css") + asset("results.css", __package__)
    claims = paper_claims(grids)
    text = (
        page_environment("punce.experiments.present")
        .get_template("results.html")
        .render(
            policy=content_policy(style),
            style=Markup(style),
            title=reading.TITLE,
            kicker=f"punce reproduce, scale {scale.name}",
            opening=[*reading.opening(scale, grids), reading.tally(claims)],
            rules=RULES,
            claims=claims,
            questions=further_questions(grids),
            by_hand=_paragraphs(by_hand),
            parts=[_part(grid, drawn[name]) for name, grid in grids.items() if grid.is_shown],
            failures=[failure for grid in grids.values() for failure in _failures(grid)],
        )
    )
    return printable(text)  # an error message may hold control characters, which HTML does not allow


def _part(grid: Grid, drawn: Sequence[Picture]) -> dict[str, Any]:
    experiment, same = grid.experiment, plotted_table(grid.experiment.paper)
    return {
        "anchor": experiment.name,
        "short": experiment.paper or experiment.title,
        "title": f"{experiment.paper}: {experiment.title}" if experiment.paper else experiment.title,
        "figures": [{"uri": _uri(picture), "caption": picture.caption, "alt": picture.alt} for picture in drawn],
        "table": None if same else html(tables.compact(grid)),
        "full": None if same else html(tables.full(grid)),
        "same_as": same,
        "slips": slips(experiment.paper),
    }


def _uri(picture: Picture) -> str:
    encoded = base64.b64encode(for_page(picture.svg).encode("utf-8")).decode("ascii")
    return f"data:image/svg+xml;base64,{encoded}"


def _failures(grid: Grid) -> list[dict[str, str]]:
    return [
        {
            "where": f"{grid.experiment.name}: {name_of(*place)}, seed {seed}",
            "error": shorten(error, _LONGEST_ERROR),
        }
        for place, seed, error in grid.failures()
    ]


def _paragraphs(markdown: str) -> list[str]:
    """Commentary as plain paragraphs: its Markdown is shown as it was typed, never as markup."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", markdown) if part.strip()]

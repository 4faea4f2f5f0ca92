"""The page's sentences and number formats: what a colleague who has never heard of PU learning reads first."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from punce.report.content import GOALS, Cell, DataFacts, Interval, PriorFacts, ReviewCurve

NBSP = "\u00a0"
MISSING = "–"
_MOST_DIGITS = 30  # of a whole number that is shown in full: names of rows are long
# Control characters except white space: HTML forbids them.
_NOT_TEXT = dict.fromkeys((*range(9), 11, *range(14, 32), *range(127, 160)), "�")

MEASURES: dict[str, str] = {
    "recall": "Recall",
    "precision": "Precision",
    "accuracy": "Accuracy",
    "f1": "F1",
    "auc": "AUC",
}
SHARES: dict[str, str] = {"prior": "Share of positives", **MEASURES}
"""Columns of the table of several runs that are shown in per cent."""


def printable(text: str) -> str:
    """Text that UTF-8 and HTML can carry: broken surrogates (from file names) and control characters become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").translate(_NOT_TEXT)


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, the last one an ellipsis where something was cut."""
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip() + "…"


def count(value: float | None) -> str:
    """1337.2 -> 1,337."""
    return MISSING if value is None or not math.isfinite(value) else f"{round(value):,}"


def percent(value: float | None, digits: int = 1) -> str:
    """0.2331 -> 23.3 %."""
    return MISSING if value is None or not math.isfinite(value) else f"{100 * value:.{digits}f}{NBSP}%"


def points(value: float) -> str:
    """0.1643 -> 16.4, −0.0004 -> 0.0: hundredths, for differences of shares."""
    return f"{round(100 * value, 1) + 0.0:.1f}".replace("-", "−")  # + 0.0: there is a −0.0


def signed(value: float) -> str:
    """1.337 -> +1.34."""
    return f"{value:+.2f}".replace("-", "−")


def level(confidence: float) -> str:
    """0.95 -> 95 %, 0.995 -> 99.5 %."""
    return f"{100 * confidence:g}{NBSP}%"


def percent_range(interval: Interval) -> str:
    """Low and high as 71.2–78.0 %."""
    if interval.low is None or interval.high is None:
        return MISSING
    return f"{100 * interval.low:.1f}–{percent(interval.high)}"


def number(value: Any, decimals: int | None = None) -> str:
    """A short form of a table cell; `decimals` makes the numbers of a column line up."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return MISSING
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        if abs(value) >= 10**_MOST_DIGITS:
            return f"{Decimal(value):.4g}"
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    # Very large and very small numbers stay in exponent form, whatever the column's decimals.
    short = f"{value:.4g}"
    return short if decimals is None or "e" in short else f"{value:,.{decimals}f}"


def decimals_of(values: Iterable[Any]) -> int:
    """The decimals that the most precise of a column's numbers needs at four figures, at most six."""
    # At most six: float noise in one cell must not widen the whole column.
    shorts = [f"{value:.4g}" for value in values if isinstance(value, float) and math.isfinite(value)]
    return min(6, max((len(short.partition(".")[2]) for short in shorts if "e" not in short), default=0))


def sort_key(value: Cell) -> str | None:
    """What the sort script reads for a number; None for text."""
    # repr keeps all digits, so that the sort script orders as Python would.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return repr(float(value)) if abs(value) <= sys.float_info.max else None  # a whole number may be larger


def capital(sentence: str) -> str:
    """The sentence with a capital first letter."""
    return sentence[:1].upper() + sentence[1:]


def headline(data: DataFacts | None, prior: PriorFacts | None) -> str | None:
    """The finding in one sentence."""
    if data is None or prior is None:
        return None
    hidden, n = count(prior.value * data.unlabelled), count(data.unlabelled)
    n = f"{n} drawn" if data.drawn_from else n  # the terminal tells of all rows of the file
    if prior.unknown:
        return f"How many of {n} unlabelled rows are positive cannot be estimated."
    # A given share has no interval, and the sentence must say whose number it is.
    if prior.low is None or prior.high is None:
        share = percent(prior.value)
        return f"About {hidden} of {n} unlabelled rows are positive, if the given share of {share} is right."
    low, high = count(prior.low * data.unlabelled), count(prior.high * data.unlabelled)
    return f"About {hidden} of {n} unlabelled rows are positive ({level(prior.confidence)} interval {low}–{high})."


def measure_sentence(name: str, interval: Interval) -> str:
    """What the number means for a person with 100 rows."""
    if interval.value is None:
        return f"Cannot be estimated: {interval.reason}." if interval.reason else "Cannot be estimated."
    of_hundred = round(100 * interval.value)
    return {
        "recall": f"Of 100 positive rows, about {of_hundred} are called positive.",
        "precision": f"Of 100 rows called positive, about {of_hundred} really are.",
        "accuracy": f"Of 100 rows, about {of_hundred} are called correctly.",
        "f1": "Precision and recall in one number, low when either is low.",
        "auc": f"A random positive outranks a random negative about {of_hundred} times in 100.",
    }.get(name, "")


def review_goals(curve: ReviewCurve) -> list[tuple[float, int, Interval]]:
    """For each share of the hidden positives: how many top rows to review to find it, and the precision there.

    As in the table of the quality, an interval that leaves nearly everything open has no value: a goal that is reached
    at such a recall is left out, and so is one that is never reached.
    """
    steps = list(zip(curve.rows, curve.precision, curve.recall, strict=True))
    found = []
    for goal in GOALS:
        # The first step, and so the fewest rows: a later one would be more than it takes.
        first = next((step for step in steps if (step[2].value or 0.0) >= goal), None)
        if first is not None and first[2].stated.value is not None:
            found.append((goal, first[0], first[1].stated))
    return found


def flatten(tree: Any, name: str = "") -> list[tuple[str, str]]:
    """A nested configuration as dotted names and texts."""
    if isinstance(tree, dict) and tree:
        return [pair for key, inner in tree.items() for pair in flatten(inner, f"{name}.{key}" if name else str(key))]
    if isinstance(tree, list | tuple):
        return [(name, ", ".join(str(inner) for inner in tree) or MISSING)]
    return [(name, MISSING if tree is None else repr(tree) if isinstance(tree, float) else str(tree))]

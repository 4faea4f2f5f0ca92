"""What the page, the ranked list and the terminal say of columns and of single rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from punce.classifier import PUClassifier
from punce.judging.estimates import CONFIDENCE
from punce.judging.ranking import is_beyond_chance
from punce.options import EXPLAINED
from punce.report.content import ColumnImportance, Importances, RowReason
from punce.report.words import number, shorten
from punce.storage.json_tree import encode

MOST_WITH_REASONS = 1000
"""Rows of the ranked list that have reasons: a person reads no more, and each costs a dozen scores a column."""
_SLOW = 10  # rows, where a pretrained encoder reads every changed text again
_SCORED, _CELLS = 600, 800_000  # changed rows × columns, and their cells, that take a fifth of a second
_EXPLAINED = 50  # columns of a row that are changed, at most
_SHOWN = 15  # columns on the page
_NAMED = 5  # columns on the terminal
_NAME, _VALUE = 60, 40


def shown_importances(classifier: PUClassifier) -> Importances | None:
    """The columns that matter most; None where there are none to measure, or the scores tell nothing.

    Of scores that tell nothing some column always seems to matter, by chance; a given share makes them tell no more.
    """
    p, u = (classifier.held_out_[name] for name in ("positive", "unlabelled"))
    if not hasattr(classifier, "importances_") or classifier.metrics_.unknown or not is_beyond_chance(p, u):
        return None
    measured = classifier.importances_
    columns = tuple(
        ColumnImportance(shorten(str(line.column), _NAME), *map(encode, (line.drop, line.low, line.high)))
        for line in measured.head(_SHOWN).itertuples()
    )
    return Importances(columns, len(measured), CONFIDENCE)


def telling_columns_in_words(classifier: PUClassifier) -> str:
    """At most five columns that are known to matter, most important first; empty where there is none."""
    shown = shown_importances(classifier)
    names = [column.name for column in shown.columns if column.is_known_to_matter] if shown else []
    return ", ".join(names[:_NAMED])


def reasons_of(classifier: PUClassifier, X: Any, rows: np.ndarray, most: int = 3) -> list[tuple[RowReason, ...]]:
    """Of each of these training rows the columns or words that moved its score most; none for images and vectors."""
    if classifier.kind_ not in EXPLAINED:
        return [() for _ in rows]
    explained = rows if classifier.explains_quickly else rows[:_SLOW]
    some: Any = X.iloc[explained] if isinstance(X, pd.DataFrame) else [X[int(i)] for i in explained]
    if classifier.kind_ == "table" and isinstance(some, list):
        some = np.asarray(some)
    found: list[list[RowReason]] = [[] for _ in rows]
    for line in classifier.explain(some, most, training_rows=explained).to_dict("records"):
        text = line["feature"] if classifier.kind_ == "text" else _in_words(line["feature"], line["value"])
        found[line["row"]].append(RowReason(text, float(line["effect"])))
    return [tuple(reasons) for reasons in found]


def quickly_explained(classifier: PUClassifier, X: Any, rows: np.ndarray) -> np.ndarray:
    """The first of these rows that can be explained within about a fifth of a second; at least ten of a table."""
    if classifier.kind_ != "table":
        return rows
    width = max(1, np.shape(X)[1])
    return rows[: max(_SLOW, min(_SCORED // min(width, _EXPLAINED), _CELLS // (min(width, _EXPLAINED) * width)))]


def reasons_column(classifier: PUClassifier, X: Any, rows: np.ndarray) -> list[str]:
    """For the ranked list: "amount = 81.2 (+1.34); country = NL (+0.41)"; empty beyond the first 1,000 rows."""
    reasons = reasons_of(classifier, X, rows[:MOST_WITH_REASONS])
    written = ["; ".join(f"{reason.text} ({reason.effect:+.2f})" for reason in own) for own in reasons]
    return written + [""] * (len(rows) - len(written))


def _in_words(column: str, value: Any) -> str:
    value = "missing" if pd.isna(value) else number(value.item() if isinstance(value, np.generic) else value)
    return f"{shorten(column, _NAME)} = {shorten(value, _VALUE)}"

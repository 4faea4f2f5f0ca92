"""Cells of CSV files that a spreadsheet would run as formulas, made harmless and back.

``=cmd|'/c calc'!A1`` in the name of a row is text for punce and a command for some spreadsheets. A quote before it
makes it text for them too. Numbers such as -5 stay as they are.
"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

_BEGINS = re.compile(r"'*[=+\-@\t\r\n]")


def defused(value: Any) -> Any:
    """Text that begins like a formula with a quote before it; everything else as it is.

    Text that begins with quotes and then like a formula gets one more, so that :func:`restored` is exact.
    """
    return f"'{value}" if isinstance(value, str) and _BEGINS.match(value) and not _is_number(value) else value


def restored(text: str) -> str:
    """Inverse of :func:`defused`."""
    return text[1:] if text.startswith("'") and _BEGINS.match(text) else text


def defused_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with harmless names and texts, to be written as CSV."""
    columns = {defused(str(name)): _defused_column(column) for name, column in frame.items()}
    return pd.DataFrame(columns)


def _defused_column(column: pd.Series[Any]) -> pd.Series[Any]:
    is_text = pd.api.types.is_string_dtype(column) or pd.api.types.is_object_dtype(column)
    return column.map(defused) if is_text else column


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()

"""Numbers as people write them: 3,5 and 1.234,50 €, $1,200, 12 %, (3.50) for a negative one.

A column becomes numbers where (nearly) all of its values are of one form. `1,234` alone can be 1.234 or 1234: the
whole column decides, then what the rest of the file says, and the note says what was decided.
"""

from __future__ import annotations

import numbers
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

Decimal = Literal[".", ","]

_MOSTLY = 0.95  # as for plain numbers: some odd words ("n/a", "?") do not make a column one of categories
_SAMPLE = 10_000  # values that decide the form of a column
_READABLE = 12  # characters of an example
_GLANCE = 50  # values that tell whether a column is worth a closer look
_CODES = "EUR|USD|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RUB|TRY|BRL|MXN|ZAR|KRW"
_UNIT = rf"[$€£¥₹₽₩₺₴₪฿₫₱¢]|{_CODES}|US\$|kr|zł|Kč|Fr\.|%|‰"
_VALUE = re.compile(
    rf"(?P<open>\()?(?P<sign>[-+]?) ?(?P<before>{_UNIT})? ?(?P<sign_2>[-+]?) ?"
    r"(?P<digits>[.,]?\d(?:[\d.,' ]*\d)?[.,]?)(?P<exponent>[eE][-+]?\d+)?"
    rf"(?P<sign_3>-?) ?(?P<after>{_UNIT})?(?P<close>\))?"
)
PARTS = ("%", "‰")
"""Signs without which a number is another one."""
# Of each code the sign that can mean it; kr and ¥ are signs of several countries.
_SIGNS = {"EUR": "€", "USD": "$", "US$": "$", "GBP": "£", "INR": "₹", "RUB": "₽", "KRW": "₩", "TRY": "₺", "PLN": "zł"}
_SIGNS |= {"CZK": "Kč", "CHF": "Fr.", "JPY": "¥", "CNY": "¥", "SEK": "kr", "NOK": "kr", "DKK": "kr"}
# The spaces and marks that typesetting uses for those on a keyboard: a narrow space between thousands, a true minus.
_PLAIN = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "−": "-", "’": "'", "٪": "%"})


def _pattern(thousands: str, decimal: str) -> re.Pattern[str]:
    """Digits with or without marks between thousands (also the Indian 12,34,567), and a fraction."""
    # A group never starts with 0: 0,234 is no number of thousands, and 030 123 456 is no number.
    grouped = "|".join(rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+" for mark in (thousands, " ", "'"))
    indian = rf"[1-9]\d?(?:{thousands}\d{{2}})+{thousands}\d{{3}}"
    return re.compile(rf"(?P<whole>\d+|{grouped}|{indian})?(?:{decimal}(?P<fraction>\d*))?")


_DIGITS: dict[Decimal, re.Pattern[str]] = {".": _pattern(",", r"\."), ",": _pattern(r"\.", ",")}


@dataclass(frozen=True)
class NumberForm:
    """How the numbers of one column are written."""

    decimal: Decimal
    unit: str = ""


class _Reading(NamedTuple):
    """One value under both decimal marks; None where it is no number so."""

    point: float | None
    comma: float | None
    unit: str = ""

    def under(self, form: NumberForm) -> float | None:
        # 0.12 among per cents would be 12 % or 0.12 %: only 0 is sure
        if form.unit in PARTS and self.unit != form.unit and self.point != 0:
            return None
        return self.point if form.decimal == "." else self.comma


_NOTHING = _Reading(None, None)


def _read(value: Any) -> _Reading:
    """One cell. A number that is one already (a sheet mixes both) stays as it is."""
    if isinstance(value, numbers.Number) and not isinstance(value, bool | np.bool_ | complex):
        return _Reading(float(value), float(value))  # type: ignore[arg-type]
    found = _VALUE.fullmatch(value.translate(_PLAIN).strip()) if isinstance(value, str) else None
    if found is None or (found["open"] is None) != (found["close"] is None):
        return _NOTHING
    signs = found["sign"] + found["sign_2"] + found["sign_3"]
    if len(signs) + (found["open"] is not None) > 1 or (found["before"] and found["after"]):
        return _NOTHING
    factor = -1.0 if found["open"] or signs == "-" else 1.0
    point, comma = (_number(found["digits"], found["exponent"], mark, factor) for mark in _DIGITS)
    return _Reading(point, comma, found["before"] or found["after"] or "")


def _number(digits: str, exponent: str | None, decimal: Decimal, factor: float) -> float | None:
    found = _DIGITS[decimal].fullmatch(digits)
    if found is None:
        return None
    whole = re.sub(r"\D", "", found["whole"] or "")
    return factor * float(f"{whole}.{found['fraction'] or ''}{exponent or ''}")


def is_number(text: str) -> bool:
    """Whether a cell is a number in some way of writing."""
    return _read(text) != _NOTHING


def is_other_unit(before: str, now: str) -> bool:
    """Whether two units are both named and cannot be the same: € and EUR can, SEK and NOK cannot."""
    same = (before, _SIGNS.get(before))
    return bool(before and now) and now not in same and _SIGNS.get(now) != before


def _spread(present: pd.Series[Any]) -> pd.Series[Any]:
    """Values from all over a long column: the form of its numbers may only show towards its end."""
    return present.iloc[:: -(-len(present) // _SAMPLE)] if len(present) > _SAMPLE else present


class WrittenColumn:
    """What a column of text could be as numbers. Made once from its distinct values, each with its count."""

    def __init__(self, series: pd.Series[Any]) -> None:
        present = _spread(series.dropna()).tolist()
        self.total = len(present)
        self.counts = Counter(value for value in present if isinstance(value, str | numbers.Number))
        self._readings = {value: _read(value) for value in self.counts}

    @cached_property
    def units(self) -> list[str]:
        """The currencies and signs in it, commonest first."""
        found = Counter[str]()
        for value, reading in self._readings.items():
            if reading.unit:
                found[reading.unit] += self.counts[value]
        return [unit for unit, _ in found.most_common()]

    def _count(self, decimal: Decimal, only: bool = False) -> int:
        """Values that are numbers under this decimal mark, or under this one only."""
        form, other = NumberForm(decimal, self._unit), NumberForm("," if decimal == "." else ".", self._unit)
        return sum(
            self.counts[value]
            for value, reading in self._readings.items()
            if reading.under(form) is not None and not (only and reading.under(other) is not None)
        )

    @property
    def _unit(self) -> str:
        return self.units[0] if self.units else ""

    @cached_property
    def possible(self) -> tuple[Decimal, ...]:
        """Decimal marks under which (nearly) all values are numbers. Amounts in two currencies are no numbers."""
        if len(self.units) > 1:
            return ()
        marks: tuple[Decimal, ...] = (".", ",")
        return tuple(mark for mark in marks if self._count(mark) >= _MOSTLY * self.total)

    @cached_property
    def evident(self) -> Decimal | None:
        """The mark that the column itself tells; None where both or neither are possible."""
        if len(self.possible) == 1:
            return self.possible[0]
        points, commas = (self._count(mark, only=True) for mark in _DIGITS)
        return None if not self.possible or points == commas else "." if points > commas else ","

    @property
    def is_ambiguous(self) -> bool:
        """Whether the two marks give different numbers and nothing in the column says which is meant."""
        return (
            len(self.possible) > 1 and self.evident is None and any(r.point != r.comma for r in self._readings.values())
        )

    @property
    def is_mixed(self) -> bool:
        """Whether (nearly) all values are numbers, but not of one form."""
        readable = sum(n for v, n in self.counts.items() if self._readings[v] != _NOTHING)
        return not self.possible and readable >= _MOSTLY * self.total

    def form(self, otherwise: Decimal) -> NumberForm | None:
        """How it is written, `otherwise` where it does not say; None if it holds no or only plain numbers."""
        if not self.possible:
            return None
        form = NumberForm(self.evident or otherwise, self._unit)
        return form if any(self._needs(value, form) for value in self._readings) else None

    def _needs(self, value: Any, form: NumberForm) -> bool:
        """Whether a number would be missed or misread by who does not know the form."""
        number = self._readings[value].under(form)
        if number is None or not isinstance(value, str):
            return False
        try:
            return float(value) != number
        except ValueError:
            return True

    def example(self, form: NumberForm) -> str:
        """'1.234,50 €' is 1234.5: the value that shows the form best; empty if none needs it."""
        needing = [str(value) for value in self._readings if self._needs(value, form)] if self.possible else []
        if not needing:
            return ""
        value = max(needing, key=lambda value: (len(value) <= _READABLE, len(value), value))
        return f"{value!r} is {self._readings[value].under(form):.10g}"


def written_column(series: pd.Series[Any]) -> WrittenColumn | None:
    """A look at a column of text or objects; None where it holds no text, or text that is clearly not numbers."""
    first = series.dropna().iloc[:_GLANCE]
    # long texts, lists and names are not worth the distinct values of a whole column
    if not sum(isinstance(value, str) and is_number(value) for value in first) * 2 > len(first):
        return None
    return WrittenColumn(series)


def written_numbers(series: pd.Series[Any], form: NumberForm) -> npt.NDArray[np.float64]:
    """The column as float64, NaN where a value is missing or not a number of this form. Shape: (n,)."""
    values = series.tolist()
    known = {text: _read(text).under(form) for text in {value for value in values if isinstance(value, str)}}
    read = (known[value] if isinstance(value, str) else _read(value).under(form) for value in values)
    return np.array([np.nan if number is None else number for number in read], dtype=np.float64)

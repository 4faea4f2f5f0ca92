"""Single columns as a fit decided to read them: numbers, dates or categories, and what each becomes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.columns.kinds import (
    DURATION,
    TIME_OF_DAY,
    Floats,
    category_names,
    column_kind,
    date_format,
    dates_also_iso,
    days_since_epoch,
    hours_of,
    numbers,
    respelled,
)
from punce.errors import InputError, number_of
from punce.storage.json_tree import decode

MISSING, UNKNOWN, FIRST_CATEGORY = 0, 1, 2
_MOST_CATEGORIES = 1_000  # rarer ones are read as unknown: a model learns nothing from a few rows each
_TAIL = 0.005  # at either end
LARGEST = 10.0  # in scales; one stray value must not carry a whole batch
LARGEST_SINGLE = 1e38  # near the largest number of single precision
_STEPS = 256  # numbers of single precision that a scale must hold, or what is in it is lost
_LARGEST_OF_TRUTH = 0.5 + 1e-9  # the deviation of as many 0 as 1; every other mix has a smaller one
_SHOWN = 5
_TIME = "time"  # the part that times of day and durations become, and dates do not: hours
_WITHOUT_DAY = (TIME_OF_DAY, DURATION)
_SOME_DAY = datetime.datetime(2024, 12, 31)
LEFT_OUT = {
    "empty": "every value is missing",
    "unsupported": "it holds lists or other nested values, bytes or complex numbers",
    "text": "it holds text (--text, or in Python a list of its texts, learns from it and from no other column)",
    "identifier": "it names its rows",
}


def are_lost_in_single_precision(medians: Floats, scales: Floats) -> npt.NDArray[np.bool_]:
    """Columns whose values lie so close together, and so far from 0, that float32 would make many of them equal."""
    largest = np.minimum(np.abs(medians), LARGEST_SINGLE).astype(np.float32)
    return np.asarray(np.spacing(largest).astype(np.float64) * _STEPS > scales)


@dataclass(frozen=True)
class NumberColumn:
    """One column of numbers, or one part of a date (`part`)."""

    name: str
    median: float
    scale: float
    indicator: bool
    part: str = ""
    kind: Literal["number"] = "number"

    @property
    def may_be_truth(self) -> bool:
        """Whether its numbers can have been 0 and 1 alone, as those of True and False are."""
        return self.median in (0.0, 0.5, 1.0) and self.scale <= _LARGEST_OF_TRUTH

    @property
    def is_lost_in_single_precision(self) -> bool:
        """Whether float32 would make many of its values equal."""
        return bool(are_lost_in_single_precision(np.array(self.median), np.array(self.scale)))


@dataclass(frozen=True)
class DateColumn:
    """One column of dates, of times of day or of durations, and the numbers it becomes."""

    name: str
    format: str | None
    parts: tuple[NumberColumn, ...]
    kind: Literal["date"] = "date"

    @property
    def what(self) -> str:
        """What it holds, for a person."""
        return {TIME_OF_DAY: "time", DURATION: "duration"}.get(str(self.format), "date")

    @property
    def example(self) -> str:
        """A day, or a time, as the column writes it, for a person."""
        if self.format == TIME_OF_DAY:
            return " like 13:45"
        if self.format == DURATION:
            return " like 45:10 or 1:02:45"
        is_iso = self.format in (None, "ISO8601")
        return " like " + _SOME_DAY.strftime("%Y-%m-%d" if is_iso else str(self.format))


@dataclass(frozen=True)
class CategoryColumn:
    """One column of categories, commonest first."""

    name: str
    categories: tuple[str, ...]
    kind: Literal["category"] = "category"


Column = NumberColumn | DateColumn | CategoryColumn


# --- fitting ------------------------------------------------------------------------------------------------------


def fit_column(series: pd.Series[Any], name: str) -> Column | str:
    """The column's form, or the reason why it is left out."""
    kind = column_kind(series, name)
    if kind in LEFT_OUT:
        return LEFT_OUT[kind]
    if kind == "categorical":
        return _fit_categories(series, name)
    return _fit_number(numbers(series), name) if kind == "numeric" else _fit_date(series, name)


def _fit_number(values: Floats, name: str, part: str = "") -> NumberColumn | str:
    present = values[~np.isnan(values)]
    if len(present) == 0:
        return "no value is a finite number"
    missing = len(present) < len(values)
    if present.min() == present.max() and not missing:
        return f"it is constant ({present[0]:g})"
    low, high = np.quantile(present, [_TAIL, 1 - _TAIL])
    # The spread without the tails: a few extreme values must not make all others look alike.
    scale = float(np.clip(present, low, high).std()) or float(present.std()) or 1.0
    return NumberColumn(name, float(np.median(present)), scale, missing, part)


def _fit_date(series: pd.Series[Any], name: str) -> DateColumn | str:
    pattern = date_format(series)
    parts = []
    for part, values in date_parts(dates_also_iso(series, pattern)).items():
        if (part == _TIME) != (pattern in _WITHOUT_DAY):
            continue
        fitted = _fit_number(values, name, part)
        if isinstance(fitted, NumberColumn):
            # one indicator for the date is enough
            parts.append(fitted if part in ("days", _TIME) else replace(fitted, indicator=False))
    column = DateColumn(name, pattern, tuple(parts))
    return column if parts else f"every {column.what} is the same"


def _fit_categories(series: pd.Series[Any], name: str) -> CategoryColumn | str:
    counts = category_names(series).value_counts()
    if len(counts) == 1 and not series.isna().any():
        return f"it is constant ({counts.index[0]!r})"
    # commonest first, ties by name: the codes must not depend on the order of the rows
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    return CategoryColumn(name, tuple(str(category) for category, _ in ordered[:_MOST_CATEGORIES]))


def date_parts(stamps: pd.Series[Any]) -> dict[str, Floats]:
    """Everything that a date, a time of day or a duration may become, by the names of the parts. Shape: (n,) each."""
    return {
        "days": days_since_epoch(stamps),
        "weekday": np.asarray(stamps.dt.day_of_week, dtype=np.float64),
        "month": np.asarray(stamps.dt.month, dtype=np.float64),
        "hour": np.asarray(stamps.dt.hour + stamps.dt.minute / 60.0, dtype=np.float64),
        _TIME: hours_of(stamps),
    }


# --- encoding -----------------------------------------------------------------------------------------------------


def raw_names(column: Column) -> list[str]:
    """Names of what is read from a column, before indicators are added."""
    if isinstance(column, DateColumn):
        return [f"{column.name}:{part.part}" for part in column.parts]
    return [column.name]


def output_names(column: Column) -> list[str]:
    """Names of what a column becomes."""
    parts = column.parts if isinstance(column, DateColumn) else (column,)
    names = []
    for name, part in zip(raw_names(column), parts, strict=True):
        has_indicator = isinstance(part, NumberColumn) and part.indicator
        names += [name, f"{name}:missing"] if has_indicator else [name]
    return names


def scaled_column(column: NumberColumn, raw: Floats) -> list[npt.NDArray[Any]]:
    """The scaled numbers and, where values were missing in fitting, the indicator. Shape: (n,) each."""
    missing = np.isnan(raw)
    scaled = np.clip((raw - column.median) / column.scale, -LARGEST, LARGEST)
    scaled[missing] = 0.0
    return [scaled, missing] if column.indicator else [scaled]


def category_codes(column: CategoryColumn, series: pd.Series[Any], notes: list[str]) -> Floats:
    """Codes of the known categories. Ours rather than OrdinalEncoder's, because one category may be spelled in
    several ways (3, 3.0 and "3") and a stored encoder must keep its codes."""
    lookup = {category: code for code, category in enumerate(column.categories, start=FIRST_CATEGORY)}
    names = category_names(series)
    known = names.map(lookup)
    if (other := known.isna() & names.notna()).any():  # a second look is slow, and seldom needed
        known[other] = respelled(names[other], column.categories).map(lookup)
    codes = np.array(known.fillna(UNKNOWN), dtype=np.float64)
    is_missing = series.isna()
    if "" not in lookup:  # a CSV file has no other way to write a gap, and the same rows must be read alike
        is_missing |= names == ""
    codes[is_missing.to_numpy()] = MISSING
    unknown = codes == UNKNOWN
    if unknown.any():
        seen = names[unknown].unique()[:_SHOWN].tolist()
        is_cut = len(column.categories) == _MOST_CATEGORIES  # then the rows of the fit have such values, too
        what = f"categories beyond the {_MOST_CATEGORIES:,} commonest" if is_cut else "unknown categories"
        are = number_of(int(unknown.sum()), "value is", "values are")
        notes.append(f"column {column.name!r}: {are} of {what} such as {seen}")
    return codes


# --- storing ------------------------------------------------------------------------------------------------------


def stored_column(entry: Mapping[str, Any]) -> Column:
    """The column of its entry in JSON."""
    kinds: dict[str, type[Column]] = {"number": NumberColumn, "category": CategoryColumn, "date": DateColumn}
    if entry["kind"] not in kinds:
        raise InputError(f"not a stored table encoder: unknown kind of column {entry['kind']!r}")
    column: Column = decode(kinds[entry["kind"]], entry, "a column of the table")
    return column

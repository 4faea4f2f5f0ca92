"""A table as a float32 matrix, the same way next week: fitted once, stored as JSON beside the model.

Numbers are centred at the median and scaled; missing ones become the median, with an indicator column where values
were missing in fitting. Categories become codes: 0 missing, 1 never seen (or too rare), 2… the known ones.
A date becomes the numbers days, weekday, month and, where times are given, hour.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.columns.kinds import (
    category_names,
    column_kind,
    date_format,
    dates,
    days_since_epoch,
    missing_column,
    numbers,
    refuse_duplicates,
    respelled,
)
from punce.errors import InputError

MISSING, UNKNOWN, FIRST_CATEGORY = 0, 1, 2
_FORMAT = 1
_MOST_CATEGORIES = 1_000
_TAIL = 0.005
_LARGEST = 10.0  # in scales; one stray value must not carry a whole batch
_FLOAT32 = 1e38  # near the largest that single precision holds
_CERTAIN = 20  # so many unreadable values and no other: the column changed its meaning
_SHOWN = 5

Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class NumberColumn:
    """One column of numbers, or one part of a date (`part`)."""

    name: str
    median: float
    scale: float
    indicator: bool
    part: str = ""
    kind: Literal["number"] = "number"


@dataclass(frozen=True)
class DateColumn:
    """One column of dates and the numbers it becomes."""

    name: str
    format: str | None
    parts: tuple[NumberColumn, ...]
    kind: Literal["date"] = "date"


@dataclass(frozen=True)
class CategoryColumn:
    """One column of categories, commonest first."""

    name: str
    categories: tuple[str, ...]
    kind: Literal["category"] = "category"


Column = NumberColumn | DateColumn | CategoryColumn


@dataclass(frozen=True)
class EncodedTable:
    """Shape: `values` float32 (n, d); `categorical` bool (d,), True where a column holds codes."""

    values: Float32
    categorical: npt.NDArray[np.bool_]
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What differed from the table the encoder was fitted on."""


@dataclass(frozen=True)
class TableEncoder:
    """How each column becomes numbers. Make one with :meth:`fit`."""

    columns: tuple[Column, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Columns set aside in fitting, and why."""

    @classmethod
    def fit(cls, frame: pd.DataFrame) -> TableEncoder:
        """Decide each column's form from the rows at hand."""
        frame = _checked(frame)
        columns: list[Column] = []
        left_out: dict[str, str] = {}
        for name in frame.columns:
            made = _fit_column(frame[name], name)
            if isinstance(made, str):
                left_out[name] = made
            else:
                columns.append(made)
        if not columns:
            reasons = "; ".join(f"{name!r}: {reason}" for name, reason in left_out.items())
            raise InputError(f"no column of the table can be used ({reasons})")
        return cls(tuple(columns), left_out)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the d output columns."""
        return tuple(name for column in self.columns for name in _outputs(column))

    @property
    def categorical(self) -> npt.NDArray[np.bool_]:
        """(d,), True where the output column holds category codes."""
        return np.array([isinstance(c, CategoryColumn) for c in self.columns for _ in _outputs(c)])

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """(d,): how many codes an output column can take; 0 for numbers."""
        return tuple(
            len(c.categories) + FIRST_CATEGORY if isinstance(c, CategoryColumn) else 0
            for c in self.columns
            for _ in _outputs(c)
        )

    def transform(self, frame: pd.DataFrame) -> EncodedTable:
        """(n, d) in the fitted form; extra columns are ignored with a note, missing ones refused."""
        frame = self._complete(frame)
        notes: list[str] = []
        parts = [_encode(column, frame[column.name], notes) for column in self.columns]
        known = {column.name for column in self.columns} | set(self.left_out)
        extra = [name for name in frame.columns if name not in known]
        if extra:
            notes.append(f"{len(extra)} columns are new and ignored: {', '.join(map(repr, extra[:_SHOWN]))}")
        return EncodedTable(np.concatenate(parts, axis=1), self.categorical, self.names, tuple(notes))

    def unscaled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns as :meth:`transform` reads them, before it scales and codes them.

        For a model that scales and codes by itself but must see the same table: numbers and the parts of dates are
        floats with NaN for what is missing, categories are text, and columns that were left out are left out.
        """
        frame = self._complete(frame).reset_index(drop=True)
        return pd.concat([part for column in self.columns for part in _unscaled(column, frame[column.name])], axis=1)

    def _complete(self, frame: pd.DataFrame) -> pd.DataFrame:
        frame = _checked(frame)
        for column in self.columns:
            if column.name not in frame.columns:
                raise missing_column(column.name, list(frame.columns), "the table, unlike the one it was fitted on,")
        return frame

    def to_json(self) -> str:
        """The encoder as JSON text."""
        content = {"format": _FORMAT, "columns": [asdict(c) for c in self.columns], "left_out": dict(self.left_out)}
        return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> TableEncoder:
        """The encoder :meth:`to_json` wrote."""
        try:
            content = json.loads(text)
            if content["format"] != _FORMAT:
                raise InputError(f"table encoder of format {content['format']}, this version reads {_FORMAT}")
            return cls(tuple(_column(entry) for entry in content["columns"]), dict(content["left_out"]))
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise InputError(f"not a stored table encoder: {error}") from error


# --- fitting ------------------------------------------------------------------------------------------------------


def _fit_column(series: pd.Series[Any], name: str) -> Column | str:
    """The column's form, or the reason why it is left out."""
    kind = column_kind(series, name)
    if kind == "empty":
        return "every value is missing"
    if kind == "unsupported":
        return "it holds lists or other nested values"
    if kind == "text":
        return "it holds long text (name it as the text column to learn from it)"
    if kind == "identifier":
        return "it names its rows"
    if kind == "categorical":
        return _fit_categories(series, name)
    return _fit_number(numbers(series), name) if kind == "numeric" else _fit_date(series, name)


def _fit_number(values: pd.Series[float], name: str, part: str = "") -> NumberColumn | str:
    present = values.dropna().to_numpy()
    if len(present) == 0:
        return "no value is a finite number"
    missing = len(present) < len(values)
    if present.min() == present.max() and not missing:
        return f"it is constant ({present[0]:g})"
    low, high = np.quantile(present, [_TAIL, 1 - _TAIL])
    scale = float(np.clip(present, low, high).std()) or float(present.std()) or 1.0
    return NumberColumn(name, float(np.median(present)), scale, missing, part)


def _fit_date(series: pd.Series[Any], name: str) -> DateColumn | str:
    pattern = date_format(series)
    stamps = dates(series, pattern)
    parts = []
    for part, values in _date_parts(stamps).items():
        fitted = _fit_number(values, name, part)
        if isinstance(fitted, NumberColumn):
            # one indicator for the date is enough
            parts.append(fitted if part == "days" else _without_indicator(fitted))
    return DateColumn(name, pattern, tuple(parts)) if parts else "every date is the same"


def _without_indicator(column: NumberColumn) -> NumberColumn:
    return NumberColumn(column.name, column.median, column.scale, False, column.part)


def _fit_categories(series: pd.Series[Any], name: str) -> CategoryColumn | str:
    counts = category_names(series).value_counts()
    if len(counts) == 1 and not series.isna().any():
        return f"it is constant ({counts.index[0]!r})"
    # commonest first, ties by name: the codes must not depend on the order of the rows
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    return CategoryColumn(name, tuple(str(category) for category, _ in ordered[:_MOST_CATEGORIES]))


def _date_parts(stamps: pd.Series[Any]) -> dict[str, pd.Series[float]]:
    return {
        "days": days_since_epoch(stamps),
        "weekday": stamps.dt.day_of_week.astype("float64"),
        "month": stamps.dt.month.astype("float64"),
        "hour": stamps.dt.hour + stamps.dt.minute / 60.0,
    }


# --- encoding -----------------------------------------------------------------------------------------------------


def _outputs(column: Column) -> list[str]:
    if isinstance(column, CategoryColumn):
        return [column.name]
    if isinstance(column, DateColumn):
        return [name for part in column.parts for name in _outputs(part)]
    name = f"{column.name}:{column.part}" if column.part else column.name
    return [name, f"{name}:missing"] if column.indicator else [name]


def _encode(column: Column, series: pd.Series[Any], notes: list[str]) -> Float32:
    if isinstance(column, CategoryColumn):
        return _encode_categories(column, series, notes)
    if isinstance(column, NumberColumn):
        values = numbers(series)
        _note_lost(column.name, series, values, "number", notes)
        return _encode_number(column, values)
    stamps = dates(series, column.format)
    _note_lost(column.name, series, stamps, "date", notes)
    parts = _date_parts(stamps)
    return np.concatenate([_encode_number(part, parts[part.part]) for part in column.parts], axis=1)


def _unscaled(column: Column, series: pd.Series[Any]) -> list[pd.Series[Any]]:
    if isinstance(column, CategoryColumn):
        return [category_names(series)]
    if isinstance(column, NumberColumn):
        return [numbers(series).clip(-_FLOAT32, _FLOAT32)]
    parts = _date_parts(dates(series, column.format))
    return [parts[part.part].rename(f"{column.name}:{part.part}") for part in column.parts]


def _encode_number(column: NumberColumn, values: pd.Series[float]) -> Float32:
    raw = values.to_numpy(dtype=np.float64)
    missing = np.isnan(raw)
    scaled = np.clip((raw - column.median) / column.scale, -_LARGEST, _LARGEST)
    scaled[missing] = 0.0
    outputs = [scaled, missing] if column.indicator else [scaled]
    return np.column_stack(outputs).astype(np.float32)


def _encode_categories(column: CategoryColumn, series: pd.Series[Any], notes: list[str]) -> Float32:
    lookup = {category: code for code, category in enumerate(column.categories, start=FIRST_CATEGORY)}
    names = category_names(series)
    known = names.map(lookup)
    if (other := known.isna() & names.notna()).any():
        known[other] = respelled(names[other]).map(lookup)
    codes: Float32 = np.array(known.fillna(UNKNOWN), dtype=np.float32)
    absent = series.isna().to_numpy()
    codes[absent] = MISSING
    unknown = codes == UNKNOWN
    if unknown.any():
        seen = names[unknown].unique()[:_SHOWN].tolist()
        notes.append(f"column {column.name!r}: {int(unknown.sum())} values are of unknown categories such as {seen}")
    return codes[:, None]


def _note_lost(name: str, before: pd.Series[Any], after: pd.Series[Any], what: str, notes: list[str]) -> None:
    """Values that were there and could not be read: all of them is an error, some are a note."""
    lost = (before.notna() & after.isna()).to_numpy()
    if not lost.any():
        return
    seen = before[lost].astype("string").unique()[:_SHOWN].tolist()
    if after.notna().sum() == 0 and lost.sum() >= _CERTAIN:
        raise InputError(f"column {name!r} held {what}s when the encoder was fitted and now holds none, e.g. {seen}")
    notes.append(f"column {name!r}: {int(lost.sum())} values are no {what} and count as missing, e.g. {seen}")


def _checked(frame: pd.DataFrame) -> pd.DataFrame:
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"expected a DataFrame, got {type(frame).__name__}")
    if len(frame) == 0:
        raise InputError("the table has no rows")
    names = [str(name) for name in frame.columns]  # JSON has no other names
    refuse_duplicates(names, "the table")
    return frame.set_axis(names, axis=1)


def _column(entry: Mapping[str, Any]) -> Column:
    fields = dict(entry)
    kind = fields.pop("kind")
    if kind == "number":
        return NumberColumn(**fields)
    if kind == "category":
        return CategoryColumn(fields["name"], tuple(fields["categories"]))
    if kind == "date":
        parts = tuple(NumberColumn(**{k: v for k, v in part.items() if k != "kind"}) for part in fields["parts"])
        return DateColumn(fields["name"], fields["format"], parts)
    raise InputError(f"not a stored table encoder: unknown kind of column {kind!r}")

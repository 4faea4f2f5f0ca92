"""A table as a float32 matrix, the same way next week: fitted once, stored as JSON beside the model.

Numbers are centred at the median and scaled; missing ones become the median, with an indicator column where values
were missing in fitting. Categories become codes: 0 missing, 1 never seen (or too rare), 2… the known ones.
A date becomes the numbers days, weekday, month and, where times are given, hour; a time of day becomes the hours since
midnight, a duration hours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.columns.fitted import (
    LARGEST_SINGLE,
    LEFT_OUT,
    MISSING,
    CategoryColumn,
    Column,
    DateColumn,
    NumberColumn,
    category_codes,
    date_parts,
    fit_column,
    output_names,
    raw_names,
    scaled_column,
    stored_column,
)
from punce.columns.kinds import (
    Floats,
    about_dates,
    about_swapped,
    dates_also_iso,
    missing_column,
    missing_values,
    numbers,
    refuse_duplicates,
    truth_values,
)
from punce.columns.number_forms import CERTAIN, NumberForms, find_forms
from punce.errors import InputError, first_of, number_of
from punce.storage.json_tree import decode

_FORMAT = 1
_SHOWN = 5
_LOSSES = (LEFT_OUT["unsupported"], LEFT_OUT["text"])  # columns that may say something about the class

Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class EncodedTable:
    """Shape: `values` float32 (n, d); `categorical` bool (d,), True where a column holds codes."""

    values: Float32
    categorical: npt.NDArray[np.bool_]
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What differed from the table the encoder was fitted on."""
    empty: npt.NDArray[np.bool_] | None = None
    """(n,), True for rows of which no cell can be read; None where nobody looked."""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: npt.NDArray[Any]) -> EncodedTable:
        """The rows with these numbers."""
        return replace(self, values=self.values[rows], empty=None if self.empty is None else self.empty[rows])


def plain_columns(values: npt.NDArray[Any], names: Sequence[str]) -> EncodedTable:
    """Numbers that need no encoding. Shape: (n, d)."""
    return EncodedTable(values.astype(np.float32, copy=False), np.zeros(len(names), dtype=np.bool_), tuple(names))


@dataclass(frozen=True)
class TableEncoder:
    """How each column becomes numbers. Make one with :meth:`fit`."""

    columns: tuple[Column, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Columns set aside in fitting, and why."""
    number_forms: NumberForms = field(default_factory=NumberForms)
    """Columns of text that are numbers as people write them."""
    notes: tuple[str, ...] = ()
    """What was decided in fitting; not stored."""

    @classmethod
    def fit(cls, frame: pd.DataFrame) -> TableEncoder:
        """Decide each column's form from the rows at hand."""
        frame = _checked(frame)
        forms, notes = find_forms(lambda _: frame)
        frame, _ = forms.read(frame)
        columns: list[Column] = []
        left_out: dict[str, str] = {}
        for name, series in zip(map(str, frame.columns), (s for _, s in frame.items()), strict=True):
            made = fit_column(series, name)
            if isinstance(made, str):
                left_out[name] = made
            else:
                columns.append(made)
                notes += about_dates(series, name, made.format) if isinstance(made, DateColumn) else ()
        if not columns:  # a table of row numbers and constants: say of each why it was left out
            reasons = "; ".join(f"{name!r}: {reason}" for name, reason in list(left_out.items())[:_SHOWN])
            is_text = {LEFT_OUT["text"], LEFT_OUT["identifier"]} & set(left_out.values())
            mend = "if one of them holds texts, name it as the text column (text=, --text), or fit a list of its texts"
            hint = f"; {mend}" if is_text else ""
            if LEFT_OUT["unsupported"] in left_out.values():  # a file of embeddings often has names of its rows, too
                alone = "" if len(left_out) == 1 else ", and name or drop the other columns (--id, --drop)"
                hint = f"; if lists are embeddings, say so (kind='embedding', --kind embedding){alone}"
            raise InputError(f"no column of the table can be used ({reasons}){hint}")
        lost = {name: reason for name, reason in left_out.items() if reason in _LOSSES}
        said = (f"{not_learned_from(name)} {reason}" for name, reason in lost.items())
        return cls(tuple(columns), left_out, forms, (*notes, *said))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the d output columns."""
        return tuple(name for column in self.columns for name in output_names(column))

    @property
    def categorical(self) -> npt.NDArray[np.bool_]:
        """(d,), True where the output column holds category codes."""
        return np.array([isinstance(c, CategoryColumn) for c in self.columns for _ in output_names(c)])

    @property
    def outputs(self) -> dict[str, npt.NDArray[np.intp]]:
        """Which output columns each column of the table became."""
        places = iter(range(len(self.names)))
        return {c.name: np.array([next(places) for _ in output_names(c)]) for c in self.columns}

    def transform(self, frame: pd.DataFrame) -> EncodedTable:
        """(n, d) in the fitted form; extra columns are ignored with a note, missing ones refused."""
        notes: list[str] = []
        frame = self._complete(frame, notes)
        values = np.empty((len(frame), len(self.names)), dtype=np.float32)
        empty = np.ones(len(frame), dtype=np.bool_)
        place = 0
        # Column by column into one matrix: a list of columns to join would hold the table twice.
        for part, raw in self._parts(frame, notes):
            empty &= raw == MISSING if part is None else np.isnan(raw)
            for output in [raw] if part is None else scaled_column(part, raw):
                values[:, place] = output
                place += 1
        known = {column.name for column in self.columns} | set(self.left_out)
        extra = [name for name in frame.columns if name not in known]
        if extra:
            are = number_of(len(extra), "column is", "columns are")
            notes.append(f"{are} new and ignored: {first_of(list(map(repr, extra)))}")
        return EncodedTable(values, self.categorical, self.names, tuple(notes), empty)

    def unscaled(self, frame: pd.DataFrame, *, is_resolved: bool = False) -> EncodedTable:
        """The columns as :meth:`transform` reads them, before it scales them and fills gaps.

        For a model that scales by itself but must see the same table: numbers and the parts of dates in their own
        units, categories as codes, and NaN for everything that is missing. Where `is_resolved`, a column that single
        precision would make (nearly) constant is counted from its median: times of one hour in seconds since 1970.
        """
        notes: list[str] = []
        frame = self._complete(frame, notes)
        names = [name for column in self.columns for name in raw_names(column)]
        categorical = np.array([isinstance(c, CategoryColumn) for c in self.columns for _ in raw_names(c)])
        values = np.empty((len(frame), len(names)), dtype=np.float32)
        for place, (part, raw) in enumerate(self._parts(frame, notes)):
            if part is None:
                values[:, place] = np.where(raw == MISSING, np.nan, raw)
            else:
                shift = part.median if is_resolved and part.is_lost_in_single_precision else 0.0
                values[:, place] = np.clip(raw - shift, -LARGEST_SINGLE, LARGEST_SINGLE)
        return EncodedTable(values, categorical, tuple(names), tuple(notes))

    def _parts(self, frame: pd.DataFrame, notes: list[str]) -> Iterator[tuple[NumberColumn | None, Floats]]:
        """Every column of numbers, every part of a date, every column of codes (None), as read from the frame."""
        for column in self.columns:
            series = frame[column.name]
            if isinstance(column, CategoryColumn):
                yield None, category_codes(column, series, notes)
            elif isinstance(column, NumberColumn):
                truths = truth_values(series) if column.may_be_truth else None
                values = numbers(series) if truths is None else truths
                _note_lost(column.name, series, np.isnan(values), "number", notes)
                _note_huge(column.name, values, notes)
                yield column, values
            else:
                stamps = dates_also_iso(series, column.format)
                _note_lost(column.name, series, stamps.isna().to_numpy(), column.what, notes, column.example)
                notes += about_swapped(series, stamps, column.name, column.format)
                parts = date_parts(stamps)
                yield from ((part, parts[part.part]) for part in column.parts)

    def _complete(self, frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
        """The frame with the columns of the fit, numbers as people write them read; adds what was no number."""
        frame = _checked(frame)
        found = set(frame.columns)
        for column in self.columns:
            if column.name not in found:
                raise missing_column(column.name, list(frame.columns), "the table, unlike the one it was fitted on,")
        others = found - {column.name for column in self.columns if isinstance(column, NumberColumn)}
        frame, lost = replace(self.number_forms, left_alone=frozenset(others)).read(frame)
        notes += lost
        return frame

    def to_json(self) -> str:
        """The encoder as JSON text."""
        content = {"format": _FORMAT, "columns": [asdict(c) for c in self.columns], "left_out": dict(self.left_out)}
        content |= {"numbers": self.number_forms.to_json()} if self.number_forms.to_json() else {}
        return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> TableEncoder:
        """The encoder :meth:`to_json` wrote."""
        try:
            content = json.loads(text)
            if content["format"] != _FORMAT:
                raise InputError(f"table encoder of format {content['format']}, this version reads {_FORMAT}")
            forms = NumberForms.from_json(content.get("numbers", {}))
            left_out = decode(dict[str, str], content["left_out"], "left_out")
            return cls(tuple(stored_column(entry) for entry in content["columns"]), left_out, forms)
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise InputError(f"not a stored table encoder: {error}") from error


def not_learned_from(name: str) -> str:
    """How the note on a column that is left out begins."""
    return f"column {name!r} is not learned from:"


def _note_lost(
    name: str, before: pd.Series[Any], is_missing: npt.NDArray[np.bool_], what: str, notes: list[str], like: str = ""
) -> None:
    """Values that were there and could not be read: all of them is an error, some are a note. `like` shows the form."""
    lost = is_missing & ~missing_values(before)
    if not lost.any():
        return
    seen = before[lost].astype("string").unique()[:_SHOWN].tolist()
    if is_missing.all() and lost.sum() >= CERTAIN:
        raise InputError(
            f"column {name!r} held {what}s{like} in the rows that were learned from and now holds none, e.g. {seen}; "
            "write its values as there"
        )
    are = number_of(int(lost.sum()), f"value is no {what}{like} and counts", f"values are no {what}{like} and count")
    notes.append(f"column {name!r}: {are} as missing, e.g. {seen}")


def _note_huge(name: str, values: Floats, notes: list[str]) -> None:
    """Numbers that are cut off: a column of them is better given in another unit."""
    beyond = int(((values > LARGEST_SINGLE) | (values < -LARGEST_SINGLE)).sum())
    if beyond:
        are = number_of(beyond, "value is", "values are")
        what = f"{are} beyond ±{LARGEST_SINGLE:g}, where single precision ends, and may be read as that"
        notes.append(f"column {name!r}: {what}; give the column in a larger unit, or its logarithms")


def _checked(frame: pd.DataFrame) -> pd.DataFrame:
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"expected a DataFrame, got {type(frame).__name__}")
    if len(frame) == 0:
        raise InputError("the table has no rows; give at least one")
    names = [str(name) for name in frame.columns]  # JSON has no other names
    refuse_duplicates(names, "the table")
    return frame.set_axis(names, axis=1)

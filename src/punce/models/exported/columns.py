"""The columns of a table as ``TableEncoder.transform`` gives them, to the last bit: the bins of the trees follow.

The numbers are read in double precision. Many of the edges between bins are values of the training rows, which single
precision would move across.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from punce.columns.encoder import TableEncoder
from punce.columns.fitted import LARGEST, MISSING, UNKNOWN, CategoryColumn, Column, DateColumn, NumberColumn
from punce.columns.kinds import HUGE, TRUTH_WORDS
from punce.errors import InputError
from punce.models.columns import Columns
from punce.models.exported.graph import ML, Graph


@dataclass(frozen=True)
class TableInputs:
    """What the inputs `X` and `categories` consist of. `width` is that of a matrix, of which `X` has all columns."""

    encoder: TableEncoder
    numbers: tuple[NumberColumn, ...]
    categories: tuple[CategoryColumn, ...]
    width: int | None

    @classmethod
    def of(cls, encoder: TableEncoder, columns: Columns) -> TableInputs:
        """The columns of a fit; refuses those that an ONNX file cannot read."""
        for column in encoder.columns:
            _refuse_unreadable(column)
        numbers = tuple(column for column in encoder.columns if isinstance(column, NumberColumn))
        categories = tuple(column for column in encoder.columns if isinstance(column, CategoryColumn))
        is_matrix = columns.names is None and not categories
        return cls(encoder, numbers, categories, columns.width if is_matrix else None)

    @property
    def metadata(self) -> dict[str, str]:
        """The names of the columns of both inputs, in their order."""
        numbers = [column.name for column in self.numbers] if self.width is None else [*map(_name, range(self.width))]
        names = {"numbers": numbers, "categories": [column.name for column in self.categories]}
        return {key: json.dumps(value, ensure_ascii=False) for key, value in names.items()}


@dataclass(frozen=True)
class EncodedRows:
    """Names in the graph. Shape: `values` float32 (n, d); `empty` bool (n, 1), true where a row has no value."""

    values: str
    empty: str


def encoded_rows(graph: Graph, inputs: TableInputs) -> EncodedRows:
    """Adds the inputs, and what makes the matrix of the encoder of them."""
    numbers, categories, outputs = inputs.numbers, inputs.categories, inputs.encoder.outputs
    blocks: list[str] = []
    missing: list[str] = []
    places: list[int] = []  # in the matrix of the encoder, of each column of the blocks
    if numbers:
        scaled, gaps = _scaled(graph, numbers, _numbers(graph, inputs))
        with_gaps = [k for k, column in enumerate(numbers) if column.indicator]
        blocks += [scaled, *([graph.columns(gaps, np.array(with_gaps))] if with_gaps else [])]
        missing.append(gaps)
        places += [int(outputs[column.name][0]) for column in numbers]
        places += [int(outputs[numbers[k].name][1]) for k in with_gaps]
    if categories:
        codes = _codes(graph, categories, graph.input("categories", str, len(categories)))
        blocks.append(codes)
        missing.append(graph.cast(graph.add("Equal", codes, np.array([MISSING], np.float32)), np.float32))
        places += [int(outputs[column.name][0]) for column in categories]
    values = graph.columns(_joined(graph, blocks), np.argsort(places))
    fewest = graph.add("ReduceMin", _joined(graph, missing), axes=[1], keepdims=1)
    return EncodedRows(values, graph.add("Greater", fewest, np.array([0.5], np.float32)))


def _refuse_unreadable(column: Column) -> None:
    again = "then fit and export again; save() keeps this model"
    if isinstance(column, DateColumn):
        of_date = "days since a fixed day, the month or the weekday"
        numbers = {"date": of_date, "time": "hours since midnight", "duration": "minutes"}[column.what]
        instead = f"give numbers in its place, such as {numbers}"
        what = f"column {column.name!r} holds {column.what}s"
        raise InputError(f"{what}, which an ONNX file cannot read: {instead}, {again}")
    if isinstance(column, CategoryColumn) and "" in column.categories:
        what = "has the empty text as a category, which stands for a missing value in an ONNX file"
        raise InputError(f"column {column.name!r} {what}: write None or a word in its place, {again}")


def _name(place: int) -> str:
    """What ``punce.models.table.as_frame`` calls a column of a matrix."""
    return f"x{place}"


def _numbers(graph: Graph, inputs: TableInputs) -> str:
    """The input `X` and the columns of it that the model reads. Shape: (n, m)."""
    if inputs.width is None:
        return graph.input("X", np.float64, len(inputs.numbers))
    x = graph.input("X", np.float64, inputs.width)
    place = {_name(k): k for k in range(inputs.width)}
    used = [place[column.name] for column in inputs.numbers]
    return x if len(used) == inputs.width else graph.columns(x, np.array(used))


def _scaled(graph: Graph, numbers: Sequence[NumberColumn], x: str) -> tuple[str, str]:
    """The scaled numbers, and 1 where a number is missing or infinite. Shape: (n, m), (n, m), both float32."""
    median, scale = (np.array([getattr(column, name) for column in numbers]) for name in ("median", "scale"))
    missing = graph.add("Or", graph.add("IsNaN", x), graph.add("IsInf", x))
    # Before the arithmetic: runtimes differ in what they make of NaN.
    there = graph.add("Where", missing, median, x)
    bounded = graph.add("Clip", there, -HUGE, HUGE)
    scaled = graph.add("Div", graph.add("Sub", bounded, median), scale)
    clipped = graph.add("Clip", scaled, -LARGEST, LARGEST)
    return graph.cast(clipped, np.float32), graph.cast(missing, np.float32)


def _codes(graph: Graph, categories: Sequence[CategoryColumn], texts: str) -> str:
    """Shape: (n, c) of text -> (n, c) of codes as float32."""
    found = []
    for place, column in enumerate(categories):
        codes = _code_of_text(column)
        own = graph.columns(texts, np.array([place]))
        tables = {"keys_strings": list(codes), "values_floats": list(codes.values())}
        found.append(graph.add("LabelEncoder", own, domain=ML, **tables, default_float=float(UNKNOWN)))
    return _joined(graph, found)


def _code_of_text(column: CategoryColumn) -> dict[str, float]:
    """The code of each category and of its usual other spellings, as the encoder itself reads them."""
    texts = list(column.categories)
    texts += [f"{text}.0" for text in column.categories]  # of a whole number that another program holds as a float
    words = [*TRUTH_WORDS, *column.categories]
    texts += [spelled for word in words for spelled in (word.lower(), word.upper(), word.capitalize())]
    texts = list(dict.fromkeys(texts))
    frame = pd.DataFrame({column.name: pd.Series(texts, dtype="str")})
    codes = TableEncoder((column,)).transform(frame).values[:, 0]
    known = {text: float(code) for text, code in zip(texts, codes, strict=True) if code not in (MISSING, UNKNOWN)}
    return {"": float(MISSING), **known}


def _joined(graph: Graph, blocks: Sequence[str]) -> str:
    return blocks[0] if len(blocks) == 1 else graph.add("Concat", *blocks, axis=1)

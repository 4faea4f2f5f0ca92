"""The rows of a table file: features, labels and row names, or the texts of a column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from punce.columns.kinds import are_whole, category_names, column_kind, missing_column, numbers
from punce.columns.number_forms import NumberForms, find_forms
from punce.columns.written import Decimal
from punce.data.csv_files import CsvFile
from punce.data.drawn import Drawn, DrawnTable, draw, is_large, rows_that_fit
from punce.data.request import Request
from punce.data.table_file import TableFile
from punce.data.tables import check_roles, first_frame, no_column, open_table, read_frame, with_hint
from punce.data.user_data import DataStream, UserData
from punce.datasets.dataset import Kind
from punce.errors import InputError, first_of, number_of
from punce.labels import Labels, require_positive_and_unlabelled
from punce.training.cluster import Map

_PROBED_ROWS = 10_000  # of a stream, to decide whether it is a table or text, and how its numbers are written


def read_table(request: Request) -> UserData:
    """The whole file."""
    return _read(*_opened(request))


def read_drawn(request: Request, most: int | None, seed: int, on_workers: Map) -> UserData:
    """The whole file, or where it is too large, or has more than `most` rows, rows drawn from it."""
    table, request = _opened(request)
    label = request.roles.label
    if label is None or (most is None and not is_large(table)):
        return _read(table, request)
    labels, about = request.read_labels(_label_column(table, request, _forms_of_first(table, request)[0].decimal))
    require_positive_and_unlabelled(labels, str(request.path))
    most = rows_that_fit(table, len(labels)) if most is None else most
    if len(labels) <= most:
        return _read(table, request)
    drawn = Drawn(draw(labels, most, seed), labels)
    data = _read(DrawnTable(table, drawn.rows, on_workers), request, (labels[drawn.rows], about))
    ids = data.ids if request.roles.id else pd.Index(drawn.rows)
    return replace(data, ids=ids, notes=(drawn.in_words(), *data.notes), drawn=drawn)


def _read(table: TableFile, request: Request, known: tuple[Labels | None, tuple[str, ...]] | None = None) -> UserData:
    frames: dict[Decimal, pd.DataFrame] = {}

    def load(decimal: Decimal) -> pd.DataFrame:
        if decimal not in frames:
            frames.clear()  # one copy of a large table at a time
            frames[decimal] = read_frame(table, as_text=request.as_text, decimal=decimal)
        return frames[decimal]

    # The whole file decides here; a stream has only its first rows to go by.
    forms, decided = _number_forms(load, table, request)
    label = request.roles.label
    if known is None:
        known = (None, ()) if label is None else request.read_labels(load(forms.decimal)[label])
    labels, about = known
    frame, lost = forms.read(load(forms.decimal))
    kind, text = _table_kind(frame, request, table)
    data = _from_frame(frame, labels, kind, text, request, start=0)
    return replace(data, notes=(*_file_notes(table), *about, *decided, *lost, *data.notes), number_forms=forms)


def stream_table(request: Request, batch_rows: int) -> DataStream:
    """The file in batches, all of them read in the way that the first rows decide."""
    table, request = _opened(request)
    path = request.path
    forms, decided = _forms_of_first(table, request)
    label, labels = request.roles.label, None
    about: tuple[str, ...] = ()
    if label is not None:
        labels, about = request.read_labels(_label_column(table, request, forms.decimal))
        require_positive_and_unlabelled(labels, str(path))
    probed = forms.read(first_frame(table, _PROBED_ROWS, as_text=request.as_text, decimal=forms.decimal))[0]
    kind, text = _table_kind(probed, request, table)

    def batches(size: int) -> Iterator[UserData]:
        start = 0
        for raw in table.frames(size, None, request.as_text, forms.decimal):
            frame, lost = forms.read(raw)
            part = None if labels is None else labels[start : start + len(frame)]
            data = _from_frame(frame, part, kind, text, request, start)
            yield replace(data, notes=(*lost, *data.notes))
            start += len(frame)
        notes.extend(note for note in table.notes if note not in notes)  # what only the whole file tells

    notes = [*_file_notes(table), *about, *decided]
    return DataStream(kind, str(path), labels, batches, batch_rows, notes)


def _forms_of_first(table: TableFile, request: Request) -> tuple[NumberForms, tuple[str, ...]]:
    """How numbers are written in the first rows, for a file that is not read whole."""
    return _number_forms(
        lambda decimal: first_frame(table, _PROBED_ROWS, as_text=request.as_text, decimal=decimal), table, request
    )


def _label_column(table: TableFile, request: Request, decimal: Decimal) -> pd.Series[Any]:
    """The label column of the whole file: labels may be numbers, so that the mark of decimals matters."""
    label = request.roles.label
    assert label is not None
    return read_frame(table, [label], decimal=decimal)[label]


def _opened(request: Request) -> tuple[TableFile, Request]:
    """The file, and the request with the columns that keep their spelling."""
    table = open_table(request.path, request.file)
    check_roles(table, request.roles)
    if request.roles.label is None and (named := [name for name, value in request.named.items() if value is not None]):
        raise InputError(
            f"{table.path}: {named[0]} names a value of the label column; name that column, too (label=, --label; it "
            f"has: {first_of(table.names, 8)})"
        )
    _check_categories(table, request)
    codes = table.codes() if isinstance(table, CsvFile) else []
    return table, replace(request, as_text=(*request.as_text, *(name for name in codes if name != request.roles.label)))


def _check_categories(table: TableFile, request: Request) -> None:
    """Columns that are named as categories exist and are learned from."""
    roles = request.roles
    for name in request.category:
        if name not in table.names:
            raise no_column(name, table)
        if name in (*roles.set_aside, roles.text) or (roles.keep and name not in roles.keep):
            raise InputError(f"{table.path}: column {name!r} is not learned from, so --category has no effect on it")


def _file_notes(table: TableFile) -> list[str]:
    """What was guessed about the file; a header that looks like data, though all named columns are in it."""
    return [*table.notes, *([table.hint] if table.hint else [])]


def _number_forms(load: Any, table: TableFile, request: Request) -> tuple[NumberForms, tuple[str, ...]]:
    # Row names, labels and texts are no numbers; categories that a model knows must keep their spelling.
    roles = request.roles
    left_alone = {name for name in (roles.label, roles.text, *roles.drop, *request.as_text) if name is not None}
    used = request.named_features
    return find_forms(
        load,
        separator=table.separator,
        asked=request.decimal,
        known=request.number_forms,
        left_alone=left_alone,
        unused=[name for name in table.names if used and name not in used],
    )


def _from_frame(
    frame: pd.DataFrame, labels: Labels | None, kind: Kind, text: str | None, request: Request, start: int
) -> UserData:
    roles = request.roles
    ids = _names(frame[roles.id]) if roles.id else pd.RangeIndex(start, start + len(frame))
    features, source = _features(frame, request), str(request.path)
    if text is not None:
        texts, notes = _texts(features[text])
        others = [repr(name) for name in features.columns if name != text]
        if others and labels is not None:  # where rows are scored, the model has said so
            hint = " (--text names another)" if roles.text is None else ""
            notes = (f"only the texts of column {text!r}{hint} are learned from, not {first_of(others)}", *notes)
        return UserData("text", texts, labels, ids, source, notes, (text,))
    if kind == "embedding":
        matrix = _matrix(features, request.path)
        return UserData(kind, matrix, labels, ids, source, source_columns=tuple(features.columns))
    return UserData(kind, features, labels, ids, source)


def _names(column: pd.Series[Any]) -> pd.Index[Any]:
    """The names of rows. A row without one has nan: before pandas 3, None in a column of text stays None."""
    names: pd.Index[Any] = pd.Index(column.where(column.notna(), np.nan) if column.dtype == object else column)
    return names


def _features(frame: pd.DataFrame, request: Request) -> pd.DataFrame:
    """The columns asked for, in that order; without any, those to keep, or all that have no other role."""
    if request.columns is not None:
        for wanted in request.columns:
            if wanted not in frame.columns:
                raise missing_column(wanted, list(frame.columns), str(request.path))
        return frame[list(request.columns)]
    keep = request.roles.keep or [name for name in frame.columns if name not in request.roles.set_aside]
    features = frame[[name for name in frame.columns if name in keep]]
    named = {name: category_names(features[name]).astype("category") for name in request.category}
    return features.assign(**named) if named else features


def _table_kind(frame: pd.DataFrame, request: Request, table: TableFile) -> tuple[Kind, str | None]:
    """What the rows are, and the text column if they are text."""
    try:
        features = _features(frame, request)
    except InputError as error:
        raise with_hint(error, table) from None
    if features.shape[1] == 0:
        raise InputError(f"{request.path}: no feature column is left besides label, id and dropped columns")
    if request.kind == "image":
        raise InputError(f"{request.path} is a table; images come from a folder or a .npy stack")
    if request.kind == "embedding":
        return "embedding", None
    if request.roles.text is not None and request.kind in ("auto", "text"):
        return "text", request.roles.text
    return _kind_by_columns(features, request)


def _kind_by_columns(features: pd.DataFrame, request: Request) -> tuple[Kind, str | None]:
    kinds = {name: column_kind(features[name], name) for name in features.columns}
    texts = [name for name, kind in kinds.items() if kind == "text"]
    others = [name for name, kind in kinds.items() if kind in ("numeric", "categorical", "date")]
    if request.kind == "text":
        return "text", _the_text_column(texts, features, request)
    if request.kind == "auto" and len(texts) == 1 and not others:
        return "text", texts[0]
    return "table", None


def _the_text_column(texts: list[str], features: pd.DataFrame, request: Request) -> str:
    if request.columns is not None and len(request.columns) == 1:
        return request.columns[0]  # named by the caller: nothing to guess
    if len(texts) == 1:
        return texts[0]
    strings = [name for name in features.columns if pd.api.types.is_string_dtype(features[name])]
    if not texts and len(strings) == 1:
        return strings[0]
    candidates = texts or strings or list(features.columns)
    raise InputError(
        f"{request.path}: which column is the text? Name it with text= (--text); candidates: {candidates[:8]}"
    )


def _texts(column: pd.Series[Any]) -> tuple[list[str], tuple[str, ...]]:
    missing = int(column.isna().sum())
    said = number_of(missing, "row has no text; it is read as empty", "rows have no text; they are read as empty")
    notes = (said,) if missing else ()
    return column.astype("string").fillna("").tolist(), notes


def _matrix(features: pd.DataFrame, path: Path) -> np.ndarray[Any, np.dtype[np.float32]]:
    if features.shape[1] == 1 and column_kind(features.iloc[:, 0]) == "unsupported":
        return _stacked(features.iloc[:, 0], path)
    wrong = [name for name in features.columns if not pd.api.types.is_numeric_dtype(features[name])]
    codes = {name: numbers(features[name]) for name in wrong if are_whole(features[name].dropna())}  # 007
    features, wrong = features.assign(**codes), [name for name in wrong if name not in codes]
    if wrong:
        lists = [name for name in wrong if column_kind(features[name]) == "unsupported"]
        if lists:
            others = [name for name in features.columns if name != lists[0]]
            raise InputError(
                f"{path}: kind='embedding' needs numeric columns, or one column of lists alone; if {lists[0]!r} is "
                f"that column, {first_of([repr(name) for name in others])} must be named otherwise (id= or drop=)"
            )
        raise InputError(f"{path}: kind='embedding' needs numeric columns; {wrong[:5]} are not (drop= or id= them)")
    with np.errstate(over="ignore"):  # the check tells of numbers that single precision has no room for
        return features.to_numpy(dtype=np.float32, na_value=np.nan)


def _stacked(column: pd.Series[Any], path: Path) -> np.ndarray[Any, np.dtype[np.float32]]:
    """One list of numbers a row, as Parquet and JSON files keep embeddings. Shape: (n, d)."""
    try:
        matrix = np.array([np.asarray(row, dtype=np.float32) for row in column])
    except (TypeError, ValueError):
        matrix = np.empty(0, dtype=np.float32)
    if matrix.ndim != 2:
        lengths = [len(row) for row in column if isinstance(row, list | tuple | np.ndarray)]
        found = [number_of(n, "number", "numbers") for n in sorted(set(lengths))][:5]
        rest = number_of(len(column) - len(lengths), "row", "rows")
        raise InputError(
            f"{path}: kind='embedding' needs lists of numbers of one length in column {column.name!r}; there are lists "
            f"of {', '.join(found) or 'no length'}, and {rest} without a list"
        )
    return matrix

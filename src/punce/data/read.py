"""Reading a person's data: a table, a column of text, an embedding matrix or a folder of images.

:func:`read` takes it into memory (pictures stay on disk until asked for), :func:`stream` goes through it in batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, get_args

import numpy as np
import pandas as pd

from punce.columns.kinds import column_kind, missing_column
from punce.data.embeddings import check_features, read_npy, read_npz
from punce.data.image_files import image_files, read_folder
from punce.data.tables import (
    Roles,
    check_roles,
    column_names,
    first_frame,
    frames_of,
    is_csv,
    is_parquet,
    read_frame,
)
from punce.data.user_data import BATCH_ROWS, DataStream, UserData
from punce.datasets.dataset import Kind
from punce.errors import InputError
from punce.labels import Labels, Setting, as_labels, require_positive_and_unlabelled
from punce.options import check_reading
from punce.storage.files import existing

KindOption = Literal["auto", "image", "table", "text", "embedding"]
_PROBED_ROWS = 10_000  # of a stream, to decide whether it is a table or text


@dataclass(frozen=True)
class _Request:
    """The caller's arguments, checked."""

    path: Path
    roles: Roles
    kind: KindOption
    positive: Any
    setting: Setting
    labels: Path | None
    image_size: int | None
    columns: tuple[str, ...] | None
    as_text: tuple[str, ...]
    """Columns of a CSV file that keep their spelling, the row names among them."""


class ReadOptions(TypedDict, total=False):
    """How a file is read; :func:`read` says what each option means."""

    positive: Any
    id: str | None
    text: str | None
    kind: KindOption
    setting: Setting
    labels: str | Path | None
    drop: Sequence[str]
    image_size: int | None
    columns: Sequence[str] | None
    as_text: Sequence[str]


def read(path: str | Path, label: str | None = None, **options: Unpack[ReadOptions]) -> UserData:
    """Rows, labels and row names from a file or folder.

    - ``.csv``, ``.tsv`` (also gzipped), ``.parquet`` or a folder of Parquet files: a table, or text if `text` names the
      column (or the only feature column holds long text);
    - ``.npy``, ``.npz``: embeddings (n, d), with labels in the archive or in another file named by `labels`;
    - a folder of images: labels from a CSV in it (or `labels`) with the columns file and `label`, or from the
      subfolders ``labelled/`` and ``unlabelled/``.

    `label` is the label column; without it the rows come unlabelled, to be scored. `positive` names the value that
    marks a positive; `setting` is "pu", or "pnu" where -1 marks negatives. `id` names the column of row names, `drop`
    columns to leave out; `columns` names the features of a table, in the order wanted, and every other column is left
    out. `as_text` names columns of a CSV file whose digits are names (01 is not 1).
    """
    request = _request(path, label, options)
    reader = _reader(request)
    form = _FORMS[reader] if reader is not _read_arrays else f"a {request.path.suffix.lower()} file"
    check_reading(form, options)
    data = reader(request)
    if data.labels is not None:
        require_positive_and_unlabelled(data.labels, data.source)
    return data


def stream(
    path: str | Path, label: str | None = None, *, batch_rows: int = BATCH_ROWS, **options: Unpack[ReadOptions]
) -> DataStream:
    """The same rows as :func:`read`, in batches, for files larger than memory.

    The types of CSV columns are guessed per batch, except that text in the first batch is text in all of them: name
    other columns whose digits are names in `as_text`.
    """
    request = _request(path, label, options)
    if batch_rows < 1:
        raise InputError(f"batch_rows must be at least 1, got {batch_rows}")
    if _is_table(request.path):
        return _table_stream(request, batch_rows)
    data = _reader(request)(request)  # pictures and mapped arrays are on disk still
    return DataStream(data.kind, data.source, data.labels, data.batches, batch_rows, data.notes)


def _request(path: str | Path, label: str | None, options: ReadOptions) -> _Request:
    if unknown := set(options) - set(ReadOptions.__annotations__):
        raise TypeError(f"unknown options {sorted(unknown)}; there are {', '.join(ReadOptions.__annotations__)}")
    kind, setting = options.get("kind", "auto"), options.get("setting", "pu")
    if kind not in get_args(KindOption):
        raise InputError(f"kind must be auto, image, table, text or embedding, got {kind!r}")
    if setting not in get_args(Setting):
        raise InputError(f"setting must be 'pu' or 'pnu', got {setting!r}")
    id, labels, columns = options.get("id"), options.get("labels"), options.get("columns")
    drop, as_text = _names(options.get("drop", ())), _names(options.get("as_text", ()))
    roles = Roles(label, id, drop, options.get("text"))
    both = [name for name in columns or () if name in roles.set_aside]
    if both:
        raise InputError(f"{path}: columns are named both as features and as something else: {both[:8]}")
    return _Request(
        path=existing(path),
        roles=roles,
        kind=kind,
        positive=options.get("positive"),
        setting=setting,
        labels=None if labels is None else existing(labels),
        image_size=options.get("image_size"),
        columns=None if columns is None else tuple(columns),
        as_text=as_text if id is None else (*as_text, id),
    )


def _names(given: Sequence[str]) -> tuple[str, ...]:
    """One name may stand without brackets."""
    return (given,) if isinstance(given, str) else tuple(given)


def _is_table(path: Path) -> bool:
    return is_parquet(path) or (path.is_file() and is_csv(path))


def _reader(request: _Request) -> Callable[[_Request], UserData]:
    path = request.path
    if _is_table(path):
        return _read_table
    if path.is_dir():
        return _read_images
    if path.suffix.lower() in (".npy", ".npz"):
        return _read_arrays
    raise InputError(
        f"{path}: files ending in {path.suffix or 'nothing'!r} are not known; "
        "use .csv, .tsv, .parquet, .npy, .npz or a folder of images"
    )


# --- tables and text ----------------------------------------------------------------------------------------------


def _read_table(request: _Request) -> UserData:
    check_roles(column_names(request.path), request.roles, request.path)
    frame = read_frame(request.path, as_text=request.as_text)
    label = request.roles.label
    labels = None if label is None else _labels(frame[label], request)
    kind, text = _table_kind(frame, request)
    return _from_frame(frame, labels, kind, text, request, start=0)


def _table_stream(request: _Request, batch_rows: int) -> DataStream:
    path, roles = request.path, request.roles
    check_roles(column_names(path), roles, path)
    labels = None
    if roles.label is not None:
        labels = _labels(read_frame(path, [roles.label])[roles.label], request)
        require_positive_and_unlabelled(labels, str(path))
    kind, text = _table_kind(first_frame(path, _PROBED_ROWS, as_text=request.as_text), request)

    def batches(size: int) -> Iterator[UserData]:
        start = 0
        for frame in frames_of(path, size, as_text=request.as_text):
            part = None if labels is None else labels[start : start + len(frame)]
            yield _from_frame(frame, part, kind, text, request, start)
            start += len(frame)

    return DataStream(kind, str(path), labels, batches, batch_rows)


def _from_frame(
    frame: pd.DataFrame, labels: Labels | None, kind: Kind, text: str | None, request: _Request, start: int
) -> UserData:
    roles = request.roles
    ids = pd.Index(frame[roles.id]) if roles.id else pd.RangeIndex(start, start + len(frame))
    features, source = _features(frame, request), str(request.path)
    if text is not None:
        texts, notes = _texts(features[text])
        return UserData("text", texts, labels, ids, source, notes, (text,))
    if kind == "embedding":
        matrix = _matrix(features, request.path)
        return UserData(kind, matrix, labels, ids, source, source_columns=tuple(features.columns))
    return UserData(kind, features, labels, ids, source)


def _features(frame: pd.DataFrame, request: _Request) -> pd.DataFrame:
    """The columns asked for, in that order; without any, all that have no other role."""
    if request.columns is None:
        return frame.drop(columns=request.roles.set_aside)
    for wanted in request.columns:
        if wanted not in frame.columns:
            raise missing_column(wanted, list(frame.columns), str(request.path))
    return frame[list(request.columns)]


def _table_kind(frame: pd.DataFrame, request: _Request) -> tuple[Kind, str | None]:
    """What the rows are, and the text column if they are text."""
    features = _features(frame, request)
    if features.shape[1] == 0:
        raise InputError(f"{request.path}: no feature column is left besides label, id and dropped columns")
    if request.kind == "image":
        raise InputError(f"{request.path} is a table; images come from a folder or a .npy stack")
    if request.kind == "embedding":
        return "embedding", None
    if request.roles.text is not None and request.kind in ("auto", "text"):
        return "text", request.roles.text
    kinds = {name: column_kind(features[name], name) for name in features.columns}
    texts = [name for name, kind in kinds.items() if kind == "text"]
    others = [name for name, kind in kinds.items() if kind in ("numeric", "categorical", "date")]
    if request.kind == "text":
        return "text", _the_text_column(texts, features, request)
    if request.kind == "auto" and len(texts) == 1 and not others:
        return "text", texts[0]
    return "table", None


def _the_text_column(texts: list[str], features: pd.DataFrame, request: _Request) -> str:
    if request.columns is not None and len(request.columns) == 1:
        return request.columns[0]  # named by the caller: nothing to guess
    if len(texts) == 1:
        return texts[0]
    strings = [name for name in features.columns if pd.api.types.is_string_dtype(features[name])]
    if not texts and len(strings) == 1:
        return strings[0]
    candidates = texts or list(features.columns)
    raise InputError(
        f"{request.path}: which column is the text? Name it with text= (--text); candidates: {candidates[:8]}"
    )


def _texts(column: pd.Series[Any]) -> tuple[list[str], tuple[str, ...]]:
    missing = int(column.isna().sum())
    notes = (f"{missing} rows have no text; they are read as empty",) if missing else ()
    return column.astype("string").fillna("").tolist(), notes


def _matrix(features: pd.DataFrame, path: Path) -> np.ndarray[Any, np.dtype[np.float32]]:
    wrong = [name for name in features.columns if not pd.api.types.is_numeric_dtype(features[name])]
    if wrong:
        raise InputError(f"{path}: kind='embedding' needs numeric columns; {wrong[:5]} are not (drop= or id= them)")
    return features.to_numpy(dtype=np.float32, na_value=np.nan)


# --- arrays and pictures ------------------------------------------------------------------------------------------


def _read_arrays(request: _Request) -> UserData:
    path, roles = request.path, request.roles
    if request.kind in ("table", "text"):
        raise InputError(f"{path} holds an array; kind={request.kind!r} needs a CSV or Parquet file")
    if path.suffix.lower() == ".npz":
        raw, labels, ids = read_npz(path, roles.label if request.labels is None else None, roles.id)
    else:
        raw, labels, ids = read_npy(path), None, None
    features = check_features(raw, path)
    if request.labels is not None:
        labels = _labels_file(request.labels, roles.label, len(features))
    elif labels is None and roles.label is not None:
        raise InputError(f"{path} holds no labels; name a file that does with labels= (one row per row of the array)")
    index = pd.RangeIndex(len(features)) if ids is None else pd.Index(ids)
    kind: Kind = "image" if features.ndim == 4 else "embedding"
    if request.kind not in ("auto", kind):
        raise InputError(f"{path} holds an array of shape {features.shape}: {kind}s, not kind={request.kind!r}")
    return UserData(kind, features, None if labels is None else _labels(labels, request), index, str(path))


def _labels_file(path: Path, label: str | None, expected: int) -> Any:
    if path.suffix.lower() == ".npy":
        values: Any = read_npy(path)
    elif _is_table(path):
        names = column_names(path)
        if label is None and len(names) > 1:
            raise InputError(f"{path} has the columns {names[:8]}; name the one with the labels (label=, --label)")
        wanted = label or names[0]
        check_roles(names, Roles(wanted), path)
        values = read_frame(path, [wanted])[wanted]
    else:
        raise InputError(f"{path}: labels come from a .csv, .parquet or .npy file")
    if len(values) != expected:
        raise InputError(f"{path} has {len(values)} labels for {expected} rows; they must match row by row")
    return values


def _read_images(request: _Request) -> UserData:
    if request.kind not in ("auto", "image"):
        raise InputError(f"{request.path} is a folder of images; kind={request.kind!r} needs a file")
    names, labels, notes = read_folder(
        request.path, request.labels, request.roles.label, request.positive, request.setting
    )
    files = image_files(request.path, names, request.image_size)
    return UserData("image", files, labels, pd.Index(names), str(request.path), notes)


_FORMS: dict[Callable[[_Request], UserData], str] = {_read_table: "a table file", _read_images: "a folder of images"}
"""The names that ``punce.options.READING`` has for what the readers read."""


def _labels(column: Any, request: _Request) -> Labels:
    try:
        return as_labels(column, setting=request.setting, positive=request.positive)
    except InputError as error:
        where = f"{request.path}, label column {request.roles.label!r}" if request.roles.label else str(request.path)
        raise InputError(f"{where}: {error}") from error

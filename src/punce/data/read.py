"""Reading a person's data: a table, a column of text, an embedding matrix or a folder of images.

:func:`read` takes it into memory (images stay on disk until asked for), :func:`stream` goes through it in batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack, get_args

import numpy as np
import pandas as pd

from punce.columns.number_forms import NumberForms, checked_decimal
from punce.data.embeddings import check_features, read_npy, read_npz
from punce.data.image_files import ImageFiles, image_files
from punce.data.image_folder import read_folder, usual_label
from punce.data.reading_options import check_reading
from punce.data.request import KindOption, Request
from punce.data.table_file import FileOptions, Header
from punce.data.table_rows import read_drawn, read_table, stream_table
from punce.data.tables import KNOWN, Roles, check_roles, form_of, open_table, read_frame, with_hint
from punce.data.user_data import BATCH_ROWS, DataStream, UserData
from punce.datasets.dataset import Kind
from punce.errors import InputError, first_of, number_of
from punce.labels import Setting, require_positive_and_unlabelled
from punce.storage.files import existing, file_and_table
from punce.storage.parts import has_parts
from punce.training.cluster import workers

_ROW = "row"  # column of row numbers, as in the ranked list of a run
_FOLDER = "a folder of images"


class ReadOptions(TypedDict, total=False):
    """How a file is read; :func:`read` says what each option means."""

    positive: Any
    negative: Any
    id: str | None
    text: str | None
    kind: KindOption
    setting: Setting
    labels: str | Path | None
    drop: Sequence[str]
    keep: Sequence[str]
    category: Sequence[str]
    image_size: int | None
    image_channels: int | None
    skip_unreadable: bool
    look: Callable[[ImageFiles], None] | None
    columns: Sequence[str] | None
    as_text: Sequence[str]
    sep: str | None
    encoding: str | None
    header: Header
    decimal: str | None
    table: str | None
    number_forms: NumberForms | None


def read(path: str | Path, label: str | None = None, **options: Unpack[ReadOptions]) -> UserData:
    """Rows, labels and row names from a file or folder.

    - ``.csv``, ``.tsv``, ``.txt`` and ``.jsonl`` (also packed: .gz, .bz2, .xz, .zip), ``.parquet`` or a folder of
      Parquet files, ``.feather``, ``.arrow``, ``.xlsx``, ``.sqlite``: a table, or text if `text` names the column (or
      the only feature column holds text);
    - ``.npy``, ``.npz``: embeddings (n, d), with labels in the archive or in another file named by `labels`;
    - a folder of images: labels from a CSV in it (or `labels`) with the columns file and `label`, or from the
      subfolders ``labelled/``, ``unlabelled/`` and, for known negatives, ``negative/``. `skip_unreadable` leaves out
      images that cannot be read. A column called label need not be named. `look` goes over the files first, instead
      of a pass that only decodes them.

    `label` is the label column; without it the rows come unlabelled, to be scored. `positive` names the value that
    marks a positive, `negative` that of a known negative; a list names several. Otherwise -1 or "negative" marks one,
    beside unlabelled rows; where there are none it means unlabelled, unless `setting` is "pnu". `id` names the column
    of row names, `drop` columns to leave out, `keep` the only ones to learn from, `category` those whose numbers are
    names (codes of regions); `columns` names the features of a table, in the order wanted, and every other column is
    left out. `as_text` names columns of a CSV file that keep their spelling (01 is not 1).

    What is found out about a file can be said instead: `image_size`, `image_channels` (1 or 3), `sep`, `encoding`,
    `header` ("yes", or "no": columns are called column_1 …), `decimal` ("." or ",") and `table` (of a database, a
    workbook or an archive; also ``file::table``). `number_forms` are those of an earlier file, for numbers
    that can be read in two ways.
    """
    request = _request(path, label, options)
    if label is None and input_form(request.path) == _FOLDER:
        request = replace(request, roles=replace(request.roles, label=usual_label(request.path, request.labels)))
    data = _reader(request)(request)
    if request.look is not None and isinstance(data.features, ImageFiles):
        request.look(data.features)
    if request.skip_unreadable:
        data = without_unreadable(data)
    if data.labels is not None:
        require_positive_and_unlabelled(data.labels, data.source)
    return data


def read_at_most(
    path: str | Path,
    label: str | None = None,
    *,
    max_rows: int | None = None,
    seed: int = 0,
    cluster: str | None = None,
    **options: Unpack[ReadOptions],
) -> UserData:
    """As :func:`read`, but of a table too large to learn from at once, or of more than `max_rows`, drawn rows.

    ``punce.data.drawn`` says which are drawn. `cluster` is the address of a Dask scheduler whose workers then read the
    Parquet parts; they must see them under the same paths.
    """
    request = _request(path, label, options)
    if _reader(request) is read_table:
        if cluster is not None and not has_parts(request.path):
            raise InputError(f"--cluster reads the parts of a folder or pattern of Parquet files; {path} is one file")
        with workers(cluster) as on_workers:
            data = read_drawn(request, max_rows, seed, on_workers)
        if data.labels is not None:
            require_positive_and_unlabelled(data.labels, data.source)
        return data
    if max_rows is not None or cluster is not None:
        idle = "--max-rows" if max_rows is not None else "--cluster"
        raise InputError(
            f"{idle} has no effect on {input_form(request.path)}: it is for tables and texts in table files"
        )
    return read(path, label, **options)


def stream(
    path: str | Path, label: str | None = None, *, batch_rows: int = BATCH_ROWS, **options: Unpack[ReadOptions]
) -> DataStream:
    """The same rows as :func:`read`, in batches, for files larger than memory.

    The types of CSV columns are guessed per batch, except that text in the first batch is text in all of them: name
    other columns whose digits are names in `as_text`. The way numbers are written is decided by the first 10,000 rows.
    """
    request = _request(path, label, options)
    if batch_rows < 1:
        raise InputError(f"batch_rows must be at least 1, got {batch_rows}")
    reader = _reader(request)
    if reader is read_table:
        return stream_table(request, batch_rows)
    data = reader(request)  # images and mapped arrays are on disk still
    return DataStream(data.kind, data.source, data.labels, partial(_batches, data, request), batch_rows, data.notes)


def _batches(data: UserData, request: Request, size: int) -> Iterator[UserData]:
    """The rows in batches; each batch of images is looked at on its own, and then forgotten."""
    for whole in data.batches(size):
        batch = replace(whole, notes=())  # those of the data are told once, by the stream
        if request.look is not None and isinstance(batch.features, ImageFiles):
            batch = replace(batch, features=batch.features[:])  # what is found out is not kept with the others
            request.look(batch.features)
        yield without_unreadable(batch) if request.skip_unreadable else batch


def check_request(path: str | Path, label: str | None = None, **options: Unpack[ReadOptions]) -> None:
    """Refuse what :func:`read` would refuse before it opens the file."""
    _request(path, label, options)


def _request(path: str | Path, label: str | None, options: ReadOptions) -> Request:
    if unknown := set(options) - set(ReadOptions.__annotations__):
        raise TypeError(f"unknown options {sorted(unknown)}; there are {', '.join(ReadOptions.__annotations__)}")
    kind, setting = options.get("kind", "auto"), options.get("setting", "pu")
    if kind not in get_args(KindOption):
        raise InputError(f"kind must be auto, image, table, text or embedding, got {kind!r}")
    if setting not in get_args(Setting):
        raise InputError(f"setting must be 'pu' or 'pnu', got {setting!r}")
    # Everything is checked here, before a file is opened: some take long to open, and a mistake should not.
    file, table = file_and_table(path, options.get("table"))
    options = {**options, "table": table}
    id, labels, columns = options.get("id"), options.get("labels"), options.get("columns")
    lists = ("drop", "keep", "category", "as_text")
    drop, keep, category, as_text = (_names(options.get(name, ())) for name in lists)
    roles = Roles(label, id, drop, options.get("text"), keep)
    both = [name for name in columns or () if name in roles.set_aside]
    if both:
        raise InputError(f"{path}: columns are named both as features and as something else: {both[:8]}")
    decimal = options.get("decimal")
    request = Request(
        path=existing(file),
        roles=roles,
        kind=kind,
        positive=options.get("positive"),
        negative=options.get("negative"),
        setting=setting,
        labels=None if labels is None else existing(labels),
        image_size=options.get("image_size"),
        image_channels=options.get("image_channels"),
        skip_unreadable=options.get("skip_unreadable", False),
        look=options.get("look"),
        columns=None if columns is None else tuple(columns),
        category=category,
        as_text=(*as_text, *category) if id is None else (*as_text, *category, id),
        file=FileOptions(options.get("sep"), options.get("encoding"), options.get("header", "auto"), table),
        decimal=None if decimal is None else checked_decimal(decimal),
        number_forms=options.get("number_forms"),
    )
    check_reading(input_form(request.path), options)
    return request


def _names(given: Any) -> tuple[str, ...]:
    """One name may stand without brackets."""
    return (given,) if isinstance(given, str) else tuple(given)


def input_form(path: Path) -> str:
    """What a file or folder is, in the words of :data:`punce.data.reading_options.READING`."""
    if (form := form_of(path)) is not None:
        return form
    if path.is_dir():
        return _FOLDER
    ending = path.suffix.lower()
    if ending in (".npy", ".npz"):
        return f"a {ending} file"
    if ending == ".xls":
        raise InputError(f"{path}: workbooks of old Excel (.xls) are not read; save it as .xlsx or CSV")
    raise InputError(
        f"{path}: files ending in {path.suffix or 'nothing'!r} are not known; "
        f"use {KNOWN}, .npy, .npz or a folder of images"
    )


def _reader(request: Request) -> Callable[[Request], UserData]:
    form = input_form(request.path)
    if form == _FOLDER:
        return _read_images
    return _read_arrays if form in ("a .npy file", "a .npz file") else read_table


def _read_arrays(request: Request) -> UserData:
    path, roles = request.path, request.roles
    if request.kind in ("table", "text"):
        raise InputError(f"{path} holds an array; kind={request.kind!r} needs a CSV or Parquet file")
    if path.suffix.lower() == ".npz":
        raw, labels, ids = read_npz(path, roles.label if request.labels is None else None, roles.id)
    else:
        raw, labels, ids = read_npy(path), None, None
    features = check_features(raw, path)
    ignored: tuple[str, ...] = ()
    if request.labels is not None:
        own_too = f"{path.name} holds labels too, which are not used: those of {request.labels} are"
        ignored = () if labels is None else (own_too,)
        labels = _labels_file(request.labels, roles.label, len(features))
    elif labels is None and roles.label is not None:
        raise InputError(f"{path} holds no labels; name a file that does with labels= (--labels)")
    index = pd.RangeIndex(len(features)) if ids is None else pd.Index(ids)
    kind: Kind = "image" if features.ndim == 4 else "embedding"
    if request.kind not in ("auto", kind):
        raise InputError(f"{path} holds an array of shape {features.shape}: {kind}s, not kind={request.kind!r}")
    own, notes = (None, ()) if labels is None else request.read_labels(labels)
    return UserData(kind, features, own, index, str(path), (*ignored, *notes))


def _labels_file(path: Path, label: str | None, expected: int) -> Any:
    table = None
    if path.suffix.lower() == ".npy":
        if label is not None:
            raise InputError(f"--label has no effect: {path} is an array without columns; leave it out")
        values: Any = read_npy(path)
    elif form_of(path) is not None:
        table = open_table(path)
        if label is None and len(table.names) > 1:
            raise InputError(
                f"{path} has the columns {table.names[:8]}; name the one with the labels (label=, --label)"
            )
        wanted = label or table.names[0]
        check_roles(table, Roles(wanted))
        columns = [wanted, *([_ROW] if _ROW in table.names and wanted != _ROW else [])]
        frame = read_frame(table, columns)
        values = frame[wanted]
    else:
        raise InputError(f"{path}: labels come from a .csv, .parquet or .npy file")
    if len(values) != expected:
        whole = f" ({_ROW!r} says which is which, and names every row)" if table is not None and _ROW in frame else ""
        error = InputError(f"{path} has {len(values)} labels for {expected} rows; they must match row by row{whole}")
        raise error if table is None else with_hint(error, table)
    return _in_order(values, frame[_ROW], path) if table is not None and _ROW in frame else values


def _in_order(values: pd.Series, rows: pd.Series, path: Path) -> pd.Series:
    """Labels in the order of the array, by the row numbers beside them: a ranked list has them in another order."""
    numbers = pd.to_numeric(rows, errors="coerce").to_numpy(dtype=np.float64)
    order = np.argsort(numbers)
    if not np.array_equal(numbers[order], np.arange(len(numbers))):
        raise InputError(
            f"{path} has a column {_ROW!r} that does not hold 0 to {len(numbers) - 1}, each once; mend it, or "
            "rename the column if the labels are in the order of the array"
        )
    return values.iloc[order].reset_index(drop=True)


def _read_images(request: Request) -> UserData:
    if request.kind not in ("auto", "image"):
        raise InputError(
            f"{request.path} is a folder without .parquet files, which is read as images; kind={request.kind!r} needs "
            "a file, or a folder of Parquet files"
        )
    names, labels, notes = read_folder(
        request.path, request.labels, request.roles.label, request.named, request.setting
    )
    files = image_files(request.path, names, request.image_size, request.image_channels)
    return UserData("image", files, labels, pd.Index(names), str(request.path), notes)


def without_unreadable(data: UserData) -> UserData:
    """The rows whose images can be read; the others are listed."""
    reasons = data.features.unreadable()
    if not reasons:
        return data
    if len(reasons) == len(data):
        raise InputError(
            f"{data.source}: none of its {len(data)} images can be read, e.g. {data.ids[0]} ({reasons[0]})"
        )
    # take keeps labels and names with their rows
    rest = data.take([row for row in range(len(data)) if row not in reasons])
    unreadable = {str(data.ids[row]): reason for row, reason in reasons.items()}
    shown = first_of([f"{name} ({reason})" for name, reason in unreadable.items()])
    count = number_of(len(unreadable), "image cannot be read and is", "images cannot be read and are")
    note = f"{count} left out: {shown}"
    return replace(rest, notes=(*rest.notes, note), unreadable=unreadable)

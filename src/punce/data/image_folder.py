"""A folder of images with labels from a CSV (file, label) or from ``labelled/`` and ``unlabelled/`` subfolders."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from punce.columns.kinds import missing_column
from punce.data.image_files import list_images
from punce.data.tables import column_names, is_csv, read_frame
from punce.errors import InputError
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels, Setting, as_labels

_FOLDERS = {
    "labelled": POSITIVE,
    "labeled": POSITIVE,
    "positive": POSITIVE,
    "unlabelled": UNLABELLED,
    "unlabeled": UNLABELLED,
    "negative": NEGATIVE,
}
_FILE_COLUMNS = ("file", "filename", "file_name", "image", "path", "name")
_SHOWN = 5


def read_folder(
    folder: Path, table: Path | None, label: str | None, positive: Any, setting: Setting
) -> tuple[list[str], Labels | None, tuple[str, ...]]:
    """File names, labels and notes."""
    names = list_images(folder)
    if not names:
        raise InputError(f"{folder} holds no image files (.png, .jpg, .webp, …)")
    table = table or _only_csv(folder, label)
    if table is not None:
        return _from_table(folder, names, table, label, positive, setting)
    kinds = {PurePosixPath(name).parts[0].lower() for name in names if "/" in name}
    if kinds & set(_FOLDERS):
        return _from_subfolders(folder, names, setting)
    if label is not None:
        raise InputError(
            f"{folder} has no labels: put a CSV with the columns file,{label} into it (or name one with labels=), "
            "or sort the pictures into the subfolders labelled/ and unlabelled/"
        )
    return names, None, ()


def _only_csv(folder: Path, label: str | None) -> Path | None:
    tables = [path for path in sorted(folder.iterdir()) if is_csv(path)]
    if label is not None and len(tables) > 1:
        raise InputError(
            f"{folder} holds several CSV files ({', '.join(p.name for p in tables[:_SHOWN])}); name one with labels="
        )
    return tables[0] if len(tables) == 1 else None


def _from_subfolders(folder: Path, names: list[str], setting: Setting) -> tuple[list[str], Labels, tuple[str, ...]]:
    meaning = [_FOLDERS.get(PurePosixPath(name).parts[0].lower()) for name in names]
    stray = [name for name, label in zip(names, meaning, strict=True) if label is None]
    if stray:
        raise InputError(
            f"{folder}: {len(stray)} images lie outside labelled/ and unlabelled/, "
            f"first {stray[:_SHOWN]}; move or remove them"
        )
    return names, as_labels(np.array(meaning, dtype=np.int8), setting=setting), ()


def _from_table(
    folder: Path, names: list[str], table: Path, label: str | None, positive: Any, setting: Setting
) -> tuple[list[str], Labels | None, tuple[str, ...]]:
    columns = column_names(table)
    file_column = next((name for name in columns if name.lower() in _FILE_COLUMNS), None)
    if file_column is None:
        raise InputError(f"{table} has no column for the file names; call it 'file' (it has: {', '.join(columns)})")
    if label is not None and label not in columns:
        raise missing_column(label, columns, str(table))
    frame = read_frame(table, [file_column] + ([label] if label else []), as_text=[file_column])
    listed = _checked_names(frame[file_column], names, table, folder)
    rest = sorted(set(names) - set(listed))
    notes = (f"{len(rest)} images are not in {table.name}; they count as unlabelled",) if rest else ()
    if label is None:
        return listed + rest, None, ()
    labels = as_labels(frame[label], setting=setting, positive=positive)
    padded = np.concatenate([labels, np.full(len(rest), UNLABELLED, dtype=np.int8)])
    return listed + rest, padded, notes


def _checked_names(column: pd.Series[Any], names: list[str], table: Path, folder: Path) -> list[str]:
    listed = [PurePosixPath(str(name).replace("\\", "/")).as_posix() for name in column]
    absent = sorted(set(listed) - set(names))
    if absent:
        raise InputError(f"{table} names {len(absent)} files that are not images in {folder}: {absent[:_SHOWN]}")
    if len(set(listed)) != len(listed):
        twice = column[column.duplicated()].tolist()
        raise InputError(f"{table} names files twice: {twice[:_SHOWN]}")
    return listed

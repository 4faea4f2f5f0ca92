"""A folder of images: which files in it are images, and their labels.

Labels come from a CSV (file, label) or from ``labelled/`` and ``unlabelled/`` subfolders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from unicodedata import normalize

import numpy as np
import pandas as pd

from punce.columns.kinds import missing_column
from punce.data.tables import form_of, open_table, read_frame
from punce.errors import InputError, number_of
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels, Setting, read_labels

_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm"}
)
_OTHER_IMAGES = frozenset(
    {".heic", ".heif", ".avif", ".jp2", ".jxl", ".svg", ".psd", ".tga", ".dcm", ".dng", ".nef", ".cr2", ".cr3", ".arw"}
)
_SHOWN = 5
_FOLDERS = {
    "labelled": POSITIVE,
    "labeled": POSITIVE,
    "positive": POSITIVE,
    "unlabelled": UNLABELLED,
    "unlabeled": UNLABELLED,
    "negative": NEGATIVE,
}
_FILE_COLUMNS = ("file", "filename", "file_name", "image", "path", "name")


def _seen(folder: Path) -> list[Path]:
    """All paths below a folder but hidden ones, and those in hidden folders, where programs keep copies of images."""
    return [
        path for path in folder.rglob("*") if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]


def _images(folder: Path, seen: list[Path]) -> list[str]:
    """Names of the image files, in a fixed order."""
    return sorted(
        path.relative_to(folder).as_posix() for path in seen if path.suffix.lower() in _SUFFIXES and path.is_file()
    )


def _refuse_undecodable(folder: Path, names: list[str]) -> None:
    """Names in another encoding, of old archives mostly: no report and no ranked list could write them."""
    if wrong := [name for name in names if any("\ud800" <= letter <= "\udfff" for letter in name)]:
        have = number_of(len(wrong), "image has a name that is", "images have names that are")
        raise InputError(f"{folder}: {have} not UTF-8, first {wrong[:_SHOWN]}; rename what is named so")


def _left_out(folder: Path, seen: list[Path]) -> tuple[str, ...]:
    """A note for images of kinds that are not read, and one for links to folders, which could lead in a circle."""
    others = Counter(path.suffix.lower() for path in seen if path.suffix.lower() in _OTHER_IMAGES and path.is_file())
    links = sorted(path.relative_to(folder).as_posix() for path in seen if path.is_symlink() and path.is_dir())
    notes = []
    if others:
        kinds = ", ".join(f"{n:,} {ending}" for ending, n in sorted(others.items()))
        files = number_of(others.total(), "file is an image of a kind that is", "files are images of kinds that are")
        notes.append(f"{files} not read and left out ({kinds}); convert to PNG or JPEG what should count")
    if links:
        are = number_of(len(links), "link to a folder is", "links to folders are")
        notes.append(f"{are} not followed, first {links[:_SHOWN]}; move or copy the images there if they should count")
    return tuple(notes)


def read_folder(
    folder: Path, table: Path | None, label: str | None, named: Mapping[str, Any], setting: Setting
) -> tuple[list[str], Labels | None, tuple[str, ...]]:
    """File names, labels and notes."""
    if table is None:
        _refuse_linked(folder)
    seen = _seen(folder)
    names, left_out = _images(folder, seen), _left_out(folder, seen)
    _refuse_undecodable(folder, names)
    if not names:
        raise InputError(
            f"{folder} holds no image files (.png, .jpg, .webp, …) and no .parquet files, the tables that a folder may "
            f"hold; name the folder that does, or one file{''.join(f' ({note})' for note in left_out)}"
        )
    names, labels, notes = _with_labels(folder, names, table, label, named, setting)
    return names, labels, (*left_out, *notes)


def _with_labels(
    folder: Path, names: list[str], table: Path | None, label: str | None, named: Mapping[str, Any], setting: Setting
) -> tuple[list[str], Labels | None, tuple[str, ...]]:
    is_sorted = any(PurePosixPath(name).parts[0].lower() in _FOLDERS for name in names if "/" in name)
    if table is None and (found := _only_csv(folder, label)) is not None:
        # Where no column is asked for, a CSV may be about anything, and says less than subfolders.
        table = found if label is not None or (_file_column(found) and not is_sorted) else None
        if table is not None and label is None:
            return _in_order_of(folder, names, table, setting)
    if table is not None:
        return _from_table(folder, names, table, label, named, setting)
    if is_sorted:
        if idle := [f"--{name}" for name, value in {"label": label, **named}.items() if value is not None]:
            raise InputError(
                f"{idle[0]} has no effect on {folder}, whose subfolders tell which images are labelled; leave it out, "
                f"or put a CSV with the columns file,{label or 'label'} beside them"
            )
        return names, _from_subfolders(folder, names), ()
    if label is not None:
        raise InputError(
            f"{folder} has no labels: put a CSV with the columns file,{label} into it (or name one with labels=), "
            "or sort the images into the subfolders labelled/ and unlabelled/ (and negative/, if some are known)"
        )
    return names, None, ()


def _in_order_of(
    folder: Path, names: list[str], table: Path, setting: Setting
) -> tuple[list[str], None, tuple[str, ...]]:
    """Images to be scored, in the order of a table that nobody named: it may be about something else."""
    try:
        listed, _, notes = _from_table(folder, names, table, None, {}, setting)
    except InputError as error:
        return names, None, (f"{table.name} is not used: {error}",)
    return listed, None, notes


def _refuse_linked(folder: Path) -> None:
    """Links to folders are not followed; without this, all labelled images could be missing for no visible reason."""
    roles = [path for path in sorted(folder.iterdir()) if path.name.lower() in _FOLDERS and path.is_dir()]
    if linked := [path for path in roles if path.is_symlink()]:
        raise InputError(
            f"{linked[0]} is a link, and links to folders are not followed; put a folder with the images there, or "
            "name them in a CSV file (--labels) of the folder in which they are"
        )


def usual_label(folder: Path, table: Path | None) -> str | None:
    """The column called label of the folder's CSV file, which then need not be named; any other column must be."""
    found = table or _only_csv(folder, None)
    if found is None or not _file_column(found):
        return None
    names = open_table(found).names
    usual = next((name for name in names if name.lower() == "label"), None)
    if usual is None and table is not None:  # whoever names a table of labels does not want rows without any
        raise InputError(f"{table} has the columns {names[:8]}; name the one with the labels (label=, --label)")
    return usual


def _file_column(table: Path) -> str | None:
    """The column with the names of the images."""
    return next((name for name in open_table(table).names if name.lower() in _FILE_COLUMNS), None)


def _only_csv(folder: Path, label: str | None) -> Path | None:
    tables = _csv_files(folder)
    if label is not None and len(tables) > 1:
        raise InputError(f"{folder} holds {_several(tables)}; name one with labels= (--labels)")
    return tables[0] if len(tables) == 1 else None


def _csv_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if form_of(path) == "a CSV file" and path.suffix != ".txt"]


def _several(tables: list[Path]) -> str:
    return f"several CSV files ({', '.join(path.name for path in tables[:_SHOWN])})"


def how_to_label(folder: Path) -> str:
    """What a person does to give the labels of a folder that was read without any, given the CSV files in it."""
    sort = "put the labelled images into a subfolder labelled/ and the others into unlabelled/"
    tables = _csv_files(folder)
    if not tables:
        return f"{sort}, or name a table of files and labels (--labels) and its column of labels (--label)"
    if len(tables) > 1:
        return f"it holds {_several(tables)}: name the one with the labels (--labels), or {sort}"
    columns = ", ".join(open_table(tables[0]).names[:8])
    if _file_column(tables[0]) is None:
        return f"{tables[0].name} needs a column called file and one called label (it has: {columns}), or {sort}"
    return f"name the column of labels of {tables[0].name} with --label (it has: {columns}), or {sort}"


def _from_subfolders(folder: Path, names: list[str]) -> Labels:
    """As the subfolders say: without unlabelled/ too, negative/ holds known negatives, which -1 alone would not be."""
    meaning = [_FOLDERS.get(PurePosixPath(name).parts[0].lower()) for name in names]
    stray = [name for name, label in zip(names, meaning, strict=True) if label is None]
    if stray:
        raise InputError(
            f"{folder}: {number_of(len(stray), 'image lies', 'images lie')} outside labelled/, unlabelled/ and "
            f"negative/, first {stray[:_SHOWN]}; move or remove what is outside"
        )
    return np.array(meaning, dtype=np.int8)


def _from_table(
    folder: Path, names: list[str], table: Path, label: str | None, named: Mapping[str, Any], setting: Setting
) -> tuple[list[str], Labels | None, tuple[str, ...]]:
    opened = open_table(table)
    columns = opened.names
    file_column = _file_column(table)
    if file_column is None:
        raise InputError(f"{table} has no column for the file names; call it 'file' (it has: {', '.join(columns)})")
    if label is not None and label not in columns:
        raise missing_column(label, columns, str(table))
    frame = read_frame(opened, [file_column] + ([label] if label else []), as_text=[file_column])
    listed = _checked_names(frame[file_column], names, table, folder)
    rest = sorted(set(names) - set(listed))
    are = number_of(len(rest), "image is", "images are")
    notes = (f"{are} not in {table.name} and taken as unlabelled",) if rest else ()
    if label is None:
        return listed + rest, None, ()
    # Images that are not listed are unlabelled rows too, beside which -1 has its own meaning.
    labels, about = read_labels(frame[label], setting="pnu" if rest else setting, **named)
    padded = np.concatenate([labels, np.full(len(rest), UNLABELLED, dtype=np.int8)])
    return listed + rest, padded, (*notes, *about)


def _checked_names(column: pd.Series[Any], names: list[str], table: Path, folder: Path) -> list[str]:
    if empty := int(column.isna().sum()):
        lines = number_of(empty, "line", "lines")
        raise InputError(f"{table} has {lines} without a file name in the column {column.name!r}; fill or remove them")
    # A Mac writes ü as two signs in the names of files, and other programs write it as one.
    exact = set(names)
    as_named = {normalize("NFC", name): name for name in names}
    asked = [PurePosixPath(str(name).replace("\\", "/")).as_posix() for name in column]
    listed = [name if name in exact else as_named.get(normalize("NFC", name), name) for name in asked]
    absent = sorted(set(listed) - set(names))
    if absent:
        raise InputError(
            f"{table} names {number_of(len(absent), 'file that is no image', 'files that are no images')} in {folder}: "
            f"{absent[:_SHOWN]}; "
            "names are relative to that folder"
        )
    if len(set(listed)) != len(listed):
        twice = [name for name, count in Counter(listed).items() if count > 1]
        raise InputError(f"{table} names files twice: {twice[:_SHOWN]}; keep one line for each")
    return listed

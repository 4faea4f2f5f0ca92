"""A folder of images: its files, decoded when asked for, as the folder may be larger than memory, and its labels.

Labels come from a CSV (file, label) or from ``labelled/`` and ``unlabelled/`` subfolders.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.columns.kinds import missing_column
from punce.data.tables import form_of, open_table, read_frame
from punce.errors import InputError, WriteError, number_of
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels, Setting, read_labels

if TYPE_CHECKING:
    from punce.data.pictures import DecodedImage, Square  # imported where images are decoded: tables need no Pillow

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"})
_DEFAULT_SIZE = 64
_LARGEST_SIZE = 1024  # of a side
_LARGEST_NATIVE = 128  # larger images are scaled down: the encoders here are made for small ones
_PROBED = 256  # headers read to choose the common form
_LOOKED_INTO = 16  # images of 16 bits whose values are read for the check
_SHOWN = 5
_FEW_CHUNKS = 4  # decoded in seconds: no progress is shown
_MOST_IN_MEMORY = 1 << 30  # bytes of decoded images; more go to a temporary file
_FOLDERS = {
    "labelled": POSITIVE,
    "labeled": POSITIVE,
    "positive": POSITIVE,
    "unlabelled": UNLABELLED,
    "unlabeled": UNLABELLED,
    "negative": NEGATIVE,
}
_FILE_COLUMNS = ("file", "filename", "file_name", "image", "path", "name")


@dataclass(frozen=True)
class ImageFiles:
    """File names below a folder and the form the images are brought to: `channels` × `size` × `size`, uint8.

    Reads like an array (n, C, H, W) that is decoded when asked for: ``files[3]`` is an image, ``files[rows]`` are
    files again. What a pass over the files found out is kept in `known`, one array of n rows under each name.
    """

    folder: Path
    names: tuple[str, ...]
    size: int
    channels: int
    asked_size: int | None = None
    """The size that a person asked for, if one did; an encoder of its own size then uses this one."""
    native_size: int | None = None
    """The largest side of the first images, as their headers say."""
    known: dict[str, npt.NDArray[Any]] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, C, H, W) of the array that these files stand for."""
        return (len(self), *self.form_shape)

    @property
    def form_shape(self) -> tuple[int, int, int]:
        """(C, H, W)."""
        return self.channels, self.size, self.size

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, int | np.integer):
            return self[[rows]].load()[0]
        chosen = np.arange(len(self))[rows]
        known = {name: _taken(values, chosen) for name, values in self.known.items()}
        return replace(self, names=tuple(self.names[k] for k in chosen), known=known)

    @property
    def form(self) -> Square:
        """What images are brought to."""
        from punce.data.pictures import Square

        return Square(self.size, self.channels)

    def load(self) -> npt.NDArray[np.uint8]:
        """All images, uint8 (n, C, H, W); raises with the names of those that cannot be read."""
        self.look(keep=True)
        self.require_readable()
        pixels: npt.NDArray[np.uint8] = self.known[PIXELS]
        return pixels

    def look(self, *, keep: bool = False, progress: bool = False) -> None:
        """Decode every image once, if that was not done: which cannot be read, and which are alike.

        With `keep` their pixels stay: in memory, or if they are many in a temporary file.
        """
        from punce.data.pictures import CHUNK, decoded_images
        from punce.training.progress import StageProgress

        if PIXELS in self.known or (REASON in self.known and not keep):
            return
        pixels = _room(self.shape if keep else (0, *self.form_shape))
        seen = Facts(len(self))
        n_chunks = -(-len(self) // CHUNK)
        with StageProgress("decode", n_chunks, CHUNK, shown=progress and n_chunks > _FEW_CHUNKS) as shown:
            for rows, chunk in decoded_images(self.folder, self.names, self.form):
                seen.add(rows, chunk)
                for row, each in zip(range(rows.start, rows.stop), chunk if keep else (), strict=False):
                    if each.pixels is not None:
                        pixels[row] = each.pixels
                shown.advance("")
        self.known.update(seen.columns | ({PIXELS: pixels} if keep else {}))

    def unreadable(self) -> dict[int, str]:
        """Why images cannot be read, by row; decodes them if that was not done."""
        self.look()
        reasons = self.known[REASON]
        return {int(row): str(reasons[row]) for row in np.flatnonzero(reasons != "")}

    def require_readable(self) -> None:
        """Raise with the names of the images that cannot be read."""
        if reasons := self.unreadable():
            named = [f"{self.names[row]} ({reason})" for row, reason in reasons.items()]
            raise InputError(f"{self.folder}: {unreadable_message(named)}")


PIXELS, REASON, EQUAL, LOOKS = "pixels", "reason", "equal", "looks"
"""Names in :attr:`ImageFiles.known`."""


class Facts:
    """What a pass over n files finds out about each, whatever else the pass is for."""

    def __init__(self, n: int) -> None:
        self.columns: dict[str, npt.NDArray[Any]] = {
            REASON: np.full(n, "", dtype=object),
            EQUAL: np.zeros(n, dtype=np.uint64),
            LOOKS: np.zeros((n, 4), dtype=np.uint64),
        }

    def add(self, rows: slice, chunk: list[DecodedImage]) -> None:
        """Enter a chunk of images that were decoded."""
        for row, each in zip(range(rows.start, rows.stop), chunk, strict=True):
            self.columns[REASON][row] = each.reason
            if each.pixels is not None:
                self.columns[EQUAL][row], self.columns[LOOKS][row] = each.equal, each.looks


def _room(shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Zeros in memory; beyond 1 GiB in a temporary file, which is gone when nothing uses it any more."""
    if (size := prod(shape)) <= _MOST_IN_MEMORY:
        return np.zeros(shape, dtype=np.uint8)
    try:
        with tempfile.TemporaryFile(prefix="punce-pictures-") as file:  # the map keeps what it needs of it
            # Reserved now: a disk that is full later would end the process without a message.
            os.posix_fallocate(file.fileno(), 0, size) if hasattr(os, "posix_fallocate") else file.truncate(size)
            return np.memmap(file, dtype=np.uint8, mode="r+", shape=shape)
    except OSError as error:
        need = f"{size / 1e9:.1f} GB in {tempfile.gettempdir()} for the decoded images"
        raise WriteError(
            f"there is no room for {need} ({error.strerror}); set TMPDIR, or a smaller image size"
        ) from error


def _taken(values: npt.NDArray[Any], rows: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Some rows, in a temporary file again if they are many."""
    if values.dtype != np.uint8 or len(rows) * prod(values.shape[1:]) <= _MOST_IN_MEMORY:
        return values[rows]
    found = _room((len(rows), *values.shape[1:]))
    for start in range(0, len(rows), _PROBED):
        found[start : start + _PROBED] = values[rows[start : start + _PROBED]]
    return found


def unreadable_message(unreadable: list[str]) -> str:
    """One sentence with the first few names."""
    more = f" and {len(unreadable) - _SHOWN} more" if len(unreadable) > _SHOWN else ""
    return (
        f"{number_of(len(unreadable), 'image', 'images')} cannot be read: {', '.join(unreadable[:_SHOWN])}{more}; "
        f"repair {'it, or leave it' if len(unreadable) == 1 else 'them, or leave them'} out with --skip-unreadable"
    )


def list_images(folder: Path) -> list[str]:
    """Names of all image files below a folder, in a fixed order; hidden files are left out."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.suffix.lower() in SUFFIXES and path.is_file() and not path.name.startswith(".")
    )


def image_files(folder: Path, names: list[str], size: int | None = None, channels: int | None = None) -> ImageFiles:
    """Choose the common form: the images' own size if they share a small square one, else 64 × 64."""
    if size is not None and channels is None and size < 4:  # a run may have learned from smaller ones of their own
        raise InputError(f"image_size must be at least 4 pixels, got {size}")
    if size is not None and size > _LARGEST_SIZE:
        raise InputError(
            f"image_size must be at most {_LARGEST_SIZE:,} pixels, got {size:,}; larger images fill memory"
        )
    sizes, modes = _headers(folder, names[:_PROBED])
    width, height = next(iter(sizes)) if len(sizes) == 1 else (0, -1)  # no common size: not square
    chosen = size or (width if width == height <= _LARGEST_NATIVE else _DEFAULT_SIZE)
    grey = bool(modes) and modes <= {"1", "L", "I;16", "I", "F"}
    largest = max((max(each) for each in sizes), default=None)
    return ImageFiles(folder, tuple(names), chosen, channels or (1 if grey else 3), size, largest)


def _headers(folder: Path, names: list[str]) -> tuple[set[tuple[int, int]], set[str]]:
    """Sizes and colour modes of the first images, from their headers alone."""
    from PIL import Image

    sizes, modes = set(), set()
    for name in names:
        try:
            with Image.open(folder / name) as image:
                sizes.add(image.size)
                modes.add(image.mode)
        except Exception:  # whatever Pillow's readers make of a spoilt header
            continue  # the check and the first load report it by name
    return sizes, modes


def brightest(folder: Path, names: Sequence[str]) -> int | None:
    """The largest value in the first grey images of 16 bits; None where there are none."""
    from PIL import Image

    tops: list[int] = []
    for name in names[:_PROBED]:
        with suppress(Exception), Image.open(folder / name) as image:  # what is spoilt is reported by name elsewhere
            is_small = image.width * image.height <= (Image.MAX_IMAGE_PIXELS or np.inf)
            if image.mode.startswith("I;16") and is_small:
                tops.append(int(np.asarray(image).max()))
        if len(tops) == _LOOKED_INTO:
            break
    return max(tops, default=None)


# --- Labels -----------------------------------------------------------------------------------------------------------


def read_folder(
    folder: Path, table: Path | None, label: str | None, named: Mapping[str, Any], setting: Setting
) -> tuple[list[str], Labels | None, tuple[str, ...]]:
    """File names, labels and notes."""
    names = list_images(folder)
    if not names:
        raise InputError(
            f"{folder} holds no image files (.png, .jpg, .webp, …) and no .parquet files, the tables that a folder may "
            "hold; name the folder that does, or one file"
        )
    is_sorted = any(PurePosixPath(name).parts[0].lower() in _FOLDERS for name in names if "/" in name)
    if table is None and (found := _only_csv(folder, label)) is not None:
        # Where no column is asked for, a CSV may be about anything, and says less than subfolders.
        table = found if label is not None or (_file_column(found) and not is_sorted) else None
    if table is not None:
        return _from_table(folder, names, table, label, named, setting)
    if is_sorted:
        if label is not None:
            raise InputError(
                f"--label has no effect on {folder}, whose subfolders tell which images are labelled; leave it out, "
                f"or put a CSV with the columns file,{label} beside them"
            )
        return _from_subfolders(folder, names, setting)
    if label is not None:
        raise InputError(
            f"{folder} has no labels: put a CSV with the columns file,{label} into it (or name one with labels=), "
            "or sort the images into the subfolders labelled/ and unlabelled/ (and negative/, if some are known)"
        )
    return names, None, ()


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


def _from_subfolders(folder: Path, names: list[str], setting: Setting) -> tuple[list[str], Labels, tuple[str, ...]]:
    meaning = [_FOLDERS.get(PurePosixPath(name).parts[0].lower()) for name in names]
    stray = [name for name, label in zip(names, meaning, strict=True) if label is None]
    if stray:
        raise InputError(
            f"{folder}: {number_of(len(stray), 'image lies', 'images lie')} outside labelled/, unlabelled/ and "
            f"negative/, first {stray[:_SHOWN]}; move or remove what is outside"
        )
    return names, *read_labels(np.array(meaning, dtype=np.int8), setting=setting)


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
    listed = [PurePosixPath(str(name).replace("\\", "/")).as_posix() for name in column]
    absent = sorted(set(listed) - set(names))
    if absent:
        raise InputError(
            f"{table} names {number_of(len(absent), 'file that is no image', 'files that are no images')} in {folder}: "
            f"{absent[:_SHOWN]}; "
            "names are relative to that folder"
        )
    if len(set(listed)) != len(listed):
        twice = column[column.duplicated()].tolist()
        raise InputError(f"{table} names files twice: {twice[:_SHOWN]}; keep one line for each")
    return listed

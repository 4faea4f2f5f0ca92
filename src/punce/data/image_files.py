"""A folder of images: its files, decoded when asked for, as the folder may be larger than memory, and its labels.

Labels come from a CSV (file, label) or from ``labelled/`` and ``unlabelled/`` subfolders.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.columns.kinds import missing_column
from punce.data.tables import form_of, open_table, read_frame
from punce.errors import InputError
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels, Setting, as_labels

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"})
_DEFAULT_SIZE = 64
_LARGEST_NATIVE = 128  # larger pictures are scaled down: the encoders here are made for small ones
_PROBED = 256  # headers read to choose the common form
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


@dataclass(frozen=True)
class ImageFiles:
    """File names below a folder and the form the pictures are brought to: `channels` × `size` × `size`, uint8.

    The whole picture is kept (stretched to a square, not cropped): what makes a row positive may sit at the edge.
    """

    folder: Path
    names: tuple[str, ...]
    size: int
    channels: int

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows: npt.NDArray[Any]) -> ImageFiles:
        return replace(self, names=tuple(self.names[k] for k in rows))

    def load(self) -> npt.NDArray[np.uint8]:
        """All pictures, uint8 (n, C, H, W); raises with the names of those that cannot be read."""
        pixels = np.empty((len(self), self.channels, self.size, self.size), dtype=np.uint8)
        unreadable = self.unreadable(pixels)
        if unreadable:
            named = [f"{self.names[row]} ({reason})" for row, reason in unreadable.items()]
            raise InputError(unreadable_message(self.folder, named))
        return pixels

    def unreadable(self, pixels: npt.NDArray[np.uint8] | None = None) -> dict[int, str]:
        """Why pictures cannot be read, by row; the others fill `pixels`, if given."""
        reasons = {}
        for row in range(len(self)):
            picture = self.decode(row)
            if isinstance(picture, str):
                reasons[row] = picture
            elif pixels is not None:
                pixels[row] = picture
        return reasons

    def decode(self, row: int) -> npt.NDArray[np.uint8] | str:
        """One picture (C, H, W), or the reason why it cannot be read."""
        from PIL import Image, ImageOps

        try:
            with warnings.catch_warnings():
                # A small file can announce a picture that fills all memory: refuse it before it is decoded.
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                with Image.open(self.folder / self.names[row]) as picture:
                    upright = ImageOps.exif_transpose(_eight_bits(picture))
                    square = upright.convert("L" if self.channels == 1 else "RGB").resize((self.size, self.size))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Warning) as error:
            return str(error).replace(str(self.folder / self.names[row]), self.names[row]) or type(error).__name__
        pixels = np.asarray(square, dtype=np.uint8)
        return pixels[None] if self.channels == 1 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def unreadable_message(folder: Path, unreadable: list[str]) -> str:
    """One sentence with the first few names."""
    more = f" and {len(unreadable) - _SHOWN} more" if len(unreadable) > _SHOWN else ""
    return (
        f"{folder}: {len(unreadable)} images cannot be read: {', '.join(unreadable[:_SHOWN])}{more}; "
        "repair them, or leave them out with --skip-unreadable"
    )


def list_images(folder: Path) -> list[str]:
    """Names of all image files below a folder, in a fixed order; hidden files are left out."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.suffix.lower() in SUFFIXES and path.is_file() and not path.name.startswith(".")
    )


def image_files(folder: Path, names: list[str], size: int | None = None) -> ImageFiles:
    """Choose the common form: the pictures' own size if they share a small square one, else 64 × 64."""
    if size is not None and size < 4:
        raise InputError(f"image_size must be at least 4 pixels, got {size}")
    sizes, modes = _headers(folder, names[:_PROBED])
    width, height = next(iter(sizes)) if len(sizes) == 1 else (0, -1)  # no common size: not square
    chosen = size or (width if width == height <= _LARGEST_NATIVE else _DEFAULT_SIZE)
    grey = bool(modes) and modes <= {"1", "L", "I;16", "I", "F"}
    return ImageFiles(folder, tuple(names), chosen, 1 if grey else 3)


def _headers(folder: Path, names: list[str]) -> tuple[set[tuple[int, int]], set[str]]:
    """Sizes and colour modes of the first pictures, from their headers alone."""
    from PIL import Image

    sizes, modes = set(), set()
    for name in names:
        try:
            with Image.open(folder / name) as picture:
                sizes.add(picture.size)
                modes.add(picture.mode)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            continue  # the check and the first load report it by name
    return sizes, modes


def _eight_bits(picture: Image.Image) -> Image.Image:
    """Deep grey pictures (16 bits and more) to 8 bits; convert() alone would clip them to white."""
    from PIL import Image

    if not picture.mode.startswith(("I", "F")):
        return picture
    values = np.asarray(picture, dtype=np.float64)
    top = 65_535.0 if picture.mode.startswith("I;16") else max(float(values.max(initial=0.0)), 1.0)
    return Image.fromarray(np.clip(values / top * 255.0, 0, 255).astype(np.uint8))


# --- Labels -----------------------------------------------------------------------------------------------------------


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
    tables = [path for path in sorted(folder.iterdir()) if form_of(path) == "a CSV file" and path.suffix != ".txt"]
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
    opened = open_table(table)
    columns = opened.names
    file_column = next((name for name in columns if name.lower() in _FILE_COLUMNS), None)
    if file_column is None:
        raise InputError(f"{table} has no column for the file names; call it 'file' (it has: {', '.join(columns)})")
    if label is not None and label not in columns:
        raise missing_column(label, columns, str(table))
    frame = read_frame(opened, [file_column] + ([label] if label else []), as_text=[file_column])
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

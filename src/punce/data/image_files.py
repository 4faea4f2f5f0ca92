"""Pictures of a folder, decoded when asked for, so that a folder may be larger than memory."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from punce.errors import InputError

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"})
DEFAULT_SIZE = 64
_LARGEST_NATIVE = 128
_PROBED = 256
_SHOWN = 5


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
        unreadable = []
        for row in range(len(self)):
            picture = self.decode(row)
            if isinstance(picture, str):
                unreadable.append(f"{self.names[row]} ({picture})")
            else:
                pixels[row] = picture
        if unreadable:
            raise InputError(unreadable_message(self.folder, unreadable))
        return pixels

    def decode(self, row: int) -> npt.NDArray[np.uint8] | str:
        """One picture (C, H, W), or the reason why it cannot be read."""
        from PIL import Image, ImageOps

        try:
            with warnings.catch_warnings():
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
        "repair them or take them out of the folder (and the CSV)"
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
    native = next(iter(sizes)) if len(sizes) == 1 else None
    fits = native is not None and native[0] == native[1] <= _LARGEST_NATIVE
    chosen = size or (native[0] if fits and native is not None else DEFAULT_SIZE)
    grey = bool(modes) and set(modes) <= {"1", "L", "I;16", "I", "F"}
    return ImageFiles(folder, tuple(names), chosen, 1 if grey else 3)


def _headers(folder: Path, names: list[str]) -> tuple[Counter[tuple[int, int]], Counter[str]]:
    """Sizes and colour modes of the first pictures, from their headers alone."""
    from PIL import Image

    sizes: Counter[tuple[int, int]] = Counter()
    modes: Counter[str] = Counter()
    for name in names:
        try:
            with Image.open(folder / name) as picture:
                sizes[picture.size] += 1
                modes[picture.mode] += 1
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

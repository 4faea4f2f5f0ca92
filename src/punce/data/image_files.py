"""Images in a folder, decoded when asked for, as the folder may be larger than memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from punce.errors import InputError, WriteError, first_of, number_of

if TYPE_CHECKING:
    from punce.data.pictures import DecodedImage, Square  # imported where images are decoded: tables need no Pillow

_DEFAULT_SIZE = 64
_LARGEST_SIZE = 1024  # of a side
_LARGEST_NATIVE = 128  # larger images are scaled down: the encoders here are made for small ones
_PROBED = 256  # headers read to choose the common form
_LOOKED_INTO = 16  # images of more than 8 bits whose values are read for the check
_FEW_CHUNKS = 4  # decoded in seconds: no progress is shown
_MOST_IN_MEMORY = 1 << 30  # bytes of decoded images; more go to a temporary file


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
    """The largest side of some of the images, as their headers say."""
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
    return (
        f"{number_of(len(unreadable), 'image', 'images')} cannot be read: {first_of(unreadable)}; "
        f"repair {'it, or leave it' if len(unreadable) == 1 else 'them, or leave them'} out with --skip-unreadable"
    )


def image_files(folder: Path, names: list[str], size: int | None = None, channels: int | None = None) -> ImageFiles:
    """Choose the common form: the images' own size if they share a small square one, else 64 × 64."""
    if size is not None and channels is None and size < 4:  # a run may have learned from smaller ones of their own
        raise InputError(f"image_size must be at least 4 pixels, got {size}")
    if size is not None and size > _LARGEST_SIZE:
        raise InputError(
            f"image_size must be at most {_LARGEST_SIZE:,} pixels, got {size:,}; larger images fill memory"
        )
    sizes, modes = _headers(folder, _spread(names))
    width, height = next(iter(sizes)) if len(sizes) == 1 else (0, -1)  # no common size: not square
    chosen = size or (width if width == height <= _LARGEST_NATIVE else _DEFAULT_SIZE)
    grey = bool(modes) and modes <= {"1", "L", "I;16", "I", "F"}
    largest = max((max(each) for each in sizes), default=None)
    return ImageFiles(folder, tuple(names), chosen, channels or (1 if grey else 3), size, largest)


def _spread(names: Sequence[str]) -> Sequence[str]:
    """At most 256 of the names, from the whole list: the first ones may be all of one folder, and so of one kind."""
    return names[:: max(1, -(-len(names) // _PROBED))]


def _headers(folder: Path, names: Sequence[str]) -> tuple[set[tuple[int, int]], set[str]]:
    """Sizes and colour modes of some images, from their headers alone."""
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


def deep_values(folder: Path, names: Sequence[str]) -> list[tuple[bool, float, float]]:
    """Of some grey images with more than 8 bits a pixel: whether they have 16, and their smallest and largest value."""
    from PIL import Image

    from punce.data.pictures import sixteen_bits

    found: list[tuple[bool, float, float]] = []
    for name in _spread(names):
        with suppress(Exception), Image.open(folder / name) as image:  # what is spoilt is reported by name elsewhere
            is_small = image.width * image.height <= (Image.MAX_IMAGE_PIXELS or np.inf)
            if image.mode.startswith(("I", "F")) and is_small:
                values = np.nan_to_num(np.asarray(image), nan=0, posinf=0, neginf=0)
                found.append((sixteen_bits(image), float(values.min()), float(values.max())))
        if len(found) == _LOOKED_INTO:
            break
    return found

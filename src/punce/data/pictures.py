"""Image files decoded side by side, a few hundred at a time, with what is remembered of each.

A file is read once: its bytes give the key under which embeddings are kept, and are decoded unless the key is known.
Pillow decodes and scales without Python's lock, so threads are enough. Memory holds two chunks, however many files.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFile, ImageOps

from punce.data.row_hashes import hash_bytes
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.training.cpus import usable_cpus

Pixels = npt.NDArray[np.uint8]
KEY_BYTES = 16
DECODING = b"2"
"""Raised when a file gives other pixels than before: embeddings that were kept under its key would be the old ones."""
CHUNK = 256
_LARGEST_FILE = 1 << 30  # bytes; more than any image within Pillow's limit of pixels needs
_LOOKS = 16  # side of the grid on which images are compared: 256 bits
_ALIKE = 24  # bits in which near-duplicates may differ; of CIFAR's images, two at random differ in 92 at least
_PLAIN = 64  # bits of one value: on a plain ground the figure is few bits, and two digits differ in no more than 24
_BITS = np.uint64(1) << np.arange(64, dtype=np.uint64)


class Form(Protocol):
    """What a decoded image is brought to."""

    def enough(self) -> int:
        """A side that is large enough to be scaled down from; a JPEG file may be decoded at a reduced size."""

    def apply(self, image: Image.Image) -> Pixels:
        """Shape: (C, H, W)."""


@dataclass(frozen=True)
class Square:
    """The whole image, stretched to a square: what makes a row positive may sit at the edge."""

    size: int
    channels: int

    def enough(self) -> int:
        """The side that a decoder must give at least: twice that of the square."""
        return 2 * self.size

    def apply(self, image: Image.Image) -> Pixels:
        """Shape: (channels, size, size)."""
        square = image.convert("L" if self.channels == 1 else "RGB").resize((self.size, self.size))
        pixels = np.asarray(square, dtype=np.uint8)
        return pixels[None] if self.channels == 1 else pixels.transpose(2, 0, 1)


@dataclass(frozen=True)
class DecodedImage:
    """One file: its key, and its pixels, or why there are none (empty: the key was known)."""

    key: bytes
    pixels: Pixels | None = None
    reason: str = ""
    equal: int = 0
    """Equal for images that are equal in the form they were brought to."""
    looks: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(4, dtype=np.uint64))
    """256 bits, of which near-duplicates share nearly all. Shape: (4,)."""


def decode(path: Path, name: str, form: Form, content: bytes | None = None) -> Pixels | str:
    """One image, or the reason why it cannot be read. JPEG files far larger than needed are decoded at a fraction."""
    source = path if content is None else io.BytesIO(content)
    try:
        with Image.open(source) as image:
            # A small file can announce an image that fills all memory: refuse it before it is decoded. Pillow only
            # warns, and filters of warnings cannot be changed here: they belong to all threads.
            if image.width * image.height > (Image.MAX_IMAGE_PIXELS or np.inf):
                return f"{image.width} × {image.height} pixels are more than Pillow's limit"
            if isinstance(image, ImageFile.ImageFile):
                image.draft(None, (form.enough(), form.enough()))
            top = 65_535.0 if sixteen_bits(image) else None
            return form.apply(opaque(eight_bits(ImageOps.exif_transpose(image), top)))
    except MemoryError:
        raise
    except Exception as error:  # a spoilt header makes Pillow's readers fail with anything: TypeError, struct.error, …
        # without the address in memory, which Pillow names where it was given no path
        return str(error).replace(f" {source!r}", "").replace(str(path), name) or type(error).__name__


def sixteen_bits(image: Image.Image) -> bool:
    """Whether a file that was just opened is grey of 16 bits. Pillow spreads those of PGM over 0 to 65,535."""
    return image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM")


def eight_bits(image: Image.Image, top: float | None) -> Image.Image:
    """Deep grey images (16 bits and more) to 8 bits; convert() alone would clip them to white.

    `top` becomes white; None: the image's own largest value.
    """
    if not image.mode.startswith(("I", "F")):
        return image
    values = np.asarray(image, dtype=np.float64)
    values = np.where(np.isfinite(values), values, 0.0)  # "no data" is black, and must not decide the brightness
    top = top or max(float(values.max(initial=0.0)), 1.0)
    return Image.fromarray(np.clip(values / top * 255.0, 0, 255).astype(np.uint8))


def opaque(image: Image.Image) -> Image.Image:
    """Transparent parts on white: the colours below them mean nothing, and of a black drawing they are often black."""
    if not image.has_transparency_data:
        return image
    above = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", above.size, "white"), above).convert("RGB")


def decoded_images(
    folder: Path, names: Sequence[str], form: Form, is_known: Callable[[bytes], bool] = lambda key: False
) -> Iterator[tuple[slice, list[DecodedImage]]]:
    """The files in order, in chunks; those whose key is known are not decoded."""
    one = partial(_decoded, folder, form, is_known)
    starts = range(0, len(names), CHUNK)
    with ThreadPoolExecutor(usable_cpus()) as pool:
        ahead = _started(pool, one, names[:CHUNK])
        for start in starts:
            current, after = ahead, names[start + CHUNK : start + 2 * CHUNK]
            # The next chunk is decoded while the caller works on this one, but only where there is a CPU for it.
            if usable_cpus() > 1:
                ahead = _started(pool, one, after)
                yield slice(start, start + len(current)), [each.result() for each in current]
            else:
                yield slice(start, start + len(current)), [each.result() for each in current]
                ahead = _started(pool, one, after)


def _started(pool: Executor, one: Callable[[str], DecodedImage], names: Sequence[str]) -> list[Any]:
    return [pool.submit(one, name) for name in names]


def _decoded(folder: Path, form: Form, is_known: Callable[[bytes], bool], name: str) -> DecodedImage:
    try:
        if (size := (folder / name).stat().st_size) > _LARGEST_FILE:  # it may be a hole of terabytes
            return DecodedImage(
                b"", reason=f"{size:,} bytes are more than the {_LARGEST_FILE:,} that an image may have"
            )
        content = (folder / name).read_bytes()
    except OSError as error:
        return DecodedImage(b"", reason=error.strerror or str(error))
    key = hashlib.blake2b(content, digest_size=KEY_BYTES, person=DECODING).digest()
    if is_known(key):
        return DecodedImage(key)
    pixels = decode(folder / name, name, form, content)
    if isinstance(pixels, str):
        return DecodedImage(key, reason=pixels)
    return DecodedImage(key, pixels, "", hash_bytes(pixels.transpose(1, 2, 0).tobytes()), looks_of(pixels))


# Near-duplicates -----------------------------------------------------------------------------------------------------


def looks_of(pixels: Pixels) -> npt.NDArray[np.uint64]:
    """Where brightness rises from left to right, on a grid of 16 × 16: what survives scaling and compression.

    Shape: (C, H, W) -> (4,).
    """
    image = Image.fromarray(pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    small = image.resize((_LOOKS + 1, _LOOKS), Image.Resampling.BOX).convert("L")
    values = np.asarray(small, dtype=np.int16)
    rises = (values[:, 1:] > values[:, :-1]).reshape(4, 64)
    looks: npt.NDArray[np.uint64] = (rises * _BITS).sum(axis=1, dtype=np.uint64)
    return looks


def near_duplicates(
    looks: npt.NDArray[np.uint64], equal: npt.NDArray[np.uint64], labels: Labels
) -> list[tuple[int, int]]:
    """Unlabelled images that look like a labelled one without being equal to it: (unlabelled row, labelled row).

    Each is named once, with the first labelled one that it looks like: the frames of a film all look like each other.
    Decoding an image costs as much as 100,000 pairs. Shape: looks (n, 4), equal (n,), labels (n,).
    """
    ones = np.bitwise_count(looks).sum(axis=1, dtype=np.int64)
    has_shape = (ones >= _PLAIN) & (ones <= 256 - _PLAIN)
    labelled = np.flatnonzero((labels == POSITIVE) & has_shape)
    unlabelled = np.flatnonzero((labels == UNLABELLED) & has_shape)
    first, found = np.ascontiguousarray(looks[unlabelled, 0]), list[tuple[int, int]]()
    for row in labelled:
        # A quarter of the bits leaves few images to compare in full.
        maybe = unlabelled[np.bitwise_count(first ^ looks[row, 0]) <= _ALIKE]
        differs = np.bitwise_count(looks[maybe] ^ looks[row]).sum(axis=1, dtype=np.int64)
        near = maybe[(differs <= _ALIKE) & (equal[maybe] != equal[row])]
        if len(near) == 0:
            continue
        found += [(int(other), int(row)) for other in near]
        is_left = np.isin(unlabelled, near, assume_unique=True, invert=True)
        first, unlabelled = first[is_left], unlabelled[is_left]
    return found

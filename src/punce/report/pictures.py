"""Small pictures for the page: one as a PNG data URI, or thousands on one compressed sheet."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from punce.errors import InputError
from punce.report.content import ThumbnailSheet

Array = npt.NDArray[Any]
_TILE_SIZES = (40, 32, 28, 24, 20, 16, 12, 8)


def thumbnail(image: npt.ArrayLike | Image.Image, size: int = 64) -> str:
    """A PNG data URI of at most `size` pixels a side.

    Takes a PIL picture or an array (H, W), (H, W, C) or (C, H, W) with C of 1, 3 or 4; uint8, or numbers that are
    scaled from [0, 1] when they lie there and from their own range otherwise. Small pictures keep their pixels.
    """
    picture = _flat(as_picture(image))
    picture.thumbnail((size, size), Image.Resampling.LANCZOS)
    return _uri(picture, "PNG", optimize=True)


def thumbnail_sheet(
    images: Iterable[npt.ArrayLike | Image.Image], *, tile: int = 40, budget: int = 700_000
) -> ThumbnailSheet:
    """All pictures as square tiles of one WebP picture of at most `budget` bytes, with smaller tiles if need be."""
    pictures = [_flat(as_picture(image)) for image in images]
    if not pictures:
        raise InputError("a thumbnail sheet needs at least one picture")
    largest = max(max(picture.size) for picture in pictures)
    start = min(tile, largest)
    sizes = [start, *(size for size in _TILE_SIZES if size < start)]
    for size in sizes:
        columns = int(np.ceil(np.sqrt(len(pictures))))
        uri = _uri(_sheet(pictures, size, columns), "WEBP", quality=70, method=4)
        if len(uri) <= budget:
            break
    return ThumbnailSheet(uri, size, columns, len(pictures))


def as_picture(image: npt.ArrayLike | Image.Image) -> Image.Image:
    """A PIL picture from whatever the data reader holds."""
    if isinstance(image, Image.Image):
        return image
    array = np.asarray(image)
    if array.ndim == 3 and array.shape[-1] not in (1, 3, 4) and array.shape[0] in (1, 3, 4):
        array = np.moveaxis(array, 0, -1)
    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[:, :, 0]
    if array.ndim not in (2, 3) or array.size == 0 or (array.ndim == 3 and array.shape[-1] not in (3, 4)):
        raise InputError(f"an image must be (H, W), (H, W, C) or (C, H, W) with C in 1, 3, 4; got {np.shape(image)}")
    return Image.fromarray(np.ascontiguousarray(_bytes(array)))


def _bytes(array: Array) -> npt.NDArray[np.uint8]:
    if array.dtype == np.uint8:
        return array
    values = np.nan_to_num(array.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = (0.0, 1.0) if values.min() >= 0.0 and values.max() <= 1.0 else (values.min(), values.max())
    return np.round((values - low) * (255.0 / max(high - low, 1e-12))).astype(np.uint8)


def _flat(picture: Image.Image) -> Image.Image:
    """Greyscale or RGB without transparency, a copy that may be changed."""
    if picture.mode in ("L", "RGB"):
        return picture.copy()
    if picture.mode in ("1", "I", "F", "I;16", "LA"):
        return picture.convert("L")
    return picture.convert("RGB")


def _sheet(pictures: Sequence[Image.Image], tile: int, columns: int) -> Image.Image:
    rows = -(-len(pictures) // columns)
    mode = "L" if all(picture.mode == "L" for picture in pictures) else "RGB"
    sheet = Image.new(mode, (columns * tile, rows * tile))
    for i, picture in enumerate(pictures):
        sheet.paste(_fit(picture, tile), (i % columns * tile, i // columns * tile))
    return sheet


def _fit(picture: Image.Image, tile: int) -> Image.Image:
    """Scaled to fit a tile and centred on black, so that shapes keep their proportions."""
    scale = tile / max(picture.size)
    width, height = (max(1, round(side * scale)) for side in picture.size)
    how = Image.Resampling.NEAREST if scale >= 1 else Image.Resampling.LANCZOS
    square = Image.new(picture.mode, (tile, tile))
    square.paste(picture.resize((width, height), how), ((tile - width) // 2, (tile - height) // 2))
    return square


def _uri(picture: Image.Image, kind: str, **options: Any) -> str:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"

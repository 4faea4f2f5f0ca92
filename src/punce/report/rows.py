"""Pieces of a report that show single rows: the map of the embedding, the head of the ranking, and small images."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from punce.errors import InputError
from punce.report.content import Cell, RowMap, RowReason, ThumbnailSheet, TopRow, TopRows
from punce.report.words import shorten
from punce.training.cpus import limited_threads

if TYPE_CHECKING:
    import pandas as pd

# Characters and columns shown of a row: few on the map, whose thousands of cards must fit into a mail.
_HOVER_TEXT, _HOVER_CELL, _HOVER_COLUMNS = 180, 60, 8
_TABLE_TEXT, _TABLE_CELL, _TABLE_COLUMNS = 2000, 200, 12
_NAME = 300
_MAP_POINTS = 800  # t-SNE of 3,000 points took a third of the time of a whole fit
_ALIKE = 1e-9  # of the largest value: differences that rounding makes
_TILE_SIZES = (40, 32, 28, 24, 20, 16, 12, 8)


def map_rows(labels: npt.ArrayLike, *, limit: int = _MAP_POINTS) -> npt.NDArray[np.int64]:
    """Which rows to put on the map: all when they fit, else at most a third labelled and the rest unlabelled."""
    values = np.asarray(labels)
    if len(values) <= limit:
        return np.arange(len(values))
    rng = np.random.default_rng(0)
    labelled, rest = (rng.permutation(np.flatnonzero(side)) for side in (values != 0, values == 0))
    # At most a third labelled, but more if there are too few unlabelled rows to fill the map.
    from_labelled = max(min(len(labelled), limit // 3), limit - len(rest))
    return np.sort(np.concatenate([labelled[:from_labelled], rest[: limit - from_labelled]]))


def lay_out(features: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], str]:
    """Coordinates (n, 2) of the rows and the method's name: t-SNE on principal components, PCA for few rows."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    values = np.asarray(features, dtype=np.float64).reshape(len(np.asarray(features)), -1)
    n, d = values.shape
    if n < 3 or d < 2:
        return np.pad(values[:, :2], ((0, 0), (0, max(0, 2 - d)))), "features"
    # t-SNE on 50 components is as good as on thousands, and much faster.
    reduced = PCA(min(50, n, d), random_state=0).fit_transform(values)
    # t-SNE of few rows invents clusters; of rows that are all alike it divides by zero and crashes the process.
    if n < 50 or np.ptp(reduced[:, 0]) <= _ALIKE * np.abs(values).max():
        return reduced[:, :2], "PCA"
    # Clusters are where they will be after 350 steps; finer angles and more neighbours cost time and show no more.
    tsne = TSNE(perplexity=min(20.0, n / 4), init="pca", angle=0.9, max_iter=350, random_state=0)
    with limited_threads(1):  # 500 short parallel loops: beside another process, threads wait longer than they work
        return np.asarray(tsne.fit_transform(reduced), dtype=np.float64), "t-SNE"


def row_map(
    xy: npt.ArrayLike,
    probability: npt.ArrayLike,
    labels: npt.ArrayLike,
    names: Sequence[Any],
    *,
    method: str = "projection",
    of: int | None = None,
    table: pd.DataFrame | None = None,
    texts: Sequence[str] | None = None,
    images: Sequence[Any] | None = None,
) -> RowMap:
    """The map of the rows chosen by :func:`map_rows`; hover shows the first columns, the text or the image.

    Shapes: xy (n, 2), everything else n long. `of` is the number of rows the points were drawn from.
    """
    points = np.asarray(xy, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise InputError(f"xy must be finite numbers of shape (n, 2), got shape {points.shape}")
    # To the unit square with four digits: finer than a pixel, and half the bytes.
    span = np.maximum(np.ptp(points, axis=0), 1e-12)
    unit = np.round((points - points.min(axis=0)) / span, 4)
    columns, cells = _cells(table, _HOVER_COLUMNS, _HOVER_CELL)
    return RowMap(
        x=tuple(unit[:, 0].tolist()),
        y=tuple(unit[:, 1].tolist()),
        probability=tuple(np.round(np.asarray(probability, dtype=np.float64), 4).tolist()),
        labels=tuple(int(label) for label in np.asarray(labels)),
        names=tuple(shorten(str(name), _NAME) for name in names),
        method=method,
        of=len(points) if of is None else int(of),
        columns=columns,
        cells=cells,
        texts=tuple(shorten(str(text), _HOVER_TEXT) for text in texts) if texts is not None else (),
        thumbnails=tuple(range(len(points))) if images is not None else (),
        sheet=thumbnail_sheet(images) if images is not None else None,
    )


def top_rows(
    probability: npt.ArrayLike,
    names: Sequence[Any],
    *,
    limit: int = 100,
    table: pd.DataFrame | None = None,
    texts: Sequence[str] | None = None,
    images: Sequence[Any] | None = None,
    reasons: Sequence[tuple[RowReason, ...]] | None = None,
) -> TopRows:
    """The `limit` unlabelled rows of highest probability, ties in row order, with what a reviewer wants to see."""
    values = np.asarray(probability, dtype=np.float64)
    # Stable: equal probabilities keep the order that the caller gave them.
    best = np.argsort(-values, kind="stable")[:limit]
    columns, cells = _cells(table.iloc[best] if table is not None else None, _TABLE_COLUMNS, _TABLE_CELL)
    rows = tuple(
        TopRow(
            rank=rank + 1,
            name=shorten(str(names[i]), _NAME),
            probability=float(values[i]),
            values=cells[rank] if cells else (),
            text=shorten(str(texts[i]), _TABLE_TEXT) if texts is not None else None,
            thumbnail=thumbnail(images[i]) if images is not None else None,
            reasons=reasons[i] if reasons is not None else (),
        )
        for rank, i in enumerate(best.tolist())
    )
    return TopRows(rows, columns)


def plain_cell(value: Any, limit: int = _TABLE_CELL) -> Cell:
    """A table cell as JSON's types: numbers stay numbers, missing becomes None, the rest its shortened text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    # pandas has three missing values; comparing by name avoids importing it.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return shorten(str(value), limit)


def _cells(
    table: pd.DataFrame | None, n_columns: int, limit: int
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    if table is None:
        return (), ()
    shown = table.iloc[:, :n_columns]
    names = tuple(shorten(str(name), limit) for name in shown.columns)
    by_column = [[plain_cell(value, limit) for value in shown.iloc[:, j]] for j in range(shown.shape[1])]
    return names, tuple(zip(*by_column, strict=True)) if by_column else tuple(() for _ in range(len(shown)))


# Small images: one as a PNG data URI, or thousands on one compressed sheet ---------------------------------------


def thumbnail(image: npt.ArrayLike | Image.Image, size: int = 64) -> str:
    """A PNG data URI of at most `size` pixels a side.

    Takes a PIL image or an array (H, W), (H, W, C) or (C, H, W) with C of 1, 3 or 4; uint8, or numbers that are
    scaled from [0, 1] when they lie there and from their own range otherwise. Small images keep their pixels.
    """
    small = _flat(as_image(image))
    small.thumbnail((size, size), Image.Resampling.LANCZOS)
    return _uri(small, "PNG", optimize=True)


def thumbnail_sheet(images: Iterable[npt.ArrayLike | Image.Image], *, budget: int = 700_000) -> ThumbnailSheet:
    """All images as square tiles of one WebP image of at most `budget` bytes, with smaller tiles if need be."""
    flat = [_flat(as_image(image)) for image in images]
    if not flat:
        raise InputError("a thumbnail sheet needs at least one image")
    largest = max(max(image.size) for image in flat)
    start = min(_TILE_SIZES[0], largest)  # small images are not enlarged
    sizes = [start, *(size for size in _TILE_SIZES if size < start)]
    # Smaller tiles until the sheet fits the budget; the smallest is taken in any case.
    for size in sizes:
        columns = int(np.ceil(np.sqrt(len(flat))))
        uri = _uri(_sheet(flat, size, columns), "WEBP", quality=70, method=4)
        if len(uri) <= budget:
            break
    return ThumbnailSheet(uri, size, columns, len(flat))


def as_image(image: npt.ArrayLike | Image.Image) -> Image.Image:
    """A PIL image from whatever the data reader holds."""
    if isinstance(image, Image.Image):
        return image
    array = np.asarray(image)
    # Channels first, as torch has them, when the last dimension cannot be channels.
    if array.ndim == 3 and array.shape[-1] not in (1, 3, 4) and array.shape[0] in (1, 3, 4):
        array = np.moveaxis(array, 0, -1)
    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[:, :, 0]
    if array.ndim not in (2, 3) or array.size == 0 or (array.ndim == 3 and array.shape[-1] not in (3, 4)):
        raise InputError(f"an image must be (H, W), (H, W, C) or (C, H, W) with C in 1, 3, 4; got {np.shape(image)}")
    return Image.fromarray(np.ascontiguousarray(_bytes(array)))


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    if array.dtype == np.uint8:
        return array
    # NaN shows as black: an image of a damaged row is better than none.
    values = np.nan_to_num(array.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = (0.0, 1.0) if values.min() >= 0.0 and values.max() <= 1.0 else (values.min(), values.max())
    return np.round((values - low) * (255.0 / max(high - low, 1e-12))).astype(np.uint8)


def _flat(image: Image.Image) -> Image.Image:
    """Greyscale or RGB without transparency, a copy that may be changed."""
    if image.mode in ("L", "RGB"):
        return image.copy()
    if image.mode in ("1", "I", "F", "I;16", "LA"):
        return image.convert("L")
    return image.convert("RGB")


def _sheet(images: Sequence[Image.Image], tile: int, columns: int) -> Image.Image:
    rows = -(-len(images) // columns)
    mode = "L" if all(image.mode == "L" for image in images) else "RGB"
    sheet = Image.new(mode, (columns * tile, rows * tile))
    for i, image in enumerate(images):
        sheet.paste(_fit(image, tile), (i % columns * tile, i // columns * tile))
    return sheet


def _fit(image: Image.Image, tile: int) -> Image.Image:
    """Scaled to fit a tile and centred on black, so that shapes keep their proportions."""
    scale = tile / max(image.size)
    width, height = (max(1, round(side * scale)) for side in image.size)
    # Enlarged digits of 8 × 8 stay sharp; photographs are reduced smoothly.
    how = Image.Resampling.NEAREST if scale >= 1 else Image.Resampling.LANCZOS
    square = Image.new(image.mode, (tile, tile))
    square.paste(image.resize((width, height), how), ((tile - width) // 2, (tile - height) // 2))
    return square


def _uri(image: Image.Image, kind: str, **options: Any) -> str:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"

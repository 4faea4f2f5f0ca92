"""Images as the embeddings of a frozen pretrained encoder, each image decoded and embedded once.

Embeddings are kept in the user's cache under the content of the image and everything that decides an embedding, so
that a second fit, other labels or a review take seconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.data.image_files import EQUAL, LOOKS, Facts, ImageFiles
from punce.data.pictures import CHUNK, KEY_BYTES, DecodedImage, decoded_images
from punce.datasets.benchmarks import cache_directory
from punce.encoders.vision import Vision
from punce.errors import InputError
from punce.models.network import as_tensor
from punce.storage.row_cache import RowCache
from punce.training import collectives
from punce.training.progress import StageProgress
from punce.views.image import check_images

Values = npt.NDArray[np.float32]
_Columns = dict[str, npt.NDArray[Any]]
_Chunks = Iterator[tuple[slice, list[DecodedImage]]]
_FEWEST_KEPT = 32  # images of an array below which the cache is not worth its index
FEATURES, BRIGHTNESS = "features", "brightness"


class ImageVectors:
    """Embeddings of a :class:`~punce.encoders.Vision` for files and arrays."""

    def __init__(self, encoder: Vision) -> None:
        self.encoder = encoder.eval()
        self._cache: RowCache | None = None
        self._last: tuple[bytes, Values, Values] | None = None

    def embedded(self, X: Any, *, progress: bool = False) -> tuple[Values, Values]:
        """Embeddings (n, D) and the mean of each channel (n, 3) of files or of an array; raises on unreadable files."""
        if isinstance(X, ImageFiles):
            self.look(X, progress=progress)
            X.require_readable()
            return X.known[self._name(FEATURES)], X.known[self._name(BRIGHTNESS)]
        x = as_tensor(X)
        check_images(x, "X")
        # The classifier asks for the same array several times during a fit. By its content: a caller may fill one array
        # with batch after batch.
        digest = _digest(x)
        if self._last is not None and self._last[0] == digest:
            return self._last[1:]
        cache = self._opened() if len(x) >= _FEWEST_KEPT else RowCache(None)
        found = self._pass(self._array_chunks(x, cache), len(x), cache, progress)
        self._last = (digest, found[FEATURES], found[BRIGHTNESS])
        return self._last[1:]

    def notes(self) -> tuple[str, ...]:
        """What a person should know: that embeddings could not be kept."""
        trouble = "" if self._cache is None else self._cache.trouble
        return (f"embeddings were not kept for later runs: {trouble}",) if trouble else ()

    def look(self, files: ImageFiles, *, progress: bool = False) -> None:
        """One pass over the files: decode, embed, and note which cannot be read and which are alike."""
        if self._name(FEATURES) in files.known:
            return
        facts, cache = Facts(len(files)), self._opened()
        decoded = decoded_images(files.folder, files.names, self.encoder.preprocessing, cache.__contains__)
        found = self._pass(decoded, len(files), cache, progress, facts)
        own = {self._name(name): found.pop(name) for name in (FEATURES, BRIGHTNESS)}
        files.known.update(facts.columns | found | own)

    def _name(self, column: str) -> str:
        """Under which files remember a column that only this encoder gives."""
        return f"{column} {self.encoder.key}"

    def _opened(self) -> RowCache:
        if self._cache is None:
            # Every rank of a job reads, the first one writes.
            folder = cache_directory() / "embeddings" / self.encoder.key[:32]
            self._cache = RowCache(folder, writes=collectives.rank() == 0)
        return self._cache

    def _pass(self, chunks: _Chunks, n: int, cache: RowCache, progress: bool, facts: Facts | None = None) -> _Columns:
        """Everything known of n images that come in chunks, with a progress bar over their number."""
        found = self._empty(n)
        with StageProgress("embed", -(-n // CHUNK), CHUNK, shown=progress and collectives.rank() == 0) as shown:
            for rows, chunk in chunks:
                if facts is not None:
                    facts.add(rows, chunk)
                for name, values in self._of_chunk(chunk, cache).items():
                    found[name][rows] = values
                shown.advance("")
        cache.flush()
        return found

    def _empty(self, n: int) -> _Columns:
        return {
            FEATURES: np.zeros((n, self.encoder.feature_size), np.float32),
            BRIGHTNESS: np.zeros((n, 3), np.float32),
            EQUAL: np.zeros(n, np.uint64),
            LOOKS: np.zeros((n, 4), np.uint64),
        }

    def _of_chunk(self, chunk: list[DecodedImage], cache: RowCache) -> _Columns:
        """What is known of some images: computed where they were decoded, else from the cache."""
        columns = self._empty(len(chunk))
        fresh = [i for i, each in enumerate(chunk) if each.pixels is not None]
        if fresh:
            decoded = [own for each in chunk if (own := each.pixels) is not None]
            # Stacked with the channels last, as Pillow has them and the network wants them: nothing is rearranged.
            pixels = torch.from_numpy(np.stack([own.transpose(1, 2, 0) for own in decoded])).permute(0, 3, 1, 2)
            columns[FEATURES][fresh] = self._features(pixels)
            columns[BRIGHTNESS][fresh] = pixels.float().mean((2, 3)).numpy()
            columns[EQUAL][fresh] = [chunk[i].equal for i in fresh]
            columns[LOOKS][fresh] = [chunk[i].looks for i in fresh]
            cache.add([chunk[i].key for i in fresh], {name: values[fresh] for name, values in columns.items()})
        for i, each in enumerate(chunk):
            if each.pixels is None and not each.reason:
                for name, value in cache.get(each.key).items():
                    columns[name][i] = value
        return columns

    def _features(self, pixels: Tensor) -> Values:
        features: Values = self.encoder.embed(pixels).numpy()
        if not np.isfinite(features).all():
            raise InputError(f"the encoder {self.encoder.source} gives NaN or infinite features for some images")
        return features

    def _array_chunks(self, x: Tensor, cache: RowCache) -> _Chunks:
        """Images of an array, brought to the encoder's form in batches unless they are in the cache."""
        for start in range(0, len(x), CHUNK):
            part = x[start : start + CHUNK].contiguous()
            head = f"{x.dtype} {tuple(x.shape[1:])}".encode()
            keys = [hashlib.blake2b(head + row.numpy().tobytes(), digest_size=KEY_BYTES).digest() for row in part]
            fresh = [i for i, key in enumerate(keys) if key not in cache]
            pixels = dict(zip(fresh, self.encoder.preprocessing.batch(part[fresh]).numpy(), strict=True))
            yield slice(start, start + len(part)), [DecodedImage(key, pixels.get(i)) for i, key in enumerate(keys)]


def _digest(x: Tensor) -> bytes:
    """A hash of the pixels. Shape: (n, C, H, W)."""
    digest = hashlib.blake2b(f"{x.dtype} {tuple(x.shape)}".encode(), digest_size=KEY_BYTES)
    for part in torch.split(x, CHUNK):
        digest.update(part.contiguous().numpy().data)
    return digest.digest()

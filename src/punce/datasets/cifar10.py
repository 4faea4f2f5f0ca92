"""CIFAR-10 in its binary layout. Vehicles (airplane, automobile, ship, truck) are positive, animals negative."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.datasets.catalogue import Benchmark, Paths, published
from punce.datasets.dataset import Part, is_member, named_classes
from punce.errors import InputError

_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_VEHICLES = (0, 1, 8, 9)

_RECORD = 1 + 3 * 32 * 32  # one class byte, then the red, green and blue planes
_ROWS = 10_000

_TRAIN = tuple(f"data_batch_{k}.bin" for k in range(1, 6))


def read_batch(path: Path) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Images (10,000, 3, 32, 32) and classes (10,000,) of one .bin file."""
    try:
        raw = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}); delete it and fetch it again") from error
    if raw.size != _ROWS * _RECORD:
        raise InputError(
            f"{path} holds {raw.size:,} bytes instead of {_ROWS * _RECORD:,}; it is cut off or not CIFAR-10: "
            "delete it and fetch it again"
        )
    records = raw.reshape(_ROWS, _RECORD)
    if records[:, 0].max() > 9:
        raise InputError(
            f"{path} names class {records[:, 0].max()}; CIFAR-10 has classes 0 to 9; delete it and fetch it again"
        )
    return records[:, 1:].reshape(_ROWS, 3, 32, 32), records[:, 0]


def _part(paths: Paths, names: tuple[str, ...], positive: Collection[Any]) -> Part:
    images = np.empty((_ROWS * len(names), 3, 32, 32), dtype=np.uint8)  # filled in place: one copy in memory
    classes = np.empty(_ROWS * len(names), dtype=np.uint8)
    for k, name in enumerate(names):
        rows = slice(k * _ROWS, (k + 1) * _ROWS)
        images[rows], classes[rows] = read_batch(paths[name])
    return Part(images, is_member(classes, positive))


def _describe(positive: Collection[Any]) -> str:
    names = ", ".join(named_classes(_CLASSES, positive))
    return f"vehicles ({names})" if set(positive) == set(_VEHICLES) else names


def _parts(paths: Paths, positive: Collection[Any]) -> tuple[Part, Part]:
    return _part(paths, _TRAIN, positive), _part(paths, ("test_batch.bin",), positive)


CIFAR10 = Benchmark(kind="image", parts=_parts, classes=_VEHICLES, describe=_describe, **published("cifar10"))

"""CIFAR-10 in its binary layout. Vehicles (airplane, automobile, ship, truck) are positive, animals negative."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.datasets.catalogue import Archive, Benchmark, DataFile, Paths
from punce.datasets.dataset import Part, is_member
from punce.errors import InputError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
VEHICLES = (0, 1, 8, 9)

_RECORD = 1 + 3 * 32 * 32  # one class byte, then the red, green and blue planes
_ROWS = 10_000

_SHA256 = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
_TRAIN = tuple(name for name in _SHA256 if name.startswith("data"))


def read_batch(path: Path) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Images (10,000, 3, 32, 32) and classes (10,000,) of one .bin file."""
    try:
        raw = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error})") from error
    if raw.size != _ROWS * _RECORD:
        raise InputError(
            f"{path} holds {raw.size:,} bytes instead of {_ROWS * _RECORD:,}; it is cut off or not CIFAR-10"
        )
    records = raw.reshape(_ROWS, _RECORD)
    if records[:, 0].max() > 9:
        raise InputError(f"{path} names class {records[:, 0].max()}; CIFAR-10 has classes 0 to 9")
    return records[:, 1:].reshape(_ROWS, 3, 32, 32), records[:, 0]


def _part(paths: Paths, names: tuple[str, ...], positive: Collection[Any]) -> Part:
    images = np.empty((_ROWS * len(names), 3, 32, 32), dtype=np.uint8)  # filled in place: one copy in memory
    classes = np.empty(_ROWS * len(names), dtype=np.uint8)
    for k, name in enumerate(names):
        rows = slice(k * _ROWS, (k + 1) * _ROWS)
        images[rows], classes[rows] = read_batch(paths[name])
    return Part(images, is_member(classes, positive))


def _describe(positive: Collection[Any]) -> str:
    names = ", ".join(CLASSES[k] for k in sorted(positive))
    return f"vehicles ({names})" if set(positive) == set(VEHICLES) else names


def _parts(paths: Paths, positive: Collection[Any]) -> tuple[Part, Part]:
    return _part(paths, _TRAIN, positive), _part(paths, ("test_batch.bin",), positive)


CIFAR10 = Benchmark(
    name="cifar10",
    kind="image",
    about="50,000 + 10,000 colour pictures of 32 × 32 pixels",
    folders=("cifar-10-batches-bin", "cifar10/cifar-10-batches-bin"),
    files=tuple(DataFile(name, sha256) for name, sha256 in _SHA256.items()),
    parts=_parts,
    classes=VEHICLES,
    describe=_describe,
    archive=Archive(
        urls=("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
        sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        top="cifar-10-batches-bin",
    ),
)

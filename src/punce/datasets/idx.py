"""MNIST and Fashion-MNIST: gzipped or plain IDX files.

The paper calls its MNIST task "odd/even"; odd is positive by default, as the title order says. Other papers take
even: ``load("mnist", positive=(0, 2, 4, 6, 8))``.
Fashion-MNIST: trouser, coat and sneaker {1, 4, 7}, the first group of the vPU paper (Chen et al. 2020, table 1).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.datasets.catalogue import Benchmark, DataFile, Paths
from punce.datasets.dataset import Part, is_member
from punce.errors import InputError

ODD = (1, 3, 5, 7, 9)
_CLOTHES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")

_TRAIN_IMAGES = "train-images-idx3-ubyte.gz"
_TRAIN_LABELS = "train-labels-idx1-ubyte.gz"
_TEST_IMAGES = "t10k-images-idx3-ubyte.gz"
_TEST_LABELS = "t10k-labels-idx1-ubyte.gz"

# type code of the IDX magic number (its third byte); both sets hold unsigned bytes only
_UNSIGNED_BYTE = 8
_LARGEST = 1 << 30


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """The array in an IDX file, gzipped or not: (n,) for labels, (n, H, W) for images."""
    raw = _read_bytes(path)
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] != _UNSIGNED_BYTE or not 1 <= raw[3] <= 4:
        raise InputError(f"{path} is not an IDX file of bytes: it starts with {raw[:4].hex(' ') or 'nothing'}")
    start = 4 + 4 * raw[3]
    shape = tuple(np.frombuffer(raw[4:start], dtype=">u4").tolist())
    if len(raw) - start != np.prod(shape, dtype=object):
        raise InputError(
            f"{path} announces shape {shape} but holds {len(raw) - start} bytes of data; "
            "the file is cut off or damaged: delete it and fetch it again"
        )
    # a copy, because an array over bytes is read-only and torch.from_numpy warns about those
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape).copy()


def _read_bytes(path: Path) -> bytes:
    try:
        if path.suffix != ".gz":
            return path.read_bytes()
        with gzip.open(path) as stream:  # bounded: a small file must not unpack into all memory
            raw = stream.read(_LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}); delete it and fetch it again") from error
    if len(raw) > _LARGEST:
        raise InputError(f"{path} unpacks to more than {_LARGEST >> 20} MB; it is not one of the set's files")
    return raw


def describe_digits(positive: Collection[Any]) -> str:
    """'odd digits {1, 3, 5, 7, 9}' for a person."""
    digits = sorted(positive)
    word = {(1, 3, 5, 7, 9): "odd digits ", (0, 2, 4, 6, 8): "even digits "}.get(tuple(digits), "digits ")
    return word + "{" + ", ".join(map(str, digits)) + "}"


def describe_fashion(positive: Collection[Any]) -> str:
    """'trouser, coat, sneaker {1, 4, 7}' for a person."""
    classes = sorted(positive)
    names = ", ".join(_CLOTHES[k] for k in classes)
    return f"{names} {{{', '.join(map(str, classes))}}}"


def _part(paths: Paths, images: str, labels: str, positive: Collection[Any]) -> Part:
    pixels, classes = read_idx(paths[images]), read_idx(paths[labels])
    if pixels.ndim != 3 or classes.ndim != 1:
        raise InputError(
            f"{paths[images]} and {paths[labels]} must hold images and labels, "
            f"got arrays of {pixels.ndim} and {classes.ndim} dimensions"
        )
    if len(pixels) != len(classes):
        raise InputError(f"{paths[images]} holds {len(pixels)} images, {paths[labels]} {len(classes)} labels")
    return Part(pixels[:, None], is_member(classes, positive))


def _parts(paths: Paths, positive: Collection[Any]) -> tuple[Part, Part]:
    train = _part(paths, _TRAIN_IMAGES, _TRAIN_LABELS, positive)
    return train, _part(paths, _TEST_IMAGES, _TEST_LABELS, positive)


def _files(mirrors: tuple[str, ...], zipped: Mapping[str, str], plain: Mapping[str, str]) -> tuple[DataFile, ...]:
    return tuple(
        DataFile(name, sha256, tuple(f"{mirror}/{name}" for mirror in mirrors), _ungzipped(name, plain))
        for name, sha256 in zipped.items()
    )


def _ungzipped(name: str, plain: Mapping[str, str]) -> dict[str, str]:
    bare = name.removesuffix(".gz")
    # torchvision and Keras write the first spelling, the original site's gunzip instructions the second
    return {spelling: plain.get(name, "") for spelling in (bare, bare.replace("-idx", ".idx"))}


_MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
    "http://yann.lecun.com/exdb/mnist",
)
_FASHION_MIRRORS = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
)
_MNIST_SHA256 = {
    _TRAIN_IMAGES: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    _TRAIN_LABELS: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    _TEST_IMAGES: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    _TEST_LABELS: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_MNIST_PLAIN_SHA256 = {
    _TRAIN_IMAGES: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    _TRAIN_LABELS: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    _TEST_IMAGES: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    _TEST_LABELS: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
_FASHION_SHA256 = {
    _TRAIN_IMAGES: "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    _TRAIN_LABELS: "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    _TEST_IMAGES: "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    _TEST_LABELS: "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
}

MNIST = Benchmark(
    name="mnist",
    kind="image",
    about="60,000 + 10,000 handwritten digits of 28 × 28 pixels",
    folders=("mnist", "MNIST/raw", "MNIST"),
    files=_files(_MNIST_MIRRORS, _MNIST_SHA256, _MNIST_PLAIN_SHA256),
    parts=_parts,
    classes=ODD,
    describe=describe_digits,
)
FASHION_MNIST = Benchmark(
    name="fashion_mnist",
    kind="image",
    about="60,000 + 10,000 pictures of clothes of 28 × 28 pixels",
    folders=("fashion_mnist", "FashionMNIST/raw", "fashion-mnist"),
    files=_files(_FASHION_MIRRORS, _FASHION_SHA256, {}),
    parts=_parts,
    classes=(1, 4, 7),
    describe=describe_fashion,
)

"""Grey images: scikit-learn's digits, MNIST and Fashion-MNIST (gzipped or plain IDX files).

The paper calls its MNIST task "odd/even"; odd is positive by default, as the title order says. Other papers take
even: ``load("mnist", positive=(0, 2, 4, 6, 8))``.
Fashion-MNIST: trouser, coat and sneaker {1, 4, 7}, the first group of the vPU paper (Chen et al. 2020, table 1).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.datasets.catalogue import Benchmark, Paths, published
from punce.datasets.dataset import Part, fixed_split, is_member, named_classes
from punce.errors import InputError

_ODD, _EVEN = (1, 3, 5, 7, 9), (0, 2, 4, 6, 8)
_CLOTHES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
_UNSIGNED_BYTE = 8  # type code of the IDX magic number (its third byte); both sets hold unsigned bytes only
_LARGEST = 1 << 30


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """The array in an IDX file, gzipped or not: (n,) for labels, (n, H, W) for images."""
    raw = _read_bytes(path)
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] != _UNSIGNED_BYTE or not 1 <= raw[3] <= 4:
        raise InputError(f"{path} is not an IDX file of bytes: it starts with {raw[:4].hex(' ') or 'nothing'}")
    start = 4 + 4 * raw[3]  # the fourth byte counts the dimensions; each has a big-endian length of four bytes
    if len(raw) < start:
        raise InputError(f"{path} is cut off within its header: delete it and fetch it again")
    shape = tuple(np.frombuffer(raw[4:start], dtype=">u4").tolist())
    if len(raw) - start != np.prod(shape, dtype=object):  # Python integers: announced lengths may overflow
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


def _digit_parts(_: Paths, positive: Collection[Any]) -> list[Part]:
    """1,438 training and 359 test images, grey levels 0…16 stretched to 0…255."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    pixels = np.rint(images * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)
    y_true = is_member(digits, positive)
    return [Part(pixels[rows], y_true[rows]) for rows in fixed_split(digits)]


def _idx_parts(paths: Paths, positive: Collection[Any]) -> list[Part]:
    return [_idx_part(paths, name, positive) for name in ("train", "t10k")]


def _idx_part(paths: Paths, name: str, positive: Collection[Any]) -> Part:
    images, labels = paths[f"{name}-images-idx3-ubyte.gz"], paths[f"{name}-labels-idx1-ubyte.gz"]
    pixels, classes = read_idx(images), read_idx(labels)
    if pixels.ndim != 3 or classes.ndim != 1:
        raise InputError(
            f"{images} and {labels} must hold images and labels, "
            f"got arrays of {pixels.ndim} and {classes.ndim} dimensions"
        )
    if len(pixels) != len(classes):
        raise InputError(f"{images} holds {len(pixels)} images, {labels} {len(classes)} labels")
    return Part(pixels[:, None], is_member(classes, positive))


def _describe_digits(positive: Collection[Any]) -> str:
    """'odd digits {1, 3, 5, 7, 9}'."""
    named_classes("0123456789", positive)  # refuses 10
    word = {_ODD: "odd digits", _EVEN: "even digits"}.get(tuple(sorted(positive)), "digits")
    return f"{word} {_braced(positive)}"


def _describe_clothes(positive: Collection[Any]) -> str:
    """'trouser, coat, sneaker {1, 4, 7}'."""
    return f"{', '.join(named_classes(_CLOTHES, positive))} {_braced(positive)}"


def _braced(classes: Collection[Any]) -> str:
    return f"{{{', '.join(map(str, sorted(classes)))}}}"


DIGITS = Benchmark(kind="image", parts=_digit_parts, classes=_ODD, describe=_describe_digits, **published("digits"))
MNIST = Benchmark(kind="image", parts=_idx_parts, classes=_ODD, describe=_describe_digits, **published("mnist"))
FASHION_MNIST = Benchmark(
    kind="image", parts=_idx_parts, classes=(1, 4, 7), describe=_describe_clothes, **published("fashion_mnist")
)

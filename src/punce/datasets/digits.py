"""scikit-learn's bundled 8 × 8 digits: the set that is always there. Odd digits are positive."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from punce.datasets.catalogue import Benchmark, Paths
from punce.datasets.dataset import Part, fixed_split, is_member
from punce.datasets.idx import ODD, describe_digits


def _parts(_: Paths, positive: Collection[Any]) -> tuple[Part, Part]:
    """1,438 training and 359 test images, grey levels 0…16 stretched to 0…255."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    pixels = np.rint(images * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)
    y_true = is_member(digits, positive)
    train, test = fixed_split(digits)
    return Part(pixels[train], y_true[train]), Part(pixels[test], y_true[test])


DIGITS = Benchmark(
    name="digits",
    kind="image",
    about="scikit-learn's 1,797 digits of 8 × 8 pixels; embedded, needs no file",
    folders=(),
    files=(),
    parts=_parts,
    classes=ODD,
    describe=describe_digits,
)

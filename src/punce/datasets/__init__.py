"""The public benchmark sets, fetched and verified; their true labels are for simulation and testing only."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, get_args, overload

from punce.datasets.benchmarks import MissingFilesError, load_benchmark
from punce.datasets.catalogue import Benchmark
from punce.datasets.cifar10 import CIFAR10
from punce.datasets.dataset import Dataset, Part
from punce.datasets.grey_images import DIGITS, FASHION_MNIST, MNIST
from punce.datasets.texts import SMS_SPAM, SST2, SST2_SENTENCE
from punce.datasets.uci import BANKNOTE, LANDSAT, MUSHROOM, PAGEBLOCKS, SHUTTLE, SPAMBASE
from punce.errors import InputError

DATASETS: dict[str, Benchmark] = {
    "digits": DIGITS,
    "mnist": MNIST,
    "fashion_mnist": FASHION_MNIST,
    "cifar10": CIFAR10,
    "sst2": SST2,
    "sst2_sentence": SST2_SENTENCE,
    "sms_spam": SMS_SPAM,
    "spambase": SPAMBASE,
    "mushroom": MUSHROOM,
    "banknote": BANKNOTE,
    "landsat": LANDSAT,
    "pageblocks": PAGEBLOCKS,
    "shuttle": SHUTTLE,
}


Split = Literal["train", "test", "validation"]
Classes = Collection[Any] | None


@overload
def load(
    name: str, root: str | Path | None = None, split: None = None, *, positive: Classes = None, download: bool = True
) -> Dataset: ...
@overload
def load(
    name: str, root: str | Path | None = None, split: Split = ..., *, positive: Classes = None, download: bool = True
) -> Part: ...
def load(
    name: str,
    root: str | Path | None = None,
    split: Split | None = None,
    *,
    positive: Classes = None,
    download: bool = True,
) -> Dataset | Part:
    """A benchmark set, or one part of it, read from a data directory and fetched into it where files are missing.

    `root` is the data directory; without it the directories named in PUNCE_DATA and the user's cache are searched.
    `positive` replaces the set's positive classes (``positive=(0, 2, 4, 6, 8)`` for even digits).
    ``download=False`` never touches the network: missing files raise :class:`MissingFilesError`.
    """
    dataset = load_benchmark(find_benchmark(name), root, positive=positive, download=download)
    if split is None:
        return dataset
    part: Part | None = getattr(dataset, split, None) if split in get_args(Split) else None
    if part is None:
        there = [repr(one) for one in get_args(Split) if getattr(dataset, one) is not None]
        raise InputError(f"{name} has no part {split!r}; it has {', '.join(there)}")
    return part


def find_benchmark(name: str) -> Benchmark:
    """The catalogue entry of this name."""
    if name not in DATASETS:
        raise InputError(f"no benchmark set is called {name!r}; there are {', '.join(DATASETS)}")
    return DATASETS[name]


__all__ = [
    "DATASETS",
    "Benchmark",
    "Dataset",
    "MissingFilesError",
    "Part",
    "find_benchmark",
    "load",
]

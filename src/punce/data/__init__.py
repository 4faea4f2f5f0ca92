"""Where rows come from: benchmark sets, PU and PNU simulation, the user's tables, images, text and embeddings."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, overload

from punce.data.benchmarks import load_benchmark
from punce.data.catalogue import Benchmark
from punce.data.check import check
from punce.data.cifar10 import CIFAR10
from punce.data.dataset import Dataset, Part
from punce.data.digits import DIGITS
from punce.data.directories import MissingFilesError
from punce.data.findings import DataCheck, Finding
from punce.data.idx import FASHION_MNIST, MNIST
from punce.data.read import read, stream
from punce.data.simulate import PUSample, biased_propensity, simulate_pnu, simulate_pu
from punce.data.sms_spam import SMS_SPAM
from punce.data.sst2 import SST2, SST2_SENTENCE
from punce.data.table_encoder import EncodedTable, TableEncoder
from punce.data.uci import BANKNOTE, LANDSAT, MUSHROOM, PAGEBLOCKS, SHUTTLE, SPAMBASE
from punce.data.user_data import DataStream, UserData
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


@overload
def load(
    name: str,
    root: str | Path | None = None,
    split: None = None,
    *,
    positive: Collection[Any] | None = None,
    download: bool = True,
) -> Dataset: ...
@overload
def load(
    name: str,
    root: str | Path | None = None,
    split: Literal["train", "test", "validation"] = ...,
    *,
    positive: Collection[Any] | None = None,
    download: bool = True,
) -> Part: ...
def load(
    name: str,
    root: str | Path | None = None,
    split: Literal["train", "test", "validation"] | None = None,
    *,
    positive: Collection[Any] | None = None,
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
    part: Part | None = getattr(dataset, split, None) if split in ("train", "test", "validation") else None
    if part is None:
        raise InputError(f"{name} has no part {split!r}; it has 'train' and 'test'")
    return part


def find_benchmark(name: str) -> Benchmark:
    """The catalogue entry of this name."""
    if name not in DATASETS:
        raise InputError(f"no benchmark set is called {name!r}; there are {', '.join(DATASETS)}")
    return DATASETS[name]


__all__ = [
    "DATASETS",
    "Benchmark",
    "DataCheck",
    "DataStream",
    "Dataset",
    "EncodedTable",
    "Finding",
    "MissingFilesError",
    "PUSample",
    "Part",
    "TableEncoder",
    "UserData",
    "biased_propensity",
    "check",
    "find_benchmark",
    "load",
    "read",
    "simulate_pnu",
    "simulate_pu",
    "stream",
]

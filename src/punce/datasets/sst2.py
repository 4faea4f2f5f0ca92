"""The Stanford Sentiment Treebank as a two-class set, in its two layouts. Positive reviews are the positive class.

``sst2`` is GLUE's: 67,349 phrases to train on; the published test part has no labels, so the 872 sentences of dev are
the test part here (the few-shot experiments choose on one half and test on the other). ``sst2_sentence`` has whole
sentences only: 6,920 / 872 / 1,821, all labelled.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from punce.datasets.catalogue import Archive, Benchmark, DataFile, Paths
from punce.datasets.dataset import Part
from punce.errors import InputError

_SENTENCE_BASE = "https://github.com/AcademiaSinicaNLPLab/sentiment_dataset/raw/master/data"
_SENTENCE_SHA256 = {
    "stsa.binary.train": "71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338",
    "stsa.binary.dev": "02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1",
    "stsa.binary.test": "6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b",
}


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 file, split at newlines only: reviews hold other characters that splitlines() splits at."""
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as UTF-8 text ({error})") from error


def text_part(path: Path, rows: list[tuple[str, str]], positive: str, negative: str) -> Part:
    """A part from (class, text) pairs; refuses any other class, naming the line."""
    for number, (label, _) in enumerate(rows):
        if label not in (positive, negative):
            raise InputError(f"{path}, row {number}: class {label!r}, expected {positive!r} or {negative!r}")
    y_true = np.array([label == positive for label, _ in rows], dtype=np.int8)
    return Part([text for _, text in rows], y_true)


def _glue_part(path: Path) -> Part:
    header, *lines = read_lines(path)
    if header.split("\t") != ["sentence", "label"]:
        raise InputError(f"{path} must start with the header 'sentence<TAB>label', found {header[:80]!r}")
    rows = [(label, text.strip()) for text, _, label in (line.rpartition("\t") for line in lines)]
    return text_part(path, rows, "1", "0")


def _sentence_part(path: Path) -> Part:
    rows = [(label, text.strip()) for label, _, text in (line.partition(" ") for line in read_lines(path))]
    return text_part(path, rows, "1", "0")


def _glue_parts(paths: Paths, _: Collection[Any]) -> list[Part]:
    return [_glue_part(paths[name]) for name in ("train.tsv", "dev.tsv")]


def _sentence_parts(paths: Paths, _: Collection[Any]) -> list[Part]:
    return [_sentence_part(paths[f"stsa.binary.{name}"]) for name in ("train", "test", "dev")]


def _describe(_: Collection[Any]) -> str:
    return "reviews of positive sentiment (label 1)"


SST2 = Benchmark(
    name="sst2",
    kind="text",
    about="GLUE's SST-2: 67,349 phrases of film reviews, tested on the 872 sentences of dev",
    folders=("SST-2", "sst2_glue", "glue_data/SST-2"),
    files=(
        DataFile("train.tsv", "48eac26399f8456935f81dd9e3a745c1430adb6c62e233ccfe22db4a0d15d1d1"),
        DataFile("dev.tsv", "54a9c12c77e402fc14d6a66a506f24d999f596b0176eb777c972cccc2f9cc4b0"),
    ),
    parts=_glue_parts,
    classes=(),
    describe=_describe,
    archive=Archive(
        urls=("https://dl.fbaipublicfiles.com/glue/data/SST-2.zip",),
        sha256="d67e16fb55739c1b32cdce9877596db1c127dc322d93c082281f64057c16deaa",
        top="SST-2",
    ),
)
SST2_SENTENCE = Benchmark(
    name="sst2_sentence",
    kind="text",
    about="SST-2 with whole sentences only: 6,920 / 872 / 1,821",
    folders=("sst2_sentence",),
    files=tuple(DataFile(name, sha256, (f"{_SENTENCE_BASE}/{name}",)) for name, sha256 in _SENTENCE_SHA256.items()),
    parts=_sentence_parts,
    classes=(),
    describe=_describe,
)

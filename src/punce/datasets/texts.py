"""Texts of two classes: the Stanford Sentiment Treebank in its two layouts, and the SMS Spam Collection.

``sst2`` is GLUE's: 67,349 phrases to train on; the published test part has no labels, so the 872 sentences of dev are
the test part here (the few-shot experiments choose on one half and test on the other). ``sst2_sentence`` has whole
sentences only: 6,920 / 872 / 1,821, all labelled. Reviews of positive sentiment are the positive class.

``sms_spam`` (Almeida et al. 2011): 747 spam (positive) among 5,574 messages; split 80/20 here. One message in fourteen
is a copy of another. All copies of a message are in the same part, so that no test message was seen in training.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from punce.datasets.catalogue import Benchmark, Paths, published
from punce.datasets.dataset import Part, fixed_split
from punce.errors import InputError


def _read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 file, split at newlines only: reviews hold other characters that splitlines() splits at."""
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as UTF-8 text ({error}); delete it and fetch it again") from error


def _part(path: Path, rows: list[tuple[str, str]], positive: str, negative: str) -> Part:
    """A part from (class, text) pairs; refuses any other class, naming the line."""
    for number, (label, _) in enumerate(rows):
        if label not in (positive, negative):
            raise InputError(
                f"{path}, row {number}: class {label!r}, expected {positive!r} or {negative!r}; "
                "delete it and fetch it again"
            )
    y_true = np.array([label == positive for label, _ in rows], dtype=np.int8)
    return Part([text for _, text in rows], y_true)


def _glue_part(path: Path) -> Part:
    header, *lines = _read_lines(path)
    if header.split("\t") != ["sentence", "label"]:
        raise InputError(
            f"{path} must start with the header 'sentence<TAB>label', found {header[:80]!r}; "
            "delete it and fetch it again"
        )
    rows = [(label, text.strip()) for text, _, label in (line.rpartition("\t") for line in lines)]
    return _part(path, rows, "1", "0")


def _sentence_part(path: Path) -> Part:
    rows = [(label, text.strip()) for label, _, text in (line.partition(" ") for line in _read_lines(path))]
    return _part(path, rows, "1", "0")


def _glue_parts(paths: Paths, _: Collection[Any]) -> list[Part]:
    return [_glue_part(paths[name]) for name in ("train.tsv", "dev.tsv")]


def _sentence_parts(paths: Paths, _: Collection[Any]) -> list[Part]:
    return [_sentence_part(paths[f"stsa.binary.{name}"]) for name in ("train", "test", "dev")]


def _sms_parts(paths: Paths, _: Collection[Any]) -> list[Part]:
    """Four fifths of the different messages, with their copies, for training."""
    path = paths["SMSSpamCollection"]
    rows = [(label, text) for label, _, text in (line.partition("\t") for line in _read_lines(path))]
    whole = _part(path, rows, "spam", "ham")
    _, first, which = np.unique(np.array(whole.X, dtype=object), return_index=True, return_inverse=True)
    # Different messages are split; `which` then carries each copy to the part of its message.
    parts = [np.flatnonzero(np.isin(which, part)) for part in fixed_split(whole.y_true[first])]
    return [Part([whole.X[k] for k in part], whole.y_true[part]) for part in parts]


def _describe(_: Collection[Any]) -> str:
    return "reviews of positive sentiment (label 1)"


SST2 = Benchmark(kind="text", parts=_glue_parts, classes=(), describe=_describe, **published("sst2"))
SST2_SENTENCE = Benchmark(
    kind="text", parts=_sentence_parts, classes=(), describe=_describe, **published("sst2_sentence")
)
SMS_SPAM = Benchmark(kind="text", parts=_sms_parts, classes=(), describe=lambda _: "spam", **published("sms_spam"))

"""The SMS Spam Collection (Almeida et al. 2011): 747 spam (positive) among 5,574 messages; split 80/20 here.

One message in fourteen is a copy of another. All copies of a message are in the same part, so that no test message
was seen in training.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.datasets.catalogue import Archive, Benchmark, DataFile, Paths
from punce.datasets.dataset import Part, fixed_split
from punce.datasets.sst2 import read_lines, text_part

_FILE = "SMSSpamCollection"


def _parts(paths: Paths, _: Collection[Any]) -> list[Part]:
    """Four fifths of the different messages, with their copies, for training."""
    path = paths[_FILE]
    rows = [(label, text) for label, _, text in (line.partition("\t") for line in read_lines(path))]
    whole = text_part(path, rows, "spam", "ham")
    return [Part([whole.X[k] for k in part], whole.y_true[part]) for part in _split(whole)]


def _split(whole: Part) -> Iterator[npt.NDArray[np.intp]]:
    texts = np.array(whole.X, dtype=object)
    _, first, which = np.unique(texts, return_index=True, return_inverse=True)
    for part in fixed_split(whole.y_true[first]):
        yield np.flatnonzero(np.isin(which, part))


SMS_SPAM = Benchmark(
    name="sms_spam",
    kind="text",
    about="5,574 text messages, 747 of them spam",
    folders=("sms_spam",),
    files=(DataFile(_FILE, "7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d"),),
    parts=_parts,
    classes=(),
    describe=lambda _: "spam",
    archive=Archive(
        urls=(
            "https://archive.ics.uci.edu/static/public/228/sms+spam+collection.zip",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/00228/smsspamcollection.zip",
        ),
        sha256="1587ea43e58e82b14ff1f5425c88e17f8496bfcdb67a583dbff9eefaf9963ce3",
        top="",
    ),
)

"""The SMS Spam Collection (Almeida et al. 2011): 747 spam (positive) among 5,574 messages; split 80/20 here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from punce.data.catalogue import Archive, Benchmark, DataFile, Paths
from punce.data.dataset import Dataset, Part, fixed_split
from punce.data.sst2 import read_lines, refuse_other_positive, text_part

_FILE = "SMSSpamCollection"


def build(paths: Paths, positive: Collection[Any] | None) -> Dataset:
    """4,460 training and 1,114 test messages."""
    refuse_other_positive("sms_spam", positive)
    path = paths[_FILE]
    rows = [(label, text) for label, _, text in (line.partition("\t") for line in read_lines(path))]
    whole = text_part(path, rows, "spam", "ham")
    train, test = (Part([whole.X[k] for k in part], whole.y_true[part]) for part in fixed_split(whole.y_true))
    return Dataset("sms_spam", "text", SMS_SPAM.positive, train, test)


SMS_SPAM = Benchmark(
    name="sms_spam",
    kind="text",
    positive="spam",
    about="5,574 text messages, 747 of them spam",
    folders=("sms_spam",),
    files=(DataFile(_FILE, "7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d"),),
    build=build,
    archive=Archive(
        urls=(
            "https://archive.ics.uci.edu/static/public/228/sms+spam+collection.zip",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/00228/smsspamcollection.zip",
        ),
        sha256="1587ea43e58e82b14ff1f5425c88e17f8496bfcdb67a583dbff9eefaf9963ce3",
        top="",
    ),
)

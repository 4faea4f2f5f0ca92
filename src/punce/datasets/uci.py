"""Six UCI tables. Positive classes are those of DEDPUL's experiments (Ivanov 2020), which most later work follows.

- spambase: 1, spam; 80/20 split, fixed here
- mushroom: p, poisonous; 80/20, fixed here
- banknote: 1, forged (not among DEDPUL's sets); 80/20, fixed here
- landsat: 4, 5, 7, damp grey soil, vegetation stubble, very damp grey soil; parts as distributed
- pageblocks: 2, 3, 4, 5, everything but text; 80/20, fixed here
- shuttle: 2 … 7, every state but the common one; parts as distributed
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from punce.datasets.catalogue import Benchmark, DataFile, Paths
from punce.datasets.dataset import Part, fixed_split, is_member
from punce.errors import InputError

_BASE = "https://archive.ics.uci.edu/ml/machine-learning-databases"

_SPAM_WORDS = """
    make address all 3d our over remove internet order mail receive will people report addresses free business email
    you credit your font 000 money hp hpl george 650 lab labs telnet 857 data 415 85 technology 1999 parts pm direct
    cs meeting original project re edu table conference
"""
_SPAMBASE_COLUMNS = [
    *(f"word_freq_{word}" for word in _SPAM_WORDS.split()),
    *(f"char_freq_{char}" for char in ";([!$#"),
    *(f"capital_run_length_{what}" for what in ("average", "longest", "total")),
]
_MUSHROOM_COLUMNS = """
    cap-shape cap-surface cap-color bruises odor gill-attachment gill-spacing gill-size gill-color stalk-shape
    stalk-root stalk-surface-above-ring stalk-surface-below-ring stalk-color-above-ring stalk-color-below-ring
    veil-type veil-color ring-number ring-type spore-print-color population habitat
"""
_PAGEBLOCKS_COLUMNS = "height length area eccen p_black p_and mean_tr blackpix blackand wb_trans"


@dataclass(frozen=True)
class _Table:
    """How rows are read from the files of one set."""

    columns: Sequence[str]
    class_first: bool
    separator: str

    def parts(self, paths: Paths, positive: Collection[Any]) -> list[Part]:
        """Train and test; a set in one file is split."""
        tables = [self._read(path) for path in paths.values()]
        if len(tables) == 1:
            tables = [tables[0].iloc[rows] for rows in fixed_split(tables[0]["class"].to_numpy())]
        return [_part(table, positive) for table in tables]

    def _read(self, path: Path) -> pd.DataFrame:
        names = ["class", *self.columns] if self.class_first else [*self.columns, "class"]
        try:
            table = pd.read_csv(path, header=None, sep=self.separator, na_values="?", skipinitialspace=True)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read as a table ({error})") from error
        if table.shape[1] != len(names):
            raise InputError(f"{path} has {table.shape[1]} columns, expected {len(names)}")
        return table.set_axis(names, axis=1)


def _part(table: pd.DataFrame, positive: Collection[Any]) -> Part:
    X = table.drop(columns="class").reset_index(drop=True)
    for name in X.columns[X.dtypes == "str"]:
        X[name] = X[name].astype("category")
    return Part(X, is_member(table["class"].to_numpy(), positive))


def _benchmark(
    name: str,
    about: str,
    positive: tuple[Any, ...],
    described: str,
    columns: Sequence[str],
    *files: DataFile,
    folders: tuple[str, ...] = (),
    class_first: bool = False,
    separator: str = ",",
) -> Benchmark:
    return Benchmark(
        name=name,
        kind="table",
        about=about,
        folders=(f"uci/{name}", *folders, name),
        files=files,
        parts=_Table(columns, class_first, separator).parts,
        classes=positive,
        describe=lambda chosen: described if chosen == positive else "class " + ", ".join(map(str, chosen)),
    )


def _file(path: str, sha256: str, *also: str) -> DataFile:
    """A file published at `path`; the sha256 is that of the unpacked file where the address ends in .Z."""
    plain = path.removesuffix(".Z")
    name = plain.rpartition("/")[2]
    return DataFile(name, sha256, (f"{_BASE}/{path}",), dict.fromkeys(also, sha256), compressed=plain != path)


SPAMBASE = _benchmark(
    "spambase",
    "4,601 e-mails, 57 frequencies of words and characters",
    (1,),
    "spam (class 1)",
    _SPAMBASE_COLUMNS,
    _file(
        "spambase/spambase.data",
        "b1ef93de71f97714d3d7d4f58fc9f718da7bbc8ac8a150eff2778616a8097b12",
        "spambase.data.txt",
    ),
)
MUSHROOM = _benchmark(
    "mushroom",
    "8,124 mushrooms, 22 categorical columns, missing values in one",
    ("p",),
    "poisonous (class p)",
    _MUSHROOM_COLUMNS.split(),
    _file(
        "mushroom/agaricus-lepiota.data",
        "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
        "agaricus-lepiota.data.txt",
    ),
    class_first=True,
)
BANKNOTE = _benchmark(
    "banknote",
    "1,372 pictures of banknotes, 4 wavelet features",
    (1,),
    "forged (class 1)",
    ["variance", "skewness", "curtosis", "entropy"],
    _file(
        "00267/data_banknote_authentication.txt",
        "d0539aaed2139ba7a587b3e34fb345ce503ff7d5d33dbf9912d8e195ce425cb9",
        "banknote_authentication.csv",
    ),
)
LANDSAT = _benchmark(
    "landsat",
    "6,435 satellite pixels with their neighbours, 36 intensities",
    (4, 5, 7),
    "damp grey soil, vegetation stubble, very damp grey soil (classes 4, 5, 7)",
    [f"pixel{pixel}_band{band}" for pixel in range(1, 10) for band in range(1, 5)],
    _file(
        "statlog/satimage/sat.trn",
        "e896dc88a960fa2404160fc4c3cb3dc53fcf4afd80ba920bf2d261bd42d12613",
        "sat.trn.txt",
    ),
    _file(
        "statlog/satimage/sat.tst",
        "4b9167b8a92baafafed7c8809aef86d0683a5e685c19d98d119fa6974f0f2479",
        "sat.tst.txt",
    ),
    separator=r"\s+",
)
PAGEBLOCKS = _benchmark(
    "pageblocks",
    "5,473 blocks of page layouts, 10 measurements",
    (2, 3, 4, 5),
    "blocks that are not text (classes 2, 3, 4, 5)",
    _PAGEBLOCKS_COLUMNS.split(),
    _file("page-blocks/page-blocks.data.Z", "52058b6e19ba797b5e80ae6454ebb3b7a25016787e668dd3203393c236d22c78"),
    folders=("uci/pageblock",),
    separator=r"\s+",
)
SHUTTLE = _benchmark(
    "shuttle",
    "58,000 records of a space shuttle's radiators, 9 readings",
    (2, 3, 4, 5, 6, 7),
    "every state but Rad Flow (classes 2 to 7)",
    [f"a{k}" for k in range(1, 10)],
    _file("statlog/shuttle/shuttle.trn.Z", "87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a"),
    _file(
        "statlog/shuttle/shuttle.tst",
        "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661",
        "shuttle.tst.txt",
    ),
    separator=r"\s+",
)

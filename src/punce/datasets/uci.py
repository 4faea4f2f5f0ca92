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

from punce.datasets.catalogue import Benchmark, Paths, published
from punce.datasets.dataset import Part, fixed_split, is_member
from punce.errors import InputError

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


@dataclass(frozen=True)
class _Table:
    """How rows are read from the files of one set."""

    columns: Sequence[str]
    class_first: bool
    separator: str

    def parts(self, paths: Paths, positive: Collection[Any]) -> list[Part]:
        """Train and test; a set in one file is split."""
        tables = [self._read(path) for path in paths.values()]  # in the order of published.toml: train, test
        if len(tables) == 1:
            tables = [tables[0].iloc[rows] for rows in fixed_split(tables[0]["class"].to_numpy())]
        return [_part(table, positive) for table in tables]

    def _read(self, path: Path) -> pd.DataFrame:
        names = ["class", *self.columns] if self.class_first else [*self.columns, "class"]
        try:
            table = pd.read_csv(path, header=None, sep=self.separator, na_values="?", skipinitialspace=True)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read as a table ({error}); delete it and fetch it again") from error
        if table.shape[1] != len(names):
            raise InputError(
                f"{path} has {table.shape[1]} columns, expected {len(names)}; delete it and fetch it again"
            )
        return table.set_axis(names, axis=1)


def _part(table: pd.DataFrame, positive: Collection[Any]) -> Part:
    X = table.drop(columns="class").reset_index(drop=True)
    for name in X.columns:
        if not pd.api.types.is_numeric_dtype(X[name]):  # text is object to pandas 2 and str to pandas 3
            X[name] = X[name].astype("category")
    return Part(X, is_member(table["class"].to_numpy(), positive))


def _benchmark(
    name: str,
    positive: tuple[Any, ...],
    described: str,
    columns: Sequence[str],
    *,
    class_first: bool = False,
    separator: str = ",",
) -> Benchmark:
    return Benchmark(
        kind="table",
        parts=_Table(columns, class_first, separator).parts,
        classes=positive,
        describe=lambda chosen: described if chosen == positive else "class " + ", ".join(map(str, chosen)),
        **published(name),
    )


_LANDSAT_COLUMNS = [f"pixel{pixel}_band{band}" for pixel in range(1, 10) for band in range(1, 5)]
_LANDSAT_CLASSES = "damp grey soil, vegetation stubble, very damp grey soil (classes 4, 5, 7)"

SPAMBASE = _benchmark("spambase", (1,), "spam (class 1)", _SPAMBASE_COLUMNS)
MUSHROOM = _benchmark("mushroom", ("p",), "poisonous (class p)", _MUSHROOM_COLUMNS.split(), class_first=True)
BANKNOTE = _benchmark("banknote", (1,), "forged (class 1)", ["variance", "skewness", "curtosis", "entropy"])
LANDSAT = _benchmark("landsat", (4, 5, 7), _LANDSAT_CLASSES, _LANDSAT_COLUMNS, separator=r"\s+")
PAGEBLOCKS = _benchmark(
    "pageblocks",
    (2, 3, 4, 5),
    "blocks that are not text (classes 2, 3, 4, 5)",
    ["height", "length", "area", "eccen", "p_black", "p_and", "mean_tr", "blackpix", "blackand", "wb_trans"],
    separator=r"\s+",
)
SHUTTLE = _benchmark(
    "shuttle",
    (2, 3, 4, 5, 6, 7),
    "every state but Rad Flow (classes 2 to 7)",
    [f"a{k}" for k in range(1, 10)],
    separator=r"\s+",
)

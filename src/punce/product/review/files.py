"""review.csv for any spreadsheet, and verdicts back from it, whatever the spreadsheet made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from punce.data import UserData
from punce.data.image_files import ImageFiles
from punce.data.pictures import Pixels, decode
from punce.data.tables import open_table, read_frame
from punce.errors import InputError, first_of, number_of
from punce.product.review.store import NO, UNSURE, YES, DrawnRow, Verdict
from punce.report.rows import as_image
from punce.storage.files import as_argument, existing, replacing, write_text
from punce.storage.formulas import defused, restored

_YES = {"yes", "y", "1", "true", "t", "positive", "pos", "+", "x", "wahr", "vrai", "ja", "oui", "si", "sí"}
_NO = {"no", "n", "0", "-1", "false", "f", "negative", "neg", "-", "falsch", "faux", "nein", "non"}
_UNSURE = {"unsure", "u", "?", "maybe", "unknown", "nan", "none", "na", "n/a"}
_OWN = ("key", "id", "verdict", "probability")


@dataclass(frozen=True)
class VerdictFile:
    """What a file says: usable verdicts, and a line for each thing that is not."""

    verdicts: list[Verdict]
    problems: list[str]


def write_rows(path: Path, drawn: list[DrawnRow], data: UserData, probability: dict[int, float] | None) -> None:
    """The rows to judge, with an empty verdict; `probability` only where it was asked for, not to lead the judges."""
    rows = np.array([one.row for one in drawn], dtype=np.intp)
    columns: dict[str, Any] = {
        "key": [one.key for one in drawn],
        "id": [defused(one.id) for one in drawn],
        "verdict": [""] * len(drawn),
    }
    if probability is not None:
        columns["probability"] = [round(probability[int(row)], 4) for row in rows]
    columns |= {_free_name(name): values for name, values in _shown(path.parent, drawn, data.take(rows)).items()}
    write_text(path, pd.DataFrame(columns).to_csv(index=False))


def _shown(folder: Path, drawn: list[DrawnRow], some: UserData) -> dict[str, list[Any]]:
    """What a person needs to see of the rows, by column."""
    if isinstance(some.features, pd.DataFrame):
        return {str(name): [defused(value) for value in column] for name, column in some.features.items()}
    if some.kind == "text":
        return {"text": [defused(text) for text in some.features]}
    if isinstance(some.features, ImageFiles):
        return {"image": [str((some.features.folder / name).resolve()) for name in some.features.names]}
    if some.kind == "image":
        return {"image": [str(_saved(folder, one, x)) for one, x in zip(drawn, some.features, strict=True)]}
    return {}  # vectors say nothing to a person: the name of the row must do


def _saved(folder: Path, one: DrawnRow, pixels: Any) -> Path:
    """An image of an array, as a file that can be opened."""
    file = folder / "images" / f"{one.key}.png"
    with replacing(file) as temporary:
        as_image(np.moveaxis(pixels, 0, -1)).save(temporary, "PNG")
    return file.resolve()


def _free_name(name: str) -> str:
    """The name of a column of the data; the review's own names are taken."""
    return str(defused(f"{name} (data)" if name.strip().casefold() in _OWN else name))


def refuse_foreign(path: Path) -> None:
    """Refuse to replace a file that holds no rows to judge; an empty one is nothing to lose."""
    try:
        if path.exists() and path.stat().st_size:
            _frame(path)
    except InputError as error:
        raise InputError(
            f"{path} is not a file of rows to judge and would be replaced; name another file with --out"
        ) from error


def refuse_to_lose(path: Path, known: Iterable[Verdict], drawn: dict[str, DrawnRow]) -> None:
    """Refuse to replace a file with verdicts that were not handed in, or one that is not of a review."""
    refuse_foreign(path)
    if not path.exists() or not path.stat().st_size:
        return
    told = {(one.key, one.verdict) for one in known}
    frame = _frame(path)
    filled = frame[[bool(_word(cell)) for cell in frame["verdict"]]]
    # A verdict whose row is not found cannot have been handed in.
    filled, lost = (filled, []) if "key" in filled else _with_keys(filled, drawn)
    if lost or any((one.key, one.verdict) not in told for one in _verdicts_in(filled, "").verdicts):
        command = f"--verdicts {as_argument(path)}"
        raise InputError(f"{path} holds verdicts that were not handed in; do so with {command}, or use --out")


def read_verdicts(path: Path, drawn: dict[str, DrawnRow], who: str | None) -> VerdictFile:
    """The verdicts of a file for rows of this review. What is readable and right is kept; the rest is named.

    Raises where nothing in the file belongs to this review. A row is found by its key, or by its id in a file without
    keys.
    """
    frame = _frame(existing(path))
    if "key" not in frame:
        frame, lost = _with_keys(frame, drawn)
    else:
        lost = []
    found = _verdicts_in(frame, who or path.name)
    own = [one for one in found.verdicts if one.key in drawn]
    foreign = sorted({one.key for one in found.verdicts if one.key not in drawn})
    # The first part of a key is the code of its run: it tells a row of another review from a mistyped key.
    codes = {key.partition("-")[0] for key in drawn}
    others = [key for key in foreign if key.partition("-")[0] not in codes]
    unknown = [key for key in foreign if key not in others]
    problems = [f"{path}: {text}" for text in (*lost, *found.problems)]
    if others:
        are = number_of(len(others), "row is", "rows are")
        problems.append(f"{path}: {are} of another review ({first_of(others)}), left out")
    if unknown:
        are = number_of(len(unknown), "key is", "keys are")
        problems.append(f"{path}: {are} not known here ({first_of(unknown)}), left out")
    if not own:
        why = problems[0] if problems else f"every verdict of {path} is empty"
        raise InputError(f"no verdict was taken: {why}")
    return VerdictFile(own, problems)


def _frame(path: Path) -> pd.DataFrame:
    """Key or id, and verdict, as text, in whatever form a spreadsheet saved them."""
    table = open_table(path)
    names = {name.strip().strip("\ufeff").casefold(): name for name in table.names}
    if "verdict" not in names or not {"key", "id"} & set(names):
        raise InputError(f"{path} needs the columns key (or id) and verdict; it has {table.names[:8]}")
    wanted = [names[name] for name in ("key", "id", "verdict") if name in names]
    frame = read_frame(table, wanted, as_text=wanted)
    return frame.rename(columns={name: name.strip().strip("\ufeff").casefold() for name in wanted})


def _with_keys(frame: pd.DataFrame, drawn: dict[str, DrawnRow]) -> tuple[pd.DataFrame, list[str]]:
    """Keys by the names of the rows, for a file that has lost its keys."""
    by_id: dict[str, list[str]] = {}
    for one in drawn.values():
        by_id.setdefault(one.id, []).append(one.key)
    names = [_as_id(value, by_id) for value in frame["id"]]
    unknown = [name for name in names if len(by_id.get(name, ())) == 0]
    double = [name for name in names if len(by_id.get(name, ())) > 1]
    lost = []
    if unknown:
        lost.append(f"{number_of(len(unknown), 'id is', 'ids are')} not in this review ({first_of(unknown)}), left out")
    if double:
        they = number_of(len(double), "id names", "ids name")
        lost.append(f"{they} several rows ({first_of(double)}); keep the column key")
    keys = [by_id[name][0] if len(by_id.get(name, ())) == 1 else None for name in names]
    kept = frame.assign(key=pd.Series(keys, index=frame.index, dtype=object))
    return kept[kept["key"].notna()], lost


def _as_id(value: Any, known: dict[str, list[str]]) -> str:
    """A row's name; a spreadsheet writes 17 as 17.0, and the quote before a formula is ours."""
    name = str(value).strip()
    if name not in known and name.endswith(".0") and name[:-2] in known:
        return name[:-2]
    return restored(name) if name not in known and restored(name) in known else name


def _verdicts_in(frame: pd.DataFrame, who: str) -> VerdictFile:
    """One verdict a key; a key with both yes and no is reported. An empty cell is a row that nobody judged yet."""
    said: dict[str, set[str]] = {}
    unreadable: dict[str, str] = {}
    nameless = 0
    for key, cell in zip(frame["key"], frame["verdict"], strict=True):
        key = "" if pd.isna(key) else str(key).strip().casefold()
        verdict = _meaning(word := _word(cell))
        if not word:
            continue
        if verdict is None:
            unreadable[key or "a row without a key"] = str(cell)
        elif key:
            said.setdefault(key, set()).add(verdict)
        else:
            nameless += 1
    problems = [f"{key}: {cell[:40]!r} is not yes, no or unsure and was left out" for key, cell in unreadable.items()]
    if nameless:
        problems.append(f"{number_of(nameless, 'verdict stands', 'verdicts stand')} in rows without a key, left out")
    # A row that stands twice in the file, once unsure and once decided, is decided.
    clear = {key: words - {UNSURE} or {UNSURE} for key, words in said.items()}
    double = [key for key, words in clear.items() if len(words) > 1]
    if double:
        problems.append(
            f"{number_of(len(double), 'row has', 'rows have')} both yes and no ({first_of(double)}), left out"
        )
    verdicts = [Verdict(key, next(iter(words)), who) for key, words in clear.items() if len(words) == 1]
    return VerdictFile(verdicts, problems)


def _word(cell: Any) -> str:
    """A cell as a plain word: without case, spaces, quotes, and with 1.0 or 1,0 as 1."""
    if cell is None or (not isinstance(cell, str) and pd.isna(cell)):
        return ""
    word = str(cell).strip().strip("'\"").casefold()
    number = word.replace(",", ".")
    try:
        return str(int(float(number))) if float(number) in (1.0, 0.0, -1.0) else word
    except (ValueError, OverflowError):
        return word


def _meaning(word: str) -> str | None:
    return YES if word in _YES else NO if word in _NO else UNSURE if word in _UNSURE else None


def image_of(data: UserData, row: int, largest: int) -> Image.Image | None:
    """The image of a row, no larger than `largest` pixels a side; None for other kinds of rows."""
    if data.kind != "image":
        return None
    if not isinstance(data.features, ImageFiles):
        image = as_image(np.moveaxis(data.features[row], 0, -1))
        image.thumbnail((largest, largest))
        return image
    name = data.features.names[row]
    pixels = decode(data.features.folder / name, name, _Whole(largest))  # as the fit reads it: depth and rotation, too
    if isinstance(pixels, str):
        raise InputError(f"{data.features.folder / name} cannot be shown: {pixels}")
    return Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))


@dataclass(frozen=True)
class _Whole:
    """An image in colour, in its own proportions, no larger than `largest` pixels a side."""

    largest: int

    def enough(self) -> int:
        """The side that a decoder must give at least; an image is never enlarged."""
        return self.largest

    def apply(self, image: Image.Image) -> Pixels:
        """Shape: (3, H, W)."""
        shown = image.convert("RGB")
        shown.thumbnail((self.largest, self.largest))
        return np.asarray(shown, dtype=np.uint8).transpose(2, 0, 1)

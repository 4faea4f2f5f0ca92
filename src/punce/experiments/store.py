"""Results on disk: one JSON file per cell, named by the hash of its configuration, written whole and last.

    results/laptop/0123456789abcdef.json     one cell, done or failed
    results/encoders/…                       pretrained encoders shared between cells (see encoder_cache)
    results/work/…                           locks and checkpoints of what is under way

Runners need no server: a cell is claimed with a lock on a file, which the system releases when the process ends,
however it ends. Several machines need a file system with working flock (NFS from version 4 on, Lustre, …).
"""

from __future__ import annotations

import itertools
import json
import re
import warnings
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from punce.errors import PunceError
from punce.experiments.cell import Cell, config_key
from punce.storage.files import locked, replacing, write_text
from punce.storage.json_tree import decode


class StoreWarning(UserWarning):
    """A file in the results cannot be used, and what it held is made again."""


class ResultError(PunceError):
    """A result that no file can hold: a number in it is not finite."""


@dataclass(frozen=True)
class Record:
    """What is known about a cell.

    `result` (when done) holds "test_accuracy" (in per cent, epoch chosen without negatives), "oracle_accuracy" (best
    epoch by test labels), "auc", "prior" {"true", "loss", "risk"}, and where they exist "held_out_pu_risk",
    "oracle_linear_accuracy" (a linear layer trained on all true labels), "shifted_accuracy" (cut moved from the
    unlabelled mix to the population), "curve" (test accuracy per epoch) and "embedding" {"x", "y", "is_positive"}.
    `code` has the hashes of the modules that made it (``machine.code_hashes``); the first protocol has none.
    """

    key: str
    config: dict[str, Any]
    status: Literal["done", "failed"]
    result: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    attempts: int = 1
    seconds: dict[str, float] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    punce: str = ""
    code: dict[str, str] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether there is a result."""
        return self.status == "done"


class ResultStore:
    """The results of one scale: ``<results>/<scale>/``."""

    def __init__(self, results: Path, scale: str) -> None:
        self.results, self.scale = results, scale
        self.folder = results / scale

    def path(self, cell: Cell) -> Path:
        """Where the cell's result is or will be."""
        return self.folder / f"{cell.name}.json"

    def read(self, cell: Cell, *, warn: bool = True) -> Record | None:
        """The cell's record; None if there is none, or with a warning if it cannot be used. Changes nothing."""
        path = self.path(cell)
        try:
            return _parse_own(path.read_bytes(), cell.key)
        except FileNotFoundError:
            return None
        except ValueError as error:
            if warn:
                what = f"{path} cannot be used ({error}): its cell counts as not done"
                warnings.warn(what, StoreWarning, stacklevel=2)
            return None

    def write(self, record: Record) -> Path:
        """Write a record whole or not at all, in the process that claimed the cell. A damaged file is kept."""
        # The text first: a result that cannot be written must not touch what is there.
        path, text = self.folder / f"{record.key[:16]}.json", _text(record)
        _keep_damaged(path, record.key)
        write_text(path, text)
        return path

    def work_folder(self, cell: Cell) -> Path:
        """Where a cell under way keeps its checkpoints."""
        return self.results / "work" / cell.name

    def claim(self, cell: Cell) -> AbstractContextManager[bool]:
        """Whether this process has the cell to itself inside the block; False if another has it."""
        return locked(self.results / "work" / "locks" / f"{self.scale}-{cell.name}.lock")


def _text(record: Record) -> str:
    try:
        return json.dumps(asdict(record), indent=1, sort_keys=True, allow_nan=False) + "\n"
    except ValueError:
        # Without allow_nan=False json writes NaN and Infinity: that finds the fields without a walk through them.
        names = [name for name, value in record.result.items() if re.search("NaN|Infinity", json.dumps(value))]
        raise ResultError(f"the result is not stored: it is not finite in {', '.join(names)}") from None


def _keep_damaged(path: Path, key: str) -> None:
    """Copy a file that cannot be used, before another takes its place.

    A copy of the bytes that were looked at: a move could take a good file that another process has put there since.
    """
    try:
        content = path.read_bytes()
        _parse_own(content, key)
    except FileNotFoundError:
        return
    except ValueError:
        names = (path.with_name(f"{path.name}.damaged-{number}") for number in itertools.count(1))
        with replacing(next(name for name in names if not name.exists())) as temporary:
            temporary.write_bytes(content)


@dataclass(frozen=True)
class _Points:
    x: tuple[float, ...]
    y: tuple[float, ...]
    is_positive: tuple[bool | int, ...]


@dataclass(frozen=True)
class _Result:
    """The form of what is read of a result; it may hold more."""

    test_accuracy: float
    oracle_accuracy: float | None = None
    auc: float | None = None
    held_out_pu_risk: float | None = None
    oracle_linear_accuracy: float | None = None
    shifted_accuracy: float | None = None
    prior: dict[str, float | None] = field(default_factory=dict)
    curve: tuple[float, ...] = ()
    embedding: _Points | None = None


_FORMS: dict[str, Any] = {
    **{"result": dict[str, Any], "seconds": dict[str, float], "machine": dict[str, Any], "code": dict[str, str]},
    **{"attempts": int, "error": str | None, "punce": str},
}


def _parse_own(text: bytes, key: str) -> Record:
    """The record of this key; ValueError also for what is no UTF-8 and no JSON."""
    record = parse(text)
    if record.key != key:
        raise ValueError("it holds another cell")
    return record


def parse(text: str | bytes) -> Record:
    """A record from its JSON text; ValueError says what is wrong with it."""
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("it is no JSON object")
    try:
        record = Record(**content)
    except TypeError as error:
        raise ValueError(f"its fields are not those of a record: {error}") from None
    # The name of a file is a promise about its configuration: a file that was edited or renamed must not be believed.
    if not isinstance(record.config, dict) or config_key(record.config) != record.key:
        raise ValueError("its configuration does not belong to its key")
    if record.status not in ("done", "failed"):
        raise ValueError("its status has the wrong form")
    for name, kind in _FORMS.items():
        decode(kind, getattr(record, name), name)
    if record.is_done:
        decode(
            _Result,
            {one.name: record.result[one.name] for one in fields(_Result) if one.name in record.result},
            "result",
        )
    return record

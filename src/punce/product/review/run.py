"""What a review needs of a finished run: its ranked list, its calls, its claims, and the rows themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from punce.data import UserData
from punce.data.image_files import ImageFiles
from punce.data.row_hashes import hash_array, hash_bytes, hash_table
from punce.errors import InputError, first_line, number_of
from punce.judging.estimates import Estimate
from punce.judging.sampling import Flags, Floats, Ints, Quantity
from punce.labels import UNLABELLED, Labels
from punce.product.plan import DataOptions
from punce.ran import KNOWN_UNUSED
from punce.storage.files import file_and_table
from punce.storage.formulas import restored
from punce.storage.json_tree import load_json
from punce.storage.parts import is_pattern

_LISTS = ("positive", "negative", "drop", "keep", "category")
_NUMBERS = {"row": np.int64, "probability": np.float64, "score": np.float64}


@dataclass(frozen=True)
class ScoredRun:
    """The unlabelled rows of a run in the order of the file. Shape: (N,) each."""

    folder: Path
    config: dict[str, Any]
    rows: Ints
    ids: list[str]
    probability: Floats
    score: Floats
    threshold: float
    claims: dict[Quantity, Estimate]
    """What the fit said about these rows."""
    leaked: frozenset[int]
    """Rows of the file whose verdict the model that scores them was trained with: they cannot audit it."""

    @property
    def called(self) -> Flags:
        """Whether each row is called positive."""
        called: Flags = self.probability >= self.threshold
        return called

    @property
    def was_judged(self) -> bool:
        """Whether the fit had verdicts."""
        return "review" in self.config

    @property
    def learned_from_verdicts(self) -> bool:
        """Whether the model of a fit that had verdicts learned from them, which not every model can."""
        ran = self.config.get("ran")
        return not (isinstance(ran, dict) and KNOWN_UNUSED in ran)

    @property
    def share_was_judged(self) -> bool:
        """Whether the fit's share of positives rests on verdicts: not with a few of them, or where a person gave it."""
        return self.was_judged and isinstance(self.config["model"].get("prior"), list)

    @property
    def prior_was_given(self) -> bool:
        """Whether a person gave the share of positives."""
        return bool(self.config["model"].get("prior") != "auto")

    def data(self) -> UserData:
        """The rows again, read as the fit read them, once; refused if the file is another one now."""
        return self._data

    @cached_property
    def _data(self) -> UserData:
        asked = self.config["data"]
        path = file_and_table(asked["path"])[0].expanduser()
        if not (path.exists() or is_pattern(path)):
            raise InputError(f"{asked['path']}, which {self.folder} was fitted on, is not here; name it with --data")
        options: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in asked.items()}
        data = DataOptions(**options).read()
        check_same(data, self, asked)
        return data


def scored_run(folder: Path) -> ScoredRun:
    """Read a finished run; no model and no rows are loaded."""
    config = _finished_config(folder)
    listed = _ranked_list(folder).sort_values("row")
    threshold, claims = _claimed(folder / "metrics.json")
    leaked = listed["row"][listed["seen_in_training"].astype(bool) & (listed["judged"] != "")]
    return ScoredRun(
        folder=folder,
        config=config,
        rows=listed["row"].to_numpy(dtype=np.intp),
        ids=[str(name) for name in listed["id"]],
        probability=listed["probability"].to_numpy(dtype=np.float64),
        score=listed["score"].to_numpy(dtype=np.float64),
        threshold=threshold,
        claims=claims,
        leaked=frozenset(leaked.tolist()),
    )


def _finished_config(folder: Path) -> dict[str, Any]:
    if not (folder / "config.json").exists():
        raise InputError(f"{folder} holds no config.json: it is not a run folder of punce fit")
    config = load_json(folder / "config.json")
    if not isinstance(config, dict) or not config.get("finished"):
        raise InputError(f"{folder} holds a run that is not finished; repeat its punce fit")
    _check_config(config, folder / "config.json")
    return config


def _check_config(config: dict[str, Any], file: Path) -> None:
    """Refuse what is no configuration of a run, before something else fails on it."""
    try:
        DataOptions(**config["data"])
        _rows_of_file(config)
        config["model"].get("prior")
        for name, value in config["data"].items():
            if not _is_option(name, value):
                raise TypeError(f"data.{name} is {value!r:.40}")
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
        raise InputError(f"{file} is damaged or was changed ({error}); fit again") from error


def _is_option(name: str, value: Any) -> bool:
    """Whether an option of reading has a type that the command line gives it."""
    if name == "skip_unreadable":
        return isinstance(value, bool)
    if name == "image_size":
        return value is None or (isinstance(value, int) and not isinstance(value, bool))
    if isinstance(value, list):
        return name in _LISTS and all(isinstance(each, str) for each in value)
    return isinstance(value, str) or (value is None and name != "path")


def _claimed(file: Path) -> tuple[float, dict[Quantity, Estimate]]:
    """Threshold and claims of metrics.json."""
    numbers = load_json(file)
    try:
        return float(numbers["threshold"]), _claims(numbers)
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
        raise InputError(f"{file} is damaged or was changed ({error!r}); fit again to rewrite it") from error


def _ranked_list(folder: Path) -> pd.DataFrame:
    file = next((file for name in ("scores.parquet", "scores.csv") if (file := folder / name).exists()), None)
    if file is None:
        raise InputError(f"{folder} holds no scores.parquet or scores.csv; fit again")
    try:
        listed = _listed(file)
        numbers = {name: listed[name].astype(kind) for name, kind in _NUMBERS.items()}
        if not all(np.isfinite(column).all() for column in numbers.values()):
            raise ValueError("a number is missing or infinite")
    # Arrow's errors are among them.
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, NotImplementedError) as error:
        what = first_line(error)
        raise InputError(f"{file} cannot be read ({what[:200]}): it is damaged or was changed; fit again") from error
    listed = listed.assign(**numbers)
    # Runs of earlier versions, and runs without verdicts, lack these.
    missing = {name: value for name, value in (("seen_in_training", False), ("judged", "")) if name not in listed}
    return listed.assign(**missing)


def _listed(file: Path) -> pd.DataFrame:
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.read_table(file).validate(full=True)  # Arrow believes what a file says of its own text
        return pd.read_parquet(file)
    listed = pd.read_csv(file, dtype={"id": "str"}, keep_default_na=False)
    return listed.assign(id=[restored(str(name)) for name in listed["id"]])


def _claims(numbers: dict[str, Any]) -> dict[Quantity, Estimate]:
    prior, mix = numbers["prior"], numbers["unlabelled"]
    return {
        "share": as_estimate(prior),
        "precision": as_estimate(mix["precision"]),
        "recall": as_estimate(numbers["recall"]),
        "accuracy": as_estimate(mix["accuracy"]),
    }


def as_estimate(tree: dict[str, Any]) -> Estimate:
    """From JSON, in which a number that cannot be estimated is null."""
    reason = str(tree.get("reason") or "")
    if reason or tree.get("value") is None:
        return Estimate.impossible(reason)
    return Estimate(float(tree["value"]), float(tree["low"]), float(tree["high"]))


def check_same(data: UserData, run: ScoredRun, asked: Mapping[str, Any]) -> None:
    """Refuse rows that are not those of the run; `asked` are the options of reading with which they came."""
    if data.labels is None or len(data) != (rows := _rows_of_file(run.config)):
        raise InputError(f"{data.source} has {len(data)} rows and {run.folder} was fitted on {rows}; {_ASK}")
    unlabelled = np.flatnonzero(data.labels == UNLABELLED)
    if not np.array_equal(unlabelled, run.rows):
        mend = _mend(run, asked, "label", "labels", "positive", "negative")
        raise InputError(f"the labels of {data.source} are not those of {run.folder}{mend}")
    changed = [name for row, name in zip(run.rows, run.ids, strict=True) if str(data.ids[int(row)]) != name]
    if changed:
        mend = _mend(run, asked, "id")
        have = number_of(len(changed), "row has another name", "rows have other names")
        raise InputError(f"{data.source}: {have} than in {run.folder}{mend}")


def _mend(run: ScoredRun, asked: Mapping[str, Any], *names: str) -> str:
    """What to do about rows that are not those of the run: give these options as the run had them, if they differ."""
    before = {name: _listed_values(run.config["data"].get(name)) for name in names}
    if all(_listed_values(asked.get(name)) == values for name, values in before.items()):
        return f"; {_ASK}"
    options = " ".join(f"--{name} {value!r}" for name, values in before.items() for value in values)
    return f", which was fitted {f'with {options}' if options else f'without --{names[0]}'}: do so again"


def _listed_values(value: Any) -> list[Any]:
    """The values of an option: none, one, or several."""
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _rows_of_file(config: dict[str, Any]) -> int:
    """Also where the fit learned from drawn rows, all rows of the file are in the ranked list."""
    return int(config["drawn"]["of"] if "drawn" in config else config["rows"])


_ASK = "a review rests on the rows of its run: restore the file, or fit again and start a new review"


def label_hash(labels: Labels) -> str:
    """A fingerprint of the label column."""
    return hashlib.blake2b(labels.astype(np.int8).tobytes(), digest_size=8).hexdigest()


def content_hashes(data: UserData, rows: Ints) -> list[str]:
    """A fingerprint of the content of each of these rows."""
    some = data.take(rows).features
    if isinstance(some, pd.DataFrame):
        hashes = hash_table(some, ())
    elif isinstance(some, ImageFiles):
        hashes = np.array([hash_bytes((some.folder / name).read_bytes()) for name in some.names], dtype=np.uint64)
    elif isinstance(some, list):
        hashes = np.array([hash_bytes(text.encode("utf-8", "replace")) for text in some], dtype=np.uint64)
    else:
        hashes = hash_array(np.asarray(some))
    return [f"{int(value):016x}" for value in hashes]


def moved_to(run: ScoredRun, path: str) -> ScoredRun:
    """The run with its file at another place."""
    return replace(run, config={**run.config, "data": {**run.config["data"], "path": path}})

"""What a fit is asked for, its run folder, and what it would do. Nothing here imports torch or scikit-learn.

A wrong file, option or folder is refused before the seconds that those imports take.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from punce.data import DataCheck, TableEncoder, UserData, check, read, read_at_most
from punce.data.image_files import ImageFiles
from punce.data.image_folder import how_to_label
from punce.data.read import check_request
from punce.errors import InputError, number_of
from punce.judging.thresholds import check_rule
from punce.labels import NEGATIVE, require_positive_and_unlabelled
from punce.options import (
    DEFAULTS,
    TOO_FEW_FOR_ENSEMBLE,
    Way,
    are_too_few,
    automatic_encoder,
    check_arguments,
    check_explained,
    check_options,
    describe,
    looks_like_a_path,
    resolved,
)
from punce.scenario import Scenario, Target
from punce.storage.files import check_output_folder, locked, write_text

if TYPE_CHECKING:
    from punce.product.review.refit import Reviewed

Say = Callable[[Any], None]
_LOCK = ".lock"


@dataclass(frozen=True)
class DataOptions:
    """Where the rows are and which column says what."""

    path: str
    label: str | None
    positive: str | tuple[str, ...] | None = None
    negative: str | tuple[str, ...] | None = None
    id: str | None = None
    text: str | None = None
    kind: str = "auto"
    labels: str | None = None
    drop: tuple[str, ...] = ()
    image_size: int | None = None
    keep: tuple[str, ...] = ()
    sep: str | None = None
    encoding: str | None = None
    header: str = "auto"
    decimal: str | None = None
    table: str | None = None
    skip_unreadable: bool = False
    category: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse options that cannot be meant or have no effect, before anything is imported to learn with."""
        check_request(**asdict(self))

    def read(self, look: Callable[[ImageFiles], None] | None = None) -> UserData:
        """Read the rows; `look` goes over a folder of images first."""
        return read(**asdict(self), look=look)

    def read_at_most(self, max_rows: int | None, seed: int, look: Callable[[ImageFiles], None] | None) -> UserData:
        """Read the rows, or of a table that is too large some that are drawn."""
        return read_at_most(**asdict(self), look=look, max_rows=max_rows, seed=seed)


@dataclass(frozen=True)
class ModelOptions:
    """The arguments of PUClassifier that the command line has."""

    loss: str | None = "auto"
    risk: str = "auto"
    transfer: str = "probe"
    encoder: str = "auto"
    prior: float | str | tuple[float, float, float] = "auto"
    scenario: Scenario = "single_set"
    target: Target = "unlabelled"
    """The run's ranked list is of the unlabelled rows of the file; PUClassifier's own default is the population."""
    labelling: str = "random"
    threshold: float | str = "accuracy"
    epochs: int | None = None
    device: str = "auto"
    random_state: int = 0
    chosen: tuple[str, ...] = ()
    """Options that were given explicitly, even if with their default value."""

    def arguments(self) -> dict[str, Any]:
        """Arguments of PUClassifier."""
        return {name: value for name, value in asdict(self).items() if name != "chosen"}

    def check(self) -> None:
        """Refuse what PUClassifier would refuse, without importing it."""
        check_arguments(self.arguments())
        check_rule(self.threshold)
        if self.device not in ("auto", "cpu"):
            from punce.models.network import check_device  # only torch knows what devices there are

            check_device(self.device)

    def with_share(self, reviewed: Reviewed | None) -> ModelOptions:
        """Where no prior is given, the share that the judged rows give is used."""
        share = reviewed.prior if reviewed is not None and self.prior == "auto" else None
        return self if share is None else replace(self, prior=share)

    def way(self, data: UserData) -> Way:
        """What these options train on these rows; refuses one that was chosen and has no effect."""
        encoder = automatic_encoder(data.kind, np.shape(data.features), self.encoder)
        return check_options(data.kind, {**self.arguments(), "encoder": encoder}, self.chosen)

    def applying(self, data: UserData) -> dict[str, Any]:
        """The arguments that have an effect on these rows."""
        asked, way = self.arguments(), self.way(data)
        return {name: value for name, value in asked.items() if name not in DEFAULTS or name in way.options}


class RunFolder:
    """The folder of one run: what it was asked for, and whether it is finished."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path = path
        self._config = json.loads(json.dumps(config))

    @property
    def work(self) -> Path:
        """Where training keeps its checkpoints."""
        return self.path / "work"

    @contextmanager
    def held(self, say: Say) -> Iterator[None]:
        """Hold the folder for this run alone: two fits would overwrite each other's checkpoints and results."""
        from punce.training import collectives  # here: a plan is made, or refused, without torch

        is_first = collectives.rank() == 0
        if is_first:
            self._remove_left()
            self.resumes()  # refuses what is no folder of ours, before a lock file is left in it
        with locked(self.path / _LOCK) if is_first else nullcontext(True) as is_alone:
            if not is_alone:
                raise InputError(f"another process is fitting in {self.path}; wait for it, or use --out")
            # Asked again inside the lock: another process may have finished a run here in between.
            if is_first and self.resumes():
                say(f"resuming the unfinished run in {self.path}")
            elif is_first:
                self._write(finished=False)
            collectives.any_rank(False)  # the other ranks wait until the folder is there
            yield
            if is_first:  # finished: whoever still gets the lock, or a new one, finds a finished run and is refused
                (self.path / _LOCK).unlink(missing_ok=True)

    def resumes(self) -> bool:
        """Whether it holds an unfinished run of the same configuration; refuses a folder with anything else in it."""
        check_output_folder(self.path)
        file = self.path / "config.json"
        if not file.exists():
            if self.path.is_dir() and any(entry.name != _LOCK for entry in self.path.iterdir()):
                raise InputError(f"{self.path} is not empty and holds no punce run; name another folder with --out")
            return False
        asked, before = _flat(self._config), _flat(self._unfinished(file))
        different = [key for key in asked.keys() | before.keys() if asked.get(key) != before.get(key)]
        if different:
            what = ", ".join(f"{key} was {before.get(key)!r}" for key in sorted(different))
            raise InputError(
                f"{self.path} holds an unfinished run of other options ({what}); repeat those or use --out"
            )
        return True

    def _remove_left(self) -> None:
        """What a process that was killed between the end of its run and its own end could not remove."""
        with suppress(OSError):
            if self._is_finished():
                shutil.rmtree(self.work, ignore_errors=True)
                (self.path / _LOCK).unlink(missing_ok=True)

    def _is_finished(self) -> bool:
        with suppress(OSError, ValueError, TypeError, LookupError):  # no run, or a damaged one: refused elsewhere
            return bool(json.loads((self.path / "config.json").read_text())["finished"])
        return False

    def refuse_finished(self) -> None:
        """Before rows are read, which can take minutes; what else stands in the way shows when they are known."""
        self._remove_left()
        if self._is_finished():
            raise self._finished()

    def _finished(self) -> InputError:
        return InputError(f"{self.path} holds a finished run; name another folder with --out, or delete it")

    def _unfinished(self, file: Path) -> dict[str, Any]:
        """What was asked of the run that was interrupted."""
        try:
            saved = dict(json.loads(file.read_text()))
        except (ValueError, TypeError) as error:
            raise InputError(f"{file} cannot be read ({error}); name another folder with --out") from error
        if saved.pop("finished", False):
            raise self._finished()
        return {key: value for key, value in saved.items() if key not in ("ran", "reading")}

    def forget(self) -> None:
        """Remove a folder in which nothing was trained yet."""
        if not self.work.exists():
            shutil.rmtree(self.path, ignore_errors=True)

    def finish(self, reading: dict[str, Any], ran: dict[str, Any]) -> None:
        """Everything is written: the checkpoints may go. `reading` says how the rows were read, for new ones."""
        self._write(finished=True, reading=reading, ran=ran)
        shutil.rmtree(self.work, ignore_errors=True)

    def _write(self, **more: Any) -> None:
        write_text(self.path / "config.json", json.dumps({**self._config, **more}, indent=1) + "\n")


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """{"model": {"prior": 0.3}} as {"model.prior": 0.3}."""
    parts = (
        {f"{name}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {name: value}
        for name, value in config.items()
    )
    return {key: value for part in parts for key, value in part.items()}


@dataclass(frozen=True)
class RunOptions:
    """What the run writes and learns from besides the rows themselves."""

    scores: str = "parquet"
    """Form of the ranked list: parquet or csv."""
    reasons: bool = False
    """The ranked list says of its first 1,000 rows which columns or words moved them most."""
    review: Path | None = None
    """A run on the same file whose rows people judged: their verdicts are learned from."""
    max_rows: int | None = None
    """Of a table with more rows (None: too large for memory) rows are drawn to learn from, and every row is scored."""

    def config(
        self, source: DataOptions, model: ModelOptions, data: UserData, reviewed: Reviewed | None
    ) -> dict[str, Any]:
        """What config.json says and a resumed run must share; refuses reasons for rows that can have none."""
        if self.reasons:
            check_explained(data.kind)
        asked = {"data": asdict(source), "model": model.applying(data), "scores": self.scores, "rows": len(data)}
        asked |= {"reasons": True} if self.reasons else {}
        asked |= {"drawn": {"rows": len(data), "of": len(data.drawn.labels)}} if data.drawn else {}
        return asked | ({"review": reviewed.as_config()} if reviewed else {})

    def check_drawn(self, data: UserData, model: ModelOptions) -> None:
        """Refuse what needs all rows in memory, or how many rows there are of each kind, where rows were drawn."""
        if data.drawn is None:
            return
        asked = {"--reasons": self.reasons, "--review": self.review is not None}
        asked["--target population"] = model.target == "population" and model.scenario == "single_set"
        if named := [name for name, is_asked in asked.items() if is_asked]:
            mend = "leave it out, or read all rows, if they fit into memory, with a larger --max-rows"
            raise InputError(f"{named[0]} is not possible where rows are drawn ({data.drawn.in_words()}); {mend}")

    def reviewed(self, source: DataOptions, data: UserData) -> Reviewed | None:
        """The verdicts of the review, if there is one."""
        if self.review is None:
            return None
        from punce.product.review.refit import reviewed_rows  # here: a fit without a review needs none of it

        return reviewed_rows(self.review, source, data)


def read_and_check(
    source: DataOptions,
    model: ModelOptions,
    run: RunOptions,
    say: Say,
    look: Callable[[ImageFiles], None] | None = None,
) -> tuple[UserData, DataCheck]:
    """Read the rows, show the data check, and stop at what cannot be learned from."""
    data = source.read_at_most(run.max_rows, model.random_state, look)
    if data.labels is None:
        raise InputError(f"{data.source}: no labels; {_where_labels_are(data)}")
    require_positive_and_unlabelled(data.labels, f"label column of {data.source}")
    checked = check(data)
    say(checked)
    checked.raise_for_errors()
    run.check_drawn(data, model)
    return data, checked


def _where_labels_are(data: UserData) -> str:
    """What a person does to name the labels of such data."""
    if isinstance(data.features, ImageFiles):
        return how_to_label(data.features.folder)
    is_array = isinstance(data.features, np.ndarray)
    return "name a file that holds them with --labels" if is_array else "name the label column with --label"


def plan_fit(source: DataOptions, model: ModelOptions, out: Path, run: RunOptions | None = None, *, say: Say) -> str:
    """What :func:`run_fit` would do, after the same reading and checks, without training or writing."""
    run = run or RunOptions()
    asked = model.arguments()
    model.check()
    encoder = asked["encoder"]
    if isinstance(encoder, str) and looks_like_a_path(encoder) and not Path(encoder).expanduser().is_dir():
        raise InputError(f"there is no encoder folder {encoder}")
    data, _ = read_and_check(source, model, run, say)
    if data.kind == "table":
        TableEncoder.fit(data.features)  # refuses a table without a column to learn from
    reviewed = run.reviewed(source, data)
    model = model.with_share(reviewed)
    resumes = RunFolder(out, run.config(source, model, data, reviewed)).resumes()
    how = describe(model.way(data), resolved(data.kind, asked))
    if data.kind == "table" and asked["encoder"] == "auto" and data.labels is not None and are_too_few(data.labels):
        how = TOO_FEW_FOR_ENSEMBLE
    where = f"resume the unfinished run in {out}" if resumes else f"write {out}"
    n_negative = int((data.labels == NEGATIVE).sum()) if data.labels is not None else 0
    known = number_of(n_negative, "labelled negative", "labelled negatives")
    known = f"; the data have {known} (setting pnu)" if n_negative else ""  # not every model learns from them
    return f"would learn with {how}, prior {option_in_words(model.prior)}, and {where}{known}"


def option_in_words(value: Any) -> str:
    """The value of an option; a prior with its interval is three numbers."""
    return "{:.3f} ({:.3f} to {:.3f})".format(*value) if isinstance(value, tuple) else str(value)

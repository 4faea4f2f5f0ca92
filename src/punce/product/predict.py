"""The job behind ``punce predict``: stream rows through a saved classifier in bounded memory."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from punce.classifier import PUClassifier
from punce.columns.number_forms import NumberForms
from punce.data import DataStream, UserData, stream
from punce.data.read import input_form
from punce.data.reading_options import applying_reading, check_reading, was_asked
from punce.data.table_file import FileOptions
from punce.data.tables import form_of, open_table
from punce.errors import InputError, number_of
from punce.judging.estimates import Estimate
from punce.judging.new_rows import NOTHING_KEPT, NewRows
from punce.models.image import ImageRoute
from punce.models.table import TableRoute
from punce.product.score_file import is_result, source_name, writing
from punce.ran import known_in_words
from punce.storage.files import (
    check_output,
    file_and_table,
    refuse_to_replace_input,
    refuse_to_replace_others,
    replacing,
)

_REMEMBERED = ("id", "text", "image_size", "sep", "header", "decimal")
_FILE = ("sep", "encoding", "header", "table")
_USUAL, _OUTSIDE, _UNKNOWN = "usual", "outside", "unknown"
_MOST_IMAGES = 2048
_EXAMPLES = re.compile(r",? (?:e\.g\.|such as) ")
_COUNTED = re.compile(r"[\d,]+|\b(?:values?|is|are|counts?)\b")
_LATER = " (and in "
_OF_COLUMNS = re.compile(r"[\d,]+ columns? ")
_NEAR = 1e-3  # a share of exactly 0 or 1 would make every probability so


@dataclass(frozen=True)
class PredictOutcome:
    """How many rows were scored and called positive, and what is known about them as a whole."""

    rows: int
    called: int
    threshold: float
    unknown: int
    """Rows in which nothing is known; their probability is the share of positives that is assumed."""
    share: Estimate
    """The share of positives among the rows, as they look."""
    assumed: float
    """The share of positives that the probabilities are for."""
    notes: tuple[str, ...] = ()
    """How the rows differ from those the model learned from."""
    known: str = ""
    """Rows of known class that the model learned from beside labelled positives, if there were any."""


def run_predict(
    run: Path,
    data: Path,
    out: Path,
    *,
    share: float | Literal["auto"] | None = None,
    batch_rows: int = 20_000,
    written: Mapping[str, Any] | None = None,
) -> PredictOutcome:
    """Score every row of `data` and write row, id, probability, called and status to `out`, whole or not at all.

    Probabilities are for the share of positives that the model was made for, or for another `share`; "auto" is the one
    that the rows seem to have, for which they are read twice.

    `written` says how the file is written (sep, encoding, header, decimal, table) where that is not to be found out.
    """
    check_output(out)
    # Not the whole run folder: predictions may well lie in it, and be made again.
    refuse_to_replace_input(out, file_and_table(data)[0], *(run / f"scores.{form}" for form in ("parquet", "csv")))
    refuse_to_replace_others(out, "a result of punce predict", is_result)
    classifier = load_model(run)
    rows = NewFile.opened(classifier, run, data, batch_rows, written)
    found = Found(classifier, rows.counted(classifier).own_share() if share == "auto" else share)
    source = source_name(data, (written or {}).get("table"))
    with replacing(out) as temporary, writing(out, temporary, source) as write:
        notes = rows.score(found, write)
    return found.outcome(notes)


def load_model(run: Path) -> PUClassifier:
    """The classifier of a run folder, or of a model folder."""
    return PUClassifier.load(run / "model" if (run / "model").is_dir() else run)


@dataclass(frozen=True)
class NewFile:
    """New rows, to be read in the way that the model's own were."""

    stream: DataStream
    reading: _Reading

    @classmethod
    def opened(
        cls, classifier: PUClassifier, run: Path, data: Path, batch_rows: int, written: Mapping[str, Any] | None = None
    ) -> NewFile:
        """The file with what the run knows about how it is written, and with what the caller says."""
        check_reading(input_form(file_and_table(data)[0]), written or {}, offered=tuple(written or {}))
        reading = _reading(run, data, {name: value for name, value in (written or {}).items() if was_asked(value)})
        route = classifier._route
        options = reading.options | {"as_text": route.category_columns if isinstance(route, TableRoute) else ()}
        if isinstance(route, ImageRoute):
            options["look"] = partial(route.look, progress=True)
            batch_rows = min(batch_rows, _MOST_IMAGES)  # with their features, more would fill memory without gain
        kind: Any = classifier.kind_
        return cls(stream(data, **options, kind=kind, batch_rows=batch_rows), reading)

    def score(self, found: Found, write: Callable[[pd.DataFrame], Any]) -> tuple[str, ...]:
        """Score the rows batch by batch; the notes on how they were read."""
        notes = _Notes()
        with self.reading.explaining():
            for batch in self.stream.batches():
                with notes.of_batch(batch, found.rows):
                    scored = found.score(batch)
                write(scored)
        return (*self.stream.notes, *self.reading.notes, *notes.lines())

    def counted(self, classifier: PUClassifier) -> Found:
        """Score all rows for the counts alone; nothing is written."""
        found = Found(classifier, None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are said when the rows are scored
            for batch in self.stream.batches():
                found.score(batch)
        return found


class Found:
    """Scores new rows batch by batch and keeps count of what was found."""

    def __init__(self, classifier: PUClassifier, share: float | None) -> None:
        self._classifier, self._share = classifier, share
        prior = getattr(classifier, "prior_", None)  # earlier versions saved none
        has_prior = prior is not None and not prior.reason
        self._new = None if classifier._seen is None else NewRows(classifier._seen, has_prior=has_prior)
        self.rows = self._called = self._unknown = 0

    def score(self, batch: UserData) -> pd.DataFrame:
        """The rows of the result file."""
        classifier, calibrator = self._classifier, self._classifier._calibrator
        rows = classifier._rows(batch.features)
        scores = classifier._route.score(rows)
        unknown = np.isnan(scores)
        probability = calibrator.probability(np.where(unknown, calibrator.score_of_prior, scores), self._share)
        status = np.full(len(scores), _USUAL, dtype=object)
        if self._new is not None:
            outside = self._new.add(calibrator.probability(scores), classifier._route.looked_at(rows))
            status[outside] = _OUTSIDE
        status[unknown] = _UNKNOWN
        called = probability >= classifier.threshold_
        start, self.rows = self.rows, self.rows + len(scores)
        self._called, self._unknown = self._called + int(called.sum()), self._unknown + int(unknown.sum())
        columns = {"row": range(start, self.rows), "id": batch.ids.astype(str), "probability": probability}
        return pd.DataFrame({**columns, "called": called, "status": status})

    def own_share(self) -> float:
        """The share of positives that the rows seem to have; refuses where it cannot be estimated."""
        estimate = self.outcome(()).share
        if np.isnan(estimate.value):
            raise InputError(f"the share of positives among the new rows cannot be estimated: {estimate.reason}")
        return float(np.clip(estimate.value, _NEAR, 1 - _NEAR))

    def counts(self) -> dict[str, Any]:
        """What was counted, as plain numbers."""
        new = {} if self._new is None else self._new.counts()
        return {"rows": self.rows, "called": self._called, "unknown": self._unknown, **new}

    def add_counts(self, counts: Mapping[str, Any]) -> None:
        """Add what was counted of other rows."""
        self.rows += int(counts["rows"])
        self._called, self._unknown = self._called + int(counts["called"]), self._unknown + int(counts["unknown"])
        if self._new is not None:
            self._new.add_counts(counts)

    def outcome(self, notes: tuple[str, ...]) -> PredictOutcome:
        """What there is to say, with `notes` on how the rows were read."""
        assumed = self._classifier._calibrator.prior if self._share is None else self._share
        share = Estimate.impossible(NOTHING_KEPT)
        if self._unknown:
            rows = f"{self.rows:,} rows"
            lacking = "no word that the model knows" if self._classifier.kind_ == "text" else "nothing but empty cells"
            what = f"{number_of(self._unknown, f'of {rows} holds', f'of {rows} hold')} {lacking}"
            notes = (*notes, f'{what} (status "{_UNKNOWN}"): the probability is the assumed share, {assumed:.3f}')
        if self._new is None:
            notes = (*notes, f"{NOTHING_KEPT}; fit again to have new files checked")
        else:
            share = self._new.share.estimate
            # Rows in which nothing is known differ from no others.
            notes = (*notes, *self._new.notes(), *self._about_share(assumed)) if self.rows > self._unknown else notes
        known = known_in_words(getattr(self._classifier, "ran_", {}))  # earlier versions saved none
        return PredictOutcome(
            self.rows, self._called, self._classifier.threshold_, self._unknown, share, assumed, notes, known
        )

    def _about_share(self, assumed: float) -> tuple[str, ...]:
        """Said where the mix is not that of the fit and the probabilities are still for that one."""
        assert self._new is not None
        if not self._new.share.differs or self._share is not None:
            return ()
        estimate = self._new.share.estimate
        if np.isnan(estimate.value):
            what = "these rows hold another share of positives than those the model learned from"
            return (f"{what}; how large it is cannot be told, and the probabilities assume {assumed:.3f}",)
        return (
            f"the share of positives in these rows seems to be {estimate.value:.3f} ({estimate.low:.3f} to "
            f"{estimate.high:.3f}), not {assumed:.3f}: the probabilities are for the latter; --share auto shifts them",
        )


@dataclass(frozen=True)
class _Reading:
    """How the run read its rows: arguments of ``stream``."""

    options: dict[str, Any] = field(default_factory=dict)
    hint: str = ""
    """What may be wrong with a file whose columns are not those of the run."""
    notes: tuple[str, ...] = ()
    """What the result file does not have that its reader may expect."""

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Add the hint to a refusal."""
        try:
            yield
        except InputError as error:
            raise InputError(f"{error}; {self.hint}" if self.hint else str(error)) from error


def _reading(run: Path, data: Path, written: dict[str, Any]) -> _Reading:
    """The same columns are the id (if the new file has it), the text and the embedding; no labels.

    The label and the columns that the run dropped may still be in the file: they are no new columns. A separator and a
    missing header that the run was told of are expected again; whether a number is 1.234 or 1234, the run knows or was
    told.
    """
    file = run / "config.json"
    if not file.exists():
        return _Reading(written)
    try:
        config = json.loads(file.read_text())
        saved, chosen = config["data"], config.get("reading", {})
        options = {key: saved[key] for key in _REMEMBERED if saved.get(key) is not None}
        # Runs that did not store it leave it to the new images.
        options |= {f"image_{key}": int(value) for key, value in chosen.get("pictures", {}).items()}
        columns = tuple(chosen.get("columns", ()))
        columns = columns or tuple(saved.get("keep") or ())
        aside = [saved.get("label"), *(saved.get("drop") or ())]
        forms = NumberForms.from_json(chosen["numbers"]) if "numbers" in chosen else None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{file} cannot be read ({error!r}), so how to read new rows is not known") from error
    file, table = file_and_table(data, written.get("table"))
    hint = ""
    notes: tuple[str, ...] = ()
    options = applying_reading(input_form(file), options) | {"number_forms": forms} | written | {"table": table}
    if form_of(file) is not None:
        opened = open_table(file, FileOptions(**{key: options[key] for key in _FILE if key in options}))
        names, hint = opened.names, opened.hint
        notes = _about_names(options.get("id"), names)
        if options.get("id") not in names:
            options.pop("id", None)
        options["drop"] = [name for name in aside if name in names]
    if columns:
        options["columns"] = columns
    return _Reading(options, hint, notes)


def _about_names(id: str | None, names: Sequence[str]) -> tuple[str, ...]:
    """Said where the id of the result is the number of the row and could be taken for the name of one."""
    if (id is None and "id" not in names) or id in names:
        return ()
    why = "the run was fitted without --id" if id is None else f"the file has no column {id!r}, which named the rows"
    return (f"{why}; the id of the result is the number of the row",)


class _Notes:
    """What was said about the batches, once for each thing however many batches it is in."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, str]] = {}
        """By what a note is about, the rows of its first batch and its text."""
        self._batches: Counter[str] = Counter()
        self._all = 0

    @contextmanager
    def of_batch(self, batch: UserData, start: int) -> Iterator[None]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        warned = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
        for text in dict.fromkeys([*batch.notes, *warned]):
            about = subject(text)
            self._first.setdefault(about, (f"rows {start:,} to {start + len(batch) - 1:,}: ", text))
            self._batches[about] += 1
        self._all += 1

    def lines(self) -> tuple[str, ...]:
        return tuple(self._line(about, rows, text) for about, (rows, text) in self._first.items())

    def _line(self, about: str, rows: str, text: str) -> str:
        """A note with the rows it is about, unless that is all of them: several batches count values each on its own,
        but columns together."""
        n = self._batches[about]
        if n == self._all and (n == 1 or _OF_COLUMNS.match(text)):
            return text
        return rows + text + (f"{_LATER}{number_of(n - 1, 'later batch', 'later batches')})" if n > 1 else "")


def subject(note: str) -> str:
    """What a note is about, without its counts and examples, which differ between batches and parts."""
    where, _, what = note.partition(_LATER)[0].partition(":")  # of a column; it may have more than one note
    what = _EXAMPLES.split(what)[0]
    return where.lstrip("0123456789,") + _COUNTED.sub("", what)

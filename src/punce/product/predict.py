"""The job behind ``punce predict``: stream rows through a saved classifier in bounded memory."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from punce.classifier import PUClassifier
from punce.data import UserData, stream
from punce.data.image_files import ImageFiles
from punce.data.number_forms import NumberForms
from punce.data.read import input_form
from punce.data.table_file import FileOptions
from punce.data.tables import form_of, open_table
from punce.errors import InputError
from punce.models.table import TableRoute
from punce.options import applying_reading, was_asked
from punce.storage.files import file_and_table, refuse_to_replace_input, replacing

# Fixed before the first batch: ids of whole numbers in one batch and of text in another must not change the file.
_SCHEMA = pa.schema([("row", pa.int64()), ("id", pa.string()), ("probability", pa.float64()), ("called", pa.bool_())])
_REMEMBERED = ("id", "text", "image_size", "sep", "header")
_FILE = ("sep", "encoding", "header", "table")


@dataclass(frozen=True)
class PredictOutcome:
    """How many rows were scored and called positive."""

    rows: int
    called: int
    threshold: float
    notes: tuple[str, ...] = ()
    """How the rows differ from those the model learned from."""


def run_predict(
    run: Path,
    data: Path,
    out: Path,
    *,
    deploy_prior: float | None = None,
    batch_rows: int = 20_000,
    written: Mapping[str, Any] | None = None,
) -> PredictOutcome:
    """Score every row of `data` and write row, id, probability and called to `out`, whole or not at all.

    `written` says how the file is written (sep, encoding, header, decimal, table) where that is not to be found out.
    """
    refuse_to_replace_input(out, file_and_table(data)[0])
    classifier = PUClassifier.load(run / "model" if (run / "model").is_dir() else run)
    reading = _reading(run, data, {name: value for name, value in (written or {}).items() if was_asked(value)})
    route = classifier._route
    options = reading.options | {"as_text": route.category_columns if isinstance(route, TableRoute) else ()}
    source = stream(data, **options, kind=classifier.kind_, batch_rows=batch_rows)  # type: ignore[arg-type]
    rows = called = 0
    notes = _Notes()
    with replacing(out) as temporary, _writing(out, temporary) as write:
        for batch in source.batches():
            with notes.of_batch(batch, rows):
                scored = _score(classifier, reading.in_form(batch), rows, deploy_prior)
            write(scored)
            rows, called = rows + len(scored), called + int(scored["called"].sum())
    return PredictOutcome(rows, called, classifier.threshold_, (*source.notes, *notes.lines()))


@dataclass(frozen=True)
class _Reading:
    """How the run read its rows: arguments of ``stream``, and the size and channels of its pictures."""

    options: dict[str, Any] = field(default_factory=dict)
    pictures: dict[str, int] = field(default_factory=dict)
    """Empty for runs that did not store it; the new pictures then decide."""

    def in_form(self, batch: UserData) -> UserData:
        """Pictures in the form the model knows, whatever size and colours the new ones have."""
        if not self.pictures or not isinstance(batch.features, ImageFiles):
            return batch
        size, channels = self.pictures["size"], self.pictures["channels"]
        return replace(batch, features=replace(batch.features, size=size, channels=channels))


def _reading(run: Path, data: Path, written: dict[str, Any]) -> _Reading:
    """The same columns are the id (if the new file has it), the text and the embedding; no labels.

    The label and the columns that the run dropped may still be in the file: they are no new columns. A separator and a
    missing header that the run was told of are expected again; whether a number is 1.234 or 1234, the run knows.
    """
    file = run / "config.json"
    if not file.exists():
        return _Reading(written)
    try:
        config = json.loads(file.read_text())
        saved, chosen = config["data"], config.get("reading", {})
        options = {key: saved[key] for key in _REMEMBERED if saved.get(key) is not None}
        pictures = {key: int(chosen["pictures"][key]) for key in ("size", "channels") if "pictures" in chosen}
        columns = tuple(chosen.get("columns", ()))
        columns = columns or tuple(saved.get("keep") or ())
        aside = [saved.get("label"), *(saved.get("drop") or ())]
        forms = NumberForms.from_json(chosen.get("numbers", {}))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{file} cannot be read ({error!r}), so how to read new rows is not known") from error
    file, table = file_and_table(data, written.get("table"))
    options = applying_reading(input_form(file), options) | {"number_forms": forms} | written | {"table": table}
    if form_of(file) is not None:
        names = open_table(file, FileOptions(**{key: options[key] for key in _FILE if key in options})).names
        if options.get("id") not in names:
            options.pop("id", None)
        options["drop"] = [name for name in aside if name in names]
    if columns:
        options["columns"] = columns
    return _Reading(options, pictures)


class _Notes:
    """What was said about the batches, once for each thing however many batches it is in."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._batches: Counter[str] = Counter()

    @contextmanager
    def of_batch(self, batch: UserData, start: int) -> Iterator[None]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        warned = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
        for text in dict.fromkeys([*batch.notes, *warned]):
            about = text.partition(":")[0].lstrip("0123456789,")  # counts and examples differ between batches
            self._first.setdefault(about, f"rows {start:,} to {start + len(batch) - 1:,}: {text}")
            self._batches[about] += 1

    def lines(self) -> tuple[str, ...]:
        more = {about: f" (and in {n - 1:,} later batches)" if n > 1 else "" for about, n in self._batches.items()}
        return tuple(text + more[about] for about, text in self._first.items())


def _score(classifier: PUClassifier, batch: UserData, start: int, deploy_prior: float | None) -> pd.DataFrame:
    probability = classifier.predict_proba(batch.load(), deploy_prior)[:, 1]
    return pd.DataFrame(
        {
            "row": range(start, start + len(probability)),
            "id": batch.ids.astype(str),
            "probability": probability,
            "called": probability >= classifier.threshold_,
        }
    )


@contextmanager
def _writing(out: Path, temporary: Path) -> Iterator[Callable[[pd.DataFrame], Any]]:
    """A function that appends a batch to the file, in the form that the name of `out` asks for."""
    if out.suffix == ".csv":
        with temporary.open("w", newline="", encoding="utf-8") as file:
            yield lambda frame: frame.to_csv(file, index=False, header=file.tell() == 0)
    elif out.suffix == ".parquet":
        with pq.ParquetWriter(temporary, _SCHEMA) as writer:
            yield lambda frame: writer.write_table(pa.Table.from_pandas(frame, _SCHEMA, preserve_index=False))
    else:
        raise InputError(f"the result must be a .csv or .parquet file, got {out.name}")

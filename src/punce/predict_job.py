"""The job behind ``punce predict``: stream rows through a saved classifier in bounded memory."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from punce.classifier import PUClassifier
from punce.data import UserData, stream
from punce.data.tables import column_names, is_csv, is_parquet
from punce.errors import InputError
from punce.files import replacing
from punce.routes.table import TableRoute


@dataclass(frozen=True)
class PredictOutcome:
    """How many rows were scored and called positive."""

    rows: int
    called: int
    threshold: float
    notes: tuple[str, ...] = ()
    """In what the rows differ from those the model learned from."""


def run_predict(
    run: Path, data: Path, out: Path, *, deploy_prior: float | None = None, batch_rows: int = 20_000
) -> PredictOutcome:
    """Score every row of `data` and write row, id, probability and called to `out`, whole or not at all."""
    classifier = PUClassifier.load(run / "model" if (run / "model").is_dir() else run)
    options = _reading_options(run, data) | {"as_text": _category_columns(classifier)}
    source = stream(data, **options, kind=classifier.kind_, batch_rows=batch_rows)  # type: ignore[arg-type]
    rows = called = 0
    notes = _Notes()
    with replacing(out) as temporary:
        writer = _writer(out, temporary)
        try:
            for batch in source.batches():
                with notes.of_batch(batch, rows):
                    scored = _score(classifier, batch, rows, deploy_prior)
                writer.write(scored)
                rows, called = rows + len(scored), called + int(scored["called"].sum())
        finally:
            writer.close()
    return PredictOutcome(rows, called, classifier.threshold_, notes.lines())


def _reading_options(run: Path, data: Path) -> dict[str, Any]:
    """How the run read its rows: the same columns are the id (if the new file has it) and the text; no labels.

    The label and the columns that the run dropped may still be in the file: they are no new columns.
    """
    file = run / "config.json"
    if not file.exists():
        return {}
    try:
        saved = json.loads(file.read_text())["data"]
        options = {key: saved[key] for key in ("id", "text", "image_size") if saved.get(key) is not None}
        aside = [saved.get("label"), *(saved.get("drop") or ())]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{file} cannot be read ({error!r}), so how to read new rows is not known") from error
    if data.is_file() and (is_csv(data) or is_parquet(data)):
        names = column_names(data)
        if options.get("id") not in names:
            options.pop("id", None)
        options["drop"] = [name for name in aside if name in names]
    return options


def _category_columns(classifier: PUClassifier) -> tuple[str, ...]:
    route = classifier._route
    return route.category_columns if isinstance(route, TableRoute) else ()


class _Notes:
    """What was said about the batches, once for each thing however many batches it is in."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._batches: Counter[str] = Counter()

    @contextmanager
    def of_batch(self, batch: UserData, start: int) -> Iterator[None]:
        """Keep the batch's own notes and what is warned of in the meantime."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        warned = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
        for text in dict.fromkeys([*batch.notes, *warned]):
            about = text.partition(":")[0].lstrip("0123456789,")  # counts and examples differ between batches
            self._first.setdefault(about, f"rows {start:,} to {start + len(batch) - 1:,}: {text}")
            self._batches[about] += 1

    def lines(self) -> tuple[str, ...]:
        """One line each, with the rows of the first batch that it is true of."""
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


class _CsvWriter:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", newline="", encoding="utf-8")
        self._header = True

    def write(self, frame: pd.DataFrame) -> None:
        frame.to_csv(self._file, index=False, header=self._header)
        self._header = False

    def close(self) -> None:
        self._file.close()


class _ParquetWriter:
    _SCHEMA = pa.schema(
        [("row", pa.int64()), ("id", pa.string()), ("probability", pa.float64()), ("called", pa.bool_())]
    )

    def __init__(self, path: Path) -> None:
        self._writer = pq.ParquetWriter(path, self._SCHEMA)

    def write(self, frame: pd.DataFrame) -> None:
        self._writer.write_table(pa.Table.from_pandas(frame, self._SCHEMA, preserve_index=False))

    def close(self) -> None:
        self._writer.close()


def _writer(out: Path, temporary: Path) -> _CsvWriter | _ParquetWriter:
    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"the result must be a .csv or .parquet file, got {out.name}")
    temporary.parent.mkdir(parents=True, exist_ok=True)
    return _CsvWriter(temporary) if out.suffix == ".csv" else _ParquetWriter(temporary)

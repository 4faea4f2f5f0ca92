"""``punce predict`` on many Parquet files: one result a part, here or on the workers of a cluster.

Each result is written whole or not at all, and holds in its own metadata what was counted in it and what it was made
from. So a repeated command skips what is done, whoever did it, and any number of workers leaves the same bytes as one
process: a part is scored by one thread, in the same batches, and nothing in it depends on the others.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from punce import __version__
from punce.classifier import PUClassifier
from punce.data.reading_options import was_asked
from punce.data.tables import open_table
from punce.errors import InputError, number_of
from punce.product.predict import Found, NewFile, PredictOutcome, load_model, subject
from punce.product.score_file import SCHEMA
from punce.storage.files import replacing
from punce.storage.parts import fingerprint, folder_of, has_parts, part_files
from punce.storage.temporary import remove_left
from punce.storage.tensor_folder import MANIFEST
from punce.training.cluster import Map, workers
from punce.training.cpus import limited_threads

_ENDING = ".scores.parquet"
_KEY = b"punce"
# Warnings are caught and threads limited for the process as a whole, so a worker with several threads takes turns.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class PartJob:
    """One part to score."""

    run: Path
    part: Path
    out: Path
    model: str
    """sha256 of what says how to score: the model's manifest and the run's configuration."""
    share: float | None
    batch_rows: int
    written: Mapping[str, Any] = field(default_factory=dict)

    @property
    def made_from(self) -> str:
        """What the result depends on, in short. Times are not put in order: clocks of machines differ, and go back."""
        asked = [__version__, self.model, self.share, self.batch_rows, sorted(self.written.items())]
        asked.append(self.part.stat().st_mtime_ns)
        return hashlib.sha256(f"{json.dumps(asked)} {fingerprint(self.part)}".encode()).hexdigest()


@dataclass(frozen=True)
class PartsOutcome:
    """What was found in all parts together."""

    together: PredictOutcome
    parts: int
    skipped: int
    """Parts whose result was there already."""


def predict_parts(
    run: Path,
    data: Path,
    out: Path,
    *,
    cluster: str | None = None,
    share: float | Literal["auto"] | None = None,
    batch_rows: int = 20_000,
    written: Mapping[str, Any] | None = None,
) -> PartsOutcome:
    """Score every part of `data` into a file of the same name in the folder `out`.

    With `cluster`, the address of a Dask scheduler, its workers do it; they must see the files under the same paths.
    """
    files, places = _places(data, out)
    classifier = load_model(run)
    asked = {name: value for name, value in (written or {}).items() if was_asked(value)}
    job = PartJob(run.resolve(), files[0], places[0], _digest(run), None, batch_rows, asked)
    jobs = [replace(job, part=part, out=place) for part, place in zip(files, places, strict=True)]
    with workers(cluster) as on_workers:
        if share == "auto":
            share = _added(classifier, None, on_workers(count_part, jobs)).own_share()
        jobs = [replace(one, share=share) for one in jobs]
        done = _scored(jobs, on_workers)
    for one in jobs:
        remove_left(one.out.parent)  # what workers that were killed had begun to write
    together = _added(classifier, share, [counts for counts, _ in done])
    notes = _notes([(one.part, counts["notes"]) for one, (counts, _) in zip(jobs, done, strict=True)])
    return PartsOutcome(together.outcome(notes), len(jobs), sum(was_there for _, was_there in done))


def _scored(jobs: list[PartJob], on_workers: Map) -> list[tuple[dict[str, Any], bool]]:
    """The counts of every part, and whether its result was there before; workers are only asked for the others."""
    before = [_counts_of(job) for job in jobs]
    missing = on_workers(score_part, [job for job, found in zip(jobs, before, strict=True) if found is None])
    return [(next(missing), False) if found is None else (found, True) for found in before]


def _places(data: Path, out: Path) -> tuple[list[Path], list[Path]]:
    """The parts and where their results go, as absolute paths: workers have a folder of their own."""
    if not has_parts(data):
        raise InputError(
            f"{data} has no Parquet parts: name a folder of .parquet files or a pattern ('parts/*.parquet')"
        )
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; every part gets a file of its own, so name a folder with --out")
    if out.suffix in (".parquet", ".csv"):
        raise InputError(f"every part gets a file of its own: name a folder with --out, not {out.name}")
    root, target = folder_of(data).resolve(), out.resolve()
    if target == root or (target.is_relative_to(root) and "**" in str(data)):
        raise InputError(f"results in {out} would be read as parts the next time; name another folder with --out")
    open_table(data)  # refuses parts whose columns differ, before any is scored
    files = part_files(data)
    # By the names in the folder: links in it may lead to files of one name in several other folders.
    names = [file.relative_to(folder_of(data.expanduser())) for file in files]
    return [file.absolute() for file in files], [target / name.with_name(name.stem + _ENDING) for name in names]


def _digest(run: Path) -> str:
    model = run / "model" if (run / "model").is_dir() else run
    read = [file.read_bytes() for file in (model / MANIFEST, run / "config.json") if file.is_file()]
    return hashlib.sha256(b"\n".join(read)).hexdigest()


# --- One part: these two run on the workers ---------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _model(run: Path, digest: str) -> PUClassifier:
    """Loaded once by each worker; the digest is in the cache's key, so that a model that was replaced is read again."""
    return load_model(run)


def _opened(job: PartJob) -> tuple[PUClassifier, NewFile]:
    classifier = _model(job.run, job.model)
    return classifier, NewFile.opened(classifier, job.run, job.part, job.batch_rows, job.written)


def count_part(job: PartJob) -> dict[str, Any]:
    """What the rows of a part look like, without writing anything."""
    with _ONE_AT_A_TIME, limited_threads(1):
        classifier, rows = _opened(job)
        return rows.counted(classifier).counts()


def score_part(job: PartJob) -> dict[str, Any]:
    """Score a part; the same counts are in the metadata of the file that is written."""
    with _ONE_AT_A_TIME, limited_threads(1):
        classifier, rows = _opened(job)
        found = Found(classifier, job.share)
        with replacing(job.out) as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
            notes = rows.score(found, partial(_write, writer))
            counts = {**found.counts(), "notes": list(notes)}
            writer.add_key_value_metadata({_KEY: json.dumps({"made_from": job.made_from, **counts})})
    return counts


def _write(writer: Any, frame: pd.DataFrame) -> None:
    writer.write_table(pa.Table.from_pandas(frame, SCHEMA, preserve_index=False))


# --- All parts --------------------------------------------------------------------------------------------------------


def _counts_of(job: PartJob) -> dict[str, Any] | None:
    """What a finished result says was counted; None if there is none, or it was made from something else."""
    try:
        counts: dict[str, Any] = json.loads((pq.read_metadata(job.out).metadata or {})[_KEY])
        return counts if counts["made_from"] == job.made_from else None
    except (OSError, pa.ArrowException, ValueError, LookupError, TypeError):
        return None


def _added(classifier: PUClassifier, share: float | None, counted: Any) -> Found:
    found = Found(classifier, share)
    for counts in counted:
        found.add_counts(counts)
    return found


def _notes(said: list[tuple[Path, list[str]]]) -> tuple[str, ...]:
    """Each thing once, with the first part it is about and how many others."""
    first: dict[str, str] = {}
    parts: dict[str, int] = {}
    for part, lines in said:
        for line in lines:
            where, _, text = line.partition(": ") if line.startswith("rows ") else ("", "", line)
            about = subject(text)
            first.setdefault(about, f"{part.name}{', ' if where else ''}{where}: {text}")
            parts[about] = parts.get(about, 0) + 1
    return tuple(
        text + (f" (and in {number_of(parts[about] - 1, 'other part', 'other parts')})" if parts[about] > 1 else "")
        for about, text in first.items()
    )

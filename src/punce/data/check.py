"""A look at the rows before anything trains on them: what is there, what is odd, what will mislead a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.data.embeddings import LARGEST_EMBEDDING
from punce.data.findings import DataCheck, DataFinding, first_rows
from punce.data.image_files import EQUAL, LOOKS, ImageFiles, deep_values, unreadable_message
from punce.data.leaks import RowSample, separation
from punce.data.row_hashes import Hashes, about_repeated, count_duplicates, hash_array, hash_bytes, hash_texts
from punce.data.table_tally import FEW_HIDDEN, LEAK, TableTally
from punce.data.user_data import DataStream, UserData
from punce.errors import InputError, number_of
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels

_FEW_LABELLED = 30  # below it intervals are too wide to plan with
_SHOWN = 5
_TWELVE_BITS = 1 << 12  # of 16: at most 16 shades of grey are left where values stay below it
_REPEATED = 0.1  # of the unlabelled rows: as in the estimate of the prior, beyond it equal rows are no copies


def check(data: UserData | DataStream) -> DataCheck:
    """Go through the rows once, in batches, and report.

    Memory: one batch, a sample of 10,000 rows, and 8 bytes per row for a fingerprint (and per value of columns that
    might be ids), so a table much larger than memory can be checked from a stream.
    """
    tally = _Tally()
    for batch in data.batches():
        tally.add(batch)
    if tally.rows == 0:
        raise InputError(f"{data.source} has no rows")
    notes = [DataFinding("info", "note", note) for note in dict.fromkeys([*data.notes, *tally.notes])]
    duplicates, duplicate_findings = _duplicates(tally, data.labels)
    near = list(tally.near_duplicates(data.labels))
    return DataCheck(
        source=data.source,
        kind=data.kind,
        rows=tally.rows,
        labelled=_count(data.labels, POSITIVE),
        negatives=_count(data.labels, NEGATIVE),
        unlabelled=tally.rows if data.labels is None else _count(data.labels, UNLABELLED),
        missing=tally.table.missing,
        duplicates=duplicates,
        findings=(*_label_findings(data.labels), *tally.findings(), *duplicate_findings, *near, *notes),
    )


class _Tally:
    """What one pass collects; which of it is used depends on the kind of data."""

    def __init__(self) -> None:
        self.rows = 0
        self.table = TableTally()
        self.notes: list[str] = []
        self._hashes: list[Hashes] = []
        self._sample = RowSample()
        self._looks: list[Hashes] = []
        self._names: list[str] = []
        self._unreadable: list[str] = []
        self._brightest: int | None = None
        self._own_scales = False
        self._extremes: list[npt.NDArray[Any]] = []
        self._non_finite: list[str] = []
        self._too_large = False
        self._empty_texts = 0
        self._ids: list[Hashes] = []
        self._nameless = 0

    def add(self, batch: UserData) -> None:
        """Count one batch."""
        self.rows += len(batch)
        self.notes.extend(batch.notes)
        if not isinstance(batch.ids, pd.RangeIndex):  # row numbers cannot repeat
            named = batch.ids[batch.ids.notna()]
            self._nameless += len(batch) - len(named)
            self._ids.append(pd.util.hash_array(named.astype("str").to_numpy(dtype=object)))
        if batch.kind == "table":
            self.table.add(batch.features, batch.labels)
        elif batch.kind == "text":
            self._empty_texts += sum(not text.strip() for text in batch.features)
            self._hashes.append(hash_texts(batch.features))
        elif isinstance(batch.features, ImageFiles):
            self._add_images(batch.features)
        else:
            self._add_array(batch)

    def _add_images(self, files: ImageFiles) -> None:
        reasons = files.unreadable()
        self._unreadable += [f"{files.names[row]} ({reason})" for row, reason in reasons.items()]
        # a fingerprint of its own: two unreadable files are not equal images
        own = {row: hash_bytes(files.names[row].encode()) for row in reasons}
        hashes = files.known[EQUAL].copy()
        hashes[list(own)] = list(own.values())
        self._hashes.append(hashes)
        self._looks.append(files.known[LOOKS])
        self._names += files.names
        for is_sixteen, low, high in deep_values(files.folder, files.names):
            if is_sixteen:
                self._brightest = max(int(high), self._brightest or 0)
            else:  # values from 0 to 1 have one scale
                self._own_scales = self._own_scales or low < 0 or high > 1

    def _add_array(self, batch: UserData) -> None:
        values: npt.NDArray[Any] = np.asarray(batch.features)
        self._hashes.append(hash_array(values))
        if batch.kind != "embedding" or not len(values):
            return
        is_half = values.dtype == np.float16  # in which the bound itself would be infinite
        largest = float(np.finfo(np.float16).max) if is_half else LARGEST_EMBEDDING
        self._extremes += [values.min(axis=0), values.max(axis=0)]
        # False for NaN, too. Not the absolute values, which are a copy of all rows.
        usable = np.asarray(((values <= largest) & (values >= -largest)).all(axis=1))
        self._non_finite.extend(str(name) for name in batch.ids[~usable])
        self._too_large = self._too_large or bool(np.isfinite(values[~usable]).all(axis=1).any())
        if batch.labels is not None:
            self._sample.add(values, batch.labels)

    @property
    def hashes(self) -> Hashes:
        """One fingerprint per row, or none where the rows had no labels."""
        parts = self.table.hashes or self._hashes
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)

    def near_duplicates(self, labels: Labels | None) -> Iterator[DataFinding]:
        """Unlabelled images that are another version of a labelled one: rescaled, compressed, recoloured."""
        if not self._looks or labels is None:
            return
        from punce.data.pictures import near_duplicates

        found = near_duplicates(np.concatenate(self._looks), self.hashes, labels)
        if not found:
            return
        pairs = [f"{self._names[row]} ({self._names[like]})" for row, like in found]
        message = (
            f"{number_of(len(found), 'unlabelled image looks', 'unlabelled images look')} like a labelled one (in "
            f"brackets): {', '.join(pairs[:_SHOWN])}; label such images too, or remove them"
        )
        yield DataFinding("warning", "near_duplicates", message, tuple(pairs))

    def findings(self) -> Iterator[DataFinding]:
        """What is odd, by kind."""
        yield from self.table.findings()
        yield from self._array_findings()
        if self._unreadable:
            message = unreadable_message(self._unreadable)
            yield DataFinding("error", "unreadable_images", message, tuple(self._unreadable))
        if self._brightest is not None and 0 < self._brightest < _TWELVE_BITS:
            message = (
                f"the images have 16 bits a pixel, but the largest value in those looked at is {self._brightest:,} of "
                f"65,535, so that they are read as nearly black (0 to {self._brightest // 257} of 255); "
                "multiply their values (12-bit data by 16) and write them anew"
            )
            yield DataFinding("warning", "dark_images", message)
        if self._own_scales:
            message = (
                "some images have 32 bits a pixel, with values below 0 or above 1: each is scaled by its own largest "
                "value, and what is negative is black, so that their brightness cannot be compared; write them anew "
                "with 8 or 16 bits, or from 0 to 1, all on one scale"
            )
            yield DataFinding("warning", "own_scales", message)
        if self._empty_texts:
            yield DataFinding(
                "warning", "empty_texts", number_of(self._empty_texts, "text is empty", "texts are empty")
            )
        yield from self._id_findings()

    def _id_findings(self) -> Iterator[DataFinding]:
        if self._nameless:
            message = f"{number_of(self._nameless, 'row has', 'rows have')} no name in the column of the names (--id)"
            yield DataFinding("warning", "missing_ids", message)
        if self._ids:
            ids = np.concatenate(self._ids)
            repeated = len(ids) - len(np.unique(ids))
            if repeated:
                message = f"{number_of(repeated, 'row has', 'rows have')} the name of an earlier row"
                yield DataFinding("warning", "repeated_ids", message)

    def _array_findings(self) -> Iterator[DataFinding]:
        if self._non_finite:
            rows = number_of(len(self._non_finite), "row holds", "rows hold")
            what = f"NaN, infinity or numbers beyond ±{LARGEST_EMBEDDING:g}" if self._too_large else "NaN or infinity"
            first = first_rows(self._non_finite[:_SHOWN])
            message = f"{rows} {what}, {first}; leave such rows or dimensions out, or fill them"
            yield DataFinding("error", "non_finite", message, tuple(self._non_finite[:100]))
        elif self._sample.usable:
            yield from _constant_dimensions(np.array(self._extremes))
            values, is_labelled = self._sample.rows()
            yield from _leaking_dimensions(values.astype(np.float64), is_labelled)


def _constant_dimensions(extremes: npt.NDArray[Any]) -> Iterator[DataFinding]:
    """Of all rows: in a sample a dimension of rare values can seem constant. Shape: (2 · batches, d)."""
    constant = np.flatnonzero(extremes.min(axis=0) == extremes.max(axis=0))
    if len(constant):
        names = tuple(map(str, constant))
        are = number_of(len(names), "dimension is constant", "dimensions are constant")
        yield DataFinding("warning", "constant_column", f"{are}: {', '.join(names[:_SHOWN])}", names)


def _leaking_dimensions(values: npt.NDArray[np.float64], is_labelled: npt.NDArray[np.bool_]) -> Iterator[DataFinding]:
    strengths = separation(values, is_labelled)
    for k in np.flatnonzero(strengths >= LEAK):
        yield DataFinding(
            "warning",
            "leak",
            f"dimension {k} alone separates labelled from unlabelled rows (AUC {strengths[k]:.3f}); "
            f"if that is honest, {FEW_HIDDEN}",
            (str(k),),
        )


def _label_findings(labels: Labels | None) -> Iterator[DataFinding]:
    if labels is None:
        yield DataFinding("info", "no_labels", "no label column: the rows can be scored, not learned from")
        return
    n_p, n_u = _count(labels, POSITIVE), _count(labels, UNLABELLED)
    if n_p == 0:
        yield DataFinding("error", "no_positive", "no row is labelled positive")
    elif n_p < _FEW_LABELLED:
        yield DataFinding(
            "warning", "few_labelled", f"only {n_p} labelled positive{'s' * (n_p > 1)}; expect wide intervals"
        )
    if n_u == 0:
        yield DataFinding("error", "no_unlabelled", "no row is unlabelled")


def _duplicates(tally: _Tally, labels: Labels | None) -> tuple[int, list[DataFinding]]:
    hashes = tally.hashes
    if labels is None or len(hashes) != len(labels):
        return 0, []
    count, first = count_duplicates(hashes, labels)
    unlabelled = hashes[labels == UNLABELLED]
    distinct = len(np.unique(unlabelled))
    by_chance = ""
    if distinct < (1.0 - _REPEATED) * len(unlabelled):
        different = number_of(distinct, "different one", "different ones")
        few = f"the {len(unlabelled):,} unlabelled rows are only {different}"
        by_chance = f"{few}, so that this may be chance"
    others = [*_contradictions(hashes, labels, by_chance), *_repeated(hashes[labels == POSITIVE], count)]
    if count == 0:
        return 0, others
    mend = "in case_control data that can be right, otherwise label or remove them"
    same = number_of(count, "unlabelled row equals", "unlabelled rows equal")
    return count, [_equal_rows("duplicates", f"{same} a labelled one", first, by_chance, mend), *others]


def _contradictions(hashes: Hashes, labels: Labels, by_chance: str) -> list[DataFinding]:
    """Rows labelled negative that equal one labelled positive: people were of two minds, or a join went wrong."""
    count, first = count_duplicates(hashes, labels, NEGATIVE)
    same = number_of(count, "row labelled negative equals", "rows labelled negative equal")
    mend = "one of the labels is wrong, and both are learned from: decide which, or leave the label empty"
    return [_equal_rows("contradictions", f"{same} one labelled positive", first, by_chance, mend)] if count else []


def _equal_rows(code: str, what: str, first: npt.NDArray[np.intp], by_chance: str, mend: str) -> DataFinding:
    rows = tuple(map(str, first))
    message = f"{what}, {first_rows(rows)}; {by_chance or mend}"
    return DataFinding("info" if by_chance else "warning", code, message, rows)


def _repeated(positive: Hashes, unlabelled: int) -> list[DataFinding]:
    """Labelled rows that stand in the table several times; `unlabelled` rows equal one of them."""
    said = about_repeated(positive, lambda: unlabelled)
    return [DataFinding("warning", "repeated", said)] if said else []


def _count(labels: Labels | None, value: int) -> int:
    return 0 if labels is None else int((labels == value).sum())

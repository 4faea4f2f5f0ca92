"""What a reader returns: a person's rows of one kind, their labels in the vocabulary, and names for the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.columns.number_forms import NumberForms
from punce.data.drawn import Drawn
from punce.data.image_files import ImageFiles
from punce.datasets.dataset import Kind
from punce.errors import InputError
from punce.labels import Labels

BATCH_ROWS = 65_536  # some tens of MB for a usual table


@dataclass(frozen=True)
class UserData:
    """Rows read from a file or folder.

    Shape: `features` is a DataFrame (table), a list of str (text), an array (n, d) (embedding), or
    :class:`ImageFiles` / uint8 (n, C, H, W) (image); `labels` int8 (n,) of {1, 0, -1}, or None for rows to be scored;
    `ids` the row names: the id column, file names, or row numbers.
    """

    kind: Kind
    features: Any
    labels: Labels | None
    ids: pd.Index[Any]
    source: str
    notes: tuple[str, ...] = ()
    """What the reader decided on its own: columns set aside, files without a label."""
    source_columns: tuple[str, ...] = ()
    """Columns of the file that texts or embeddings were read from; empty where it has none."""
    number_forms: NumberForms = field(default_factory=NumberForms)
    """How the numbers of a table file were written, for new rows."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Images that were left out, and why."""
    drawn: Drawn | None = None
    """Which rows of the file these are, where it is too large to be learned from as a whole."""

    def __post_init__(self) -> None:
        if self.labels is not None and len(self.labels) != len(self.features):
            raise InputError(f"{self.source}: {len(self.features)} rows but {len(self.labels)} labels")
        if len(self.ids) != len(self.features):
            raise InputError(f"{self.source}: {len(self.features)} rows but {len(self.ids)} row names")

    def __len__(self) -> int:
        return len(self.features)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the feature columns of a table; empty for other kinds."""
        return tuple(self.features.columns) if self.kind == "table" else ()

    def load(self) -> Any:
        """The features as estimators take them; decodes the images of an image folder into memory."""
        return self.features.load() if isinstance(self.features, ImageFiles) else self.features

    def take(self, rows: npt.ArrayLike) -> UserData:
        """The rows with these numbers."""
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows  # lists and image files take numbers only
        labels = None if self.labels is None else self.labels[rows]
        return replace(self, features=_take(self.features, rows), labels=labels, ids=self.ids[rows])

    def batches(self, size: int = BATCH_ROWS) -> Iterator[UserData]:
        """The rows in order, `size` at a time."""
        if len(self) <= size:  # no copy
            yield self
            return
        for start in range(0, len(self), size):
            yield self.take(np.arange(start, min(start + size, len(self))))


@dataclass(frozen=True)
class DataStream:
    """Rows too many for memory, read again from the source at each call of :meth:`batches`."""

    kind: Kind
    source: str
    labels: Labels | None
    """The label column alone is read whole: what a value means can depend on the other rows."""
    open: Callable[[int], Iterator[UserData]]
    batch_rows: int = BATCH_ROWS
    said: Sequence[str] = ()
    """Notes on the file; going through the batches may add some."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about how the file was read, complete once the batches have been gone through."""
        return tuple(self.said)

    def batches(self, size: int | None = None) -> Iterator[UserData]:
        """The rows in order, about `size` at a time."""
        return self.open(size or self.batch_rows)


def _take(features: Any, rows: npt.NDArray[Any]) -> Any:
    if isinstance(features, pd.DataFrame):
        return features.iloc[rows].reset_index(drop=True)
    if isinstance(features, list):
        return [features[k] for k in rows]
    return features[rows]

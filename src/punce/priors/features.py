"""Rows as numbers: what the P-vs-U model and the feature-based estimators see of a caller's X.

Arrays, DataFrames with text and categories, sparse matrices, lists of texts and images all end as one of two things:
a float32 matrix with NaN for missing cells and a mask of categorical columns, or a sparse matrix. Frames and texts are
read by `punce.columns`, as the models read them. Nothing here looks at the labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from punce.columns.bins import quantile_bins
from punce.columns.counts import counted
from punce.columns.encoder import EncodedTable, TableEncoder
from punce.columns.fitted import FIRST_CATEGORY, UNKNOWN, are_lost_in_single_precision
from punce.columns.given import is_missing, is_text, plain_rows
from punce.columns.one_hot import common_codes, has_code
from punce.errors import InputError, number_of

Float = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]

MAX_CATEGORIES = 200
"""More levels than this cannot be bins of a tree; such columns become how often their level occurs."""
MAX_COLUMNS = 256
"""Wider dense matrices (pixels, embeddings) are projected before trees see them."""
PROJECTED = 50
_ROWS_FOR_QUARTILES = 1_000
_ROWS_FOR_COMPONENTS = 10_000  # enough to find the leading directions
_MOST_CELLS = 100_000_000  # completed and projected at once: each of a few copies takes 400 MB
_TREE_BINS = 200  # below the 255 of scikit-learn's boosting, which then cuts nothing itself


@dataclass(frozen=True)
class Rows:
    """Shape: values (n, d), float32 dense with NaN for missing or CSR; categorical (d,) bool."""

    values: Float32 | sparse.csr_array
    categorical: npt.NDArray[np.bool_]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are a sparse matrix."""
        return sparse.issparse(self.values)

    @cached_property
    def for_trees(self) -> Rows:
        """The same rows for gradient boosting: at most 256 columns, numbers as quantile codes, NaN and categories kept.

        Trees see numbers only by order. Binning once here instead of in every fit, where scikit-learn bins weighted
        rows slowly, makes a fit on a few thousand rows about five times as fast.
        """
        if self.is_sparse:
            return self
        narrow = self.narrow
        return Rows(_quantile_codes(narrow), narrow.categorical, narrow.notes)

    @cached_property
    def narrow(self) -> Rows:
        """The same rows with at most 256 columns; wider ones as their principal components, on one scale."""
        if self.values.shape[1] <= MAX_COLUMNS:
            return self
        projected = _projected(self).astype(np.float32)
        width = projected.shape[1]
        note = f"{self.values.shape[1]} columns were projected to {width} principal components"
        return Rows(projected, np.zeros(width, dtype=bool), (*self.notes, note))

    @cached_property
    def for_splits(self) -> Rows:
        """Dense and narrow: sparse rows are projected as well."""
        if not self.is_sparse:
            return self.for_trees
        projected = _principal_components(self.values).astype(np.float32)
        width = projected.shape[1]
        note = f"{self.values.shape[1]} sparse columns were projected to {width} components"
        return Rows(projected, np.zeros(width, dtype=bool), (*self.notes, note))

    def for_kernels(self, rows: npt.NDArray[np.intp]) -> Float:
        """Some rows dense, complete and scaled, for methods that measure distances. Shape (len(rows), <= 50)."""
        part = Rows(self.values[rows], self.categorical)
        complete = part.values if part.is_sparse else _complete(part)
        if self.is_sparse or complete.shape[1] > PROJECTED:
            return _principal_components(complete)
        return np.asarray(complete, dtype=np.float64)


def as_rows(X: Any) -> Rows:
    """Translate a caller's X, or refuse it with the reason."""
    if isinstance(X, EncodedTable):  # read already, by the encoder of the model
        return _from_table(X)
    X = plain_rows(X)
    if sparse.issparse(X):
        return _from_sparse(X)
    if is_text(X):
        return _from_text(["" if is_missing(row) else str(row) for row in X])
    if isinstance(X, pd.DataFrame | pd.Series):
        return _from_frame(pd.DataFrame(X))
    values = np.asarray(X)
    if values.dtype.kind in "OUS":
        return _from_frame(pd.DataFrame(_two_dimensional(values)).infer_objects())
    return _from_numbers(values)


def _from_frame(frame: pd.DataFrame) -> Rows:
    """The columns as every model of a table reads them."""
    if 0 in frame.shape:
        raise InputError(f"features are empty: got a frame of {frame.shape[0]} rows and {frame.shape[1]} columns")
    encoder = TableEncoder.fit(frame)
    left_out = len(encoder.left_out)
    said = number_of(left_out, "column was left out, as it says", "columns were left out, as they say")
    notes = (f"{said} nothing or cannot be read",) if left_out else ()
    return _from_table(encoder.unscaled(frame, is_resolved=True), notes)


def _from_table(table: EncodedTable, notes: tuple[str, ...] = ()) -> Rows:
    values, categorical = table.values, table.categorical.copy()
    for k in np.flatnonzero(categorical):
        there = ~np.isnan(values[:, k])
        codes = values[there, k].astype(np.int64)
        if len(counts := np.bincount(codes)) > MAX_CATEGORIES + FIRST_CATEGORY:
            # How often a category occurs is a number that trees can cut. Those too rare for a code occur least.
            counts[UNKNOWN] = 1
            values, categorical[k] = values.copy(), False
            values[there, k] = counts[codes]
    return Rows(values, categorical, notes)


def _from_numbers(values: npt.NDArray[Any]) -> Rows:
    matrix = _two_dimensional(values)
    if matrix.dtype.kind not in "fiub":
        raise InputError(f"features must be numbers, got an array of {matrix.dtype}")
    with np.errstate(over="ignore"):  # refused below
        as_float = _near_zero(matrix).astype(np.float32, copy=False)
    infinite = np.isinf(as_float)
    if infinite.any():
        row, column = (int(i) for i in np.argwhere(infinite)[0])
        raise InputError(
            f"features hold {int(infinite.sum())} infinite (or too large) values, first at row {row}, column "
            f"{column}; replace them by numbers, or by NaN where the value is missing"
        )
    return _without_constants(as_float)


def _near_zero(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A column that single precision would make (nearly) constant counted from its median, as those of a frame are."""
    if np.can_cast(matrix.dtype, np.float32):
        return matrix
    ordered = np.sort(matrix[:: max(1, len(matrix) // _ROWS_FOR_QUARTILES)], axis=0)  # missing values come last
    last = np.maximum((~np.isnan(ordered)).sum(axis=0) - 1, 0)
    places = (np.array([0.25, 0.5, 0.75])[:, None] * last).astype(np.intp)
    low, median, high = np.take_along_axis(ordered, places, axis=0).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        is_lost = (high > low) & are_lost_in_single_precision(median, high - low)
    return matrix - np.where(is_lost, median, 0.0) if is_lost.any() else matrix


def _two_dimensional(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.ndim == 0 or values.size == 0:
        raise InputError(f"features are empty: got shape {values.shape}")
    # A single feature may come as a vector; images come as (n, C, H, W) and are read as pixels.
    return values.reshape(len(values), -1)


def _from_text(texts: list[str]) -> Rows:
    unit, _, weights = counted(texts)
    note = "word counts" if unit == "word" else "letter counts, as too few words repeat"
    return _from_sparse(weights, (f"texts were read as tf-idf {note}",))


def _from_sparse(X: Any, notes: tuple[str, ...] = ()) -> Rows:
    matrix = sparse.csr_array(X, dtype=np.float32)
    if not np.isfinite(matrix.data).all():
        raise InputError("the sparse features hold NaN or infinite values; replace them by numbers")
    if 0 in matrix.shape:
        raise InputError(f"features are empty: got shape {matrix.shape}")
    return Rows(matrix, np.zeros(matrix.shape[1], dtype=bool), notes)


def _without_constants(values: Float32) -> Rows:
    low, high = (extreme.reduce(values, axis=0) for extreme in (np.fmin, np.fmax))  # without the missing cells
    # A column that is one number or missing still says something: which rows miss it.
    useful = (high > low) | ((high == low) & np.isnan(values).any(axis=0))
    if not useful.any():
        raise InputError(
            f"all {values.shape[1]} feature columns are constant or empty, so labelled and unlabelled rows look the "
            "same; give features that differ between rows"
        )
    if useful.all():
        return Rows(values, np.zeros(len(useful), dtype=bool))
    said = number_of(int((~useful).sum()), "constant or empty column was", "constant or empty columns were")
    return Rows(values[:, useful], np.zeros(int(useful.sum()), dtype=bool), (f"{said} left out",))


def _quantile_codes(rows: Rows) -> Float32:
    """Numbers with more than 200 values become the number of their quantile bin; NaN and the rest stay."""
    codes = np.array(rows.values, dtype=np.float32)
    for k in np.flatnonzero(~rows.categorical):
        there = ~np.isnan(codes[:, k])
        if len(np.unique(codes[there, k])) > _TREE_BINS:
            codes[there, k] = quantile_bins(codes[there, k], _TREE_BINS)
    return codes


@dataclass(frozen=True)
class _Completion:
    """Makes rows complete: no NaN, categories one-hot, unit variance.

    A missing number becomes the median and keeps a flag column.
    """

    categorical: npt.NDArray[np.bool_]
    codes: npt.NDArray[np.int64]
    imputer: SimpleImputer | None
    scaler: StandardScaler

    @classmethod
    def fit(cls, values: Float32, categorical: npt.NDArray[np.bool_]) -> _Completion:
        numbers, imputer = values[:, ~categorical], None
        if np.isnan(numbers).any():  # the imputer would copy a complete matrix too
            imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True).fit(numbers)
        found = cls(categorical, common_codes(values, categorical, MAX_CATEGORIES), imputer, StandardScaler())
        found.scaler.fit(found._unscaled(values))
        return found

    def __call__(self, values: Float32) -> Float32:
        scaled: Float32 = self.scaler.transform(self._unscaled(values))
        return scaled

    def _unscaled(self, values: Float32) -> Float32:
        numbers = values[:, ~self.categorical]
        if self.imputer is not None:
            numbers = self.imputer.transform(numbers)
        return np.hstack([numbers, has_code(values, self.codes)], dtype=np.float32)


def _complete(rows: Rows) -> Float32:
    values = np.asarray(rows.values)
    return _Completion.fit(values, rows.categorical)(values)


def _projected(rows: Rows) -> Float:
    """Complete rows on their leading components; very many rows part by part, with what a sample says of all."""
    values = np.asarray(rows.values)
    if values.size <= _MOST_CELLS:
        return _principal_components(_complete(rows))
    some = values[_sample(len(values))]
    complete = _Completion.fit(some, rows.categorical)
    components = PCA(_n_components(some.shape), random_state=0).fit(complete(some))
    parts = np.array_split(values, -(-values.size // (_MOST_CELLS // 10)))
    return _on_one_scale(np.concatenate([components.transform(complete(part)) for part in parts]))


def _sample(n: int) -> npt.NDArray[np.intp]:
    return np.sort(np.random.default_rng(0).permutation(n)[:_ROWS_FOR_COMPONENTS])


def _n_components(shape: tuple[int, ...]) -> int:
    """At most 50; centred rows have one direction less than there are rows."""
    return max(1, min(PROJECTED, min(shape) - 1))


def _principal_components(matrix: Any) -> Float:
    """Projection on the leading components, which a sample of the rows determines well enough."""
    model = TruncatedSVD if sparse.issparse(matrix) else PCA
    found = model(_n_components(matrix.shape), random_state=0).fit(matrix[_sample(matrix.shape[0])])
    return _on_one_scale(np.asarray(found.transform(matrix)))


def _on_one_scale(projected: npt.NDArray[Any]) -> Float:
    # One scale for all components keeps the geometry; distances then do not depend on units.
    scale = float(projected.std())
    return projected.astype(np.float64) / (scale if scale > 0 else 1.0)

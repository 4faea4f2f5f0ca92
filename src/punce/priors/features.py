"""Rows as numbers: what the P-vs-U model and the feature-based estimators see of a caller's X.

Arrays, DataFrames with text and categories, sparse matrices, lists of texts and images all end as one of two things:
a float32 matrix with NaN for missing cells and a mask of categorical columns, or a sparse matrix. Nothing here looks
at the labels.
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

from punce.errors import InputError

Float = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]

MAX_CATEGORIES = 200
"""More levels than this cannot be bins of a tree; such columns become how often their level occurs."""
MAX_COLUMNS = 256
"""Wider dense matrices (pixels, embeddings) are projected before trees see them."""
PROJECTED = 50
_ROWS_FOR_COMPONENTS = 10_000
_TREE_BINS = 200


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
        narrow = self._narrow()
        return Rows(_quantile_codes(narrow), narrow.categorical, narrow.notes)

    def _narrow(self) -> Rows:
        if self.values.shape[1] <= MAX_COLUMNS:
            return self
        note = f"{self.values.shape[1]} columns were projected to {PROJECTED} principal components"
        projected = _principal_components(_complete(self), PROJECTED).astype(np.float32)
        return Rows(projected, np.zeros(projected.shape[1], dtype=bool), (*self.notes, note))

    @cached_property
    def for_splits(self) -> Rows:
        """Dense and narrow: sparse rows are projected as well."""
        if not self.is_sparse:
            return self.for_trees
        width = max(1, min(PROJECTED, min(self.values.shape) - 1))
        projected = _principal_components(self.values, width).astype(np.float32)
        note = f"{self.values.shape[1]} sparse columns were projected to {width} components"
        return Rows(projected, np.zeros(width, dtype=bool), (*self.notes, note))

    def for_kernels(self, rows: npt.NDArray[np.intp]) -> Float:
        """Some rows dense, complete and scaled, for methods that measure distances. Shape (len(rows), <= 50)."""
        part = Rows(self.values[rows], self.categorical)
        complete = part.values if part.is_sparse else _complete(part)
        width = min(complete.shape)
        if self.is_sparse or complete.shape[1] > PROJECTED:
            return _principal_components(complete, max(1, min(PROJECTED, width - 1)))
        return np.asarray(complete, dtype=np.float64)


def as_rows(X: Any) -> Rows:
    """Translate a caller's X, or refuse it with the reason."""
    if hasattr(X, "detach"):  # a torch tensor, without importing torch
        X = X.detach().cpu().numpy()
    if sparse.issparse(X):
        return _from_sparse(X)
    if isinstance(X, pd.Series):
        X = X.to_frame()
    if isinstance(X, pd.DataFrame):
        return _from_frame(X)
    if _is_text(X):
        return _from_text(list(X))
    values = np.asarray(X)
    if values.dtype.kind in "OUS":
        return _from_frame(pd.DataFrame(_two_dimensional(values)).infer_objects())
    return _without_constants(_from_numbers(values), None)


def _from_numbers(values: npt.NDArray[Any]) -> Float32:
    matrix = _two_dimensional(values)
    if matrix.dtype.kind not in "fiub":
        raise InputError(f"features must be numbers, got an array of {matrix.dtype}")
    as_float = matrix.astype(np.float32)
    infinite = np.isinf(as_float)
    if infinite.any():
        row, column = (int(i) for i in np.argwhere(infinite)[0])
        raise InputError(
            f"features hold {int(infinite.sum())} infinite (or too large) values, first at row {row}, column "
            f"{column}; replace them by numbers, or by NaN where the value is missing"
        )
    return as_float


def _two_dimensional(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.ndim == 0 or values.size == 0:
        raise InputError(f"features are empty: got shape {values.shape}")
    # A single feature may come as a vector; images come as (n, C, H, W) and are read as pixels.
    return values.reshape(len(values), -1)


def _is_text(X: Any) -> bool:
    if isinstance(X, list | tuple) and X:
        return all(isinstance(row, str) for row in X)
    return isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "US"


def _from_text(texts: list[str]) -> Rows:
    """Counts of words, or of letters where too few words repeat because no spaces tell them apart (Chinese)."""
    words = _counted(texts, analyzer="word")
    if words is not None and words.shape[1] > 1:
        return _from_sparse(words, ("texts were read as tf-idf word counts",))
    if any(letter.isalnum() for text in texts for letter in text):
        letters = _counted(texts, analyzer="char", ngram_range=(1, 3))
        if letters is not None:
            return _from_sparse(letters, ("texts were read as tf-idf letter counts, as too few words repeat",))
    raise InputError("the texts hold no word that occurs twice, so nothing can be learned")


def _counted(texts: list[str], **options: Any) -> Any:
    """TF-IDF weights, sparse (n, at most 50,000); None if nothing is in two texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        return TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=50_000, **options).fit_transform(texts)
    except ValueError:
        return None


def _from_sparse(X: Any, notes: tuple[str, ...] = ()) -> Rows:
    matrix = sparse.csr_array(X, dtype=np.float32)
    if not np.isfinite(matrix.data).all():
        raise InputError("the sparse features hold NaN or infinite values; replace them by numbers")
    if 0 in matrix.shape:
        raise InputError(f"features are empty: got shape {matrix.shape}")
    return Rows(matrix, np.zeros(matrix.shape[1], dtype=bool), notes)


def _from_frame(frame: pd.DataFrame) -> Rows:
    if 0 in frame.shape:
        raise InputError(f"features are empty: got a frame of {frame.shape[0]} rows and {frame.shape[1]} columns")
    encoded = [_encode(frame.iloc[:, k], str(frame.columns[k])) for k in range(frame.shape[1])]
    values = np.column_stack([column for column, _ in encoded])
    categorical = np.array([is_category for _, is_category in encoded])
    return _without_constants(_from_numbers(values), categorical)


def _encode(column: pd.Series[Any], name: str) -> tuple[Float, bool]:
    """One column as numbers, and whether they are mere names of levels."""
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        return np.asarray(column.astype("Float64").to_numpy(np.float64, na_value=np.nan)), False
    if pd.api.types.is_datetime64_any_dtype(column):
        # An origin in nanoseconds, pandas' usual unit, would not reach beyond 2262.
        since = pd.to_datetime(column, utc=True) - pd.Timestamp(0, tz="UTC").as_unit("s")
        return np.asarray(since.dt.total_seconds(), dtype=np.float64), False
    if pd.api.types.is_timedelta64_dtype(column):
        return np.asarray(column.dt.total_seconds(), dtype=np.float64), False
    return _encode_levels(column, name)


def _encode_levels(column: pd.Series[Any], name: str) -> tuple[Float, bool]:
    try:
        words = column.astype("string")
    except (TypeError, ValueError):
        raise InputError(f"column {name!r} holds {column.dtype} values that are neither numbers nor text") from None
    levels = np.sort(words.dropna().unique())
    if len(levels) > MAX_CATEGORIES:
        # Codes by order of appearance would tell a model where in the file a row stands; how often a level occurs
        # cannot, and a column of names (each once) becomes a constant that is dropped.
        counts = words.map(words.value_counts())
        return np.asarray(counts.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)), False
    codes = pd.Categorical(words, categories=levels).codes.astype(np.float64)
    return np.where(codes < 0, np.nan, codes), True


def _without_constants(values: Float32, categorical: npt.NDArray[np.bool_] | None) -> Rows:
    if categorical is None:
        categorical = np.zeros(values.shape[1], dtype=bool)
    missing = np.isnan(values)
    low = np.where(missing, np.inf, values).min(axis=0)
    high = np.where(missing, -np.inf, values).max(axis=0)
    # A column that is one number or missing still says something: which rows miss it.
    useful = (high > low) | ((high == low) & missing.any(axis=0))
    if not useful.any():
        raise InputError(
            f"all {values.shape[1]} feature columns are constant or empty, so labelled and unlabelled rows look the "
            "same; give features that differ between rows"
        )
    dropped = int((~useful).sum())
    notes = (f"{dropped} constant or empty columns were left out",) if dropped else ()
    return Rows(values[:, useful], categorical[useful], notes)


def _quantile_codes(rows: Rows) -> Float32:
    """Numbers with more than 200 values become the number of their quantile bin; NaN and the rest stay."""
    codes = np.array(rows.values, dtype=np.float32)
    for k in np.flatnonzero(~rows.categorical):
        column = codes[:, k]
        seen = column[~np.isnan(column)]
        if len(np.unique(seen)) > _TREE_BINS:
            edges = np.unique(np.quantile(seen, np.linspace(0.0, 1.0, _TREE_BINS + 1)[1:-1], method="lower"))
            codes[:, k] = np.where(np.isnan(column), np.nan, np.searchsorted(edges, column, side="right"))
    return codes


def _complete(rows: Rows) -> Float32:
    """No NaN, categories one-hot, unit variance; a missing number becomes the median and keeps a flag column."""
    values = np.asarray(rows.values)
    blocks = [_complete_numbers(values[:, ~rows.categorical])]
    for column in values[:, rows.categorical].T:
        levels = np.unique(column[~np.isnan(column)])
        blocks.append((column[:, None] == levels[None, :]).astype(np.float32))
    matrix = np.hstack(blocks)
    spread = matrix.std(axis=0)
    return np.asarray((matrix - matrix.mean(axis=0)) / np.where(spread > 0, spread, 1.0), dtype=np.float32)


def _complete_numbers(values: Float32) -> Float32:
    missing = np.isnan(values)
    partly = missing.any(axis=0)
    if not partly.any():
        return values
    medians = np.array([_median(column[~np.isnan(column)]) for column in values.T], dtype=np.float32)
    return np.hstack([np.where(missing, medians, values), missing[:, partly].astype(np.float32)])


def _median(values: Float32) -> float:
    return float(np.median(values)) if len(values) else 0.0


def _principal_components(matrix: Any, width: int) -> Float:
    """Projection on the leading components, which a sample of the rows determines well enough."""
    chosen = np.sort(np.random.default_rng(0).permutation(matrix.shape[0])[:_ROWS_FOR_COMPONENTS])
    model = TruncatedSVD if sparse.issparse(matrix) else PCA
    projected = np.asarray(model(width, random_state=0).fit(matrix[chosen]).transform(matrix))
    # One scale for all components keeps the geometry; distances then do not depend on units.
    scale = float(projected.std())
    return projected.astype(np.float64) / (scale if scale > 0 else 1.0)

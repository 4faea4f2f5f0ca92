from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from punce.columns.encoder import TableEncoder
from punce.columns.sparse import frame_from_sparse, matrix_from_sparse
from punce.errors import InputError
from punce.models.network import as_tensor
from punce.models.table import TableRoute, as_frame
from punce.models.tabular import TabularPU


def one_hot(rows: int = 60, columns: int = 12) -> sparse.csr_matrix:
    """Column 0 is full, column k has fewer non-zero rows the larger k is."""
    dense = (np.arange(rows)[:, None] % np.arange(1, columns + 1) == 0).astype(float)
    return sparse.csr_matrix(dense)


def test_a_small_sparse_table_is_the_dense_one() -> None:
    X = one_hot()
    assert as_frame(X).equals(as_frame(X.toarray().astype(np.float32)))


def test_a_large_one_keeps_the_columns_with_the_most_non_zero_rows_and_their_names() -> None:
    X = one_hot()
    kept = frame_from_sparse(X, most_cells=60 * 5)
    assert list(kept) == ["x0", "x1", "x2", "x3", "x4"]
    assert list(frame_from_sparse(X[:, ::-1], most_cells=60 * 3)) == ["x9", "x10", "x11"]
    assert list(frame_from_sparse(X[:7], names=("x9", "x2"))) == ["x9", "x2"]
    with pytest.raises(InputError, match="has no column 'x2'"):
        TableEncoder.fit(frame_from_sparse(X)).transform(frame_from_sparse(X[:, :5], names=("x1", "x11")))


def test_a_model_of_a_sparse_table_scores_sparse_and_dense_rows_alike() -> None:
    X, labels = one_hot(), (np.arange(60) % 3 == 0).astype(np.int8)
    route = TableRoute()
    route._encoder = TableEncoder.fit(as_frame(X))
    table = route._encoder.transform(as_frame(X))
    route._model = TabularPU(0.3, members=("forest",)).fit(table.values, table.categorical, labels)
    assert np.array_equal(route.score(X), route.score(X.toarray()))


def test_embeddings_become_dense_or_are_refused() -> None:
    X = one_hot()
    assert matrix_from_sparse(X).dtype == np.float32
    assert np.array_equal(matrix_from_sparse(X), X.toarray())
    with pytest.raises(InputError, match=r"60 × 12 would take .*TruncatedSVD"):
        matrix_from_sparse(X, most_cells=100)
    assert np.array_equal(as_tensor(X).numpy(), X.toarray())

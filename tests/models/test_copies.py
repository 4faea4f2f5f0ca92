"""Labelled rows that stand among the rows several times: a fit warns of them in Python as on the command line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix

from punce.classifier import ClassifierWarning, PUClassifier
from punce.columns.encoder import TableEncoder
from punce.models.copies import about_copies

LABELS = (np.arange(60) < 12).astype(np.int8)


def rows_with(copies: int) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    x[:copies] = x[11]
    return x


def as_table(x: np.ndarray) -> Any:
    frame = pd.DataFrame(x, columns=list("abcd"))
    frame.loc[:20, "b"] = np.nan
    return TableEncoder.fit(frame).unscaled(frame)


KINDS = [np.asarray, as_table, lambda x: [str(row) for row in x], np.ndarray.tolist, pd.DataFrame, torch.from_numpy]


def test_texts_with_half_a_surrogate_pair_are_compared() -> None:
    texts = [f"cut off \ud83d after {max(k, 6)}" for k in range(60)]
    assert about_copies(texts, LABELS).startswith("6 of 12 labelled rows are copies of another")


@pytest.mark.parametrize("kind", KINDS)
def test_copies_among_the_labelled_rows_are_told(kind: Any) -> None:
    assert about_copies(kind(rows_with(6)), LABELS).startswith("6 of 12 labelled rows are copies of another")
    assert about_copies(kind(rows_with(1)), LABELS) == ""  # one in twelve changes no number much


def test_rows_that_repeat_by_chance_are_no_copies_and_sparse_rows_are_not_compared() -> None:
    of_few_values = np.random.default_rng(1).integers(0, 2, size=(60, 2)).astype(np.float32)
    assert about_copies(of_few_values, LABELS) == ""
    assert about_copies(csr_matrix(rows_with(6)), LABELS) == ""


def test_a_fit_warns_of_them() -> None:
    """Of six copies each of ten rows of noise it said an AUC of 1.000 (0.987 to 1.000), and nothing else."""
    model = PUClassifier(kind="embedding", encoder="identity", risk="pupl", prior=0.4)
    with pytest.warns(ClassifierWarning) as told:
        model.fit(rows_with(6), LABELS)
    (said,) = [warning for warning in told if "are copies of another labelled row" in str(warning.message)]
    assert said.filename == __file__


@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")  # these rows are noise
def test_a_fit_takes_embeddings_as_a_list_of_lists() -> None:
    """It ended in "AttributeError: 'list' object has no attribute 'casefold'", because a list was taken for texts."""
    model = PUClassifier(kind="embedding", encoder="identity", risk="pupl", prior=0.4)
    x = rows_with(1)
    expected = model.fit(x, LABELS).scores_
    np.testing.assert_allclose(model.fit(x.tolist(), LABELS).scores_, expected, atol=1e-6)

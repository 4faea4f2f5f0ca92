"""Heads on features: they learn, their held-out scores are honest, and a stored model scores the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from punce.judging.ranking import auc_between
from punce.models.portfolio.heads import HEADS, HeadProblem
from punce.models.portfolio.model import FeatureModel
from punce.models.route import FitSettings

SETTINGS = FitSettings(
    loss="auto",
    risk="auto",
    transfer="probe",
    encoder="auto",
    prior=0.4,
    scenario="single_set",
    random_state=0,
    epochs=1,
    device="cpu",
    progress=False,
    folder=None,
)


def _rows(n: int = 600, seed: int = 0, apart: float = 2.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two classes that differ along one of ten directions; 60 of the positives are labelled."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < 0.5, 1, -1)
    x = rng.normal(size=(n, 10)).astype(np.float32)
    x[:, 3] += apart * (truth > 0)
    labels = np.zeros(n, dtype=np.int8)
    labels[np.flatnonzero(truth > 0)[:60]] = 1
    return x, labels, truth


@pytest.mark.parametrize("name", HEADS)
def test_every_head_learns(name: str) -> None:
    x, labels, truth = _rows()
    head = HEADS[name](HeadProblem(x, labels == 1, np.zeros(600, np.int8), np.ones(600), 0.4, 0))
    scores = head.score(x)
    assert auc_between(scores[(truth > 0) & (labels == 0)], scores[truth < 0]) > 0.85
    assert type(head).from_arrays(head.arrays()).score(x) == pytest.approx(scores)


@pytest.mark.parametrize("name", HEADS)
def test_known_truths_and_weights_change_a_head(name: str) -> None:
    x, labels, truth = _rows(apart=1.0)
    plain = HeadProblem(x, labels == 1, np.zeros(600, np.int8), np.ones(600), 0.4, 0)
    judged = np.where(labels == 0, truth, 0).astype(np.int8)
    judged[300:] = 0
    told = HEADS[name](replace(plain, truths=judged)).score(x)
    weighed = HEADS[name](replace(plain, counts=np.where(x[:, 0] > 0, 1.0, 0.0))).score(x)
    alone = HEADS[name](plain).score(x)
    assert not np.allclose(told, alone)
    assert not np.allclose(weighed, alone)


def test_a_feature_model_scores_every_row_by_heads_that_did_not_see_it() -> None:
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(400, 50)).astype(np.float32), np.repeat([1, 0], [40, 360]).astype(np.int8)
    fitted = FeatureModel.fit(x, labels, SETTINGS)[1]
    # In noise a model that saw its own rows ranks labelled ones far above chance.
    assert abs(auc_between(fitted.scores[labels == 1], fitted.scores[labels == 0]) - 0.5) < 0.15
    assert len(fitted.rows) == 400


def test_a_stored_feature_model_scores_the_same() -> None:
    x, labels, _ = _rows()
    model, _ = FeatureModel.fit(x, labels, SETTINGS)
    again = FeatureModel.from_state(*model.state())
    assert np.array_equal(again.score(x), model.score(x))
    assert model.embed(x).shape == (600, 10)
    assert sum(SETTINGS.used["members"].values()) == pytest.approx(1.0)

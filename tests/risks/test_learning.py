"""Each risk trains a small network on real rows: scikit-learn's digits, odd against even, 200 labelled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from torch import Tensor, nn

from punce.experiments.true_metrics import TrueMetrics, true_metrics
from punce.risks import Risk, build_risk
from punce.risks.elkan_noto import weighted_duplicates
from punce.risks.vpu import phi_decision_score, phi_scale


@dataclass(frozen=True)
class Digits:
    x: Tensor
    labels: Tensor
    prior: float
    weights: Tensor
    x_test: Tensor
    y_test: np.ndarray


@pytest.fixture(scope="module")
def digits() -> Digits:
    x, digit = load_digits(return_X_y=True)
    x, y = (x / 16).astype(np.float32), digit % 2
    rng = np.random.default_rng(0)
    order = rng.permutation(len(x))
    train, test = order[:1300], order[1300:]
    labels = np.zeros(1300, dtype=np.int8)
    labels[rng.permutation(np.flatnonzero(y[train] == 1))[:200]] = 1
    prior = float(y[train][labels == 0].mean())
    forest = RandomForestClassifier(60, min_samples_leaf=3, random_state=0)
    weights = weighted_duplicates(x[train], labels, prior, model=forest, n_splits=3)
    columns = (torch.from_numpy(x[train]), torch.from_numpy(labels), prior, torch.from_numpy(weights).float())
    return Digits(*columns, torch.from_numpy(x[test]), y[test])


def train(risk: Risk, digits: Digits, *extra: Tensor) -> tuple[Tensor, Tensor]:
    """Scores of the training and test rows after 150 steps on all rows."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(150):
        optimizer.zero_grad()
        risk(network(digits.x).squeeze(1), digits.labels, *extra).backward()
        optimizer.step()
    with torch.no_grad():
        return network(digits.x).squeeze(1), network(digits.x_test).squeeze(1)


def result(name: str, digits: Digits) -> TrueMetrics:
    risk = build_risk(name, digits.prior)
    extra = (digits.weights,) if name == "pvu" else ()
    train_scores, test_scores = train(risk, digits, *extra)
    cut = phi_decision_score(phi_scale(train_scores, 0.95)) if name == "vpu" else risk.decision_score
    return true_metrics(digits.y_test, test_scores, cut)


def test_corrected_risks_find_the_hidden_positives_and_the_naive_one_does_not(digits: Digits) -> None:
    naive = result("pn", digits)
    assert naive.accuracy < 0.7  # it ranks well and calls nearly everything negative
    for name, least in [("nnpu", 0.86), ("upu", 0.8), ("pvu", 0.86)]:
        accuracy = result(name, digits).accuracy
        assert accuracy > least, (name, accuracy)
        assert accuracy > naive.accuracy + 0.15, (name, accuracy, naive.accuracy)


def test_vpu_ranks_without_a_prior(digits: Digits) -> None:
    assert result("vpu", digits).auc > 0.9

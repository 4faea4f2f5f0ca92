"""What the classifier's heads are made of: each risk through the probe is the algorithm it is named after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from punce import PUClassifier
from punce.models.heads import drawn_by_weight
from punce.risks import PvU
from punce.stages.probe import LinearHead, ProbeConfig, probe
from punce.stages.selfpu import Trusted


def embeddings(prior: float = 0.5, n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    y = (random.random(n) < prior).astype(int)
    X = random.normal(0.8 * (2 * y[:, None] - 1), 1.0, (n, 6)).astype(np.float32)
    labels = np.zeros(n, int)
    labels[random.permutation(np.flatnonzero(y))[:60]] = 1
    return X, labels, y


def fitted(risk: str, **options: Any) -> tuple[PUClassifier, float]:
    X, labels, y = embeddings()
    settings = {"prior": 0.45, "epochs": 2, "encoder": "mlp", "risk": risk, **options}
    classifier = PUClassifier(**settings).fit(X, labels)
    return classifier, float(roc_auc_score(y[labels == 0], classifier.predict_proba(X[labels == 0])[:, 1]))


def probing(classifier: PUClassifier) -> list[dict[str, Any]]:
    return [row for row in classifier.history_ if row["stage"] == "probe"]


@pytest.mark.parametrize(("risk", "share"), [("pn", 0.5), ("nnpu", 0.25)])
def test_pn_draws_labelled_and_unlabelled_rows_equally_often(
    risk: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a quarter no row is more likely labelled than not where the prior is a third or more: epochs would tie."""
    shares: list[float | None] = []

    def noting(features: Any, labels: Any, risk: Any, config: ProbeConfig, **options: Any) -> LinearHead:
        shares.append(config.labelled_share)
        return probe(features, labels, risk, config, **options)

    monkeypatch.setattr("punce.stages.transfer.probe", noting)
    _, auc = fitted(risk)
    assert set(shares) == {share}  # the head, and those of the cross-fit
    assert auc > 0.85


def test_pvu_is_given_out_of_fold_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []
    weights_of = PvU._weights

    def noting(self: PvU, scores: Any, weights: Any) -> Any:
        seen.append(weights.numpy())
        return weights_of(self, scores, weights)

    monkeypatch.setattr(PvU, "_weights", noting)
    _, auc = fitted("pvu")
    assert seen
    assert all(len(np.unique(weights)) > 20 for weights in seen)
    assert auc > 0.85


def test_rows_of_weight_0_are_drawn_only_where_nothing_else_is_left() -> None:
    labels = np.repeat(np.array([1, 0, -1], dtype=np.int8), [3, 4, 2])
    weights = np.array([0, 2, 1, 1, 1, 1, 1, 0, 0], dtype=float)
    assert drawn_by_weight(labels, weights, 0).tolist() == [1, 1, 2, 3, 4, 5, 6]  # no negative is wanted
    weights[:3] = 0  # a fold that leaves labelled rows of weight 0
    assert drawn_by_weight(labels, weights, 0).tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_vpu_chooses_the_epoch_by_its_variational_loss() -> None:
    classifier, auc = fitted("vpu")
    losses = [row["held_out_variational"] for row in probing(classifier)]
    assert len(set(losses)) > 1
    assert auc > 0.85


@pytest.mark.parametrize("epochs", [1, 2, 8])
def test_self_pu_trusts_rows_however_few_the_epochs(epochs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    picked: list[float] = []
    pick = Trusted.pick

    def noting(self: Trusted, scores: Any, rows: Any, share: float, prior: float) -> None:
        picked.append(share)
        pick(self, scores, rows, share, prior)

    monkeypatch.setattr(Trusted, "pick", noting)
    fitted("selfpu", epochs=epochs, loss=None)
    assert picked[-2:] == [0.2, 0.3]

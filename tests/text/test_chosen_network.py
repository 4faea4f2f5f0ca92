"""Which network learns features from embeddings: by held-out rows, which are not those of the final fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from punce import PUClassifier
from punce.models import FitSettings, network
from punce.models.network import NetworkRoute, choose_network, fit_chosen_network, outer_split
from punce.models.route import Fitted

VIEW = {"noise": 0.1, "dropout": 0.2}


def settings(**changes: Any) -> FitSettings:
    classifier = PUClassifier(encoder="linear", epochs=2, device="cpu")
    classifier.seed_, classifier.kind_, classifier.encoder_ = 0, "text", "linear"
    return replace(classifier._settings(None), prior=0.3, **changes)


def rows(n_labelled: int = 80) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = np.zeros(400, dtype=np.int8)
    labels[:n_labelled] = 1
    return random.normal(labels[:, None], 1.0, (400, 6)).astype(np.float32), labels


@pytest.mark.parametrize(("mlp", "chosen"), [(0.9, "mlp"), (0.1, "linear"), (0.5, "linear")])
def test_the_network_that_ranks_held_out_rows_better_is_taken(
    monkeypatch: pytest.MonkeyPatch, mlp: float, chosen: str
) -> None:
    """Scores of the linear map are all alike (AUC 0.5); those of the MLP agree with the labels, or contradict them."""

    def scored(name: str, x: Any, labels: np.ndarray, *_: Any) -> tuple[None, Fitted]:
        sign = {0.9: 1.0, 0.1: -1.0, 0.5: 0.0}[mlp] if name == "mlp" else 0.0
        return None, Fitted(np.arange(100), sign * labels[:100].astype(float), [])

    monkeypatch.setattr(network, "_fit_network", scored)
    assert choose_network(*rows(), VIEW, settings()) == chosen


@pytest.mark.parametrize("changes", [{"loss": None}, {"risk": "selfpu", "loss": None}])
def test_where_there_is_nothing_to_choose_by_it_is_the_linear_map(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    monkeypatch.setattr(network, "_fit_network", None)  # not called
    assert choose_network(*rows(30), VIEW, settings()) == "linear"
    assert choose_network(*rows(), VIEW, settings(**changes)) == "linear"


def test_the_choice_sees_no_row_that_the_final_fit_holds_out(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = rows()
    seen: list[np.ndarray] = []
    fit = NetworkRoute.fit

    def spy(self: NetworkRoute, X: Any, labels: Any, settings: FitSettings) -> Fitted:
        seen.append(X)
        return fit(self, X, labels, settings)

    monkeypatch.setattr(NetworkRoute, "fit", spy)
    route, fitted = fit_chosen_network(x, labels, VIEW, settings())
    assert fitted.rows.tolist() == outer_split(labels, 0)[1].tolist()
    first, second, last = ({row.tobytes() for row in part} for part in seen)
    held_out = {row.tobytes() for row in x[fitted.rows]}
    assert first == second == last - held_out
    assert (route.score(x[fitted.rows]) == fitted.scores).all()

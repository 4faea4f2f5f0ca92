"""Shares of positives very near 0 or 1, given and estimated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from punce import PUClassifier, classifier
from punce.data import UserData, check
from punce.models import NetworkRoute
from punce.priors import PriorEstimate
from punce.product.page import report_content, started_map
from tests.product.clouds import FAST, clouds


def told(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The priors that routes are told from here on."""
    priors, fit = [], NetworkRoute.fit

    def recorded(self: NetworkRoute, X: Any, labels: Any, settings: Any) -> Any:
        priors.append(settings.prior)
        return fit(self, X, labels, settings)

    monkeypatch.setattr(NetworkRoute, "fit", recorded)
    return priors


@pytest.mark.parametrize("prior", [0.0004, 0.9996])
@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")
def test_a_given_prior_is_taken_as_it_is(prior: float, monkeypatch: pytest.MonkeyPatch) -> None:
    priors = told(monkeypatch)
    X, labels = clouds()
    model = PUClassifier(**{**FAST, "prior": prior}).fit(X, labels)
    assert priors == [prior]
    assert model.prior_.value == model.metrics_.unlabelled.prior == prior


@pytest.mark.parametrize(("low", "value", "high"), [(0.0, 0.0003, 0.0008), (0.9992, 0.9998, 1.0), (0.0, 0.0, 0.0)])
@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")
def test_an_estimated_prior_is_kept_from_0_and_1_within_its_interval(
    low: float, value: float, high: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"n_labelled": 75, "n_unlabelled": 225, "scenario": "single_set"}
    estimate = PriorEstimate(value, low, high, "bbe", counts, 0.3, 0.5)
    monkeypatch.setattr(classifier, "estimate_prior", lambda *args, **kwargs: estimate)
    priors = told(monkeypatch)
    X, labels = clouds()
    model = PUClassifier(**{**FAST, "prior": "auto"}).fit(X, labels)
    assert model.first_prior_ == estimate
    assert priors == [model.metrics_.unlabelled.prior] == [0.001 if value < 0.5 else 0.999]
    data = UserData("embedding", X, labels.astype(np.int8), pd.RangeIndex(len(X)), "rows.npy")
    content = report_content(model, data, check(data), X, (), {}, started_map(model, data, X))
    assert content.review is not None
    assert content.prior is not None
    assert content.prior.value == model.prior_.value

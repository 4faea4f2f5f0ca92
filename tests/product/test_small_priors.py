"""Shares of positives very near 0 or 1, given and estimated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from punce import PUClassifier
from punce.data import UserData, check
from punce.judging import used_prior
from punce.models import AutoRoute
from punce.priors import PriorEstimate
from punce.product.page import report_content, started_map
from tests.product.clouds import FAST, clouds

pytestmark = pytest.mark.usefixtures("quick_tables")


def told(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The priors that routes are told from here on."""
    priors, fit = [], AutoRoute.fit

    def recorded(self: AutoRoute, X: Any, labels: Any, settings: Any) -> Any:
        priors.append(settings.prior)
        return fit(self, X, labels, settings)

    monkeypatch.setattr(AutoRoute, "fit", recorded)
    return priors


@pytest.mark.parametrize("prior", [0.0004, 0.9996])
@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")
def test_a_given_prior_is_taken_as_it_is(prior: float, monkeypatch: pytest.MonkeyPatch) -> None:
    priors = told(monkeypatch)
    X, labels = clouds()
    model = PUClassifier(**{**FAST, "prior": prior}).fit(X, labels)
    assert priors == [pytest.approx(prior)]
    assert model.prior_.value == prior
    assert model.metrics_.unlabelled.prior == pytest.approx(prior)


@pytest.mark.parametrize(("low", "value", "high"), [(0.0, 0.0003, 0.0008), (0.9992, 0.9998, 1.0), (0.0, 0.0, 0.0)])
@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")
def test_an_estimated_prior_is_kept_from_0_and_1_within_its_interval(
    low: float, value: float, high: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"n_labelled": 75, "n_unlabelled": 225, "scenario": "single_set"}
    estimate = PriorEstimate(value, low, high, "bbe", counts, 0.3, 0.5)
    monkeypatch.setattr(used_prior, "estimate_quietly", lambda *args, **kwargs: estimate)
    priors = told(monkeypatch)
    X, labels = clouds()
    model = PUClassifier(**{**FAST, "prior": "auto"}).fit(X, labels)
    assert model.first_prior_ == estimate
    # the second estimate, from the learned scores, moves it a little
    assert priors == [pytest.approx(0.001 if value < 0.5 else 0.999)] == [pytest.approx(model.prior_.value, abs=0.02)]
    data = UserData("embedding", X, labels.astype(np.int8), pd.RangeIndex(len(X)), "rows.npy")
    content = report_content(model, data, check(data), X, (), {}, started_map(model, data, X))
    # Scores that separate the rows contradict a share near 1: whether they do here is for the last bits to decide.
    assert content.review is not None or value > 0.5
    assert content.prior is not None
    assert content.prior.value == model.prior_.value

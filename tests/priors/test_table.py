"""The table of all estimators, and how results leave Python."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from punce.errors import InputError
from punce.priors import PRIORS, PriorTable, PriorWarning, estimate_prior
from tests.priors.mixtures import fast_classifier, gaussians


@pytest.fixture(scope="module")
def table() -> PriorTable:
    data = gaussians(0.3, n_p=60, n_u=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        return estimate_prior(data.X, data.labels, "all", classifier=fast_classifier())


def test_holds_every_estimator_in_order(table: PriorTable) -> None:
    assert [e.method for e in table] == list(PRIORS)
    assert len(table) == len(PRIORS)
    assert table["bbe"].method == "bbe"
    assert table.failures == {}


def test_becomes_a_frame(table: PriorTable) -> None:
    frame = table.to_frame()
    assert list(frame.index) == list(PRIORS)
    assert frame.loc["bbe", "value"] == table["bbe"].value
    assert (frame["seconds"] >= 0).all()


def test_becomes_json(table: PriorTable) -> None:
    plain = json.loads(json.dumps(table.as_dict()))
    assert [e["method"] for e in plain["estimates"]] == list(PRIORS)
    dedpul = next(e for e in plain["estimates"] if e["method"] == "dedpul")
    assert dedpul["diagnostics"]["posteriors"]["length"] == 200


@pytest.mark.filterwarnings("ignore::punce.priors.PriorWarning")
def test_an_estimator_that_cannot_run_is_listed_with_its_reason() -> None:
    data = gaussians(0.5, n_p=2, n_u=40)
    table = estimate_prior(data.X, data.labels, "all", classifier=fast_classifier())
    assert set(table.failures) == {"tedn"}
    with pytest.raises(InputError, match="needs 3 labelled positives"):
        table["tedn"]
    with pytest.raises(InputError, match="no estimate is called"):
        table["magic"]


@pytest.mark.filterwarnings("ignore::punce.priors.PriorWarning")
def test_equal_scores_leave_the_estimators_that_read_features() -> None:
    data = gaussians(0.3, n_p=30, n_u=100)
    same = np.zeros(len(data.labels))
    table = estimate_prior(data.X, data.labels, "all", scores=same, classifier=fast_classifier())
    assert set(table.failures) == {name for name, kind in PRIORS.items() if kind.reads == "scores"}
    assert any("all scores are equal" in text for text in table.warnings)
    alone = estimate_prior(data.X, data.labels, "tice", scores=same)
    assert alone.value == table["tice"].value
    assert any("all scores are equal" in text for text in alone.warnings)


def test_when_nothing_can_run_the_reasons_are_given() -> None:
    with pytest.raises(InputError, match="no estimator could be run"):
        estimate_prior(np.ones((30, 2)), np.r_[np.ones(10), np.zeros(20)], "all")

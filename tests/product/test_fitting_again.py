"""A fit leaves nothing of an earlier or a failed one behind."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from punce import PUClassifier
from punce.errors import InputError
from punce.judging import judgement
from tests.product.clouds import FAST, clouds

pytestmark = pytest.mark.usefixtures("quick_tables")


def failing(*args: Any, **kwargs: Any) -> float:
    raise InputError("no threshold")


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(clouds()[0], columns=list("abcd"))


@pytest.mark.parametrize("fitted_before", [True, False])
def test_a_failed_fit_leaves_no_fit(fitted_before: bool, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    model, labels = PUClassifier(**FAST), clouds()[1]
    if fitted_before:
        model.fit(frame, labels)
    parameters = model.get_params()
    with monkeypatch.context() as patch:
        patch.setattr(judgement, "choose_threshold", failing)
        with pytest.raises(InputError, match="no threshold"):
            model.fit(frame, labels)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError):
        model.predict(frame)
    assert vars(model) == parameters
    assert model.fit(frame, labels).predict(frame).shape == (300,)


def test_wrong_arguments_leave_no_fit_either(frame: pd.DataFrame) -> None:
    model = PUClassifier(**FAST).fit(frame, clouds()[1])
    with pytest.raises(InputError, match="loss must be"):
        model.set_params(loss="mse").fit(frame, clouds()[1])
    with pytest.raises(NotFittedError):
        model.predict(frame)


def test_names_of_an_earlier_table_are_forgotten(frame: pd.DataFrame) -> None:
    X, labels = clouds()
    model = PUClassifier(**FAST).fit(frame, labels)
    assert list(model.feature_names_in_) == list("abcd")
    model.fit(X, labels)
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(X).shape == (300,)

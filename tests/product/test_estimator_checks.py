"""scikit-learn's own checks. What cannot hold for a PU classifier is named with its reason."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from punce import PUClassifier

_VOCABULARY = "y holds classes such as 2 or 'one'; labels here mean labelled positive (1) and unlabelled (0)"
_TOO_FEW = "fits with two labelled rows, of which none can be held out to calibrate on"
EXPECTED = {
    "check_estimators_dtypes": _VOCABULARY,
    "check_classifier_data_not_an_array": _VOCABULARY,
    "check_classifiers_classes": _VOCABULARY,
    "check_dont_overwrite_parameters": _TOO_FEW,
    "check_f_contiguous_array_estimator": _TOO_FEW,
    "check_methods_sample_order_invariance": _TOO_FEW,
    "check_methods_subset_invariance": _TOO_FEW,
    "check_dict_unchanged": _TOO_FEW,
    "check_fit2d_predict1d": _TOO_FEW,
}


def _checks() -> list[Any]:
    checks = estimator_checks_generator(PUClassifier(prior=0.4), expected_failed_checks=EXPECTED, mark="xfail")
    return [pytest.param(estimator, check, id=_name(check)) for estimator, check in _unmarked(checks)]


def _unmarked(checks: Any) -> list[tuple[Any, Callable[..., None]]]:
    pairs = [getattr(item, "values", item) for item in checks]
    return [(estimator, check) for estimator, check in pairs if _name(check) not in EXPECTED]


def _name(check: Any) -> str:
    return str(getattr(check, "func", check).__name__)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), _checks())
def test_scikit_learn_estimator_checks(estimator: PUClassifier, check: Callable[..., None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)

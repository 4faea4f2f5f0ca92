"""Ordinary metrics by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from punce.errors import InputError
from punce.experiments.true_metrics import expected_calibration_error, true_metrics


def test_true_metrics_by_hand() -> None:
    y, scores = [1, 1, 1, 0, 0], [2.0, 1.0, -1.0, 1.0, -3.0]
    result = true_metrics(y, scores)
    assert result.accuracy == pytest.approx(3 / 5)
    assert result.precision == pytest.approx(2 / 3)
    assert result.recall == pytest.approx(2 / 3)
    assert result.f1 == pytest.approx(2 / 3)
    assert result.auc == pytest.approx((2 + 1.5 + 1) / 6)
    assert result == true_metrics([1, 1, 1, -1, -1], scores)
    one_class = true_metrics([1, 1], [1.0, -1.0])
    assert math.isnan(one_class.auc)
    assert one_class.accuracy == 0.5


def test_true_labels_are_checked() -> None:
    with pytest.raises(InputError, match=r"y_true must be 1 and 0, or 1 and -1; it holds \[-1, 0, 1\]"):
        true_metrics([1, 0, -1], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="one label for each of the 2 scores"):
        true_metrics([1], [1.0, 2.0])


def test_calibration_error_by_hand_and_for_calibrated_probabilities() -> None:
    assert expected_calibration_error([1, 0, 1, 1], [0.9, 0.1, 0.9, 0.9], n_bins=2) == pytest.approx(0.1)
    assert expected_calibration_error([0, 0], [1.0, 1.0]) == 1.0
    rng = np.random.default_rng(9)
    probability = rng.random(200_000)
    y = rng.random(200_000) < probability
    assert expected_calibration_error(y, probability) < 0.01
    assert expected_calibration_error(y, probability**2) > 0.1
    with pytest.raises(InputError, match=r"probability must lie in \[0, 1\], got values from 0 to 2"):
        expected_calibration_error([1, 0], [2.0, 0.0])

"""Ordinary metrics from true labels, for benchmarks and experiments. Never for choosing a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import metrics

from punce.errors import InputError


@dataclass(frozen=True)
class TrueMetrics:
    """`auc` is NaN when only one class is present."""

    accuracy: float
    precision: float
    recall: float
    f1: float
    auc: float
    n: int


def true_metrics(y_true: npt.ArrayLike, scores: Any, threshold: float = 0.0) -> TrueMetrics:
    """scikit-learn's metrics of scores against true labels (1 positive; 0 or −1 negative)."""
    y, values = _checked(y_true, scores)
    called = values > threshold
    both_classes = y.any() and not y.all()
    return TrueMetrics(
        accuracy=float(metrics.accuracy_score(y, called)),
        precision=float(metrics.precision_score(y, called, zero_division=0.0)),
        recall=float(metrics.recall_score(y, called, zero_division=0.0)),
        f1=float(metrics.f1_score(y, called, zero_division=0.0)),
        auc=float(metrics.roc_auc_score(y, values)) if both_classes else np.nan,
        n=len(values),
    )


def expected_calibration_error(y_true: npt.ArrayLike, probability: Any, n_bins: int = 15) -> float:
    """Mean over equal-width bins, weighted by rows, of |share of positives − mean probability|."""
    y, values = _checked(y_true, probability)
    if values.min() < 0.0 or values.max() > 1.0:
        raise InputError(f"probability must lie in [0, 1], got values from {values.min():g} to {values.max():g}")
    bins = np.minimum((values * n_bins).astype(np.int64), n_bins - 1)
    return float(np.abs(np.bincount(bins, weights=y - values)).sum() / len(values))


def _checked(y_true: npt.ArrayLike, scores: Any) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Is each row positive, and its score. Shape: (n,), (n,)."""
    values = np.asarray(scores.detach().cpu() if hasattr(scores, "detach") else scores, dtype=np.float64)
    y = np.asarray(y_true)
    if values.ndim != 1 or y.shape != values.shape or not len(y):
        raise InputError(f"y_true must have one label for each of the {len(values)} scores, got shape {y.shape}")
    found = np.unique(y)
    if not (np.isin(found, (0, 1)).all() or np.isin(found, (-1, 1)).all()):
        raise InputError(f"y_true must be 1 and 0, or 1 and -1; it holds {found[:5].tolist()}")
    return y == 1, values

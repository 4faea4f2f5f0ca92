"""From what a caller passes to a :class:`~punce.priors.sample.Sample`, or a refusal with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from punce.errors import InputError
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, as_labels, require_positive_and_unlabelled
from punce.priors.crossfit import check_classifier
from punce.priors.features import Float
from punce.priors.sample import Sample


def read_sample(X: Any, labels: Any, scores: Any, classifier: Any, random_state: int | None) -> tuple[Sample, int]:
    """The rows of the two groups, and how many rows labelled negative were set aside."""
    codes = _codes(labels)
    require_positive_and_unlabelled(codes)
    if X is None and scores is None:
        raise InputError("give features X, or held-out scores=, or both")
    if classifier is not None:
        check_classifier(classifier)
    given = None if scores is None else _checked_scores(scores, len(codes))
    if X is not None and _length(X) != len(codes):
        raise InputError(f"{_length(X)} rows of features but {len(codes)} labels")
    used = codes != NEGATIVE
    aside = int((~used).sum())
    if aside:
        X = None if X is None else _take(X, np.flatnonzero(used))
        given = None if given is None else given[used]
    return Sample(X, codes[used] == POSITIVE, given, classifier, _seed(random_state)), aside


def _codes(labels: Any) -> npt.NDArray[np.int8]:
    codes = as_labels(labels, setting="pnu")
    # Only 1 and -1: the convention in which -1 means unlabelled.
    return codes if (codes == UNLABELLED).any() else as_labels(labels, setting="pu")


def _checked_scores(scores: Any, expected: int) -> Float:
    if hasattr(scores, "detach"):
        scores = scores.detach().cpu().numpy()
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(
            f"scores must be one number a row, got shape {values.shape}; of predict_proba take the column [:, 1]"
        )
    if len(values) != expected:
        raise InputError(f"{len(values)} scores but {expected} labels")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InputError(
            f"scores hold {len(bad)} NaN or infinite values, first at row {bad[0]}; every row needs a score"
        )
    return values


def _seed(random_state: int | None) -> int:
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise InputError(f"random_state must be a non-negative integer or None, got {random_state!r}")
    return int(random_state)


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") and len(X.shape) else len(X)


def _take(X: Any, rows: npt.NDArray[np.intp]) -> Any:
    if hasattr(X, "tocsr"):  # any sparse format
        return X.tocsr()[rows]
    if isinstance(X, list | tuple):
        return [X[k] for k in rows]
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]

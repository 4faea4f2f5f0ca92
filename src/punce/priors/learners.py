"""Several quick views of the same rows: an estimate that only one learner supports is not reliable.

Boosting cuts columns, a linear model adds them up, a kernel model follows smooth curves. With about a hundred labels
the two ridge models rank better than boosting on most tables, in a tenth of its time.
"""

from __future__ import annotations

import math

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier

from punce.columns.dense import DenseColumns
from punce.priors.crossfit import out_of_fold
from punce.priors.features import Float, Rows
from punce.priors.sample import Sample
from punce.training.cpus import limited_threads, threads_for

_LINEAR, _KERNEL = 0.2, 0.02  # penalties at 100 labelled rows, per row
_GAMMA = 0.3  # over the number of columns, which is about half the squared distance of two rows
_CENTRES = 200
_MOST_KERNEL_ROWS = 200_000  # beyond, similarities to all centres take gigabytes, and trees have rows enough


def learned_scores(sample: Sample) -> dict[str, Float]:
    """Out-of-fold scores (n,) of every learner and of their mean; the caller's own where there are any."""
    if sample.given_scores is not None:
        return {"given": sample.given_scores}
    if sample.given_classifier is not None or sample.rows.is_sparse:
        return {"classifier": sample.fitted.scores}
    found = {"boosting": sample.fitted.scores, **_ridges(sample)}
    # A learner that scores every row alike has nothing to add.
    varying = {name: scores for name, scores in found.items() if np.ptp(scores) > 0}
    if len(varying) < 2:
        return varying or found
    return {**varying, "mean": np.mean([(s - s.mean()) / s.std() for s in varying.values()], axis=0)}


def _dense(rows: Rows) -> Float:
    """Normal scores and categories, each column with the same spread; principal components as they are.

    The spread of a column says nothing, but that of a component says how much of the rows it holds.
    """
    values = np.asarray(rows.narrow.values)
    if rows.narrow is not rows:
        return values.astype(np.float64)
    dense = DenseColumns.fit(values, rows.categorical).transform(values).astype(np.float64)
    spread = dense.std(axis=0)
    return np.asarray((dense - dense.mean(axis=0))[:, spread > 0] / spread[spread > 0], dtype=np.float64)


def _ridges(sample: Sample) -> dict[str, Float]:
    dense = _dense(sample.rows)
    if dense.shape[1] == 0:  # one value that most rows lack: where it is missing it counts as equal
        return {}
    kernel = Nystroem(gamma=_GAMMA / dense.shape[1], n_components=min(_CENTRES, len(dense)), random_state=sample.seed)
    # The noise of the labelled rows' mean falls with their number, and so does the penalty that it calls for.
    per_row = len(dense) * math.sqrt(100.0 / sample.n_p)
    maps = {"linear": (dense, _LINEAR)}
    if len(dense) <= _MOST_KERNEL_ROWS:
        with limited_threads(threads_for(dense.size)):
            maps["kernel"] = (kernel.fit_transform(dense), _KERNEL)
    return {
        name: out_of_fold(
            features,
            sample.is_p,
            RidgeClassifier(alpha=penalty * per_row, class_weight="balanced"),
            sample.seed,
            fold_with=sample.copies.fold_with,
        ).scores
        for name, (features, penalty) in maps.items()
    }

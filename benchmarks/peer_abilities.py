"""What the libraries beside punce can do that its tables do not show: each is run once (peers.py ``--only abilities``).

On the breast cancer table of peers.py, seed 0: the share of positives among the unlabelled rows with its interval, and
classifiers that learn a representation by contrast from labelled positives and unlabelled rows, told the true share.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

Rows = np.ndarray


def punce_share(x: Rows, labels: Rows) -> dict[str, Any]:
    from punce.priors import estimate_prior

    found = estimate_prior(x, labels)
    return {"share": found.value, "interval": [found.low, found.high]}


def pulearn_share(x: Rows, labels: Rows) -> dict[str, Any]:
    """Its prior is that of all rows; here it is turned into that of the unlabelled ones, as in the others."""
    import pulearn

    found = pulearn.ScarEMPriorEstimator().bootstrap(x, labels, n_resamples=20, confidence_level=0.9, random_state=0)
    interval = found.confidence_interval
    n, labelled = len(labels), int(labels.sum())
    share, low, high = ((pi * n - labelled) / (n - labelled) for pi in (found.pi, interval.lower, interval.upper))
    return {"share": share, "interval": [low, high]}


def toolbox_share(x: Rows, labels: Rows) -> dict[str, Any]:
    from pu_toolbox.prior.kernel_mean import KernelMeanPriorEstimator

    return {"share": float(KernelMeanPriorEstimator().fit(x, labels).estimate()), "interval": None}


def contrastive(model: Any, x: Rows, labels: Rows, x_test: Rows, y_test: Rows) -> dict[str, Any]:
    from sklearn.metrics import roc_auc_score

    p = np.asarray(model.fit(x, labels).predict_proba(x_test))[:, 1]
    return {"auc": float(roc_auc_score(y_test, p))}


def punce_contrastive(prior: float) -> Any:
    from punce import PUClassifier

    return PUClassifier(kind="embedding", loss="punce", risk="nnpu", encoder="mlp", prior=prior, random_state=0)


def toolbox_contrastive(prior: float) -> Any:
    from pu_toolbox.estimators.deep.weighted_contrastive_pu import WeightedContrastivePUClassifier

    return WeightedContrastivePUClassifier(prior, random_state=0)


SHARES: dict[str, Callable[[Rows, Rows], dict[str, Any]]] = {
    "punce combined": punce_share,
    "pulearn SCAR-EM": pulearn_share,
    "pu-toolbox KM1": toolbox_share,
}
CONTRASTIVE: dict[str, Callable[[float], Any]] = {
    "punce puNCE": punce_contrastive,
    "pu-toolbox WConPU": toolbox_contrastive,
}


def abilities(name: str, problem: tuple[Rows, Rows, Rows, Rows, float]) -> dict[str, Any]:
    x, labels, x_test, y_test, prior = problem
    start = time.process_time()
    if name in SHARES:
        found = {**SHARES[name](x, labels), "true": prior}
    else:
        found = contrastive(CONTRASTIVE[name](prior), x, labels, x_test, y_test)
    return {**found, "seconds": time.process_time() - start}

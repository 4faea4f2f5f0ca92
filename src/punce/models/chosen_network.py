"""Embeddings of texts: which network learns features from them is decided by rows that it did not see.

A linear map is the safe choice where the signal is weak (sentiment): an MLP then learns the labelled rows by heart and
does far worse. Where the signal is strong (spam) the MLP is the better one. No true label is needed to tell: the AUC
of labelled against unlabelled rows, on rows held out of pretraining and head, orders networks like the true AUC.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from sklearn.metrics import roc_auc_score

from punce.labels import POSITIVE, Labels
from punce.models.heads import automatic_epochs, pretrains
from punce.models.network import NetworkRoute, outer_split
from punce.models.route import FitSettings, Fitted

log = logging.getLogger("punce")

NETWORKS = ("linear", "mlp")  # the first is taken where they cannot be told apart
EPOCHS = 25
"""At most; with more, both begin to learn the labelled rows by heart."""
_FEWEST = 50  # labelled rows below which the held-out ones are too few to choose by


def fit_chosen_network(
    x: Any, labels: Labels, view: dict[str, float], settings: FitSettings
) -> tuple[NetworkRoute, Fitted]:
    """The better network by rows held out of it, trained on all rows but those that the final fit holds out.

    Shape: x float32 (n, d). The rows for the choice are taken from the final fit's training rows, so the scores that
    come back are still those of rows that nothing has seen.
    """
    settings = replace(settings, epochs=settings.epochs or min(EPOCHS, automatic_epochs(len(x))))
    train = outer_split(labels, settings.random_state)[0].numpy()
    name = choose_network(x[train], labels[train], view, settings)
    return _fit(name, x, labels, view, settings)


def choose_network(x: Any, labels: Labels, view: dict[str, float], settings: FitSettings) -> str:
    """Name of the network whose held-out scores rank labelled rows highest among unlabelled ones."""
    if not pretrains(settings) or int((labels == POSITIVE).sum()) < _FEWEST:
        return NETWORKS[0]
    found = {}
    for name in NETWORKS:
        folder = settings.folder / f"try-{name}" if settings.folder else None
        fitted = _fit(name, x, labels, view, replace(settings, folder=folder))[1]
        found[name] = float(roc_auc_score(labels[fitted.rows] == POSITIVE, fitted.scores))
    best = max(NETWORKS, key=lambda name: found[name])
    log.info("features by %s; AUC of labelled against unlabelled rows by network: %s", best, found)
    return best


def _fit(
    name: str, x: Any, labels: Labels, view: dict[str, float], settings: FitSettings
) -> tuple[NetworkRoute, Fitted]:
    route = NetworkRoute({"name": "embedding", "options": view})
    return route, route.fit(x, labels, replace(settings, encoder=name))

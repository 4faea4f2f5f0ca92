"""FeatureModel: heads cross-fitted on features, brought to one scale, weighed by held-out labelled rows, summed.

As for tables: every head is trained once for each fold on all the other folds. The models of all folds together score
new rows (a bag of K); the one that did not see a row gives that row's out-of-fold score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from punce.labels import POSITIVE, Labels
from punce.models.portfolio.directions import Directions
from punce.models.portfolio.heads import HEADS, Head, HeadProblem, Linear
from punce.models.route import FitSettings, Fitted, Floats, State, under
from punce.models.tabular.model import scale_of, stratified_folds
from punce.models.tabular.weighing import cross_fitted, member_weights

Values = npt.NDArray[np.float32]
_FOLDS = 5


@dataclass(frozen=True)
class FeatureModel:
    """Scores of features by weighted heads. `fitted` has one head for each fold, `scales` centre and spread."""

    directions: Directions
    fitted: Mapping[str, Sequence[Head]]
    weights: Mapping[str, float]
    scales: Mapping[str, tuple[float, float]]

    @classmethod
    def fit(cls, features: Values, labels: Labels, settings: FitSettings) -> tuple[FeatureModel, Fitted]:
        """Learn from labels of {1, 0}; `settings` gives prior, truths, weights, seed and progress.

        Every row has a score by heads that did not see it. ``settings.used`` is told the heads and their weights.
        Shape: features float32 (n, D), finite; labels (n,).
        """
        directions = Directions.fit(features, settings.random_state)
        problem = _problem(directions(features), labels, settings)
        n_folds = max(2, min(_FOLDS, int(problem.is_p.sum())))
        folds = stratified_folds(labels, n_folds, settings.random_state)
        fitted, held_out = {}, {}
        for name, learn in HEADS.items():
            fitted[name] = [learn(_part(problem, folds != k)) for k in range(n_folds)]
            held_out[name] = np.empty(len(labels))
            for k, head in enumerate(fitted[name]):
                held_out[name][folds == k] = head.score(problem.x[folds == k])
        scales = {name: scale_of(scores, labels) for name, scores in held_out.items()}
        scaled = {name: (scores - scales[name][0]) / scales[name][1] for name, scores in held_out.items()}
        weights = member_weights(scaled, labels)
        settings.used["members"] = dict(weights)
        model = cls(directions, fitted, weights, scales)
        # Judged by weights that the row itself had no say in
        scores = cross_fitted(scaled, labels, folds)
        return model, Fitted(np.arange(len(labels)), scores, [], sees_more=False)

    def score(self, features: Values) -> Floats:
        """Shape: (n, D) -> (n,)."""
        x, total = self.directions(features), np.zeros(len(features))
        for name, weight in self.weights.items():
            if weight > 0:
                centre, spread = self.scales[name]
                scores = np.mean([head.score(x) for head in self.fitted[name]], axis=0)
                total += weight * (scores - centre) / spread
        return total

    def embed(self, features: Values) -> Floats:
        """What the heads see. Shape: (n, D) -> (n, M)."""
        return self.directions(features).astype(np.float64)

    def state(self) -> State:
        """Arrays as tensors; names, weights and scales as JSON."""
        arrays = {f"directions.{name}": array for name, array in self.directions.arrays().items()}
        for place, heads in enumerate(self.fitted.values()):
            for k, head in enumerate(heads):
                arrays |= {f"head.{place}.{k}.{name}": array for name, array in head.arrays().items()}
        members = [
            {"name": name, "folds": len(heads), "weight": self.weights[name], "scale": list(self.scales[name])}
            for name, heads in self.fitted.items()
        ]
        return {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()}, {"members": members}

    @classmethod
    def from_state(cls, tensors: Mapping[str, torch.Tensor], content: Mapping[str, Any]) -> FeatureModel:
        """Inverse of :meth:`state`."""
        arrays, members = {name: tensor.numpy() for name, tensor in tensors.items()}, content["members"]
        return cls(
            Directions.from_arrays(under(arrays, "directions.")),
            {
                own["name"]: [Linear.from_arrays(under(arrays, f"head.{place}.{k}.")) for k in range(own["folds"])]
                for place, own in enumerate(members)
            },
            {own["name"]: float(own["weight"]) for own in members},
            {own["name"]: (float(own["scale"][0]), float(own["scale"][1])) for own in members},
        )


def _problem(x: Values, labels: Labels, settings: FitSettings) -> HeadProblem:
    truths = getattr(settings, "truths", None)
    return HeadProblem(
        x,
        labels == POSITIVE,
        np.zeros(len(labels), dtype=np.int8) if truths is None else truths,
        np.ones(len(labels)) if settings.weights is None else settings.weights,
        settings.prior,
        settings.random_state,
    )


def _part(problem: HeadProblem, rows: npt.NDArray[np.bool_]) -> HeadProblem:
    return HeadProblem(
        problem.x[rows],
        problem.is_p[rows],
        problem.truths[rows],
        problem.counts[rows],
        problem.prior,
        problem.seed,
    )

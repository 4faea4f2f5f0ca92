"""Portfolio: heads on several features, cross-fitted, brought to one scale, weighed by held-out labelled rows, summed.

As for tables: every head is trained once for each fold on all the other folds. The models of all folds together score
new rows (a bag of K); the one that did not see a row gives that row's out-of-fold score. No true label is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.models.known_rows import known_weight
from punce.models.portfolio.contrastive import trained
from punce.models.portfolio.directions import MOST, Directions
from punce.models.portfolio.heads import HEADS, SPARSE, Head, HeadProblem, Linear
from punce.models.portfolio.readers import Counted, Given, Raw, Reader, reader_from_state
from punce.models.portfolio.weighing import candidate_weights, cross_fitted
from punce.models.route import LEARNED_FROM_KNOWN, FitSettings, Fitted, Flags, Floats, State, under
from punce.models.tabular.model import scale_of, stratified_folds

Values = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]
_RAW = "raw"
_FOLDS = 5
_MANY = 200  # labelled rows from which three folds hold enough of them
_MOST_UNLABELLED = 50_000  # rows a head learns from; every row is scored
_ROWS_AT_ONCE = 100_000  # bounds the memory of scoring


@dataclass(frozen=True)
class Member:
    """One head on one kind of features. `heads` has one for each fold; `scale` is centre and spread of its scores."""

    features: str
    head: str
    heads: Sequence[Head]
    scale: tuple[float, float]
    weight: float

    @property
    def name(self) -> str:
        """As the report shows it."""
        return f"{self.features}, {self.head}"


@dataclass(frozen=True)
class Portfolio:
    """Scores of rows (n, ...) by weighed members. `readers` has one of a kind for all folds, or one for each."""

    readers: Mapping[str, Sequence[Reader]]
    members: Sequence[Member]

    @classmethod
    def fit(cls, rows: Given, labels: Labels, settings: FitSettings, device: torch.device) -> tuple[Portfolio, Fitted]:
        """Learn from rows and labels of {1, 0}; ``settings.used`` is told the members and their weights."""
        n_labelled = int((labels == POSITIVE).sum())
        n_folds = 3 if n_labelled >= _MANY else max(2, min(_FOLDS, n_labelled))
        folds = stratified_folds(labels, n_folds, settings.random_state, settings.truths)
        settings.used[LEARNED_FROM_KNOWN] = True
        learned = trained(rows.x, labels, folds, settings, device)
        readers: dict[str, Sequence[Reader]] = {_RAW: (Raw.fit(rows.x, settings.random_state),), **learned.readers}
        if rows.counts is not None:
            readers["words"] = (Counted(),)
        members, held_out = [], {}
        for features, own in readers.items():
            for head, (heads, scores) in _cross_fitted_heads(own, rows, labels, folds, settings).items():
                centre, spread = scale_of(scores, labels)
                member = Member(features, head, heads, (centre, spread), 0.0)
                members.append(member)
                held_out[member.name] = (scores - centre) / spread
        weights = candidate_weights(held_out, labels)
        settings.used["members"] = dict(weights)
        kept = [Member(m.features, m.head, m.heads, m.scale, weights[m.name]) for m in members if weights[m.name] > 0]
        # The rows' own features stay in any case: they are what a map can show.
        used = {name: own for name, own in readers.items() if name == _RAW or any(m.features == name for m in kept)}
        # Judged by weights that the row itself had no say in
        scores = cross_fitted(held_out, labels, folds)
        fitted = Fitted(np.arange(len(labels)), scores, learned.history, _notes(labels), bool(learned.readers))
        return cls(used, kept), fitted

    def score(self, rows: Given) -> Floats:
        """Shape: n rows -> (n,)."""
        starts = range(0, max(len(rows), 1), _ROWS_AT_ONCE)
        return np.concatenate([self._score(rows.part(start, _ROWS_AT_ONCE)) for start in starts])

    def _score(self, rows: Given) -> Floats:
        total = np.zeros(len(rows))
        for name, readers in self.readers.items():
            own = [member for member in self.members if member.features == name]
            n_folds = len(own[0].heads) if own else 0
            for k in range(n_folds):
                if k < len(readers):  # else one reader serves all folds
                    features = readers[k](rows)
                for member in own:
                    centre, spread = member.scale
                    total += member.weight / n_folds * (member.heads[k].score(features) - centre) / spread
        return total

    def embed(self, rows: Given) -> Floats:
        """The features that count most, word counts apart. Shape: n rows -> (n, M)."""
        dense = [name for name, readers in self.readers.items() if not isinstance(readers[0], Counted)]
        counts = {name: sum(m.weight for m in self.members if m.features == name) for name in dense}
        features: Floats = self.readers[max(counts, key=counts.__getitem__)][0](rows).astype(np.float64)
        return features

    def state(self) -> State:
        """Arrays as tensors; names, weights and scales as JSON."""
        tensors: dict[str, Tensor] = {}
        content: dict[str, Any] = {"readers": [], "members": []}
        for i, (name, readers) in enumerate(self.readers.items()):
            specs = []
            for k, reader in enumerate(readers):
                own, spec = reader.state()
                tensors |= {f"reader.{i}.{k}.{key}": value for key, value in own.items()}
                specs.append(spec)
            content["readers"].append({"name": name, "own": specs})
        for i, member in enumerate(self.members):
            for k, head in enumerate(member.heads):
                arrays = {f"head.{i}.{k}.{name}": array for name, array in head.arrays().items()}
                tensors |= {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
            content["members"].append(
                {
                    **{"features": member.features, "head": member.head, "folds": len(member.heads)},
                    **{"weight": member.weight, "scale": list(member.scale)},
                }
            )
        return tensors, content

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> Portfolio:
        """Inverse of :meth:`state`."""
        readers = {
            entry["name"]: [
                reader_from_state(under(tensors, f"reader.{i}.{k}."), s) for k, s in enumerate(entry["own"])
            ]
            for i, entry in enumerate(content["readers"])
        }
        arrays = {name: tensor.numpy() for name, tensor in tensors.items() if name.startswith("head.")}
        members = [
            Member(
                own["features"],
                own["head"],
                [Linear.from_arrays(under(arrays, f"head.{i}.{k}.")) for k in range(own["folds"])],
                (float(own["scale"][0]), float(own["scale"][1])),
                float(own["weight"]),
            )
            for i, own in enumerate(content["members"])
        ]
        return cls(readers, members)


@dataclass(frozen=True)
class FeatureModel:
    """A portfolio on ready-made features, which are first reduced to their main directions (at most 256)."""

    directions: Directions
    portfolio: Portfolio

    @classmethod
    def fit(
        cls, features: Values, labels: Labels, settings: FitSettings, counts: Any = None
    ) -> tuple[FeatureModel, Fitted]:
        """Learn from labels of {1, 0}; `settings` gives prior, truths, weights, seed, folder and progress.

        Every row has a score by models that did not see it. ``settings.used`` is told the members and their weights.
        Shape: features float32 (n, D), finite; labels (n,); counts sparse (n, W), a text's weighted words.
        """
        directions = Directions.fit(features, settings.random_state)
        x = torch.from_numpy(directions(features))
        portfolio, fitted = Portfolio.fit(Given(x, counts), labels, settings, torch.device("cpu"))
        return cls(directions, portfolio), fitted

    def score(self, features: Values, counts: Any = None) -> Floats:
        """Shape: (n, D), sparse (n, W) -> (n,)."""
        return self.portfolio.score(Given(torch.from_numpy(self.directions(features)), counts))

    def embed(self, features: Values) -> Floats:
        """Shape: (n, D) -> (n, M)."""
        return self.portfolio.embed(Given(torch.from_numpy(self.directions(features))))

    def state(self) -> State:
        """Arrays as tensors, the rest as JSON."""
        own = {f"directions.{name}": torch.from_numpy(array) for name, array in self.directions.arrays().items()}
        tensors, content = self.portfolio.state()
        return own | tensors, content

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> FeatureModel:
        """Inverse of :meth:`state`."""
        arrays = {name: tensor.numpy() for name, tensor in under(tensors, "directions.").items()}
        return cls(Directions.from_arrays(arrays), Portfolio.from_state(tensors, content))


def _cross_fitted_heads(
    readers: Sequence[Reader], rows: Given, labels: Labels, folds: Rows, settings: FitSettings
) -> dict[str, tuple[list[Head], Floats]]:
    """By name, each fold's head and every row's score by the one that did not see it."""
    names = SPARSE if isinstance(readers[0], Counted) else tuple(HEADS)
    found: dict[str, tuple[list[Head], Floats]] = {name: ([], np.empty(len(labels))) for name in names}
    kept = _thinned(settings.known_classes(labels), settings.random_state)
    for k in range(int(folds.max()) + 1):
        if k < len(readers):  # else one reader serves all folds
            features = readers[k](rows)
        inside, rest = folds == k, kept & (folds != k)
        problem = _problem(features, labels, rest, settings)
        for name, (heads, scores) in found.items():
            heads.append(HEADS[name](problem))
            scores[inside] = heads[-1].score(features[inside])
    return found


def _problem(x: Any, labels: Labels, rows: Flags, settings: FitSettings) -> HeadProblem:
    truths = np.zeros_like(labels) if settings.truths is None else settings.truths
    counts = np.ones(len(labels)) if settings.weights is None else settings.weights
    is_p = labels == POSITIVE
    prior = settings.prior_of_rest(labels)
    if truths.any():
        n_u = int((settings.known_classes(labels) == UNLABELLED).sum())
        counts = counts * np.where(truths != 0, known_weight(prior, int(is_p.sum()), n_u), 1.0)
    return HeadProblem(x[rows], is_p[rows], truths[rows], counts[rows], prior, settings.random_state)


def _thinned(labels: Labels, seed: int) -> Flags:
    """Which rows heads learn from: all of known class and at most 50,000 others."""
    unlabelled = np.random.default_rng(seed).permutation(np.flatnonzero(labels == UNLABELLED))
    kept = np.ones(len(labels), dtype=bool)
    kept[unlabelled[_MOST_UNLABELLED:]] = False
    return kept


def _notes(labels: Labels) -> tuple[str, ...]:
    """Where the work is bounded, a person should know."""
    n_unlabelled = int((labels == UNLABELLED).sum())
    if n_unlabelled <= _MOST_UNLABELLED:
        return ()
    learned = f"the models learned from {_MOST_UNLABELLED:,} of {n_unlabelled:,} unlabelled rows, drawn at random"
    return (f"{learned}; every row was scored",)


def about_width(width: int) -> tuple[str, ...]:
    """A note on embeddings that are reduced."""
    if width <= MOST:
        return ()
    return (f"the {width:,} numbers of a row were reduced to the {MOST} directions in which rows differ most",)

"""Portfolio: heads on several features teach students, which are weighted by held-out labelled rows and summed.

As for tables: every head is trained once for each fold on all the other folds. The models of all folds together score
new rows (a bag of K); the one that did not see a row gives that row's out-of-fold score. No true label is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.errors import first_of
from punce.labels import POSITIVE, Labels
from punce.models.portfolio.candidates import RAW, ROWS_AT_ONCE, WORDS, Candidates, Member
from punce.models.portfolio.directions import MOST, Directions
from punce.models.portfolio.heads import head_from_arrays
from punce.models.portfolio.networks import networks
from punce.models.portfolio.readers import Counted, Given, Reader, reader_from_state
from punce.models.portfolio.students import taught
from punce.models.portfolio.weighing import candidate_weights, cross_fitted, ranks, weights_beside
from punce.models.route import FitSettings, Fitted, Floats, State, under
from punce.models.tabular.model import about_rows
from punce.storage.json_tree import decode

Values = npt.NDArray[np.float32]

_FEW, _NEARLY_ALL = 20, 0.999  # of D numbers, D / 20 make so much of the variance: at 0.99 no head is misled
_ROWS_COMPARED = 5_000
LOOKED_AT = 30
"""Leading directions by which the check of the labelling sees a row: later ones are mostly noise."""


@dataclass(frozen=True)
class _ReaderFile:
    name: str
    own: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class _MemberFile:
    features: str
    head: str
    folds: int
    weight: float
    scales: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class _PortfolioFile:
    readers: tuple[_ReaderFile, ...]
    members: tuple[_MemberFile, ...]


@dataclass(frozen=True)
class Portfolio:
    """Scores of rows (n, ...) by weighed members. `readers` has one of a kind for all folds, or one for each."""

    readers: Mapping[str, Sequence[Reader]]
    members: Sequence[Member]

    @classmethod
    def fit(cls, rows: Given, labels: Labels, settings: FitSettings, device: torch.device) -> tuple[Portfolio, Fitted]:
        """Learn from rows and labels of {1, 0}; ``settings.used`` is told the members and their weights."""
        teachers = Candidates.fit(rows, labels, settings, device)
        students = networks(taught(teachers, rows, labels, settings), rows, labels, settings, device)
        portfolio = cls.weighed(students, labels, settings.prior)
        weights = {member.name: member.weight for member in portfolio.members}
        settings.used["members"] = {name: weights.get(name, 0.0) for name in students.held_out}
        settings.used["teachers"] = candidate_weights(teachers.held_out, labels, settings.prior)
        settings.used["held_out_auc"] = ranks({**teachers.held_out, **students.held_out}, labels)
        # Judged by weights that the row itself had no say in
        scores = cross_fitted(students.held_out, labels, students.folds, settings.prior, students.apart)
        # The first prior was estimated on raw numbers or words: only other features can tell more rows apart.
        sees_more = any(name not in (RAW, WORDS) for name in students.readers)
        notes = (*about_rows(labels), *students.notes)
        is_p = labels == POSITIVE
        seen = is_p & (is_p.sum() == 1)  # of a single labelled row every head has learned
        fitted = Fitted(np.arange(len(labels)), scores, students.history, notes, sees_more, seen=seen)
        raw = teachers.readers[RAW][0]
        return portfolio, replace(fitted, features=lambda some: raw(rows.of(some))[:, :LOOKED_AT], are_directions=True)

    @classmethod
    def weighed(cls, candidates: Candidates, labels: Labels, prior: float) -> Portfolio:
        """The candidates by what held-out labelled rows say of them; those without weight are dropped."""
        weights, readers = weights_beside(candidates.held_out, labels, prior, candidates.apart), candidates.readers
        kept = [replace(m, weight=weights[m.name]) for m in candidates.members if weights[m.name] > 0]
        # The rows' own features stay in any case: they are what a map can show.
        used = {name: own for name, own in readers.items() if name == RAW or any(m.features == name for m in kept)}
        return cls(used, kept)

    def score(self, rows: Given) -> Floats:
        """Shape: n rows -> (n,)."""
        starts = range(0, max(len(rows), 1), ROWS_AT_ONCE)
        return np.concatenate([self._score(rows.part(start, ROWS_AT_ONCE)) for start in starts])

    def _score(self, rows: Given) -> Floats:
        total = np.zeros(len(rows))
        for name, readers in self.readers.items():
            own = [member for member in self.members if member.features == name]
            n_folds = len(own[0].heads) if own else 0
            for k in range(n_folds):
                if k < len(readers):  # else one reader serves all folds
                    features = readers[k](rows)
                for member in own:
                    centre, spread = member.scales[k]
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
                    **{"weight": member.weight, "scales": [list(scale) for scale in member.scales]},
                }
            )
        return tensors, content

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> Portfolio:
        """Inverse of :meth:`state`."""
        saved: _PortfolioFile = decode(_PortfolioFile, content, "portfolio")
        readers = {
            entry.name: [reader_from_state(under(tensors, f"reader.{i}.{k}."), own) for k, own in enumerate(entry.own)]
            for i, entry in enumerate(saved.readers)
        }
        arrays = {name: tensor.numpy() for name, tensor in tensors.items() if name.startswith("head.")}
        members = []
        for i, own in enumerate(saved.members):
            if not own.folds == len(own.scales) > 0:
                raise ValueError("a candidate needs a scale for each of its heads")
            # One reader serves all folds, or each has its own.
            if len(readers.get(own.features, ())) not in (1, own.folds):
                raise ValueError(f"a candidate reads {own.features!r}, for which there is no reader")
            heads = [head_from_arrays(under(arrays, f"head.{i}.{k}.")) for k in range(own.folds)]
            members.append(Member(own.features, own.head, heads, own.scales, own.weight))
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
        """Learn from labels of {1, 0}; `settings` gives prior, truths, weights, seed, device, folder and progress.

        Every row has a score by models that did not see it. ``settings.used`` is told the members and their weights.
        Shape: features float32 (n, D), finite; labels (n,); counts sparse (n, W), a text's weighted words.
        """
        directions = Directions.fit(features, settings.random_state)
        x = torch.from_numpy(directions(features))
        # The encoders are small: a GPU is used if it is asked for. With one in use, heads learn one after the other.
        device = torch.device("cpu" if settings.device == "auto" else settings.device)
        portfolio, fitted = Portfolio.fit(Given(x, counts), labels, settings, device)
        return cls(directions, portfolio), fitted

    def score(self, features: Values, counts: Any = None) -> Floats:
        """Shape: (n, D), sparse (n, W) -> (n,)."""
        return self.portfolio.score(Given(torch.from_numpy(self.directions(features)), counts))

    def embed(self, features: Values) -> Floats:
        """Shape: (n, D) -> (n, M)."""
        return self.portfolio.embed(Given(torch.from_numpy(self.directions(features))))

    def about_width(self) -> tuple[str, ...]:
        """A note on embeddings that are reduced."""
        width, kept = self.directions.rotation.shape
        what = f"the {width:,} numbers of a row were reduced to the {kept} directions in which rows differ most"
        return (what,) if width > MOST else ()

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


def about_scales(x: Values) -> tuple[str, ...]:
    """A note on embeddings of which a few numbers, on a far larger scale, hide the others. Shape: (n, D)."""
    some = x[:: -(-len(x) // _ROWS_COMPARED)].astype(np.float64)
    variance = some.var(axis=0)
    largest = np.argsort(-variance)[: max(1, len(variance) // _FEW)]
    shares = np.cumsum(variance[largest]) / max(float(variance.sum()), np.finfo(np.float64).tiny)
    if len(variance) == 1 or shares[-1] <= _NEARLY_ALL:
        return ()
    n = int(np.argmax(shares > _NEARLY_ALL)) + 1
    named = first_of([str(k) for k in np.sort(largest[:n])])
    return (
        f"{_NEARLY_ALL:.1%} of the variance is in {n:,} of the {len(variance):,} numbers of a row ({named}), so that "
        "the others hardly count; bring all to one scale (scikit-learn's StandardScaler), or leave these out",
    )

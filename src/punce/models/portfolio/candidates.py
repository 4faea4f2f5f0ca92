"""Candidates: every head on every kind of features, cross-fitted and brought to one scale, not yet weighed.

Shapes: n rows, K folds, M features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from punce.errors import InputError
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.models.known_rows import known_weight
from punce.models.portfolio.contrastive import trained
from punce.models.portfolio.heads import DEFAULT, HEADS, SPARSE, Head, HeadProblem
from punce.models.portfolio.patches import Patches, has_patches
from punce.models.portfolio.readers import Counted, Given, Patched, Raw, Reader
from punce.models.route import LEARNED_FROM_KNOWN, FitSettings, Floats
from punce.models.tabular.model import rows_to_learn_from, scale_of, stratified_folds
from punce.training.parallel import beside, in_parallel

Rows = npt.NDArray[np.intp]
RAW, PATCHES, WORDS = "raw", "patches", "words"
_FOLDS = 5
_FEWEST_FOR_SCALE = 2  # unlabelled rows of a fold that have a centre and a spread
_MANY = 200  # labelled rows from which three folds hold enough of them
Learn = Callable[[HeadProblem, int], Head]
"""From the rows outside a fold, and its number, to a head."""
ROWS_AT_ONCE = 100_000
"""Bounds the memory of scoring."""


@dataclass(frozen=True)
class Member:
    """One head on one kind of features. `heads` has one for each fold, `scales` the centre and spread of its scores."""

    features: str
    head: str
    heads: Sequence[Head]
    scales: Sequence[tuple[float, float]]
    weight: float

    @property
    def name(self) -> str:
        """As the report shows it."""
        return f"{self.features}, {self.head}"


@dataclass(frozen=True)
class Candidates:
    """`readers` has one of a kind for all folds, or one for each; `held_out` every row's scores by name of the member.

    `seen` are the scores that fold k's head gives the rows it learned from, which are number k of `learned_from`.
    Shape: folds (n,), held_out (n,) each, by heads that did not see the row, on one common scale.
    """

    readers: Mapping[str, Sequence[Reader]]
    members: Sequence[Member]
    held_out: Mapping[str, Floats]
    folds: Rows
    seen: Mapping[str, Sequence[Floats]]
    learned_from: Sequence[Rows]
    history: list[dict[str, Any]]
    notes: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    """Names of members that are weighed against the sum of all others."""

    @classmethod
    def fit(
        cls,
        rows: Given,
        labels: Labels,
        settings: FitSettings,
        device: torch.device,
        *,
        heads: Sequence[str] = DEFAULT,
        losses: Sequence[str] | None = None,
    ) -> Candidates:
        """Every one of the `heads` on untrained features, on InfoNCE's, and on those of `losses` that use labels."""
        n_labelled = int((labels == POSITIVE).sum())
        if int((labels == UNLABELLED).sum()) < _FEWEST_FOR_SCALE:
            raise InputError("one unlabelled row cannot be both learned from and held out: give at least 2")
        n_folds = 3 if n_labelled >= _MANY else max(2, min(_FOLDS, n_labelled))
        folds = stratified_folds(labels, n_folds, settings.random_state, settings.truths)
        settings.used[LEARNED_FROM_KNOWN] = True
        kept = np.zeros(len(labels), dtype=bool)
        kept[rows_to_learn_from(settings.known_classes(labels), settings.random_state)] = True
        # A single labelled row cannot be left out: nothing would be left to learn from.
        is_everywhere = (labels == POSITIVE) & (n_labelled == 1)
        learned_from = [np.flatnonzero(kept & ((folds != k) | is_everywhere)) for k in range(n_folds)]
        none = cls({}, (), {}, folds, {}, learned_from, [])
        learners = {name: partial(_by_name, name) for name in heads}

        def on_untrained() -> Candidates:
            readers = _untrained(rows, settings.random_state)
            return replace(none, readers=readers).learned(rows, labels, settings, learners, SPARSE)

        # Pretraining without labels keeps one CPU busy. Many rows wait: a second process would need their memory again.
        untrained = beside(on_untrained) if len(rows) <= ROWS_AT_ONCE else on_untrained
        learned = trained(rows.x, labels, folds, settings, device, losses)
        others = replace(none, readers=learned.readers, history=learned.history, notes=learned.notes)
        return untrained().joined(others.learned(rows, labels, settings, learners, SPARSE))

    def joined(self, others: Candidates) -> Candidates:
        """These and others of the same rows and folds; history and notes are those of the others."""
        return replace(
            others,
            readers={**self.readers, **others.readers},
            members=[*self.members, *others.members],
            held_out={**self.held_out, **others.held_out},
            seen={**self.seen, **others.seen},
        )

    def learned(
        self, rows: Given, labels: Labels, settings: FitSettings, heads: Mapping[str, Learn], sparse: Sequence[str]
    ) -> Candidates:
        """Other heads on the same features and folds, cross-fitted; those named in `sparse` on word counts, too."""
        members, held_out, seen = [], {}, {}
        for features, readers in self.readers.items():
            own = {name: head for name, head in heads.items() if name in sparse or not isinstance(readers[0], Counted)}
            for head, found in self._cross_fitted(readers, rows, labels, settings, own).items():
                own_scales = scales(found.held_out, labels, self.folds)
                member = Member(features, head, found.heads, own_scales, 0.0)
                members.append(member)
                centre, spread = np.array(own_scales)[self.folds].T
                held_out[member.name] = (found.held_out - centre) / spread
                seen[member.name] = found.seen
        return replace(self, members=members, held_out=held_out, seen=seen)

    def _cross_fitted(
        self,
        readers: Sequence[Reader],
        rows: Given,
        labels: Labels,
        settings: FitSettings,
        learners: Mapping[str, Learn],
    ) -> dict[str, _CrossFitted]:
        """By name, each fold's head and every row's score by the one that did not see it."""
        shared = _Features(readers[0], rows) if len(readers) == 1 else None  # else each fold has its own reader

        def of_fold(k: int) -> dict[str, tuple[Head, Floats, Floats]]:
            features, inside = shared or _Features(readers[k], rows), np.flatnonzero(self.folds == k)
            problem = _problem(features.of(self.learned_from[k]), labels, self.learned_from[k], settings)
            heads = {name: learn(problem, k) for name, learn in learners.items()}
            scores: dict[str, list[Floats]] = {name: [] for name in heads}
            for part in np.array_split(inside, -(-len(inside) // ROWS_AT_ONCE)):
                own = features.of(part)
                for name, head in heads.items():
                    scores[name].append(head.score(own))
            # Also the scores of the rows it learned from: from these, students are taught.
            return {name: (head, np.concatenate(scores[name]), head.score(problem.x)) for name, head in heads.items()}

        found = {name: _CrossFitted([], np.empty(len(labels)), []) for name in learners}
        # Folds side by side on one thread each: BLAS's threads would wait for each other longer than they work.
        n_folds = len(self.learned_from)
        for k, fitted in enumerate(in_parallel([partial(of_fold, k) for k in range(n_folds)])):
            for name, (head, own, seen) in fitted.items():
                found[name].heads.append(head)
                found[name].seen.append(seen)
                found[name].held_out[self.folds == k] = own
        return found

    def only(self, features: Sequence[str], heads: Sequence[str]) -> Candidates:
        """The candidates with these features and heads."""
        members = [m for m in self.members if m.features in features and m.head in heads]
        readers = {name: own for name, own in self.readers.items() if name in features}
        held_out = {m.name: self.held_out[m.name] for m in members}
        seen = {m.name: self.seen[m.name] for m in members}
        return replace(self, readers=readers, members=members, held_out=held_out, seen=seen)


@dataclass(frozen=True)
class _CrossFitted:
    """One head on one kind of features: each fold's, every row's held-out score, and those of the rows it saw."""

    heads: list[Head]
    held_out: Floats
    seen: list[Floats]


def _by_name(name: str, problem: HeadProblem, fold: int) -> Head:
    """A head of the catalogue, which is the same for every fold."""
    return HEADS[name](problem)


def _untrained(rows: Given, seed: int) -> dict[str, Sequence[Reader]]:
    """The rows' own numbers, images also by patches, texts also by words."""
    readers: dict[str, Sequence[Reader]] = {RAW: (Raw.fit(rows.x, seed),)}
    if has_patches(rows.x):
        readers[PATCHES] = (Patched(Patches.fit(rows.x, seed)),)
    if rows.counts is not None:
        readers[WORDS] = (Counted(),)
    return readers


class _Features:
    """Features of rows by number: of all at once, or of those that are asked for where all would take much memory."""

    def __init__(self, reader: Reader, rows: Given) -> None:
        self._reader, self._rows = reader, rows
        self._all = reader(rows) if len(rows) <= ROWS_AT_ONCE else None

    def of(self, rows: Rows) -> Any:
        """Shape: numbers (m,) -> (m, M)."""
        return self._reader(self._rows.of(rows)) if self._all is None else self._all[rows]


def scales(scores: Floats, labels: Labels, folds: Rows) -> list[tuple[float, float]]:
    """Centre and spread of each fold's head, on the rows it did not see.

    Of each fold by itself: one that chose another strength of regularisation gives scores on quite another scale, and
    rows of several folds could not be ranked together. Unlabelled rows of all folds are samples of the same rows; a
    fold that has next to none takes the scale of all.
    """
    of_all, found = scale_of(scores, labels), []
    for k in range(int(folds.max()) + 1):
        own = folds == k
        has_enough = int((labels[own] == UNLABELLED).sum()) >= _FEWEST_FOR_SCALE
        found.append(scale_of(scores[own], labels[own]) if has_enough else of_all)
    return found


def _problem(x: Any, labels: Labels, rows: Rows, settings: FitSettings) -> HeadProblem:
    """What a head learns from. Shape: x (m, M), features of the rows of these numbers; labels (n,), rows (m,)."""
    truths = np.zeros_like(labels) if settings.truths is None else settings.truths
    counts = np.ones(len(labels)) if settings.weights is None else settings.weights
    is_p = labels == POSITIVE
    prior = settings.prior_of_rest(labels)
    if truths.any():
        n_u = int((settings.known_classes(labels) == UNLABELLED).sum())
        counts = counts * np.where(truths != 0, known_weight(prior, int(is_p.sum()), n_u), 1.0)
    return HeadProblem(x, is_p[rows], truths[rows], counts[rows], prior, settings.random_state)

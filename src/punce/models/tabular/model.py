"""TabularPU: members cross-fitted on the same folds, brought to one scale, weighted by what held-out rows say, summed.

Every member trains one model for each fold on all the other folds. The models of all folds together are the scorer
(a bag of K), and the model that did not see a row gives that row's out-of-fold score: honest scores for calibration,
thresholds and metrics without negatives cost nothing extra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from punce.columns.bins import Bins
from punce.errors import InputError
from punce.labels import (
    NEGATIVE,
    POSITIVE,
    UNLABELLED,
    Labels,
    prior_of_rest,
    refuse_negatives,
    require_positive_and_unlabelled,
)
from punce.models.route import under
from punce.models.tabular.kernel import Kernel, Linear
from punce.models.tabular.network import Networks
from punce.models.tabular.steps import Step, Steps
from punce.models.tabular.teachers import MOST_COLUMNS, TableLesson, lesson_of, threads_of
from punce.models.tabular.tree_members import Boosting, Forest, PUTrees
from punce.models.tabular.trees import AnyArray, Arrays, Flags, Floats, Rows, Values
from punce.models.tabular.weighing import cross_fitted, member_weights
from punce.options import FEWEST_FOR_ENSEMBLE
from punce.scenario import Scenario, check_prior, check_scenario
from punce.storage.json_tree import decode
from punce.training.cpus import limited_threads, threads_for
from punce.training.progress import StageProgress

_FORMAT = 1
_FOLDS = 5
_ROUNDING = 1e-6  # of the span of scores, some of which are float32
MOST_UNLABELLED = 50_000
"""Unlabelled rows that the models learn from, which bounds the time; every row is scored all the same."""


class Member(Protocol):
    """K models of one kind, model k trained without fold k."""

    @classmethod
    def steps(cls, lesson: TableLesson) -> dict[str, Step]:
        """What takes time, by name; model k learns from every fold but k. Steps run side by side, and are stored."""

    @classmethod
    def from_steps(cls, lesson: TableLesson, arrays: Sequence[Arrays]) -> Self:
        """The member that its steps, in their order, have learned."""

    def scores(self, binned: Values) -> Floats:
        """Scores on the scale of log-odds. Shape: (n, d) -> (K, n)."""

    def held_out_scores(self, binned: Values, folds: Rows) -> Floats:
        """Each row's score by the model that did not see its fold. Shape: (n, d), (n,) -> (n,)."""

    def arrays(self) -> Arrays:
        """Everything needed to score, as arrays."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> Self:
        """What `arrays` gave."""


MEMBERS: dict[str, type[Member]] = {
    "boosting": Boosting,
    "forest": Forest,
    "nnpu": Networks,
    "pu_trees": PUTrees,
    "kernel": Kernel,
    "linear": Linear,
}
"""The members by name. A new one is a class like these and one line here."""


@dataclass(frozen=True)
class _TabularFile:
    """The JSON of a :class:`TabularPU`."""

    format: int
    prior: float
    scenario: Scenario
    random_state: int
    members: tuple[str, ...]
    repeats: int
    fitted: dict[str, int]
    n_columns: int
    weights: dict[str, float]
    scales: dict[str, tuple[float, float]]


class TabularPU:
    """The default scorer for tables.

    Args:
        prior: share of positives among the unlabelled rows, strictly between 0 and 1.
        scenario: how the labels came about; kept for whoever calibrates, the ranking does not depend on it.
        random_state: seed of folds, trees and networks. Same seed, same scores.
        members: names in :data:`punce.models.tabular.model.MEMBERS`.

    `score` is larger for rows that look more positive; only its order and, through
    :class:`~punce.judging.calibration.PUCalibrator`, its held-out odds have a meaning.
    """

    def __init__(
        self,
        prior: float,
        scenario: Scenario = "single_set",
        random_state: int = 0,
        members: Sequence[str] = tuple(MEMBERS),
    ) -> None:
        check_scenario(scenario)
        unknown = [name for name in members if name not in MEMBERS]
        if unknown or not members:
            raise InputError(f"members must be some of {sorted(MEMBERS)}, got {list(members)}")
        self.prior = check_prior(prior, open_interval=True)
        self.scenario: Scenario = scenario
        self.random_state = int(random_state)
        self.members = tuple(members)

    def fit(
        self,
        values: Values,
        categorical: Flags,
        labels: Labels,
        *,
        weights: Floats | None = None,
        truths: Labels | None = None,
        folder: Path | None = None,
        progress: bool = False,
    ) -> TabularPU:
        """Shape: values (n, d) with NaN where missing, categorical (d,), labels (n,) of {1, 0}, weights (n,).

        `weights` say how much each row counts in the training of every member, not in how the members are weighed.
        `truths` (n,) are the class, 1 or -1, of rows of label 0 whose class is known, else 0: every member learns from
        them, and a row's out-of-fold score is by models that did not see its truth.

        With a `folder` every finished step is stored there, and a repeated fit reads it instead of computing it.
        """
        labels = np.asarray(labels)
        values, categorical = _checked(values, categorical, labels)
        self.n_columns_ = values.shape[1]
        self.bins_ = Bins.fit(values, categorical)
        binned = self.bins_.transform(values)
        n_folds = min(_FOLDS, int((labels == POSITIVE).sum()))
        seed, folds = self.random_state, stratified_folds(labels, n_folds, self.random_state, truths)
        known = labels if truths is None else np.where(truths != 0, truths, labels)
        rows = rows_to_learn_from(known, seed + 1)  # the folds are drawn from the seed itself
        inputs = {"binned": binned, "categorical": categorical, "labels": labels, "prior": self.prior}
        inputs |= {"format": _FORMAT} if weights is None else {"format": _FORMAT, "weights": weights}
        inputs |= {} if truths is None else {"truths": truths}
        # Teachers and most members take a step for each fold; the networks train all folds in one.
        total = n_folds * (1 + len(self.members)) - ("nnpu" in self.members) * (n_folds - 1)
        threads = threads_of(binned[rows])
        with StageProgress("table", total, len(labels), shown=progress) as bar:
            run = Steps(folder, inputs, threads, bar)
            own = None if weights is None else weights[rows] / weights[rows].mean()
            prior = prior_of_rest(self.prior, labels, truths)
            lesson = lesson_of(binned[rows], categorical, known[rows], folds[rows], prior, seed, run, own)
            lesson = lesson if truths is None else lesson.with_heavier(truths[rows] != 0)
            self.fitted_ = self._learned(lesson, run)
            with limited_threads(threads):
                held_out = {name: member.held_out_scores(binned, folds) for name, member in self.fitted_.items()}
        self.scales_ = {name: scale_of(scores, labels) for name, scores in held_out.items()}
        self.member_scores_ = self._scaled(held_out)
        self.weights_ = member_weights(self.member_scores_, labels)
        # The scores that are judged: a row has no say in the weights that its own score is made with.
        self.folds_, self.out_of_fold_scores_ = folds, cross_fitted(self.member_scores_, labels, folds)
        self.notes_ = _notes(values.shape[1], labels)
        return self

    def _learned(self, lesson: TableLesson, run: Steps) -> dict[str, Member]:
        """The steps of all members at once, the longest first: the fewer steps a member has, the longer one takes."""
        steps = {name: MEMBERS[name].steps(lesson) for name in self.members}
        order = sorted(steps, key=lambda name: len(steps[name]))
        arrays = iter(run({key: step for name in order for key, step in steps[name].items()}))
        own = {name: list(islice(arrays, len(steps[name]))) for name in order}
        return {name: MEMBERS[name].from_steps(lesson, own[name]) for name in self.members}

    def score(self, values: Values) -> Floats:
        """Shape: (n, d) -> (n,)."""
        values = np.asarray(values, dtype=np.float32)
        if values.ndim != 2 or values.shape[1] != self.n_columns_:
            raise InputError(f"fitted on {self.n_columns_} columns, got rows of shape {values.shape}")
        return self.score_binned(self.bins_.transform(values))

    def score_binned(self, binned: Values, folds: Rows | None = None) -> Floats:
        """Scores of rows in bins, by all models or by those that did not see each row's fold.

        Shape: (n, d), (n,) of 0 … K−1 -> (n,).
        """
        with limited_threads(threads_for(binned.size)):
            scores = {
                name: member.scores(binned).mean(axis=0) if folds is None else member.held_out_scores(binned, folds)
                for name, member in self.fitted_.items()
                if self.weights_[name] > 0
            }
        return self._combined(scores)

    def _combined(self, scores: Mapping[str, Floats]) -> Floats:
        """The weighted sum of the members' scores."""
        combined: Floats = np.sum([self.weights_[name] * own for name, own in self._scaled(scores).items()], axis=0)
        return combined

    def _scaled(self, scores: Mapping[str, Floats]) -> dict[str, Floats]:
        """The members' scores on one common scale: (s − centre)/spread of the unlabelled rows."""
        return {name: (own - self.scales_[name][0]) / self.scales_[name][1] for name, own in scores.items()}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors for safetensors and a dictionary for JSON: all that :meth:`from_state` needs to score."""
        arrays: Arrays = {"out_of_fold_scores": self.out_of_fold_scores_}
        arrays.update({f"bins.{key}": array for key, array in self.bins_.arrays().items()})
        for name, member in self.fitted_.items():  # 0, because earlier versions could fit a member several times
            arrays.update({f"{name}.0.{key}": array for key, array in member.arrays().items()})
        content = {
            "format": _FORMAT,
            "prior": self.prior,
            "scenario": self.scenario,
            "random_state": self.random_state,
            "members": list(self.members),
            "repeats": 1,
            "fitted": dict.fromkeys(self.members, 1),
            "n_columns": self.n_columns_,
            "weights": self.weights_,
            "scales": {name: list(scale) for name, scale in self.scales_.items()},
        }
        # Copied: members share columns, and safetensors refuses tensors that share memory.
        return {name: torch.from_numpy(np.array(array, order="C")) for name, array in arrays.items()}, content

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> TabularPU:
        """The fitted model that :meth:`state` described."""
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        try:
            saved: _TabularFile = decode(_TabularFile, content, "not a stored table model")
            if saved.format != _FORMAT:
                raise InputError(f"table model of format {saved.format}, this version reads {_FORMAT}")
            if set(saved.fitted.values()) != {1}:
                raise InputError("a table model with repeats, which this version does not read")
            model = cls(saved.prior, saved.scenario, saved.random_state, saved.members)
            model.n_columns_ = saved.n_columns
            model.bins_ = Bins.from_arrays(under(arrays, "bins."))
            model.weights_, model.scales_ = saved.weights, saved.scales
            model.fitted_ = {name: MEMBERS[name].from_arrays(under(arrays, f"{name}.0.")) for name in saved.fitted}
            model.out_of_fold_scores_ = arrays["out_of_fold_scores"]
            _refuse_wide_trees(arrays, model.n_columns_)
        except (KeyError, TypeError) as error:
            raise InputError(f"not a stored table model: {error!r}") from error
        return model


def stratified_folds(labels: Labels, n_folds: int, seed: int, truths: Labels | None = None) -> Rows:
    """Each row's fold, labelled rows, those of known class and the rest spread evenly. Shape: (n,) of 0 … n_folds−1."""
    rng = np.random.default_rng(seed)
    folds = np.empty(len(labels), dtype=np.intp)
    truths = np.zeros_like(labels) if truths is None else truths
    rest = (labels == UNLABELLED) & (truths == 0)
    for members in (labels == POSITIVE, rest, truths == POSITIVE, truths == NEGATIVE):
        rows = rng.permutation(np.flatnonzero(members))
        folds[rows] = np.arange(len(rows)) % n_folds
    return folds


def rows_to_learn_from(known: Labels, seed: int) -> Rows:
    """All rows of known class (1 or −1) and at most 50,000 others. Every row is scored all the same."""
    others = np.random.default_rng(seed).permutation(np.flatnonzero(known == UNLABELLED))
    return np.sort(np.concatenate([np.flatnonzero(known != UNLABELLED), others[:MOST_UNLABELLED]]))


def _notes(n_columns: int, labels: Labels) -> tuple[str, ...]:
    """What a person should know: where not all columns or rows are learned from."""
    notes = []
    if n_columns > MOST_COLUMNS:
        notes.append(
            f"{n_columns:,} columns: each model learned from the {MOST_COLUMNS:,} that differ most between labelled "
            "and unlabelled rows of its own training rows"
        )
    return (*notes, *about_rows(labels))


def about_rows(labels: Labels) -> tuple[str, ...]:
    """A note where the models learned from a part of the unlabelled rows."""
    n_unlabelled = int((labels == UNLABELLED).sum())
    if n_unlabelled <= MOST_UNLABELLED:
        return ()
    learned = f"the models learned from {MOST_UNLABELLED:,} of {n_unlabelled:,} unlabelled rows, drawn at random"
    return (f"{learned}; every row was scored",)


def scale_of(scores: Floats, labels: Labels) -> tuple[float, float]:
    """Centre and spread of the unlabelled rows' scores; 1 where they are all the same but for rounding."""
    unlabelled = scores[labels == UNLABELLED]
    spread = float(unlabelled.std())
    return float(np.median(unlabelled)), spread if spread > _ROUNDING * float(np.ptp(scores)) else 1.0


def _refuse_wide_trees(arrays: Mapping[str, AnyArray], n_columns: int) -> None:
    """A damaged file must not read out of bounds. A forest sees one-hot columns: its own ``numeric`` and ``codes``."""
    for name, array in arrays.items():
        if not name.endswith(".feature") or not array.size:
            continue
        codes, numeric = (arrays.get(".".join([*name.split(".")[:2], part])) for part in ("codes", "numeric"))
        width = n_columns if codes is None or numeric is None else len(codes) + len(numeric)
        if int(array.max()) >= width:
            raise InputError(f"not a stored table model: {name} names a column beyond the {width} there are")


def _checked(values: AnyArray, categorical: AnyArray, labels: Labels) -> tuple[Values, Flags]:
    values, categorical = np.asarray(values, dtype=np.float32), np.asarray(categorical, dtype=bool)
    if values.ndim != 2 or values.shape[1] == 0 or categorical.shape != (values.shape[1],):
        raise InputError(
            f"need values (n, d) and categorical (d,) with d >= 1, got {values.shape} and {categorical.shape}"
        )
    if len(values) != len(labels):
        raise InputError(f"{len(values)} rows but {len(labels)} labels")
    refuse_negatives(labels, "TabularPU")
    require_positive_and_unlabelled(labels)
    fewest = int(min((labels == POSITIVE).sum(), (labels == UNLABELLED).sum()))
    if fewest < FEWEST_FOR_ENSEMBLE:
        raise InputError(
            f"cross-fitting needs at least 3 labelled and 3 unlabelled rows, one to learn from, one to weigh with and "
            f"one to hold out; the rarer kind has {fewest}"
        )
    codes = values[:, categorical]
    wrong = ~np.isnan(codes) & ((codes < 0) | (codes != np.round(codes)))
    if wrong.any():
        row, column = (int(k) for k in np.argwhere(wrong)[0])
        raise InputError(
            f"column {int(np.flatnonzero(categorical)[column])} is categorical and must hold codes 0, 1, 2, …; "
            f"row {row} holds {codes[row, column]:g}"
        )
    return values, categorical

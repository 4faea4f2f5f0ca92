"""Features, then a head: the one way from an encoder to a classifier, for the product and for the experiments.

The type of the configuration says which stage trains the head. A probe, puPL and the supervised probe leave the encoder
as it is; the others train it in place.

    head = train_head(ProbeConfig(), Problem(encoder, view, X, labels, prior=0.4, risk=NNPU(0.4)))
    is_positive = head.scores(X_new) > head.decision_score
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import Labels
from punce.risks import Risk
from punce.risks.vpu import VPU, phi_decision_score, phi_scale
from punce.stages.finetune import FinetuneConfig, finetune
from punce.stages.probe import LinearHead, ProbeConfig, extract_features, probe
from punce.stages.pupl import PuplConfig, pupl
from punce.stages.scorer import Observer, ScoreRows
from punce.stages.selfpu import SelfPUConfig, selfpu
from punce.stages.supervised import SupervisedConfig, supervised
from punce.stages.vpu import VPUConfig, train_vpu
from punce.views import View

EpochConfig = ProbeConfig | FinetuneConfig | VPUConfig | SelfPUConfig
"""Of the stages that train by gradient steps, for a number of epochs."""

FeatureConfig = ProbeConfig | PuplConfig | SupervisedConfig
"""Of the stages that leave the encoder as it is."""

HeadConfig = EpochConfig | FeatureConfig

Judge = Callable[[Tensor], tuple[Tensor, float]]
"""From raw rows to their scores, and the score above which a row is called positive."""

JudgeWatch = Callable[[Judge], Mapping[str, float]]
"""Called after every epoch with the classifier as it is then; its numbers go into that epoch's history."""


@dataclass(frozen=True)
class Problem:
    """What a head is trained on, and how the run is stored and watched.

    `prior` is the share of positives among the unlabelled rows. `risk` is None for the stages with an objective of
    their own. `from_scratch` draws the encoder's weights anew; fine-tuning may begin at the head `start`.
    Shape: X (n, ...) raw rows, labels (n,).
    """

    encoder: Encoder
    view: View
    X: Tensor
    labels: Labels
    prior: float
    risk: Risk | None = None
    from_scratch: bool = False
    start: LinearHead | None = None
    folder: Path | None = None
    progress: bool = False
    watch: JudgeWatch | None = None

    @property
    def storage(self) -> dict[str, Any]:
        """Where the run is stored, and whether it reports its progress."""
        return {"folder": self.folder, "progress": self.progress}

    def observer(self, cut_of: Callable[[Tensor], float]) -> Observer | None:
        """The watch as the stages call it; `cut_of` gives the cut for a set of scores."""
        if (watch := self.watch) is None:
            return None

        def observe(score_rows: ScoreRows) -> Mapping[str, float]:
            def judge(X: Tensor) -> tuple[Tensor, float]:
                scores = score_rows(X)
                return scores, cut_of(scores)

            return watch(judge)

        return observe


@dataclass(frozen=True)
class TrainedHead:
    """A classifier: features of rows, their scores, the cut, and how training went.

    `features_of` keeps what it computed last while the encoder is frozen (`is_frozen`): the training rows' features are
    there already. Do not change a tensor of rows in place between two calls. Shape: (n, ...) -> (n, D).
    """

    linear: LinearHead
    decision_score: float
    features_of: Callable[[Tensor], Tensor]
    is_frozen: bool

    @property
    def history(self) -> list[dict[str, Any]]:
        """One row for each epoch (puPL: iteration; supervised: penalty)."""
        return self.linear.history

    @torch.no_grad()
    def scores(self, X: Tensor) -> Tensor:
        """Scores of raw rows. Shape: (n, ...) -> (n,)."""
        scores: Tensor = self.linear(self.features_of(X))
        return scores


def train_head(config: HeadConfig, problem: Problem) -> TrainedHead:
    """Train the head that the type of `config` names."""
    if isinstance(config, ProbeConfig | PuplConfig | SupervisedConfig):
        return _on_frozen_features(config, problem)
    linear, cut = _with_encoder(config, problem)
    return TrainedHead(linear, cut, partial(extract_features, problem.encoder, problem.view), is_frozen=False)


def train_on_features(
    config: FeatureConfig,
    features: Tensor,
    labels: Labels,
    *,
    prior: float,
    risk: Risk | None = None,
    observer: Callable[[LinearHead], Mapping[str, float]] | None = None,
    **storage: Any,
) -> LinearHead:
    """A head on features that stay as they are. Shape: features (n, D), labels (n,)."""
    if isinstance(config, PuplConfig):
        return pupl(features, labels, config)
    if isinstance(config, SupervisedConfig):
        return supervised(features, labels, config, observer=observer)
    return probe(features, labels, _required(risk), config, prior=prior, observer=observer, **storage)


def _on_frozen_features(config: FeatureConfig, problem: Problem) -> TrainedHead:
    """Features are extracted once, of the training rows and of the rows that are watched."""
    # A tensor is its own key: the same object of rows is embedded once, an equal copy again. Two, for training and
    # watched rows: whoever scores batch after batch must not fill the memory with them.
    features_of = lru_cache(maxsize=2)(partial(extract_features, problem.encoder, problem.view))
    cut_of = _cut_of(problem.risk) if isinstance(config, ProbeConfig) else (lambda _: 0.0)
    observer = problem.observer(cut_of)

    def observe(head: LinearHead) -> Mapping[str, float]:
        assert observer is not None
        return observer(lambda X: head(features_of(X)))

    linear = train_on_features(
        config,
        features_of(problem.X),
        problem.labels,
        prior=problem.prior,
        risk=problem.risk,
        observer=None if observer is None else observe,
        **problem.storage,
    )
    cut = cut_of(linear(features_of(problem.X)))
    return TrainedHead(linear, cut, features_of, is_frozen=True)


def _cut_of(risk: Risk | None) -> Callable[[Tensor], float]:
    """The cut for a set of scores: that of the risk, but the scale of vPU's scores is free and theirs to tell."""
    if isinstance(risk, VPU):
        return lambda scores: phi_decision_score(phi_scale(scores))
    cut = _required(risk).decision_score
    return lambda _: cut


def _required(risk: Risk | None) -> Risk:
    if risk is None:
        raise InputError("a probe, fine-tuning and joint training need a risk")
    return risk


def _with_encoder(config: FinetuneConfig | VPUConfig | SelfPUConfig, problem: Problem) -> tuple[LinearHead, float]:
    """The head and its cut, with the encoder trained in place."""
    rows = {"encoder": problem.encoder, "view": problem.view, "X": problem.X, "labels": problem.labels}
    given: dict[str, Any] = {**rows, "config": config, **problem.storage}
    if isinstance(config, VPUConfig):
        # The scale of Φ is fixed only at the end: until then the quantile of the watched rows themselves stands for it.
        observer = problem.observer(lambda scores: phi_decision_score(phi_scale(scores, config.quantile)))
        head = train_vpu(**given, observer=observer)
        return head.linear, head.decision_score
    given["prior"] = problem.prior
    if isinstance(config, SelfPUConfig):
        return selfpu(**given, observer=problem.observer(lambda _: 0.0)), 0.0
    risk, is_new = _required(problem.risk), problem.from_scratch
    observer = problem.observer(lambda _: risk.decision_score)
    start = None if is_new else problem.start  # a head for pretrained features says nothing to new weights
    return finetune(**given, risk=risk, from_scratch=is_new, head=start, observer=observer), risk.decision_score

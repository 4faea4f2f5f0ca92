"""A network on small images that goes beyond its teacher: first it learns what the teacher says, then from itself.

1. *taught*: cross-entropy with the teacher's probability of every unlabelled row, on images changed a little. A
   network that only does this learns its teacher's errors too.
2. *consistent*: nnPU on images changed a lot, and cross-entropy with the known classes and with the answers that the
   running mean of its own weights is sure of on the unchanged image (FixMatch, Sohn et al. 2020, with nnPU in the place
   of labels of all classes). The running mean is what is kept.

On CIFAR-10 with 1,000 labelled rows the first stage is right in 90 % of the test images and the second in 92 %
(benchmarks/cifar_scratch.py).

Shapes: n rows, b rows of a batch.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import UNLABELLED, Labels, check_vocabulary
from punce.risks import NNPU
from punce.risks.base import group_means
from punce.scenario import check_prior
from punce.stages.given import UNUSED_PARTS, check_call, check_encoder, check_fit, told
from punce.stages.probe import LinearHead, Sketch, require_tensor
from punce.stages.scorer import Scorer, check_pu_rows
from punce.training.loop import Batch, Objective, Stage, TrainingConfig, train
from punce.training.run import Outputs, Stateful, fingerprint, weights_fingerprint
from punce.views import counter
from punce.views.taught import SmallImageView

_SURE = 0.9  # probability from which the running mean teaches
_KEPT = 0.99  # share of the running mean that a step keeps
_LABELLED_SHARE = 0.25  # of a batch of the second stage
_SECOND_RATE = 1e-3  # of the second stage
_ROUNDING = 1e-5  # by which a teacher's sums in float32 may leave [0, 1]
_LITTLE, _LOT = 0, 1  # streams of the changes


@dataclass(frozen=True)
class TaughtConfig(TrainingConfig):
    """`epochs` on the teacher's probabilities, `own_epochs` on nnPU and its own answers."""

    epochs: int = 4
    own_epochs: int = 6
    batch_size: int = 256
    optimizer: Any = "adamw"
    lr: float = 2e-3
    weight_decay: float = 5e-4
    warmup_epochs: float = 1.0


@dataclass(frozen=True)
class Lesson:
    """What is learned from. `taught` is how probable the teacher holds each row to be positive.

    `truths` is the known class (1 or −1) of rows whose label is 0, else 0. `prior` is the share of positives among the
    rows of label 0. Shape: X (n, C, H, W); labels, taught, truths (n,).
    """

    X: Tensor
    labels: Labels
    taught: Tensor
    truths: Tensor
    prior: float


def learn_from_teacher(
    encoder: Encoder,
    view: SmallImageView,
    lesson: Lesson,
    config: TaughtConfig = TaughtConfig(),  # noqa: B008  frozen
    **outputs: Unpack[Outputs],
) -> LinearHead:
    """Train `encoder` in place and return the head on its features of ``view.clean``."""
    check_call("learn_from_teacher", config, TaughtConfig, outputs, Outputs)
    check_encoder(encoder, with_head=True)
    _check_lesson(lesson)
    check_fit(encoder, view, lesson.X)
    model = Scorer(encoder)
    folder, history = outputs.get("folder"), []
    second = replace(config, epochs=config.own_epochs, lr=_SECOND_RATE)
    for kind, own in ((_Taught, config), (_Consistent, second)):
        where: Outputs = {**outputs, "folder": None if folder is None else Path(folder) / kind.name}
        history += train(kind(model, view, lesson, own), **where)
    return model.linear_head(history)


def _check_lesson(lesson: Lesson) -> None:
    """All of it before the first step: the second stage alone reads the prior and the truths."""
    check_pu_rows(lesson.X, lesson.labels, "a taught network")
    check_prior(lesson.prior, open_interval=True)
    n = len(lesson.labels)
    for name, given in (("taught", lesson.taught), ("truths", lesson.truths)):
        require_tensor(given, name)
        if given.shape != (n,):
            raise InputError(f"{name} must hold one number for each of {n} rows, got shape {tuple(given.shape)}")
    # ~(…) also finds NaN
    if bool((bad := ~((lesson.taught >= -_ROUNDING) & (lesson.taught <= 1 + _ROUNDING))).any()):
        row = int(bad.nonzero()[0])
        raise InputError(f"taught must lie in [0, 1], got {float(lesson.taught[row]):g} in row {row}")
    check_vocabulary(lesson.truths, "truths")


class _OnImages(Stage):
    """No row is held out here: the caller holds rows out of all stages."""

    def __init__(
        self, model: Scorer, view: SmallImageView, lesson: Lesson, config: TaughtConfig, stream: int, **settings: Any
    ) -> None:
        super().__init__(model, lesson.labels, config, lesson.X.device, **settings)
        self.scorer, self.view, self.X, self.lesson, self._stream = model, view, lesson.X, lesson, stream

    def keys(self, batch: Batch) -> Tensor:
        """The keys from which the changes of the batch are drawn. Shape: (b,)."""
        return counter.row_keys(batch.rows.cpu(), seed=self.settings.seed, epoch=batch.epoch, view=self._stream)

    def identity(self) -> dict[str, Any]:
        lesson = self.lesson
        rows = {"n_rows": len(self.X), "rows": fingerprint(self.X, lesson.labels)}
        known = {"truths": fingerprint(lesson.truths, lesson.labels), "prior": lesson.prior}
        first = weights_fingerprint(self.scorer.encoder, UNUSED_PARTS)
        return {**rows, **known, "view": told(self.view), "first_weights": first}

    def state(self) -> dict[str, Stateful]:
        # Not part of the identity: teachers made again with other threads differ in the last bits.
        return {"teacher": Sketch(self.lesson.taught[:, None], "network of another teacher", "probabilities")}


class _Taught(_OnImages):
    """The teacher's probabilities; the class itself where it is known."""

    name = "taught"

    def __init__(self, model: Scorer, view: SmallImageView, lesson: Lesson, config: TaughtConfig) -> None:
        super().__init__(model, view, lesson, config, _LITTLE)

    def inputs(self, batch: Batch) -> Tensor:
        return self.view.moved(self.X[batch.rows], self.keys(batch))

    def objective(self, model: nn.Module, inputs: Tensor, batch: Batch) -> Objective:
        wrong = binary_cross_entropy_with_logits(
            model(inputs), self.lesson.taught[batch.rows].detach(), reduction="none"
        )
        loss = group_means([(wrong, torch.ones_like(wrong, dtype=torch.bool))]).means[0]
        return Objective(loss, {"loss": loss})


class _Consistent(_OnImages):
    """nnPU, and what the running mean is sure of."""

    name = "consistent"

    def __init__(self, model: Scorer, view: SmallImageView, lesson: Lesson, config: TaughtConfig) -> None:
        super().__init__(model, view, lesson, config, _LOT, labelled_share=_LABELLED_SHARE)
        self._risk = NNPU(lesson.prior)
        self._mean = deepcopy(model).requires_grad_(False).eval()

    def inputs(self, batch: Batch) -> Tensor:
        return self.view.changed(self.X[batch.rows], self.keys(batch))

    def objective(self, model: nn.Module, inputs: Tensor, batch: Batch) -> Objective:
        scores, labels = model(inputs), self.label_of[batch.rows]
        says, is_sure = self._answers(batch.rows, labels, batch.step)
        wrong = binary_cross_entropy_with_logits(scores, says, reduction="none") * is_sure
        taught = group_means([(wrong, torch.ones_like(is_sure))]).means[0]
        risk = self._risk(scores, labels)
        sure = is_sure[labels == UNLABELLED].float().mean()
        return Objective(risk + taught, {"risk": risk, "taught": taught, "sure": sure})

    @torch.no_grad()
    def _answers(self, rows: Tensor, labels: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """The running mean's class of each row, and whether it is sure; known classes are. Shape: (b,), (b,).

        Without the labelled rows among the known ones the running mean can talk itself into calling whole groups of
        positives negative: where scores are large, nnPU's bounded loss no longer pulls their labelled rows back.
        """
        is_other = self.view.is_mirrored and step % 2 == 1
        scores = self._mean((self.view.mirrored if is_other else self.view.clean)(self.X[rows]))
        known = torch.where(labels == UNLABELLED, self.lesson.truths[rows], labels)
        says = torch.where(known == 0, scores, known.to(scores))
        return (says > 0).to(scores), (scores.abs().sigmoid() > _SURE) | (known != 0)

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        """The running mean of the weights; the statistics of its normalisation are the model's."""
        for own, new in zip(self._mean.parameters(), self.scorer.parameters(), strict=True):
            own.lerp_(new, 1 - _KEPT)
        for kept, current in zip(self._mean.buffers(), self.scorer.buffers(), strict=True):
            kept.copy_(current)

    def state(self) -> dict[str, Stateful]:
        return {**super().state(), "mean": self._mean}

    def finish(self, best: dict[str, Tensor] | None) -> None:
        self.scorer.load_state_dict(self._mean.state_dict())
        self.scorer.eval()

"""Few-shot fine-tuning of a pretrained encoder with labels of both classes and unlabelled rows (§5.3, Table 5).

    encoder = Transformer("roberta-base")
    X = encoder.tokens(texts)                                     # labels (n,) of {1, 0, −1}
    fitted = fewshot(encoder, Text(), X, labels, PuNCE(prior, 0.3), validation=(X_dev, labels_dev))
    scores = fitted.head(extract_features(encoder, Text(), X_new))

The objective is ce_weight·CE + (1 − ce_weight)·contrastive: the paper's λ multiplies the cross-entropy (Gunel et al.
2021, whom it follows, multiply the contrastive term, so their 0.9 is 0.1 here). Cross-entropy sees labelled rows only.
Without a contrastive loss this is the CE baseline: same batches of labelled rows, same steps, same selection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels, check_vocabulary, require_array
from punce.losses import ContrastiveLoss
from punce.risks import PN
from punce.scenario import check_prior
from punce.stages.given import (
    UNUSED_PARTS,
    check_call,
    check_encoder,
    check_fit,
    check_loss,
    check_view,
    checked_value,
    told,
)
from punce.stages.probe import LinearHead, require_tensor
from punce.stages.scorer import RawRows, RowStage, Scorer, score_rows
from punce.training.loop import Batch, Judgement, Objective, Settings, Watched, train
from punce.training.optim import OptimizerName
from punce.training.run import fingerprint, weights_fingerprint
from punce.views import View


@dataclass(frozen=True)
class FewshotConfig:
    """How to fine-tune. The defaults suit a small encoder on one CPU core.

    `labelled_share` of every batch is labelled, half of it from each class. `head_lr` is the rate of the new linear
    layer, which starts at zero and has further to go than the encoder. The contrastive term is on the features
    themselves, as Gunel et al. have it, or with `project` on the projector's output.
    """

    steps: int = 80
    batch_size: int = 32
    labelled_share: float = 0.5
    ce_weight: float = 0.1
    project: bool = False
    optimizer: OptimizerName = "adamw"
    lr: float = 5e-5
    head_lr: float = 1e-2
    weight_decay: float = 0.01
    warmup_share: float = 0.1
    evaluate_every: int = 20
    seed: int = 0


@dataclass(frozen=True)
class Fewshot:
    """What fine-tuning found. `history` has a row for each evaluation, with the observer's numbers in it."""

    head: LinearHead
    validation_accuracy: float
    history: list[dict[str, Any]]


def fewshot(
    encoder: Encoder,
    view: View,
    X: Tensor,
    labels: Labels,
    loss: ContrastiveLoss | None,
    config: FewshotConfig = FewshotConfig(),  # noqa: B008  frozen
    *,
    validation: tuple[Tensor, Labels],
    **outputs: Unpack[Watched],
) -> Fewshot:
    """Train `encoder` in place with a new head, and leave both at the step with the best validation accuracy.

    With a `folder` the run is resumed after a kill and ends in the same bits. Dropout draws from torch's generator,
    seeded here and left as it was found.

    Shape: X (n, ...) rows as `view` takes them; labels (n,) of {1, 0, −1}; validation rows with labels of {1, −1}.
    """
    check_call("fewshot", config, FewshotConfig, outputs)
    check_encoder(encoder, with_head=True)
    check_view(view, augments=True)
    if loss is not None:
        check_loss(loss)
    _check(X, labels, validation, config)  # before the encoder is touched
    check_fit(encoder, view, validation[0])
    stage = _Fewshot(encoder, RawRows(view, X, labels), loss, config, validation)
    history = train(stage, **outputs)
    accuracy, _ = _validate(stage.scorer, view, *validation)
    return Fewshot(stage.scorer.linear_head(history), accuracy, history)


class _Fewshot(RowStage):
    """Two views of every row, cross-entropy on the labelled ones, a contrastive loss on all."""

    name = "fewshot"

    def __init__(
        self,
        encoder: Encoder,
        rows: RawRows,
        loss: ContrastiveLoss | None,
        config: FewshotConfig,
        validation: tuple[Tensor, Labels],
    ) -> None:
        self.projects = config.project
        model = _Both(encoder, config.project)
        super().__init__(model, rows, config, warmup_steps=round(config.warmup_share * config.steps))
        self.scorer, self.is_chosen = model.scorer, True  # by the validation rows: no training row is held out
        self._loss, self._fewshot, self._validation = loss, config, validation
        self._cross_entropy = PN()

    def places(self, step: int) -> Tensor:
        rows = super().places(step)
        if self._loss is None:  # unlabelled rows have no term: not computing them changes nothing
            rows = rows[torch.from_numpy(self.labels[rows.numpy()] != UNLABELLED)]
        return rows

    def inputs(self, batch: Batch) -> Tensor:
        return self.two_views(batch).transpose(0, 1)  # rows first, so that errors can name one

    def objective(self, model: nn.Module, inputs: Tensor, batch: Batch) -> Objective:
        """ce_weight·CE + (1 − ce_weight)·contrastive."""
        known = self.label_of[batch.rows]
        z, scores = model(inputs.transpose(0, 1).flatten(0, 1))
        both = known.repeat(2)
        is_labelled = both != UNLABELLED
        ce = self._cross_entropy(scores[is_labelled], both[is_labelled])
        if self._loss is None:
            return Objective(ce, {"cross_entropy": ce})
        contrastive = checked_value("loss", self._loss(z.view(2, len(known), z.shape[1]), known), z)
        weight = self._fewshot.ce_weight
        value = weight * ce + (1.0 - weight) * contrastive
        return Objective(value, {"cross_entropy": ce, "contrastive": contrastive})

    def parts(self) -> Sequence[tuple[nn.Module, float]]:
        """The new head has further to go than the pretrained encoder."""
        return [(self.scorer.encoder, self._fewshot.lr), (self.scorer.head, self._fewshot.head_lr)]

    def judge(self) -> Judgement:
        accuracy, entropy = _validate(self.scorer, self.view, *self._validation)
        values = {"validation_accuracy": accuracy, "validation_cross_entropy": entropy}
        return Judgement(_criterion(accuracy, entropy, len(self._validation[1])), values, self.model)

    def identity(self) -> dict[str, Any]:
        encoder = self.scorer.encoder
        unused = UNUSED_PARTS[1:] if self._fewshot.project else UNUSED_PARTS
        return {
            **super().identity(),
            **{"loss": told(self._loss), "encoder": str(getattr(encoder, "sha256", type(encoder).__name__))},
            **{"first_weights": weights_fingerprint(encoder, unused), "validation": fingerprint(*self._validation)},
        }


class _Both(nn.Module):
    """Encoder and head; what the contrastive loss sees beside the scores. Shape: (M, ...) -> z (M, K), scores (M,)."""

    def __init__(self, encoder: Encoder, project: bool) -> None:
        super().__init__()
        self.scorer = Scorer(encoder)
        self._project = project

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.scorer.encoder.features(x)
        return self.scorer.encoder.project(h) if self._project else h, self.scorer.head(h).squeeze(1)


def _validate(model: Scorer, view: View, X: Tensor, labels: Labels) -> tuple[float, float]:
    """Accuracy and mean cross-entropy on labelled rows."""
    scores = score_rows(model, view, X)
    is_positive = torch.from_numpy(labels == POSITIVE).to(scores.device)
    entropy = nn.functional.binary_cross_entropy_with_logits(scores, is_positive.to(scores.dtype))
    return float(((scores > 0) == is_positive).double().mean()), float(entropy)


def _criterion(accuracy: float, entropy: float, n: int) -> float:
    """The error; among equals the one of lower cross-entropy, which counts for less than one row."""
    return 1.0 - accuracy + 0.5 / n * entropy / (1.0 + entropy)


def _check(X: Tensor, labels: Labels, validation: tuple[Tensor, Labels], config: FewshotConfig) -> None:
    require_array(labels)
    if not (isinstance(validation, tuple | list) and len(validation) == 2):
        raise InputError(f"validation must be a pair, rows and their labels, got {type(validation).__name__}")
    require_array(validation[1], "validation labels")
    require_tensor(X)
    require_tensor(validation[0], "validation rows")
    if len(X) != len(labels) or len(validation[0]) != len(validation[1]):
        raise InputError(
            f"{len(X)} rows but {len(labels)} labels, {len(validation[0])} validation rows but "
            f"{len(validation[1])} labels"
        )
    for values, where in ((labels, "labels"), (validation[1], "validation labels")):
        check_vocabulary(values, where)
        if not ((values == POSITIVE).any() and (values == NEGATIVE).any()):
            raise InputError(f"{where}: few-shot fine-tuning needs rows of both classes, 1 and -1")
    if (validation[1] == UNLABELLED).any():
        raise InputError("validation labels must be 1 or -1: an unlabelled row (0) says nothing about accuracy")
    if not (labels == UNLABELLED).any():
        raise InputError("labels: no unlabelled row (0); with labels for every row, use ordinary fine-tuning")
    check_prior(config.ce_weight, "ce_weight")
    check_prior(config.warmup_share, "warmup_share")
    if Settings.of(config).steps == 0:
        raise InputError("steps must be at least 1, got 0")

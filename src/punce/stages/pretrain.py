"""Contrastive pretraining: two views, a loss on the projections, and an online head that never changes the encoder.

    encoder = MLP(784, width=0.2)
    pretrain(encoder, view, X, labels, PuNCE(prior=0.49), PretrainConfig(epochs=15))

The labels are those the probe will use: one labelled set serves both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Unpack

from torch import Tensor, nn

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import Labels
from punce.losses import ContrastiveLoss
from punce.risks import NNPU
from punce.stages.given import check_call, check_encoder, check_loss, check_view, checked_value, told
from punce.stages.scorer import RawRows, RowStage, check_rows
from punce.training.loop import Batch, Objective, TrainingConfig, train
from punce.training.run import Outputs, Stateful
from punce.views import View


@dataclass(frozen=True)
class PretrainConfig(TrainingConfig):
    """How to pretrain. The defaults are the CPU-sized recipe; ``paper()`` gives the paper's.

    `batch_size` counts rows (2·batch_size views) over all ranks. `monitor_prior` is the prior of the nnPU risk that
    trains the online head; the head sees detached features and never changes the encoder.
    """

    epochs: int = 15
    weight_decay: float = 1e-6
    warmup_epochs: float = 1.0
    min_labelled: int = 2
    monitor_prior: float = 0.5

    @classmethod
    def paper(cls, *, epochs: int, batch_size: int, **changes: Any) -> PretrainConfig:
        """§5.1: LARS with cosine annealing; 300 epochs at 2048 (CIFAR), 200 at 1024 (MNIST).

        The printed rate 0.01 is far too low for LARS with a trust coefficient: rates near 1 train (docs/paper.md).
        """
        recipe: dict[str, Any] = {"optimizer": "lars", "lr": 1.0, "weight_decay": 1e-6, "warmup_epochs": 10.0}
        return cls(epochs=epochs, batch_size=batch_size, **{**recipe, **changes})


class EncoderWatch(Stateful, Protocol):
    """Looks at the encoder after every epoch and changes nothing. Part of a checkpoint: a resumed run has seen all."""

    def epoch(self, encoder: Encoder) -> Mapping[str, float]:
        """Called at the end of an epoch; the numbers go into its row of history."""


def pretrain(
    encoder: Encoder,
    view: View,
    X: Tensor,
    labels: Labels,
    loss: ContrastiveLoss,
    config: PretrainConfig = PretrainConfig(),  # noqa: B008  frozen
    *,
    watch: EncoderWatch | None = None,
    **outputs: Unpack[Outputs],
) -> list[dict[str, Any]]:
    """Train `encoder` in place and return the history, one row per epoch.

    With a `folder` the run is checkpointed there every `save_every` seconds and resumed after a kill. Under torchrun
    every rank calls this (inside :func:`collectives.joined`) with the same arguments and trains on
    its share of each global batch. After a kill any encoder of the same architecture will do: the checkpoint brings the
    weights. Dropout is a function of the seed and the rank, and torch's global stream is left as it was.

    Shape: X (n, ...) raw rows as `view` takes them; labels (n,) of {1, 0, −1}.
    """
    check_call("pretrain", config, PretrainConfig, outputs, Outputs)
    check_encoder(encoder)
    check_view(view, augments=True)
    check_loss(loss)
    check_rows(X, labels)
    if len(X) < 2:
        raise InputError(f"contrastive pretraining needs at least 2 rows, got {len(X)}")
    return train(_Pretraining(encoder, RawRows(view, X, labels), loss, config, watch), **outputs)


class _Pretraining(RowStage):
    """No row is held out here: the caller holds rows out of all stages, and no PU criterion judges projections."""

    name = "pretrain"
    has_unused_parameters = False
    projects = True

    def __init__(
        self, encoder: Encoder, rows: RawRows, loss: ContrastiveLoss, config: PretrainConfig, watch: EncoderWatch | None
    ) -> None:
        super().__init__(_TwoViews(encoder), rows, config)
        self._loss, self._monitor, self._encoder = loss, NNPU(config.monitor_prior), encoder
        self._watch = watch

    def inputs(self, batch: Batch) -> Tensor:
        return self.two_views(batch).transpose(0, 1)  # rows first, so that errors can name one

    def objective(self, model: nn.Module, inputs: Tensor, batch: Batch) -> Objective:
        z, scores = model(inputs.transpose(0, 1))
        known = self.label_of[batch.rows]
        watched = known.clamp_min(0).repeat(2)  # the head's nnPU risk knows P and U only
        contrastive, risk = checked_value("loss", self._loss(z, known), z), self._monitor(scores, watched)
        # One sum for both: the head sees detached features, so that its risk gives the encoder no gradient.
        logged = {"loss": contrastive, "monitor_risk": self._monitor.value(scores, watched)}
        return Objective(contrastive + risk, logged)

    def identity(self) -> dict[str, Any]:
        watched = {} if self._watch is None else {"watched": True}
        return {**super().identity(), "loss": told(self._loss), "encoder": _architecture(self._encoder), **watched}

    def state(self) -> dict[str, Stateful]:
        return super().state() if self._watch is None else {**super().state(), "watch": self._watch}

    def epoch_values(self) -> Mapping[str, float]:
        return {} if self._watch is None else self._watch.epoch(self._encoder)


class _TwoViews(nn.Module):
    """Both views through the encoder in one pass. Shape: (2, B, ...) -> projections (2, B, K), monitor scores (2B,)."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, two: Tensor) -> tuple[Tensor, Tensor]:
        h = self.encoder.features(two.flatten(0, 1))
        z = self.encoder.project(h)
        return z.view(2, two.shape[1], z.shape[1]), self.encoder.monitor(h)


def _architecture(encoder: Encoder) -> str:
    precision = "" if encoder.precision == "float32" else f", {encoder.precision}"
    return f"{type(encoder).__name__}, {sum(p.numel() for p in encoder.parameters()):,} parameters{precision}"

"""vPU as a whole algorithm (Chen, Liu, Wang, Zhao & Wu, NeurIPS 2020): no prior needed anywhere.

    head = train_vpu(encoder, view, X, labels, VPUConfig(mixup_weight=0.3))
    head.probability(extract_features(encoder, view, X_new))

Each step takes log mean_U Φ − mean_P log Φ on the batch and λ·(log t − log Φ(x̃))² on MixUp pairs of it. The epoch with
the lowest held-out variational loss is kept, and the free scale of Φ is fixed there by a high quantile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.risks import VPU
from punce.risks.vpu import check_quantile, phi_decision_score, phi_probability, phi_scale
from punce.stages.given import UNUSED_PARTS, check_call, check_encoder, check_view
from punce.stages.probe import LinearHead
from punce.stages.scorer import RawRows, RowStage, Scorer, check_pu_rows, reinitialise, score_rows
from punce.training import collectives
from punce.training.batches import own_part
from punce.training.loop import Batch, Judgement, Objective, Watched, train
from punce.training.run import weights_fingerprint
from punce.views import View

_MIX_STREAM = 31  # apart from the streams of batches and held-out rows


@dataclass(frozen=True)
class VPUConfig:
    """How to train vPU. Their settings: λ 0.03 and rate 3e-5 on CIFAR, 0.3 and 3e-4 on Fashion-MNIST, 0.1 on tables.

    Adam with `betas` (0.5, 0.99). Nothing in the loss keeps a network from memorising a small P, so the rate
    must be so low that the best moment is not over within the first epoch: the wider the network, the lower (an MLP of
    width 1000 with 800 labelled rows: 2e-5). If the held-out loss rises from the start, lower it. P and U fill
    `labelled_share` and the rest of every batch: half and half in the paper; None keeps the shares of the data, which
    over-fits a small P more slowly. `validation_share` of P and U chooses the epoch and sets the scale; with 0 the last
    epoch and the training rows do. `quantile` of Φ stands for probability 1 (the maximum would be one outlier).
    `from_scratch` draws the encoder anew from the seed; otherwise training starts from the weights it has.
    """

    epochs: int = 20
    batch_size: int = 1024
    lr: float = 3e-4
    betas: tuple[float, float] = (0.5, 0.99)
    weight_decay: float = 0.0
    mixup_weight: float = 0.3
    mixup_alpha: float = 0.3
    labelled_share: float | None = 0.5
    quantile: float = 0.99
    validation_share: float = 0.2
    from_scratch: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        check_quantile(self.quantile)  # it is used after the last step alone
        VPU(self.mixup_weight, self.mixup_alpha)  # refuses what is no weight and no shape of a Beta distribution


@dataclass(frozen=True)
class VariationalHead:
    """A linear score g with Φ = σ(g), and the value of Φ that stands for probability 1."""

    linear: LinearHead
    scale: float

    def __call__(self, h: Tensor) -> Tensor:
        """Scores of features; positive above :attr:`decision_score`. Shape: (B, D) -> (B,)."""
        scores: Tensor = self.linear(h)
        return scores

    def probability(self, h: Tensor) -> Tensor:
        """P(y=1 | x) = min(1, Φ/scale). Shape: (B, D) -> (B,)."""
        return phi_probability(self.linear(h), self.scale)

    @property
    def decision_score(self) -> float:
        """The score at which the probability is one half."""
        return phi_decision_score(self.scale)

    @property
    def history(self) -> list[dict[str, Any]]:
        """One row per epoch."""
        return self.linear.history


def train_vpu(
    encoder: Encoder,
    view: View,
    X: Tensor,
    labels: Labels,
    config: VPUConfig = VPUConfig(),  # noqa: B008  frozen
    **outputs: Unpack[Watched],
) -> VariationalHead:
    """Train `encoder` in place and return its head with the scale of Φ.

    Every epoch is run; "early stopping" is going back to the one with the lowest held-out variational loss.

    Shape: X (n, ...) raw rows as `view` takes them; labels (n,) of {1, 0}.
    """
    check_call("train_vpu", config, VPUConfig, outputs)
    check_encoder(encoder, with_head=True)
    check_view(view, augments=False)
    check_pu_rows(X, labels, "vPU")
    if not view.clean(X[:1]).is_floating_point():  # images in whole numbers become floats there, tokens do not
        raise InputError(
            "vPU mixes rows (MixUp), but whole numbers such as tokens cannot be mixed; train it on embeddings of the "
            "texts (encoder.embed), or take finetune with another risk"
        )
    if config.from_scratch:
        reinitialise(encoder, config.seed)
    stage = _Variational(encoder, RawRows(view, X, labels), config)
    history = train(stage, **outputs)
    # Φ is too high on rows that were trained on, so that its scale is taken from others where there are any.
    rows = stage.held_out if len(stage.held_out) else stage.train_rows
    scale = phi_scale(score_rows(stage.scorer, view, X[rows]), config.quantile)
    return VariationalHead(stage.scorer.linear_head(history), scale)


class _Variational(RowStage):
    """The batch and its MixUp rows on the variational loss."""

    name = "vpu"

    def __init__(self, encoder: Encoder, rows: RawRows, config: VPUConfig) -> None:
        self.scorer, self._vpu = Scorer(encoder), config
        # Not from zero: Adam moves the encoder at the same pace however small the head, which at these rates stays
        # small for so long that the encoder has memorised P before Φ says anything about other rows.
        reinitialise(self.scorer.head, config.seed)
        super().__init__(self.scorer, rows, config, optimizer_options={"betas": config.betas})
        self._risk = VPU(config.mixup_weight, config.mixup_alpha)

    def called(self) -> nn.Module:
        return _WithMixed(self.scorer)

    def objective(self, model: nn.Module, inputs: Tensor, batch: Batch) -> Objective:
        # Pairs are drawn for the global batch, and each rank takes its part, so that any number of ranks mixes alike.
        pairs = _draw_pairs(self.train_rows[self.places(batch.step)], self.labels, self._vpu, batch.step)
        rank, world = collectives.rank(), collectives.world_size()
        partners, mix = (own_part(part, rank, world).to(self.device) for part in pairs)
        known = self.label_of[batch.rows]
        is_u = known == UNLABELLED
        labelled = self.view.clean(self.X[partners[is_u]])
        scores, mixed_scores = model(inputs, mix_up(inputs[is_u], labelled, mix[is_u]))
        variational = self._risk(scores, known)
        consistency = self._risk.consistency(mixed_scores, scores[is_u], mix[is_u])
        return Objective(variational + consistency, {"variational": variational, "consistency": consistency})

    def judge(self) -> Judgement:
        scores = score_rows(self.scorer, self.view, self.X[self.held_out])
        loss = float(self._risk.value(scores, self.label_of[self.held_out]))
        return Judgement(loss, {"held_out_variational": loss}, self.scorer)

    def identity(self) -> dict[str, Any]:
        # From scratch the first weights are a function of the seed.
        first = None if self._vpu.from_scratch else weights_fingerprint(self.scorer.encoder, UNUSED_PARTS)
        return {**super().identity(), "first_weights": first}


class _WithMixed(nn.Module):
    """The batch and its MixUp rows, one after the other: each is normalised by its own statistics."""

    def __init__(self, model: Scorer) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, mixed: Tensor) -> tuple[Tensor, Tensor]:
        return self.model(x), self.model(mixed)


def _draw_pairs(rows: Tensor, labels: Labels, config: VPUConfig, step: int) -> tuple[Tensor, Tensor]:
    """For every row of the global batch a labelled partner and γ ~ Beta(α, α), from the seed and step. Shapes (b,)."""
    generator = np.random.Generator(np.random.PCG64([config.seed, _MIX_STREAM, step]))
    positives = rows[torch.from_numpy(labels[rows.numpy()] == POSITIVE)]
    chosen = torch.from_numpy(generator.integers(len(positives), size=len(rows)))
    mix = torch.from_numpy(generator.beta(config.mixup_alpha, config.mixup_alpha, size=len(rows)))
    return positives[chosen], mix.float()


def mix_up(unlabelled: Tensor, labelled: Tensor, mix: Tensor) -> Tensor:
    """x̃ = γ·x_u + (1−γ)·x_p row by row. Shape: (m, ...), (m, ...), (m,) -> (m, ...)."""
    gamma = mix.view(-1, *[1] * (unlabelled.dim() - 1))
    return gamma * unlabelled + (1.0 - gamma) * labelled

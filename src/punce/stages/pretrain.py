"""Contrastive pretraining: two views, a loss on the projections, and a head that watches without steering.

    encoder = MLP(784, width=0.2)
    pretrain(encoder, view, X, labels, PuNCE(prior=0.49), PretrainConfig(epochs=15))

The labels are those the probe will use: one labelled set serves both.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import Labels, check_vocabulary
from punce.losses import ContrastiveLoss
from punce.risks import NNPU
from punce.training import collectives
from punce.training.batches import StratifiedBatches, own_part
from punce.training.optim import OptimizerName, build_optimizer, set_rate, warmup_cosine
from punce.training.run import Run, fingerprint, own_dropout
from punce.training.sync_norm import synchronise_batch_norm
from punce.views import View


@dataclass(frozen=True)
class PretrainConfig:
    """How to pretrain. The defaults are the CPU-sized recipe; ``paper()`` gives the paper's.

    `batch_size` counts rows (2·batch_size views) over all ranks. `monitor_prior` is the prior of the nnPU risk that
    trains the online head; the head sees detached features and never changes the encoder.
    """

    epochs: int = 15
    batch_size: int = 1024
    optimizer: OptimizerName = "adam"
    lr: float = 1e-3
    weight_decay: float = 1e-6
    warmup_epochs: float = 1.0
    min_labelled: int = 2
    monitor_prior: float = 0.5
    seed: int = 0

    @classmethod
    def paper(cls, *, epochs: int, batch_size: int, **changes: Any) -> PretrainConfig:
        """§5.1: LARS with cosine annealing; 300 epochs at 2048 (CIFAR), 200 at 1024 (MNIST).

        The printed rate 0.01 predates LARS's trust coefficient; with it, rates near 1 are what trains.
        """
        recipe: dict[str, Any] = {"optimizer": "lars", "lr": 1.0, "weight_decay": 1e-6, "warmup_epochs": 10.0}
        return cls(epochs=epochs, batch_size=batch_size, **{**recipe, **changes})


def pretrain(
    encoder: Encoder,
    view: View,
    X: Tensor,
    labels: Labels,
    loss: ContrastiveLoss,
    config: PretrainConfig = PretrainConfig(),  # noqa: B008  frozen
    *,
    folder: Path | None = None,
    save_every: float = 60.0,
    progress: bool = False,
    writer: Any = None,
) -> list[dict[str, Any]]:
    """Train `encoder` in place and return the history, one row per epoch.

    With a `folder` the run is checkpointed there every `save_every` seconds and goes on after a kill. Under torchrun
    every rank calls this (after :func:`collectives.init_from_environment`) with the same arguments and trains on
    its share of each global batch. After a kill any encoder of the same architecture will do: the checkpoint brings the
    weights. Dropout is a function of the seed and the rank, and torch's global stream is left as it was.

    Shape: X (n, ...) raw rows as `view` takes them; labels (n,) of {1, 0, −1}.
    """
    _check(X, labels)
    with own_dropout(config.seed, X.device):
        return _train(encoder, view, X, labels, loss, config, folder, save_every, progress, writer)


def _train(
    encoder: Encoder,
    view: View,
    X: Tensor,
    labels: Labels,
    loss: ContrastiveLoss,
    config: PretrainConfig,
    folder: Path | None,
    save_every: float,
    progress: bool,
    writer: Any,
) -> list[dict[str, Any]]:
    batches = StratifiedBatches(labels, config.batch_size, config.seed, config.min_labelled)
    total, warmup = config.epochs * batches.per_epoch, round(config.warmup_epochs * batches.per_epoch)
    model = synchronise_batch_norm(_TwoViews(encoder)).train()
    ranked: nn.Module = DistributedDataParallel(model) if collectives.world_size() > 1 else model
    described = {
        **asdict(config),
        **{"loss": repr(loss), "view": repr(view), "encoder": _architecture(encoder), "n_rows": len(X)},
        "rows": fingerprint(X, labels) if folder is not None else None,
    }
    optimizer = build_optimizer(model, config.optimizer, config.lr, config.weight_decay)
    monitor = NNPU(config.monitor_prior)
    label_of = torch.from_numpy(labels.astype("int64")).to(X.device)
    run = Run(
        "pretrain",
        total,
        described,
        {"model": model, "optimizer": optimizer},
        folder=folder,
        steps_per_epoch=batches.per_epoch,
        rows_per_step=config.batch_size,
        save_every=save_every,
        progress=progress,
        writer=writer,
    )
    plan_of = lru_cache(maxsize=1)(partial(view.plan, len(X), config.seed, X=X))
    for step in run.steps():
        rows = own_part(batches.rows(step), collectives.rank(), collectives.world_size()).to(X.device)
        known = label_of[rows]
        watched = known.clamp_min(0).repeat(2)  # the head's nnPU risk knows P and U only
        two = plan_of(step // batches.per_epoch).apply(X[rows], rows)
        z, scores = ranked(two)
        with run.naming_rows(rows, two.transpose(0, 1)):
            contrastive, risk = loss(z, known), monitor(scores, watched)
        objective = contrastive + risk
        run.require_finite(objective, rows, two.transpose(0, 1))
        optimizer.zero_grad()
        objective.backward()
        run.require_finite_gradients(rows, two.transpose(0, 1))
        set_rate(optimizer, warmup_cosine(step, total, min(warmup, total)))
        optimizer.step()
        run.log(loss=contrastive, monitor_risk=monitor.value(scores, watched))
    encoder.eval()
    return run.history


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
    return f"{type(encoder).__name__}, {sum(p.numel() for p in encoder.parameters()):,} parameters"


def _check(X: Tensor, labels: Labels) -> None:
    if len(X) != len(labels):
        raise InputError(f"{len(X)} rows but {len(labels)} labels")
    if len(X) < 2:
        raise InputError(f"contrastive pretraining needs at least 2 rows, got {len(X)}")
    check_vocabulary(labels)
    if X.is_floating_point() and not bool(X.isfinite().all()):
        row = int((~X.flatten(1).isfinite().all(1)).nonzero()[0])
        raise InputError(f"row {row} of X holds a non-finite value; fill missing values before pretraining")

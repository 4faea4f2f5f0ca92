"""Linear probing: freeze the encoder, extract features once, standardise them, train a linear layer on a PU risk.

The epoch is chosen on a held-out share of P and U, never with true labels: by the PU estimate of the zero-one risk at
the risk's own cut, or for vPU, the scale of whose scores is free, by its variational loss.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import Labels, require_positive_and_unlabelled
from punce.risks import VPU, Risk
from punce.risks.base import zero_one_risk
from punce.risks.pvu import Duplicates, weights_of_training_rows
from punce.training.batches import StratifiedBatches
from punce.training.holdout import can_choose, holdout_split
from punce.training.optim import OptimizerName, build_optimizer, set_rate, warmup_cosine
from punce.training.run import Run, fingerprint
from punce.views import View

_SKETCH_SIZE = 32


@dataclass(frozen=True)
class ProbeConfig:
    """How to train the linear layer. `validation_share` of P and U chooses the epoch; with 0 it is the last one."""

    epochs: int = 60
    batch_size: int = 4096
    optimizer: OptimizerName = "adam"
    lr: float = 1e-2
    weight_decay: float = 0.0
    labelled_share: float | None = 0.25
    validation_share: float = 0.2
    seed: int = 0


@dataclass(frozen=True)
class LinearHead:
    """A linear score on standardised features: g(h) = w·(h − mean)/scale + b. Shape: weight, mean, scale (D,)."""

    weight: Tensor
    bias: Tensor
    mean: Tensor
    scale: Tensor
    history: list[dict[str, Any]] = field(default_factory=list, repr=False, compare=False)

    def __call__(self, h: Tensor) -> Tensor:
        """Scores of features. Shape: (B, D) -> (B,)."""
        return ((h - self.mean) / self.scale) @ self.weight + self.bias


@torch.no_grad()
def extract_features(encoder: Encoder, view: View, X: Tensor, batch_size: int = 4096) -> Tensor:
    """h of every row: encoder in eval mode, un-augmented inputs. Shape: (n, ...) -> (n, D)."""
    was_training = encoder.training
    encoder.eval()
    h = torch.cat([encoder.features(view.clean(x)) for x in torch.split(X, batch_size)])
    encoder.train(was_training)
    return h


def probe(
    features: Tensor,
    labels: Labels,
    risk: Risk,
    config: ProbeConfig = ProbeConfig(),  # noqa: B008  frozen
    *,
    prior: float,
    weights: Tensor | None = None,
    folder: Path | None = None,
    progress: bool = False,
    observer: Callable[[LinearHead], Mapping[str, float]] | None = None,
) -> LinearHead:
    """Train a linear layer on frozen features and return it at its best epoch by held-out PU risk.

    `prior` is the share of positives among the unlabelled rows that the held-out risk uses. An `observer` is shown
    the head after every epoch, and its numbers go into that epoch's history; it changes nothing. `weights` are w(x) for
    ``PvU(correction="weighted")``; without them they are made out of fold from the features of the training rows.

    Shape: features (n, D); labels (n,) of {1, 0}; weights (n,).
    """
    require_positive_and_unlabelled(labels)
    train, held_out = holdout_split(labels, config.validation_share, config.seed)
    mean, scale = _standardisation(features[train])
    x = (features - mean) / scale
    label_of = torch.from_numpy(labels.astype("int64")).to(features.device)
    head = _zero_linear(features)
    batches = StratifiedBatches(labels[train.numpy()], config.batch_size, config.seed, 1, config.labelled_share)
    optimizer = build_optimizer(head, config.optimizer, config.lr, config.weight_decay)
    total = config.epochs * batches.per_epoch
    best, is_chosen = _Best(head), can_choose(labels, held_out)
    duplicates = Duplicates(risk, weights, len(x), x.device)
    run = Run(
        "probe",
        total,
        {
            **asdict(config),
            **{"risk": repr(risk), "prior": prior, "features": list(features.shape)},
            "weights": fingerprint(weights, labels) if weights is not None and folder is not None else None,
        },
        {
            **{"head": head, "optimizer": optimizer, "best": best, "rows": _SameRows(x, labels)},
            **({"duplicates": duplicates} if duplicates.are_wanted else {}),
        },
        folder=folder,
        steps_per_epoch=batches.per_epoch,
        rows_per_step=config.batch_size,
        progress=progress,
    )
    duplicates.ensure(
        lambda: weights_of_training_rows(lambda: x[train].cpu().numpy(), labels, train, prior, config.seed, x.device)
    )
    for step in run.steps():
        rows = train[batches.rows(step)].to(features.device)
        batch = x[rows]
        with run.naming_rows(rows, batch):
            value = risk(head(batch).squeeze(1), label_of[rows], **duplicates.of(rows))
        run.require_finite(value, rows)
        optimizer.zero_grad()
        value.backward()
        run.require_finite_gradients(rows, batch)
        set_rate(optimizer, warmup_cosine(step, total))
        optimizer.step()
        run.log(risk=value)
        if observer is not None and run.is_epoch_end(step):
            run.record(**observer(_linear_head(head, mean, scale, [])))
        if is_chosen and run.is_epoch_end(step):
            name, criterion = _held_out(head, x[held_out], label_of[held_out], risk, prior)
            best.offer(head, criterion)
            run.record(**{name: criterion})
    # a single labelled row cannot be held out: the last epoch; without an epoch the layer is what it was, zero
    chosen = best.head if is_chosen and config.epochs else head
    return _linear_head(chosen, mean, scale, run.history)


def _linear_head(head: nn.Linear, mean: Tensor, scale: Tensor, history: list[dict[str, Any]]) -> LinearHead:
    return LinearHead(head.weight[0].detach().clone(), head.bias[0].detach().clone(), mean, scale, history)


def _standardisation(features: Tensor) -> tuple[Tensor, Tensor]:
    scale = features.std(0)
    return features.mean(0), torch.where(scale > 1e-6, scale, 1.0)  # a dead feature stays zero


def _zero_linear(features: Tensor) -> nn.Linear:
    """A linear layer that starts at zero: a convex start that needs no seed."""
    head = nn.Linear(features.shape[1], 1, device=features.device, dtype=features.dtype)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return head


@torch.no_grad()
def _held_out(head: nn.Linear, x: Tensor, labels: Tensor, risk: Risk, prior: float) -> tuple[str, float]:
    """What chooses the epoch, and its name in the history."""
    scores = head(x).squeeze(1)
    if isinstance(risk, VPU):
        return "held_out_variational", float(risk.value(scores, labels))
    return "held_out_risk", zero_one_risk(scores, labels, prior, risk.decision_score)


class _SameRows:
    """In a checkpoint, what tells rows and labels from others; given back other ones, it refuses them.

    Labels by their sha256. Features by a sketch: another number of threads, or another machine, gives the encoder's
    outputs other last bits, and such a run may go on. Rounding moves a number of the sketch by less than the tolerance,
    one other row among a million moves it by about the tolerance, and there are many of them.

    Shape: x (n, D) standardised features; labels (n,).
    """

    _TOLERANCE = 1e-3

    def __init__(self, x: Tensor, labels: Labels) -> None:
        self._x, self._labels = x, hashlib.sha256(labels.tobytes()).hexdigest()

    def state_dict(self) -> dict[str, Any]:
        return {"labels": self._labels, "sketch": self._sketch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for what, is_same in (
            ("labels", state["labels"] == self._labels),
            ("features", bool(((state["sketch"] - self._sketch).abs() < self._TOLERANCE).all())),
        ):
            if not is_same:
                raise InputError(
                    f"the folder holds an unfinished probe of rows with other {what}; give the same rows to go on with "
                    "it, or another folder"
                )

    @cached_property
    def _sketch(self) -> Tensor:
        return sketch(self._x)


def sketch(x: Tensor) -> Tensor:
    """A few numbers that other entries change and rounding hardly does: each is Σ ±x over all entries, with signs of
    its own, divided by the root of their number. Shape: (n, D) -> (32,) float64 on the CPU."""
    signs = torch.Generator().manual_seed(0)
    columns = _random_signs(x.shape[1], _SKETCH_SIZE, signs)
    parts = [
        (part.detach().cpu().double() @ columns * _random_signs(len(part), _SKETCH_SIZE, signs)).sum(0)
        for part in torch.split(x, 4096)
    ]
    return torch.stack(parts).sum(0) / math.sqrt(x.numel())


def _random_signs(n: int, m: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, (n, m), generator=generator).double() * 2 - 1


class _Best:
    """The head with the lowest held-out risk so far."""

    def __init__(self, head: nn.Linear) -> None:
        self.error = float("inf")
        self.head = nn.Linear(head.in_features, 1, device=head.weight.device, dtype=head.weight.dtype)

    def offer(self, head: nn.Linear, error: float) -> None:
        if error < self.error:
            self.error = error
            self.head.load_state_dict(head.state_dict())

    def state_dict(self) -> dict[str, Any]:
        return {"error": self.error, "head": self.head.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.error = float(state["error"])
        self.head.load_state_dict(state["head"])

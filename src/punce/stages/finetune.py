"""Encoder and linear head trained together on a PU risk: after pretraining, or from scratch (the classic baselines).

    head = finetune(encoder, view, X, labels, NNPU(prior), FinetuneConfig(epochs=10), prior=prior)
    scores = head(extract_features(encoder, view, X_new))

Both train the encoder in place and leave it, with the head they return, at the epoch with the lowest held-out PU
estimate of the error; true labels are never looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import POSITIVE, Labels
from punce.risks import NNPU, UPU, VPU, PvU, Risk
from punce.risks.base import zero_one_risk
from punce.risks.pvu import Duplicates, weights_of_training_rows
from punce.scenario import check_prior
from punce.stages.probe import LinearHead, sketch
from punce.stages.scorer import (
    WITHOUT_PART,
    Best,
    Observer,
    Scorer,
    check_training_rows,
    observed,
    on_all_ranks,
    reinitialise,
    score_rows,
)
from punce.training import collectives
from punce.training.batches import StratifiedBatches, own_part
from punce.training.holdout import can_choose, holdout_split
from punce.training.optim import OptimizerName, build_optimizer, set_rate, warmup_cosine
from punce.training.run import Run, fingerprint, own_dropout, weights_fingerprint
from punce.training.sync_norm import synchronise_batch_norm
from punce.views import Plan, View

_FEWEST_LABELLED, _LARGEST_SHARE = 16, 0.5
_PIXEL_COMPONENTS, _KERNEL_COMPONENTS = 50, 400


@dataclass(frozen=True)
class FinetuneConfig:
    """How to train encoder and head.

    `labelled_share` of every batch is labelled: P and U are drawn separately, P cycled at its own pace. None keeps
    the shares of the data. "auto" keeps them too, unless a batch would then hold fewer than 16 labelled rows and the
    risk averages P and U separately (uPU, nnPU, vPU, PvU with a prior); PN and PvU as a mean over all rows would aim
    at another mix. Do not draw P more often than that needs: on MNIST with 1,000 labelled rows a share of a quarter
    shows each of them 20 times an epoch, and uPU then over-fits within the second (benchmarks/mnist_baselines.py).
    `augment` trains on the first of `view`'s two views instead of the clean rows.
    `validation_share` of P and U chooses the epoch; with 0 it is the last one.
    """

    epochs: int = 20
    batch_size: int = 1024
    optimizer: OptimizerName = "adam"
    lr: float = 1e-3
    weight_decay: float = 0.0
    warmup_epochs: float = 1.0
    labelled_share: float | Literal["auto"] | None = "auto"
    augment: bool = False
    validation_share: float = 0.2
    seed: int = 0


def finetune(
    encoder: Encoder,
    view: View,
    X: Tensor,
    labels: Labels,
    risk: Risk,
    config: FinetuneConfig = FinetuneConfig(),  # noqa: B008  frozen
    *,
    prior: float,
    head: LinearHead | None = None,
    weights: Tensor | None = None,
    folder: Path | None = None,
    progress: bool = False,
    writer: Any = None,
    observer: Observer | None = None,
) -> LinearHead:
    """Train a pretrained `encoder` in place, with a new head or on from a probe's `head`, and return the head.

    `prior` is the share of positives among the unlabelled rows that the held-out risk uses. `weights` (n,) are w(x)
    for ``PvU(correction="weighted")``; without them they are made by :func:`duplicate_weights_of` on training rows.
    The cut is at ``risk.decision_score``. Dropout is a function of the seed and the rank. With a `folder` the run goes
    on after a kill, if encoder, head and weights are those it began with.

    Shape: X (n, ...) raw rows as `view` takes them; labels (n,) of {1, 0}.
    """
    model = Scorer(encoder)
    if head is not None:
        model.start_from(head)
    with own_dropout(config.seed, X.device):
        return _train(
            "finetune", model, view, X, labels, risk, config, prior, weights, folder, progress, writer, observer
        )


def train_from_scratch(
    encoder: Encoder,
    view: View,
    X: Tensor,
    labels: Labels,
    risk: Risk,
    config: FinetuneConfig = FinetuneConfig(),  # noqa: B008  frozen
    *,
    prior: float,
    weights: Tensor | None = None,
    folder: Path | None = None,
    progress: bool = False,
    writer: Any = None,
    observer: Observer | None = None,
) -> LinearHead:
    """Joint training of encoder and head on a risk: PN, PvU, uPU, nnPU as in the literature. See :func:`finetune`.

    The encoder's weights are drawn anew from the seed first, so the result does not depend on what it held.
    """
    reinitialise(encoder, config.seed)
    model = Scorer(encoder)
    with own_dropout(config.seed, X.device):
        return _train("joint", model, view, X, labels, risk, config, prior, weights, folder, progress, writer, observer)


def _train(
    stage: str,
    model: Scorer,
    view: View,
    X: Tensor,
    labels: Labels,
    risk: Risk,
    config: FinetuneConfig,
    prior: float,
    weights: Tensor | None,
    folder: Path | None,
    progress: bool,
    writer: Any,
    observer: Observer | None,
) -> LinearHead:
    check_training_rows(X, labels, f"{stage} training")
    check_prior(prior, open_interval=True)
    train, held_out = holdout_split(labels, config.validation_share, config.seed)
    share = _labelled_share(config, risk, labels)
    batches = StratifiedBatches(labels[train.numpy()], config.batch_size, config.seed, 1, share)
    total, warmup = config.epochs * batches.per_epoch, round(config.warmup_epochs * batches.per_epoch)
    synchronise_batch_norm(model).train()
    ranked = on_all_ranks(model)
    optimizer = build_optimizer(model, config.optimizer, config.lr, config.weight_decay)
    label_of, trained = torch.from_numpy(labels.astype("int64")).to(X.device), train.to(X.device)
    is_pretrained = stage == "finetune"  # training from scratch draws its first weights from the seed
    best, is_chosen = Best(model), can_choose(labels, held_out)
    duplicates = Duplicates(risk, weights, len(X), X.device)
    plan_of = _plans(view, X[train], config.seed) if config.augment else None
    run = Run(
        stage,
        total,
        {
            **asdict(config),
            **{"risk": repr(risk), "prior": prior, "view": repr(view), "n_rows": len(X)},
            "rows": fingerprint(X, labels) if folder is not None else None,
            **(_beginning(model, weights, is_pretrained) if folder is not None else {}),
        },
        {
            **{"model": model, "optimizer": optimizer, "best": best, "duplicates": duplicates},
            **({"start": _SameHead(model)} if is_pretrained else {}),
        },
        folder=folder,
        steps_per_epoch=batches.per_epoch,
        rows_per_step=config.batch_size,
        progress=progress,
        writer=writer,
    )
    duplicates.ensure(lambda: duplicate_weights_of(view, X, labels, train, prior, config.seed))
    for step in run.steps():
        own = own_part(batches.rows(step), collectives.rank(), collectives.world_size()).to(X.device)
        rows = trained[own]
        x = plan_of(step // batches.per_epoch).apply(X[rows], own)[0] if plan_of else view.clean(X[rows])
        with run.naming_rows(rows, x):
            value = risk(ranked(x), label_of[rows], **duplicates.of(rows))
        run.require_finite(value, rows)
        optimizer.zero_grad()
        value.backward()
        run.require_finite_gradients(rows, x)
        set_rate(optimizer, warmup_cosine(step, total, min(warmup, total)))
        optimizer.step()
        run.log(risk=value)
        if run.is_epoch_end(step):
            run.record(**observed(observer, model, view))
            if is_chosen:
                scores = score_rows(model, view, X[held_out])
                error = zero_one_risk(scores, label_of[held_out], prior, risk.decision_score)
                # Of equals the later: with every row on one side of the cut (PN) epochs differ in ranking alone.
                best.offer(model, error, or_equal=True)
                run.record(held_out_risk=error)
    if is_chosen and config.epochs:
        model.load_state_dict(best.state)
    model.eval()
    return model.linear_head(run.history)


def _labelled_share(config: FinetuneConfig, risk: Risk, labels: Labels) -> float | None:
    if config.labelled_share != "auto":
        return config.labelled_share
    is_separate = isinstance(risk, UPU | NNPU | VPU) or (
        isinstance(risk, PvU) and risk.prior is not None and risk.correction != "none"
    )
    needed = min(_LARGEST_SHARE, _FEWEST_LABELLED / config.batch_size)
    return needed if is_separate and float(np.mean(labels == POSITIVE)) < needed else None


def _plans(view: View, X: Tensor, seed: int) -> Callable[[int], Plan]:
    """From an epoch to its plan over the training rows, made once for the steps of the epoch."""
    return lru_cache(maxsize=1)(partial(view.plan, len(X), seed, X=X))


# What a resumed run must begin with again --------------------------------------------------------------------------


def _beginning(model: Scorer, weights: Tensor | None, is_pretrained: bool) -> dict[str, str | None]:
    return {
        "first_weights": weights_fingerprint(model.encoder, WITHOUT_PART) if is_pretrained else None,
        "weights": None if weights is None else fingerprint(weights, np.empty(0, dtype=np.int8)),
    }


class _SameHead:
    """In a checkpoint, what tells the head that training began at from others; given back another one, it refuses it.

    By a sketch, because a probe that is made again with another number of threads differs in the last bits.
    """

    _TOLERANCE = 1e-3

    def __init__(self, model: Scorer) -> None:
        values = torch.cat([model.head.weight[0], model.head.bias]).detach().double()
        self._sketch, self._size = sketch(values[None]), float(values.square().mean().sqrt())

    def state_dict(self) -> dict[str, Any]:
        return {"sketch": self._sketch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if bool(((state["sketch"] - self._sketch).abs() > self._TOLERANCE * self._size).any()):
            raise InputError(
                "the folder holds an unfinished finetune that began at another head; give the same head= to go on with "
                "it, or another folder"
            )


# Weighted duplicates ---------------------------------------------------------------------------------------------


def duplicate_weights_of(view: View, X: Tensor, labels: Labels, train: Tensor, prior: float, seed: int = 0) -> Tensor:
    """w(x) of the training rows by Elkan & Noto, rescaled to the prior; 0 elsewhere. Shape (n,).

    The out-of-fold P-vs-U model is a regularised logistic regression on cheap features that saw no label: principal
    components of the clean rows and a random kernel map of them, because a linear model of pixels misses too much.
    """
    make = partial(_cheap_features, view, X[train], seed)
    return weights_of_training_rows(make, labels, train, prior, seed, X.device)


def _cheap_features(view: View, X: Tensor, seed: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem

    rows = torch.cat([view.clean(x).flatten(1) for x in torch.split(X, 4096)]).cpu().numpy()
    n, width = rows.shape
    if width > _PIXEL_COMPONENTS and n > _PIXEL_COMPONENTS:
        rows = PCA(_PIXEL_COMPONENTS, svd_solver="randomized", random_state=seed).fit_transform(rows)
    gamma = 1.0 / (2.0 * max(1e-12, float(rows.var(axis=0).sum())))  # about half the mean squared distance
    kernel = Nystroem(gamma=gamma, n_components=min(_KERNEL_COMPONENTS, n), random_state=seed).fit_transform(rows)
    return np.hstack([rows, kernel]).astype(np.float32)

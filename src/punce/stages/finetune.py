"""Encoder and linear head trained together on a PU risk: after pretraining, or from scratch (the classic baselines).

    head = finetune(encoder, view, X, labels, NNPU(prior), FinetuneConfig(epochs=10), prior=prior)
    scores = head(extract_features(encoder, view, X_new))

Both train the encoder in place and leave it, with the head they return, at the epoch with the lowest held-out PU
estimate of the error; true labels are never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import POSITIVE, Labels
from punce.risks import NNPU, UPU, VPU, PvU, Risk
from punce.risks.pvu import Duplicates, RowWeights, weights_of_training_rows
from punce.scenario import check_prior
from punce.stages.given import UNUSED_PARTS, check_call, check_encoder, check_risk, check_view, checked_value, told
from punce.stages.probe import LinearHead, Sketch
from punce.stages.scorer import RawRows, RowStage, Scorer, check_pu_rows, reinitialise
from punce.training.loop import Batch, Judgement, Objective, Settings, TrainingConfig, Watched, train
from punce.training.run import Stateful, fingerprint, weights_fingerprint
from punce.views import View

_FEWEST_LABELLED, _LARGEST_SHARE = 16, 0.5  # of a batch, where labelled_share is "auto"
_PIXEL_COMPONENTS, _KERNEL_COMPONENTS = 50, 400


@dataclass(frozen=True)
class FinetuneConfig(TrainingConfig):
    """How to train encoder and head.

    `labelled_share` of every batch is labelled: P and U are drawn separately, P cycled at its own pace. None keeps
    the shares of the data. "auto" keeps them too, unless a batch would then hold fewer than 16 labelled rows and the
    risk averages P and U separately (uPU, nnPU, PvU with a prior); PN and PvU as a mean over all rows would aim
    at another mix. Do not draw P more often than that needs: on MNIST with 1,000 labelled rows a share of a quarter
    shows each of them 20 times an epoch, and uPU then over-fits within the second (benchmarks/mnist_baselines.py).
    `augment` trains on the first of `view`'s two views instead of the clean rows.
    `validation_share` of P and U chooses the epoch; with 0 it is the last one.
    `blocks` trains the last blocks of the encoder alone (:mod:`punce.encoders.blocks`); None trains all of it.
    """

    warmup_epochs: float = 1.0
    labelled_share: float | Literal["auto"] | None = "auto"
    augment: bool = False
    validation_share: float = 0.2
    blocks: int | None = None


def finetune(
    encoder: Encoder,
    view: View,
    X: Tensor,
    labels: Labels,
    risk: Risk,
    config: FinetuneConfig = FinetuneConfig(),  # noqa: B008  frozen
    *,
    prior: float,
    from_scratch: bool = False,
    head: LinearHead | None = None,
    weights: RowWeights | None = None,
    **outputs: Unpack[Watched],
) -> LinearHead:
    """Train a pretrained `encoder` in place, with a new head or one that starts at a probe's `head`; return the head.

    `from_scratch` draws the encoder's weights anew from the seed first, so that the result does not depend on what it
    held: the joint training of PN, PvU, uPU and nnPU in the literature.

    `prior` is the share of positives among the unlabelled rows that the held-out risk uses. `weights` (n,) are w(x)
    for ``PvU(correction="weighted")``; without them they are made by :func:`duplicate_weights_of` on training rows.
    The cut is at ``risk.decision_score``. Dropout is a function of the seed and the rank. With a `folder` the run is
    resumed after a kill, if encoder, head and weights are those it began with.

    Shape: X (n, ...) raw rows as `view` takes them; labels (n,) of {1, 0}.
    """
    kind = _Joint if from_scratch else _Finetune
    # Before weights are drawn anew: what is refused must leave the encoder as it was.
    check_call("finetune", config, FinetuneConfig, outputs)
    check_encoder(encoder, with_head=True)
    check_view(view, augments=config.augment)
    check_risk(risk)
    check_pu_rows(X, labels, f"{kind.name} training")
    check_prior(prior, open_interval=True)
    if isinstance(risk, VPU):
        raise InputError("vPU mixes rows and sets the scale of its scores: train it with punce.stages.vpu.train_vpu")
    if from_scratch:
        if head is not None:
            raise InputError("a head for pretrained features says nothing to an encoder trained from scratch")
        if config.blocks is not None:
            raise InputError("blocks trains the last blocks of a pretrained encoder; from scratch all of it is trained")
        reinitialise(encoder, config.seed)
    model = Scorer(encoder)
    if head is not None:
        model.start_from(head)
    stage = kind(model, RawRows(view, X, labels), risk, config, prior, weights)
    encoder.train_last(config.blocks)
    try:
        history = train(stage, **outputs)
    finally:  # also after Ctrl-C: a caller's encoder must not stay frozen
        encoder.train_last(None)
    return model.linear_head(history)


class _Joint(RowStage):
    """Encoder and head on a risk.

    Of equally good epochs the last is kept: where every row is on one side of the cut (PN), epochs differ in ranking
    alone, and the ranking still improves.
    """

    name = "joint"
    keeps_last_of_equals = True

    def __init__(
        self, model: Scorer, rows: RawRows, risk: Risk, config: FinetuneConfig, prior: float, weights: RowWeights | None
    ) -> None:
        super().__init__(model, rows, config, labelled_share=_labelled_share(config, risk, rows.labels))
        self.scorer, self._is_augmented = model, config.augment
        self._risk, self._prior = risk, prior
        self._duplicates = Duplicates(risk, weights, len(self.X), self.device)

    def inputs(self, batch: Batch) -> Tensor:
        return self.two_views(batch)[0] if self._is_augmented else super().inputs(batch)

    def objective(self, model: nn.Module, inputs: Tensor, batch: Batch) -> Objective:
        scores = model(inputs)
        value = self._risk(scores, self.label_of[batch.rows], **self._duplicates.of(batch.rows))
        return Objective(checked_value("risk", value, scores), {"risk": value})

    def judge(self) -> Judgement:
        return self.error(self.scorer, self._prior, self._risk.decision_score)

    def begin(self) -> None:
        arguments = (self.view, self.X, self.labels, self.train_rows, self._prior, self.settings.seed)
        self._duplicates.ensure(lambda: duplicate_weights_of(*arguments))

    def identity(self) -> dict[str, Any]:
        given = self._duplicates.given
        weights = None if given is None else fingerprint(given, np.empty(0, dtype=np.int8))
        # The first weights are a function of the seed here, and the Config holds the seed.
        described = {"risk": told(self._risk), "prior": self._prior, "weights": weights, "first_weights": None}
        return {**super().identity(), **described}

    def state(self) -> dict[str, Stateful]:
        return {"duplicates": self._duplicates}


class _Finetune(_Joint):
    """Joint training from given weights, which a resumed run must be given again."""

    name = "finetune"

    def identity(self) -> dict[str, Any]:
        return {**super().identity(), "first_weights": weights_fingerprint(self.scorer.encoder, UNUSED_PARTS)}

    def state(self) -> dict[str, Stateful]:
        head = torch.cat([self.scorer.head.weight[0], self.scorer.head.bias]).detach().clone()
        # Not part of first_weights: a probe on another machine differs in the last bits and may still be resumed.
        return {**super().state(), "start": Sketch(head[None], "finetune that began at another head", "head=")}


def _labelled_share(config: FinetuneConfig, risk: Risk, labels: Labels) -> float | None:
    if config.labelled_share != "auto":
        return config.labelled_share
    is_separate = isinstance(risk, UPU | NNPU) or (
        isinstance(risk, PvU) and risk.prior is not None and risk.correction != "none"
    )
    needed = min(_LARGEST_SHARE, _FEWEST_LABELLED / Settings.of(config).batch_size)  # which refuses what is no count
    return needed if is_separate and float(np.mean(labels == POSITIVE)) < needed else None


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

    rows = torch.cat([view.clean(x).flatten(1) for x in torch.split(X, 4096)]).cpu().numpy()  # in parts, for memory
    n, width = rows.shape
    if width > _PIXEL_COMPONENTS and n > _PIXEL_COMPONENTS:
        rows = PCA(_PIXEL_COMPONENTS, svd_solver="randomized", random_state=seed).fit_transform(rows)
    gamma = 1.0 / (2.0 * max(1e-12, float(rows.var(axis=0).sum())))  # about half the mean squared distance
    kernel = Nystroem(gamma=gamma, n_components=min(_KERNEL_COMPONENTS, n), random_state=seed).fit_transform(rows)
    return np.hstack([rows, kernel]).astype(np.float32)

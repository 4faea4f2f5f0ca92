"""What every path of a cell shares: rows and labels, the encoder, the priors it is told, the eyes on test rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.data import PUSample
from punce.encoders import Encoder, build_encoder, row_options
from punce.errors import InputError
from punce.experiments.cell import LABEL_FREE, Cell, EncoderSpec, Pretraining
from punce.experiments.encoder_cache import EncoderCache, Pretrained
from punce.experiments.machine import device
from punce.experiments.priors_told import told_prior
from punce.experiments.sources import Rows, draw_labels, load_rows
from punce.labels import UNLABELLED, Labels
from punce.losses import ContrastiveLoss, build_loss
from punce.risks import Risk, build_risk
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.probe import extract_features
from punce.stages.scorer import Observer, ScoreRows
from punce.views import View, build_view


@dataclass(frozen=True)
class Job:
    """One cell being executed. Only :attr:`is_positive` and simulation know true labels; training gets `labels`."""

    cell: Cell
    cache: EncoderCache
    folder: Path | None

    @cached_property
    def rows(self) -> Rows:
        """Both parts with true labels."""
        data = self.cell.data
        return load_rows(data.source, data.n_train, data.n_test)

    @cached_property
    def sample(self) -> PUSample:
        """The labelled set of the seed."""
        return draw_labels(self.cell.data, self.rows, self.cell.seed)

    @property
    def labels(self) -> Labels:
        """(m,) of {1, 0, −1}."""
        return self.sample.labels

    @cached_property
    def inputs(self) -> Tensor:
        """Training rows in the order of the labels, on the device."""
        return self.rows.X[torch.from_numpy(self.sample.rows)].to(device())

    @cached_property
    def test_inputs(self) -> Tensor:
        """Test rows on the device."""
        return self.rows.X_test.to(device())

    @cached_property
    def is_positive(self) -> npt.NDArray[np.bool_]:
        """The truth about the test rows."""
        return np.asarray(self.rows.y_test == 1)

    @property
    def view(self) -> View:
        """How rows become inputs; joint training takes them as they are, so any name of the source's kind will do."""
        if (pretraining := self.cell.pretraining) is not None:
            return build_view(pretraining.view, **dict(pretraining.view_settings))
        return build_view("digit" if self.rows.X.shape[1] == 1 else "cifar")

    # Priors ----------------------------------------------------------------------------------------------------------

    @cached_property
    def loss_prior(self) -> float | None:
        """What puNCE is told; None for other losses."""
        spec = self.cell.pretraining.prior if self.cell.pretraining is not None else None
        return None if spec is None else told_prior(spec, self.sample, self._unshaped_features, self.cell.seed)

    @cached_property
    def risk_prior(self) -> float:
        """What risk and selection are told."""
        spec = self.cell.transfer.prior
        if self.loss_prior is not None and self.cell.pretraining and self.cell.pretraining.prior == spec:
            return self.loss_prior  # an estimate takes a while
        return told_prior(spec, self.sample, self._unshaped_features, self.cell.seed)

    def _unshaped_features(self) -> npt.NDArray[np.float32]:
        """Features of InfoNCE, which saw no label; without pretraining the pixels."""
        if self.cell.pretraining is None:
            return self.inputs.flatten(1).float().cpu().numpy()
        pretraining = replace(self.cell.pretraining, loss="infonce", prior=None, loss_settings=())
        twin = Job(replace(self.cell, pretraining=pretraining), self.cache, None)
        encoder, _ = twin.pretrained()
        return extract_features(encoder, self.view, self.inputs).cpu().numpy()

    # Encoders --------------------------------------------------------------------------------------------------------

    def new_encoder(self) -> Encoder:
        """The network with the weights of the seed."""
        with torch.random.fork_rng():
            torch.manual_seed(self.cell.seed)
            encoder = network_for(self.cell.encoder, tuple(self.rows.X.shape[1:]))
        # Narrower than an eighth, oneDNN writes past the end of a 1×1 convolution with stride 2 (torch 2.13, AVX2).
        if self.cell.encoder.channels_last and self.cell.encoder.width >= 0.125:
            encoder = encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return encoder.to(device())

    def pretrained(self) -> tuple[Encoder, Pretrained]:
        """The pretrained encoder, from the cache or into it."""
        pretraining, config = self.cell.pretraining, self.cell.encoder_config()
        if pretraining is None or config is None:
            raise InputError(f"{self.cell.describe()}: this transfer needs a pretrained encoder")
        encoder = self.new_encoder()
        _ = self.loss_prior  # an estimate may pretrain another encoder: before this one is locked and timed

        def train(encoder: Encoder, folder: Path) -> list[dict[str, Any]]:
            return self._pretrain(encoder, pretraining, folder)

        return encoder, self.cache.fill(encoder, config, train)

    def _pretrain(self, encoder: Encoder, spec: Pretraining, folder: Path) -> list[dict[str, Any]]:
        X, labels = self.inputs, self.labels
        if spec.loss in LABEL_FREE:  # no label and no copy of a labelled row: one encoder for every labelled set
            X, labels = self.rows.X.to(device()), np.full(len(self.rows.X), UNLABELLED, dtype=np.int8)
        config = PretrainConfig(
            epochs=spec.epochs,
            batch_size=spec.batch_size,
            optimizer=spec.optimizer,  # type: ignore[arg-type]
            lr=spec.lr,
            weight_decay=spec.weight_decay,
            warmup_epochs=spec.warmup_epochs,
            min_labelled=spec.min_labelled,
            monitor_prior=0.5 if self.loss_prior is None else self.loss_prior,
            seed=self.cell.seed,
        )
        return pretrain(encoder, self.view, X, labels, self._loss(spec), config, folder=folder)

    def _loss(self, spec: Pretraining) -> ContrastiveLoss:
        options = dict[str, Any](spec.loss_settings)
        return build_loss(spec.loss, self.loss_prior, temperature=spec.temperature, **options).to(device())

    # Training and watching -------------------------------------------------------------------------------------------

    def risk(self) -> Risk:
        """The risk of the transfer, told its prior if it takes one."""
        name = self.cell.transfer.risk
        if name is None:
            raise InputError(f"{self.cell.describe()}: a {self.cell.transfer.kind} needs a risk")
        # PvU by weighted duplicates over all rows, as in the paper's tables; with a prior it is another risk.
        prior = None if name == "pvu" else self.risk_prior
        return build_risk(name, prior, **dict[str, Any](self.cell.transfer.risk_settings))

    def stage(self, config: Callable[..., Any]) -> Any:
        """The stage's configuration from the cell's settings."""
        return config(**dict(self.cell.transfer.settings), seed=self.cell.seed)

    def accuracy(self, scores: Tensor, cut: float) -> float:
        """Per cent of the test rows on the right side of the cut."""
        return 100.0 * float(((scores > cut).cpu().numpy() == self.is_positive).mean())

    def watcher(self, cut_of: Callable[[Tensor], float]) -> Observer:
        """Puts test accuracy into the history after every epoch; training never sees it."""

        def watch(scores_of: ScoreRows) -> dict[str, float]:
            scores = scores_of(self.test_inputs)
            return {"oracle_accuracy": self.accuracy(scores, cut_of(scores))}

        return watch


def network_for(spec: EncoderSpec, row_shape: tuple[int, ...]) -> Encoder:
    """The network for images of this shape (C, H, W)."""
    return build_encoder(spec.name, **row_options(spec.name, row_shape), width=spec.width)

"""A running cell: its rows and labels, its encoder, the priors it is told, its head, and how test rows are watched."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.data import PUSample
from punce.encoders import Encoder, build_encoder, row_options
from punce.encoders.precision import channels_last
from punce.errors import InputError
from punce.experiments.cell import LABEL_FREE, Cell, EncoderSpec, PortfolioConfig, Pretraining, PriorSpec, TextConfig
from punce.experiments.encoder_cache import EncoderCache, Pretrained
from punce.experiments.machine import device
from punce.experiments.portfolio import portfolio_head
from punce.experiments.sources import ImageRows, draw_labels, load_rows
from punce.labels import UNLABELLED, Labels
from punce.losses import build_loss
from punce.priors import PRIORS, PriorWarning, estimate_prior
from punce.risks import Risk, build_risk
from punce.scenario import check_prior
from punce.stages.finetune import FinetuneConfig
from punce.stages.pretrain import pretrain
from punce.stages.probe import LinearHead, ProbeConfig, extract_features
from punce.stages.transfer import Judge, Problem, TrainedHead, train_head
from punce.views import View, build_view

_SMALLEST_PRIOR = 0.01  # of what an estimate or an error may give: risks divide by π and by 1 − π


@dataclass(frozen=True)
class Job:
    """One cell being executed. Only :attr:`is_positive` and simulation know true labels; training gets `labels`."""

    cell: Cell
    cache: EncoderCache
    folder: Path | None

    @cached_property
    def rows(self) -> ImageRows:
        """Both parts with true labels."""
        data = self.cell.data
        return load_rows(data.source, data.n_train, data.n_test, data.positive_share)

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
        """How rows become inputs."""
        if self.cell.pretraining is not None:
            return self.cell.pretraining.view
        if self.cell.transfer.view is not None:
            return self.cell.transfer.view
        # The first protocol: no row is augmented, so any view of images will do.
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
        pretraining = replace(self.cell.pretraining, loss="infonce", prior=None, loss_options=())
        # Through the cache: InfoNCE sees no label, so that one encoder serves every estimator and labelled set.
        twin = Job(replace(self.cell, pretraining=pretraining), self.cache, None)
        encoder, _ = twin.pretrained()
        return extract_features(encoder, self.view, self.inputs).cpu().numpy()

    @property
    def is_from_scratch(self) -> bool:
        """Whether encoder and head are trained together, from random weights."""
        return self.cell.transfer.kind in ("joint", "vpu", "selfpu")

    # Encoders --------------------------------------------------------------------------------------------------------

    def new_encoder(self) -> Encoder:
        """The network with the weights of the seed."""
        # Forked: building a network must not move the stream that training draws from.
        with torch.random.fork_rng():
            torch.manual_seed(self.cell.seed)
            encoder = network_for(self.cell.encoder, tuple(self.rows.X.shape[1:]))
        encoder.precision = self.cell.encoder.precision
        return (channels_last(encoder) if self.cell.encoder.channels_last else encoder).to(device())

    def pretrained(self) -> tuple[Encoder, Pretrained]:
        """The pretrained encoder, from the cache or into it."""
        pretraining, config = self.cell.pretraining, self.cell.encoder_config()
        if pretraining is None or config is None:
            raise InputError(f"{self.cell.describe()}: this transfer needs a pretrained encoder")
        encoder = self.new_encoder()
        _ = self.loss_prior  # an estimate may pretrain another encoder: before this one is locked and timed
        return encoder, self.cache.fill(encoder, config, partial(self._pretrain, pretraining))

    def _pretrain(self, spec: Pretraining, encoder: Encoder, folder: Path) -> list[dict[str, Any]]:
        X, labels = self.inputs, self.labels
        if spec.loss in LABEL_FREE:  # no label and no copy of a labelled row: one encoder for every labelled set
            X, labels = self.rows.X.to(device()), np.full(len(self.rows.X), UNLABELLED, dtype=np.int8)
        told = self.loss_prior
        # The monitor takes no part in training; where no prior is told it gets one half.
        config = replace(spec.config, seed=self.cell.seed, monitor_prior=0.5 if told is None else told)
        loss = build_loss(spec.loss, told, temperature=spec.temperature, **dict[str, Any](spec.loss_options))
        return pretrain(encoder, self.view, X, labels, loss.to(device()), config, folder=folder)

    # Training and watching -------------------------------------------------------------------------------------------

    def first_encoder(self) -> tuple[Encoder, Pretrained | None]:
        """What the transfer begins with: random weights, or a pretrained encoder."""
        is_control = self.cell.pretraining is None and self.cell.transfer.kind == "probe"
        return (self.new_encoder(), None) if self.is_from_scratch or is_control else self.pretrained()

    def train(self, encoder: Encoder) -> TrainedHead:
        """The head of the transfer on this encoder, with test accuracy in its history."""
        transfer = self.cell.transfer
        if isinstance(transfer.config, TextConfig):
            raise InputError(f"{self.cell.describe()}: few-shot text has its own path, punce.experiments.fewshot")
        if isinstance(transfer.config, PortfolioConfig):
            rows = (encoder, self.view, self.inputs, self.labels)
            return portfolio_head(transfer.config, *rows, self.risk_prior, self.cell.seed)
        problem = Problem(
            encoder,
            self.view,
            self.inputs,
            self.labels,
            self.risk_prior,
            risk=self.risk(),
            from_scratch=self.is_from_scratch,
            start=None if transfer.start is None else self._probed(encoder, transfer.start),
            folder=self.folder,
            watch=self._watch,
        )
        config = replace(transfer.config, seed=self.cell.seed)
        if not transfer.rates:
            return train_head(config, problem)
        assert isinstance(config, FinetuneConfig)
        tried = (self._at_rate(config, problem, rate) for rate in transfer.rates)
        return min(tried, key=lambda head: min(row["held_out_risk"] for row in head.history))

    def _probed(self, encoder: Encoder, config: ProbeConfig) -> LinearHead:
        """The head at which fine-tuning begins: it is quick to train, so that no checkpoint is kept."""
        rows = (encoder, self.view, self.inputs, self.labels, self.risk_prior)
        return train_head(replace(config, seed=self.cell.seed), Problem(*rows, risk=self.risk())).linear

    def _at_rate(self, config: FinetuneConfig, problem: Problem, rate: float) -> TrainedHead:
        """Fine-tuning of a copy of the encoder at this rate; the rate stands in the history."""
        folder = None if problem.folder is None else problem.folder / f"rate-{rate:g}"
        own = replace(problem, encoder=deepcopy(problem.encoder), folder=folder)
        head = train_head(replace(config, lr=rate), own)
        head.history[:] = [{**row, "rate": rate} for row in head.history]
        return head

    def risk(self) -> Risk | None:
        """The risk of the transfer, told its prior if it takes one; None where the stage has its own objective."""
        name = self.cell.transfer.risk
        if name is None:
            return None
        # PvU by weighted duplicates over all rows, as in the paper's tables; with a prior it is another risk.
        prior = None if name == "pvu" else self.risk_prior
        return build_risk(name, prior, **dict[str, Any](self.cell.transfer.risk_options))

    def accuracy(self, scores: Tensor, cut: float) -> float:
        """Per cent of the test rows on the right side of the cut."""
        return 100.0 * float(((scores > cut).cpu().numpy() == self.is_positive).mean())

    def _watch(self, judge: Judge) -> dict[str, float]:
        """Puts test accuracy into the history after every epoch; training never sees it."""
        return {"oracle_accuracy": self.accuracy(*judge(self.test_inputs))}


def network_for(spec: EncoderSpec, row_shape: tuple[int, ...]) -> Encoder:
    """The network for images of this shape (C, H, W)."""
    return build_encoder(spec.name, **row_options(spec.name, row_shape), width=spec.width)


def told_prior(spec: PriorSpec, sample: PUSample, features: Callable[[], npt.NDArray[np.float32]], seed: int) -> float:
    """``"true"``, ``"true-0.1"``, a number, or an estimator's name -> a prior inside (0, 1).

    `features` must be features that no label has shaped; they are asked for only when an estimator needs them.
    """
    if isinstance(spec, float | int):
        return check_prior(float(spec), open_interval=True)
    if wrong := re.fullmatch(r"true([+-]\d*\.?\d+)?", spec):
        value = sample.prior + float(wrong[1] or 0)
    elif spec not in PRIORS:
        raise InputError(f"a prior is 'true', 'true+0.1', a number or one of {list(PRIORS)}, got {spec!r}")
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PriorWarning)  # the experiment is about how far off it is
            value = estimate_prior(features(), sample.labels, spec, random_state=seed, scenario=sample.scenario).value
    return min(1 - _SMALLEST_PRIOR, max(_SMALLEST_PRIOR, value))

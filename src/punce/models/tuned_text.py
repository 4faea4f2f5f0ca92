"""Texts with the whole transformer trained: contrastive pretraining, then encoder and head together on a PU risk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from punce.encoders import Transformer
from punce.labels import Labels
from punce.models.heads import batch_size, load_network, network_tensors, pretrain_encoder, probe_config, risk_of
from punce.models.network import check_device, outer_split, with_a_labelled_row
from punce.models.route import FitSettings, Fitted, Flags, Floats, State
from punce.models.sentences import are_there
from punce.stages.finetune import FinetuneConfig
from punce.stages.pretrain import PretrainConfig
from punce.stages.probe import LinearHead
from punce.stages.transfer import Problem, train_head
from punce.storage.json_tree import decode
from punce.training.random_stream import seeded
from punce.views import Text

_ROWS_SEEN = 20_000  # what an automatic number of epochs aims at: 3 epochs of SST-2's sentences
_MOST_EPOCHS = 10  # few rows would otherwise be seen so often that the transformer memorises them
_ADAMW: dict[str, Any] = {"optimizer": "adamw", "weight_decay": 0.01, "warmup_epochs": 0.2}
_DROP = 0.1  # share of tokens left out of a view, on top of dropout


class TunedTransformer:
    """A transformer and a linear head, both trained on the rows. For a GPU, or few rows."""

    how = "tuned"
    _head: LinearHead

    def __init__(self, encoder: Transformer) -> None:
        self._encoder = encoder
        self._view = Text(drop=_DROP)

    def fit(self, texts: list[str], labels: Labels, settings: FitSettings) -> Fitted:
        """Pretrain on the loss, start the head on frozen features, then train both on the risk."""
        device = check_device(settings.device)
        with seeded(settings.random_state, device):
            return self._fit(texts, labels, settings, device)

    def _fit(self, texts: list[str], labels: Labels, settings: FitSettings, device: torch.device) -> Fitted:
        self._encoder.to(device).train_last(settings.configs.get("finetune", {}).get("blocks"))
        train, held_out = outer_split(labels, settings.random_state)
        x, known = self._encoder.tokens([texts[i] for i in train]).to(device), labels[train.numpy()]
        automatic = PretrainConfig(
            epochs=settings.epochs_of("pretrain") or _epochs(len(x)),
            batch_size=batch_size(len(x), 64),
            lr=5e-5,
            **_ADAMW,
        )
        history = pretrain_encoder(self._encoder, self._view, x, known, settings, automatic)
        self._head = self._on_risk(x, known, settings)
        self._encoder.cpu().eval()  # back from the GPU: the model is saved and scored where there may be none
        judged, seen = with_a_labelled_row(held_out.numpy(), labels), np.zeros(len(labels), dtype=bool)
        seen[train.numpy()] = True
        scores = self.score([texts[i] for i in judged])
        return Fitted(judged, scores, [*history, *self._head.history], seen=seen)

    def _on_risk(self, x: Tensor, labels: Labels, settings: FitSettings) -> LinearHead:
        """The head alone first: a random one would pull the pretrained features apart before it knows anything."""
        problem = Problem(self._encoder, self._view, x, labels, settings.prior, risk=risk_of(settings))
        start = train_head(probe_config(settings, batch_size(len(x))), problem).linear
        automatic = FinetuneConfig(
            epochs=settings.epochs_of("finetune") or _epochs(len(x)),
            batch_size=32,
            lr=2e-5,
            seed=settings.random_state,
            **_ADAMW,
        )
        folder = settings.folder / "head" if settings.folder else None
        problem = replace(problem, start=start, folder=folder, progress=settings.progress)
        return train_head(settings.config("finetune", automatic), problem).linear.cpu()

    def knows(self, texts: list[str]) -> Flags:
        """Whether there is any text. Shape: (n,)."""
        return are_there(texts)

    def score(self, texts: list[str]) -> Floats:
        """Scores of the linear head. Shape: (n,)."""
        scores: Floats = self._head(self._encoder.embed(texts)).double().numpy()
        return scores

    def embed(self, texts: list[str]) -> Floats:
        """Features of the trained encoder. Shape: (n, D)."""
        features: Floats = self._encoder.embed(texts).double().numpy().astype(np.float64)
        return features

    def state(self) -> State:
        """The trained weights as tensors; where the tokeniser and architecture come from as JSON."""
        return network_tensors(self._encoder, self._head), {"encoder": self._encoder.spec}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> TunedTransformer:
        """Inverse of :meth:`state`."""
        route = cls(Transformer.from_spec(decode(dict[str, Any], content["encoder"], "encoder")))
        route._head = load_network(route._encoder, tensors)
        return route


def _epochs(n_rows: int) -> int:
    return max(1, min(_MOST_EPOCHS, round(_ROWS_SEEN / n_rows)))

"""Candidates with learned features. One pretraining without labels serves all; a loss that uses labels goes on from it.

InfoNCE sees no label, so that one encoder is honest for every fold. The loss with labels (SCL, puNCE) would make the
features of labelled rows flatter them: it is trained once for each fold, with the labels of that fold hidden, and each
time starts from InfoNCE's weights, which makes a few epochs enough. All together cost less than two pretrainings.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.encoders import Encoder, build_encoder, row_options
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.losses import build_loss
from punce.models.heads import trained_fast
from punce.models.portfolio.memorised import about_memory, as_history, seen_and_held_out
from punce.models.portfolio.readers import Given, Learned
from punce.models.route import FitSettings
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.training.parallel import in_parallel
from punce.training.random_stream import seeded
from punce.views import View, build_view

Rows = npt.NDArray[np.intp]
Continued = tuple[dict[str, Tensor], list[dict[str, Any]]]
"""Weights and history."""

MOST_ROWS = 50_000
"""Rows that an encoder is trained on; every row is scored."""
_FEWEST_ROWS = 200  # below this an encoder learns the noise of the rows
_SHARE_BEFORE = 0.8  # of the epochs of one pretraining, without labels; the loss with labels takes as much again
_MOST_FLOPS = 4e12  # of one pretraining: about two minutes of one core


@dataclass(frozen=True)
class Recipe:
    """What is trained for rows of one shape: the network, its views, the loss that uses labels, and how long."""

    encoder: dict[str, Any]
    view: str
    losses: tuple[str, ...]
    """Losses that use labels."""
    rows_seen: int
    """By one pretraining."""

    @classmethod
    def of(cls, x: Tensor) -> Recipe:
        """Pictures have views that hold against puNCE's pull to the labelled rows; noise on embeddings does not."""
        if x.dim() == 2:
            options = {"in_features": x.shape[1], "width": 0.05}
            return cls({"name": "mlp", "options": options}, "embedding", ("scl",), 100_000)
        is_coloured = x.shape[1] == 3
        name, width = ("allconv", 0.25) if is_coloured else ("mlp", 0.2)
        options = {**row_options(name, tuple(x.shape[1:])), "width": width}
        view = "crop_flip_colour" if is_coloured else "digit"
        return cls({"name": name, "options": options}, view, ("punce",), 900_000)

    def epochs(self, n_rows: int, encoder: Encoder, row: Tensor) -> int:
        """Of one pretraining: enough to see `rows_seen` rows, at most 40, within the budget of operations."""
        most = _MOST_FLOPS / (n_rows * _flops(encoder, row))
        return max(2, min(40, round(self.rows_seen / n_rows), int(most)))


@dataclass(frozen=True)
class Trained:
    """Encoders by name of the loss: one for all folds, or one for each fold. `history` is that of the first of each."""

    readers: dict[str, tuple[Learned, ...]]
    history: list[dict[str, Any]]
    notes: tuple[str, ...]
    """What a person should know of them."""


def trained(
    x: Tensor,
    labels: Labels,
    folds: Rows,
    settings: FitSettings,
    device: torch.device,
    losses: Sequence[str] | None = None,
) -> Trained:
    """The learned candidates; none where there are too few rows. `losses` that use labels are else the recipe's own.

    Shape: x (n, ...), labels (n,), folds (n,).
    """
    if len(x) < _FEWEST_ROWS:
        return Trained({}, [], ())
    recipe, rows = Recipe.of(x), _thinned(labels, settings.random_state)
    own, known, of = x[rows].to(device), labels[rows], folds[rows]
    with seeded(settings.random_state, device):
        encoder = build_encoder(recipe.encoder["name"], **recipe.encoder["options"]).to(device)
    view = build_view(recipe.view).fit(own)
    epochs = settings.epochs or recipe.epochs(len(own), encoder, own[:1])
    run = _Pretraining(own, view, settings, _batch_size(len(own)))
    first = max(1, round(_SHARE_BEFORE * epochs))
    history = run(encoder, "infonce", np.zeros_like(known), first, "infonce")
    made = partial(Learned.of, spec=recipe.encoder, view=view, view_name=recipe.view, x=own, seed=settings.random_state)
    n_folds = int(folds.max()) + 1
    more = max(1, round(_SHARE_BEFORE * epochs / n_folds))
    settings.used["pretrained"] = {"infonce": first, "rows": len(own)}
    readers: dict[str, tuple[Learned, ...]] = {"infonce": (made(encoder),)}
    for loss in recipe.losses if losses is None else losses:
        tasks = [partial(_continued, run, encoder, loss, known, of == k, more, k) for k in range(n_folds)]
        encoders, histories = _loaded(encoder, in_parallel(tasks))
        readers[loss] = tuple(map(made, encoders))
        history = [*history, *histories[0]]
        settings.used["pretrained"][loss] = f"{n_folds} x {more}"
    memory = {
        loss: seen_and_held_out(made_for, Given(own), known, of)
        for loss, made_for in readers.items()
        if loss != "infonce"
    }
    settings.used["labelled_rows"] = memory
    return Trained(readers, [*history, *as_history(memory)], about_memory(memory))


def _loaded(encoder: Encoder, found: Iterable[Continued]) -> tuple[list[Encoder], list[list[dict[str, Any]]]]:
    """Encoders like this one with the weights that were found, and their histories."""
    encoders, histories = [], []
    for state, history in found:
        encoders.append(copy.deepcopy(encoder))
        encoders[-1].load_state_dict(state)
        histories.append(history)
    return encoders, histories


@dataclass(frozen=True)
class _Pretraining:
    """Pretrains an encoder in place."""

    x: Tensor
    view: View
    settings: FitSettings
    batch_size: int

    def __call__(self, encoder: Encoder, loss: str, labels: Labels, epochs: int, name: str) -> list[dict[str, Any]]:
        told = self.settings
        config = PretrainConfig(
            epochs=epochs, batch_size=self.batch_size, monitor_prior=told.prior, seed=told.random_state
        )
        folder = told.folder / name if told.folder else None
        built = build_loss(loss, told.prior)
        with trained_fast(encoder, told):
            return pretrain(encoder, self.view, self.x, labels, built, config, folder=folder, progress=told.progress)


def _continued(
    run: _Pretraining, encoder: Encoder, loss: str, labels: Labels, hidden: npt.NDArray[np.bool_], epochs: int, k: int
) -> Continued:
    """Weights after further epochs in which the labels of `hidden` rows are not seen, and the history."""
    later = copy.deepcopy(encoder)
    history = run(later, loss, np.where(hidden, UNLABELLED, labels).astype(labels.dtype), epochs, f"{loss}-{k}")
    return later.state_dict(), history


def _thinned(labels: Labels, seed: int) -> Rows:
    """All labelled rows and as many others as the budget allows, in order."""
    positive = np.flatnonzero(labels == POSITIVE)[:MOST_ROWS]
    others = np.random.default_rng(seed).permutation(np.flatnonzero(labels != POSITIVE))
    return np.sort(np.concatenate([positive, others[: max(MOST_ROWS - len(positive), MOST_ROWS // 2)]]))


def _batch_size(n_rows: int) -> int:
    return min(1024, max(64, n_rows // 8))


def _flops(encoder: Encoder, row: Tensor) -> float:
    """Of one row's two views, forward and backward: six operations for each weight, as often as it is used."""
    uses = 0.0

    def count(module: torch.nn.Module, _: Any, output: Tensor) -> None:
        nonlocal uses
        weight = getattr(module, "weight", None)
        if weight is not None and weight.dim() > 1:
            uses += weight.numel() * (output[0, 0].numel() if output.dim() == 4 else 1)

    hooks = [module.register_forward_hook(count) for module in encoder.modules()]
    with torch.no_grad():
        encoder.eval()
        encoder.features(torch.zeros(1, *row.shape[1:], device=row.device))
        encoder.train()
    for hook in hooks:
        hook.remove()
    return 12.0 * uses

"""Candidates with learned features. One pretraining without labels serves all; losses with labels continue it.

InfoNCE sees no label, so that one encoder serves every fold. Features of a loss with labels (SCL, puNCE) show labelled
rows as too easy: it is trained once for each fold, with the labels of that fold hidden, and each time starts from
InfoNCE's weights, which makes a few epochs enough. All together cost less than two pretrainings.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.encoders import Encoder, build_encoder
from punce.errors import number_of
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.losses import build_loss
from punce.models.heads import batch_size, trained_fast
from punce.models.network import encoder_for, view_for
from punce.models.portfolio.costs import affordable_epochs, can_be_halved, expected, reduced
from punce.models.portfolio.memorised import (
    EpochWatch,
    about_memory,
    as_history,
    best_epochs,
    seen_and_held_out,
)
from punce.models.portfolio.readers import Given, Learned
from punce.models.route import FitSettings
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.training.parallel import in_parallel
from punce.training.progress import say
from punce.training.random_stream import seeded
from punce.training.run import Outputs
from punce.views import View, build_view

Rows = npt.NDArray[np.intp]
Continued = tuple[list[dict[str, Tensor]], list[float], list[dict[str, Any]]]
"""Weights after every epoch, how hidden labelled rows ranked then, and the history."""

MOST_ROWS = 50_000
"""Rows that an encoder is trained on; every row is scored."""
_FEWEST_ROWS = 200  # below this an encoder learns the noise of the rows
_SHARE_BEFORE = 0.8  # of the epochs of one pretraining, without labels; the loss with labels takes as much again


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
        """Images have views that hold against puNCE's pull to the labelled rows; noise on embeddings does not."""
        if x.dim() == 2:
            options = {"in_features": x.shape[1], "width": 0.05}
            return cls({"name": "mlp", "options": options}, "embedding", ("scl",), 100_000)
        return cls(encoder_for(x, "auto"), view_for(x)["name"], ("punce",), 900_000)

    @classmethod
    def affordable(cls, x: Tensor) -> tuple[Recipe, int, int]:
        """The recipe, by how much images are reduced for it, and the epochs of one pretraining.

        Epochs are enough to see `rows_seen` rows, at most 40, within the budget of operations.
        """
        factor = 1
        while True:
            row = reduced(x[:1], factor)
            recipe, shape = cls.of(row), tuple(row.shape[1:])
            most = affordable_epochs(len(x), recipe.encoder, shape)
            if not can_be_halved(shape, most):
                break
            factor *= 2
        return recipe, factor, max(2, min(40, round(recipe.rows_seen / len(x)), int(most)))


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
    rows = _within_budget(labels, settings.random_state)
    given, known, of = x[rows], labels[rows], folds[rows]
    plan = _Plan.of(given, of, settings, losses)
    own = reduced(given, plan.factor).to(device)
    with seeded(settings.random_state, device):
        encoder = build_encoder(plan.recipe.encoder["name"], **plan.recipe.encoder["options"]).to(device)
    run = _Pretraining(own, build_view(plan.recipe.view).fit(own), settings, batch_size(len(own)))
    settings.used["pretrained"] = plan.in_words(own)
    run.announce(encoder, plan)
    history = run(encoder, "infonce", np.zeros_like(known), plan.first, "infonce")
    made = partial(plan.made, view=run.view, x=own, seed=settings.random_state)
    readers: dict[str, tuple[Learned, ...]] = {"infonce": (made(encoder),)}
    stopped: dict[str, list[int]] = {}
    for loss in plan.losses:
        encoders, kept, own_history = run.in_folds(encoder, loss, known, of, plan.more)
        readers[loss] = tuple(map(made, encoders))
        history = [*history, *own_history]
        stopped |= {loss: kept} if min(kept) < plan.more else {}
    memory = {loss: seen_and_held_out(readers[loss], Given(given), known, of) for loss in plan.losses}
    settings.used.update(labelled_rows=memory, stopped=stopped)
    # That an earlier epoch was kept is no reason to doubt a number: `ran_` and the history tell it, no warning does.
    return Trained(readers, [*history, *as_history(memory)], about_memory(memory))


@dataclass(frozen=True)
class _Plan:
    """What is trained for some rows: `first` epochs without labels, `more` for each fold and loss that uses them."""

    recipe: Recipe
    factor: int
    """By which images are reduced."""
    first: int
    more: int
    n_folds: int
    losses: tuple[str, ...]

    @classmethod
    def of(cls, x: Tensor, folds: Rows, settings: FitSettings, losses: Sequence[str] | None) -> _Plan:
        recipe, factor, epochs = Recipe.affordable(x)
        n_folds, share = int(folds.max()) + 1, _SHARE_BEFORE * (settings.epochs or epochs)
        # All folds of a loss with labels together take as many epochs as the one pretraining without.
        first, more = (max(1, round(share / parts)) for parts in (1, n_folds))
        return cls(recipe, factor, first, more, n_folds, recipe.losses if losses is None else tuple(losses))

    @property
    def epochs(self) -> int:
        """All epochs: without labels, and with labels for every loss and fold."""
        return self.first + self.more * self.n_folds * len(self.losses)

    def in_words(self, x: Tensor) -> dict[str, Any]:
        """As the run folder tells it. Shape: x (n, ...), what the encoder is trained on."""
        epochs = {"infonce": self.first, **dict.fromkeys(self.losses, f"{self.n_folds} x {self.more}")}
        smaller = {"pixels": list(x.shape[2:])} if self.factor > 1 else {}
        return {**epochs, "rows": len(x), **smaller}

    def made(self, encoder: Encoder, view: View, x: Tensor, seed: int) -> Learned:
        """Features of a trained encoder."""
        return Learned.of(encoder, self.recipe.encoder, view, self.recipe.view, x, seed, self.factor)


@dataclass(frozen=True)
class _Pretraining:
    """Pretrains an encoder in place."""

    x: Tensor
    view: View
    settings: FitSettings
    batch_size: int

    def __call__(
        self, encoder: Encoder, loss: str, labels: Labels, epochs: int, name: str, watch: EpochWatch | None = None
    ) -> list[dict[str, Any]]:
        told = self.settings
        config = PretrainConfig(
            epochs=epochs, batch_size=self.batch_size, monitor_prior=told.prior, seed=told.random_state
        )
        folder = told.folder / name if told.folder else None
        built = build_loss(loss, told.prior)
        where: Outputs = {"folder": folder, "progress": told.progress}
        with trained_fast(encoder, told):
            return pretrain(encoder, self.view, self.x, labels, built, config, watch=watch, **where)

    def in_folds(
        self, encoder: Encoder, loss: str, labels: Labels, folds: Rows, epochs: int
    ) -> tuple[list[Encoder], list[int], list[dict[str, Any]]]:
        """For each fold the encoder trained on with the labels of that fold hidden, and the epoch that was kept.

        The history is that of the first fold.
        """
        n_folds = int(folds.max()) + 1
        tasks = [partial(_continued, self, encoder, loss, labels, folds == k, epochs, k) for k in range(n_folds)]
        weights, held_out, histories = zip(*in_parallel(tasks), strict=True)
        kept = best_epochs(held_out, last=epochs)
        # Folds may be trained in copies of this process, from which only weights come back.
        encoders = [copy.deepcopy(encoder) for _ in kept]
        for later, of_epochs, epoch in zip(encoders, weights, kept, strict=True):
            later.load_state_dict(of_epochs[epoch])
        return encoders, kept, histories[0]

    def announce(self, encoder: Encoder, plan: _Plan) -> None:
        """Say how long it will take, before it begins."""
        if not self.settings.progress:
            return
        steps = plan.epochs * max(1, len(self.x) // self.batch_size)
        if about := expected(encoder, self.x, self.batch_size, steps):
            say(f"features of {len(self.x):,} rows: {about} ({number_of(plan.epochs, 'epoch', 'epochs')} in all)")


def _continued(
    run: _Pretraining, encoder: Encoder, loss: str, labels: Labels, hidden: npt.NDArray[np.bool_], epochs: int, k: int
) -> Continued:
    """Weights after each of some further epochs in which the labels of `hidden` rows are not seen, and the history."""
    later, watch = copy.deepcopy(encoder), EpochWatch(run.view, run.x, labels, hidden)
    watch.epoch(later)  # epoch 0: the weights before any label was used can be the best ones
    shown = np.where(hidden, UNLABELLED, labels).astype(labels.dtype)
    history = run(later, loss, shown, epochs, f"{loss}-{k}", watch)
    return watch.weights, watch.held_out, history


def _within_budget(labels: Labels, seed: int) -> Rows:
    """Labelled rows, all or as many as the budget allows, and others to fill it, in order of the rows."""
    positive = np.flatnonzero(labels == POSITIVE)[:MOST_ROWS]
    others = np.random.default_rng(seed).permutation(np.flatnonzero(labels != POSITIVE))
    return np.sort(np.concatenate([positive, others[: max(MOST_ROWS - len(positive), MOST_ROWS // 2)]]))

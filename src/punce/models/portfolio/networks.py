"""Networks on small images that the students teach, and that go beyond them (:mod:`punce.stages.taught`).

As with students, fold k's network learns what fold k's candidates together say of the rows that they learned from: no
label of fold k is seen, and its scores of that fold's rows are held out. Held-out labelled rows decide how much the
networks count.

Colour images get convolutions. Grey ones are mostly writing and drawings: an MLP that sees them turned and slanted
costs a minute, and on 10,000 rows of MNIST with 100 labels was right far more often than its teachers
(benchmarks/results/features.json, "networks").

Shapes: n rows, K folds, M features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from punce.encoders import build_encoder, row_options
from punce.labels import POSITIVE, Labels
from punce.models.heads import batch_size, drawn_by_weight, trained_fast
from punce.models.portfolio.candidates import Candidates, Member, scales
from punce.models.portfolio.costs import expected, reduced
from punce.models.portfolio.problem import Floats, Linear, linear
from punce.models.portfolio.readers import Given, TaughtReader
from punce.models.portfolio.students import agreed, taught_chances
from punce.models.route import FitSettings
from punce.stages.taught import Lesson, TaughtConfig, learn_from_teacher
from punce.training.cpus import usable_cpus
from punce.training.parallel import in_parallel
from punce.training.progress import say
from punce.training.random_stream import seeded
from punce.training.run import Outputs
from punce.views.taught import SmallImageView, TaughtView, WritingView

NETWORK, HEAD = "network", "own head"
_USUAL_SIDE = 32
_MOST_AT_ONCE = 256  # rows of a batch


@dataclass(frozen=True)
class _Suited:
    """A network, and the images that it suits: with fewer rows or labels it adds little to what the students know.

    `images` are those seen by one network in its two stages, if they have 32 × 32 pixels, in at most `most_epochs`.
    """

    encoder: str
    width: float
    images: tuple[int, int]
    most_epochs: tuple[int, int]
    smallest_side: int
    fewest_labelled: int
    fewest_rows: int

    @classmethod
    def to(cls, x: Tensor) -> _Suited | None:
        """The one for these rows, if any."""
        if x.dim() != 4:
            return None
        suited, is_square = (_GREY if x.shape[1] == 1 else _COLOUR), x.shape[2] == x.shape[3]
        fits = min(x.shape[2:]) >= suited.smallest_side and (is_square or suited.encoder != "allconv")
        return suited if fits else None

    def has_enough(self, labels: Labels) -> bool:
        """Whether there are enough rows, and enough labelled ones, to train these networks."""
        return len(labels) >= self.fewest_rows and int((labels == POSITIVE).sum()) >= self.fewest_labelled

    def view(self, x: Tensor) -> SmallImageView:
        """How it sees images, learned from some of them."""
        return WritingView.fit(x) if x.shape[1] == 1 else TaughtView.fit(x, is_mirrored=True)


_COLOUR = _Suited(
    "allconv", 0.25, (240_000, 320_000), (6, 12), smallest_side=16, fewest_labelled=20, fewest_rows=20_000
)
_GREY = _Suited("mlp", 0.1, (130_000, 400_000), (20, 60), smallest_side=8, fewest_labelled=50, fewest_rows=2_000)


def networks(
    candidates: Candidates, rows: Given, labels: Labels, settings: FitSettings, device: torch.device
) -> Candidates:
    """The candidates, and a network for each fold that they taught where the rows are small images."""
    suited = _Suited.to(rows.x)
    if suited is None or not suited.has_enough(labels):
        return candidates
    n_folds = len(candidates.learned_from)
    plan = _Plan.of(suited, rows.x, max(map(len, candidates.learned_from)), settings)
    plan.announce(rows.x, candidates.learned_from, settings)
    tasks = [partial(_fold, plan, candidates, rows, labels, settings, device, k) for k in range(n_folds)]
    found = list(in_parallel(tasks))
    settings.used["network"] = plan.in_words(n_folds)
    readers = [plan.reader(each.weights) for each in found]
    held_out = np.empty(len(labels))
    for k, each in enumerate(found):
        held_out[candidates.folds == k] = each.held_out
    own = scales(held_out, labels, candidates.folds)
    member = Member(NETWORK, HEAD, [each.head for each in found], own, 0.0)
    centre, spread = np.array(own)[candidates.folds].T
    return replace(
        candidates,
        readers={**candidates.readers, NETWORK: readers},
        members=[*candidates.members, member],
        held_out={**candidates.held_out, member.name: (held_out - centre) / spread},
        history=[*candidates.history, *found[0].history],
        apart=(*candidates.apart, member.name),
    )


class _Found(NamedTuple):
    """What the network of one fold has learned. Shape: held_out (rows of the fold,)."""

    weights: dict[str, Tensor]
    head: Linear
    held_out: Floats
    history: list[dict[str, Any]]


@dataclass(frozen=True)
class _Plan:
    """What is trained, on images reduced by `factor` to so many `pixels` a side."""

    spec: dict[str, Any]
    view: SmallImageView
    factor: int
    pixels: tuple[int, ...]
    config: TaughtConfig

    @classmethod
    def of(cls, suited: _Suited, x: Tensor, n_learned: int, settings: FitSettings) -> _Plan:
        factor = max(1, min(x.shape[2:]) // _USUAL_SIDE)
        some = reduced(x[:2000], factor)
        view, pixels = suited.view(some), tuple(some.shape[2:])
        shape = tuple(view.clean(some[:1]).shape[1:])
        spec = {"name": suited.encoder, "options": {**row_options(suited.encoder, shape), "width": suited.width}}
        cost = pixels[0] * pixels[1] / _USUAL_SIDE**2  # of an image
        first, own = (
            max(1, min(most if settings.epochs is None else settings.epochs, round(seen / cost / n_learned)))
            for seen, most in zip(suited.images, suited.most_epochs, strict=True)
        )
        size = batch_size(n_learned, _MOST_AT_ONCE)
        config = TaughtConfig(epochs=first, own_epochs=own, batch_size=size, seed=settings.random_state)
        return cls(spec, view, factor, pixels, config)

    def in_words(self, n_folds: int) -> dict[str, Any]:
        """As the run folder tells it."""
        sides = {"pixels": list(self.pixels)} if self.factor > 1 else {}
        return {"epochs": f"{n_folds} x ({self.config.epochs} + {self.config.own_epochs})", **sides}

    def announce(self, x: Tensor, learned_from: Any, settings: FitSettings) -> None:
        """Say how long it will take, before it begins."""
        if not settings.progress:
            return
        size = self.config.batch_size
        steps = sum(map(len, learned_from)) * (self.config.epochs + 1.7 * self.config.own_epochs) / size
        with torch.random.fork_rng(devices=[]):  # the caller's random stream stays where it is
            encoder = build_encoder(self.spec["name"], **self.spec["options"])
        tried = self.view.clean(reduced(x[:size], self.factor))
        at_once = min(len(learned_from), usable_cpus())
        if about := expected(encoder, tried, size, round(steps / at_once / 2)):
            say(f"{len(learned_from)} networks that learn from all this: {about}")

    def reader(self, weights: dict[str, Tensor]) -> TaughtReader:
        with torch.device("meta"):
            encoder = build_encoder(self.spec["name"], **self.spec["options"])
        encoder.load_state_dict(weights, assign=True)
        return TaughtReader(encoder.eval(), self.spec, self.view, self.factor)


def _fold(
    plan: _Plan, taught_by: Candidates, rows: Given, labels: Labels, settings: FitSettings, device: torch.device, k: int
) -> _Found:
    config = replace(plan.config, seed=(settings.random_state + k) % 2**32)  # of the largest seeds none follows
    lesson = _lesson(plan, taught_by, rows, labels, settings, device, k)
    with seeded(config.seed, device):
        encoder = build_encoder(plan.spec["name"], **plan.spec["options"]).to(device)
    folder = settings.folder / f"{NETWORK}-{k}" if settings.folder else None
    where: Outputs = {"folder": folder, "progress": settings.progress}
    with trained_fast(encoder, settings):
        trained = learn_from_teacher(encoder, plan.view, lesson, config, **where)
    weights = {name: value.detach().cpu().contiguous() for name, value in encoder.state_dict().items()}
    head = linear(trained.weight.cpu().numpy(), float(trained.bias))
    inside = np.flatnonzero(taught_by.folds == k)
    return _Found(weights, head, head.score(plan.reader(weights)(rows.of(inside))), trained.history)


def _lesson(
    plan: _Plan, taught_by: Candidates, rows: Given, labels: Labels, settings: FitSettings, device: torch.device, k: int
) -> Lesson:
    """The rows that fold k's candidates learned from, and what these say of them."""
    own = taught_by.learned_from[k]
    known = settings.known_classes(labels)[own]
    target = taught_chances(agreed(taught_by, labels, settings.prior, k), known, settings.prior_of_rest(labels))
    truths = np.where(labels[own] == POSITIVE, 0, known)
    places = np.arange(len(own))
    if settings.weights is not None:
        places = drawn_by_weight(labels[own], settings.weights[own], settings.random_state)
    x = reduced(rows.x[torch.from_numpy(own[places])], plan.factor).to(device)
    taught, sure = (torch.from_numpy(values[places]).to(device) for values in (target.astype(np.float32), truths))
    return Lesson(x, labels[own][places], taught, sure, settings.prior)

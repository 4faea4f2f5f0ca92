"""What the stages on raw rows share: g(x) = w·h(x) + b, how rows become inputs, and how an observer sees scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Self

import torch
from torch import Tensor, nn

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import Labels, check_vocabulary, refuse_negatives, require_array, require_positive_and_unlabelled
from punce.risks.base import zero_one_risk
from punce.stages.given import check_fit, told
from punce.stages.probe import LinearHead, in_eval_mode, require_tensor, zero_linear
from punce.training.loop import Batch, Judgement, Stage
from punce.training.random_stream import seeded
from punce.training.run import fingerprint
from punce.views import Plan, View

ScoreRows = Callable[[Tensor], Tensor]
Observer = Callable[[ScoreRows], Mapping[str, float]]
"""Called at the end of an epoch with a function from raw rows to scores; its numbers go into that epoch's history.

A benchmark measures test accuracy through it (in a field named oracle): the stage itself never sees a true label.
"""


class Scorer(nn.Module):
    """An encoder with a linear head on its features. The projector and the online head of the encoder take no part.

    Shape: x (B, ...) as `view.clean` gives it -> scores (B,).
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        # At zero the first step moves only the head; from the second on the encoder has a direction too.
        self.head = zero_linear(encoder.feature_size, like=next(encoder.parameters()))

    def forward(self, x: Tensor) -> Tensor:
        """g(x)."""
        scores: Tensor = self.head(self.encoder.features(x)).squeeze(1)
        return scores

    def start_from(self, head: LinearHead) -> Self:
        """Begin at a head trained on the frozen features ("LP-FT"), its standardisation folded into the weights."""
        if not isinstance(head, LinearHead):
            raise InputError(
                f"head must be a LinearHead, as probe returns it, got an object of {type(head).__name__}; that of "
                "train_vpu holds one as .linear"
            )
        if len(head.weight) != self.head.in_features:
            raise InputError(f"the head is for {len(head.weight)} features, the encoder has {self.head.in_features}")
        with torch.no_grad():
            weight = head.weight / head.scale
            self.head.weight.copy_(weight[None])
            self.head.bias.copy_(head.bias - weight @ head.mean)
        return self

    def linear_head(self, history: list[dict[str, Any]]) -> LinearHead:
        """The head as the probe returns it, so that both are used alike: ``head(extract_features(encoder, ...))``."""
        return LinearHead.of(self.head, history=history)


@dataclass(frozen=True)
class RawRows:
    """Shape: X (n, ...) raw rows as `view` takes them; labels (n,) of {1, 0, −1}."""

    view: View
    X: Tensor
    labels: Labels


class RowStage(Stage):
    """A stage on raw rows through a view. `scorer` is the network that observers and held-out rows see."""

    scorer: Scorer
    projects = False
    """Whether a contrastive loss sees the encoder's projections."""

    def __init__(self, model: nn.Module, rows: RawRows, config: Any, **settings: Any) -> None:
        super().__init__(model, rows.labels, config, rows.X.device, **settings)
        # Detached: rows may be the output of a network, whose graph the first step would free.
        self.view, self.X, self.labels = rows.view, rows.X.detach(), rows.labels
        if (encoder := next((part for part in model.modules() if isinstance(part, Encoder)), None)) is not None:
            check_fit(encoder, self.view, self.X, projects=self.projects)

    def inputs(self, batch: Batch) -> Tensor:
        """Clean rows."""
        return self.view.clean(self.X[batch.rows])

    @cached_property
    def plan_of(self) -> Callable[[int], Plan]:
        """From an epoch to its plan over the training rows, made once for the steps of the epoch."""
        X = self.X[self.train_rows] if len(self.held_out) else self.X  # indexing would copy all rows
        return lru_cache(maxsize=1)(partial(self.view.plan, len(X), self.settings.seed, X=X))

    def two_views(self, batch: Batch) -> Tensor:
        """Both views of the rows. Shape: (2, b, ...)."""
        return self.plan_of(batch.epoch).apply(self.X[batch.rows], batch.places)

    def identity(self) -> dict[str, Any]:
        """The view and the rows."""
        return {"view": told(self.view), "n_rows": len(self.X), "rows": fingerprint(self.X, self.labels)}

    def shown(self) -> ScoreRows:
        """The scorer as it is now."""
        return partial(score_rows, self.scorer, self.view)

    def error(self, scorer: Scorer, prior: float, cut: float = 0.0) -> Judgement:
        """The PU estimate of the zero-one risk on the held-out rows."""
        scores = score_rows(scorer, self.view, self.X[self.held_out])
        error = zero_one_risk(scores, self.label_of[self.held_out], prior, cut)
        return Judgement(error, {"held_out_risk": error}, scorer)


def score_rows(model: Scorer, view: View, X: Tensor) -> Tensor:
    """Scores of raw rows: model in eval mode, un-augmented inputs. Shape: (n, ...) -> (n,)."""
    return in_eval_mode(model, lambda x: model(view.clean(x)), X)


def reinitialise(model: nn.Module, seed: int) -> None:
    """Draw every weight of the module anew from `seed`; the global random stream is left as it was."""
    # All are found first: a refusal must leave the weights as they were.
    resets = [_reset_of(module, name) for name, module in model.named_modules()]
    with seeded(seed, next((weight.device for weight in model.parameters()), None)):
        for reset in resets:
            reset()


def _reset_of(module: nn.Module, name: str) -> Callable[[], Any]:
    """What draws the module's own weights; nothing to do for one without any."""
    # torch's own layers have the first name; MultiheadAttention has the second
    reset: Any = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
    if reset is None and next(module.parameters(recurse=False), None) is not None:
        raise InputError(
            f"{name or type(module).__name__} holds weights but has no reset_parameters(), so training from "
            "scratch cannot draw them from the seed; add that method, or fine-tune the module as it is"
        )
    return reset or (lambda: None)


def check_rows(X: Tensor, labels: Labels) -> None:
    """Refuse rows and labels that no stage can train on."""
    require_array(labels)
    require_tensor(X)
    if len(X) != len(labels):
        raise InputError(f"{len(X)} rows but {len(labels)} labels")
    check_vocabulary(labels)
    if X.is_floating_point() and not bool(X.isfinite().all()):
        row = int((~X.flatten(1).isfinite().all(1)).nonzero()[0])
        raise InputError(f"row {row} of X holds a non-finite value; fill missing values before training")


def check_pu_rows(X: Tensor, labels: Labels, who: str) -> None:
    """Refuse rows and labels that no PU stage can train on."""
    check_rows(X, labels)
    refuse_negatives(labels, who)
    require_positive_and_unlabelled(labels)

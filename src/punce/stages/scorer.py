"""What the stages that train an encoder together with its head share: g(x) = w·h(x) + b, scored, chosen and wrapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from punce.encoders import Encoder
from punce.errors import InputError
from punce.labels import Labels, check_vocabulary, refuse_negatives, require_positive_and_unlabelled
from punce.stages.probe import LinearHead
from punce.training import collectives
from punce.training.random_stream import seeded
from punce.views import View

WITHOUT_PART = ("projector.", "online_head.")
"""Parts of an encoder that a head on its features does not use: what they hold decides nothing here."""

ScoreRows = Callable[[Tensor], Tensor]
Observer = Callable[[ScoreRows], Mapping[str, float]]
"""Called at the end of an epoch with a function from raw rows to scores; its numbers go into that epoch's history.

It is how a benchmark watches test accuracy (in a field named oracle): the stage itself never sees a true label.
"""


class Scorer(nn.Module):
    """An encoder with a linear head on its features. The projector and the online head of the encoder take no part.

    Shape: x (B, ...) as `view.clean` gives it -> scores (B,).
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        weight = next(encoder.parameters())
        self.head = nn.Linear(encoder.feature_size, 1, device=weight.device, dtype=weight.dtype)
        nn.init.zeros_(self.head.weight)  # the first step moves only the head, the second has a direction for all
        nn.init.zeros_(self.head.bias)

    def forward(self, x: Tensor) -> Tensor:
        """g(x)."""
        scores: Tensor = self.head(self.encoder.features(x)).squeeze(1)
        return scores

    def start_from(self, head: LinearHead) -> Self:
        """Begin at a head trained on the frozen features ("LP-FT"), its standardisation folded into the weights."""
        if len(head.weight) != self.head.in_features:
            raise InputError(f"the head is for {len(head.weight)} features, the encoder has {self.head.in_features}")
        with torch.no_grad():
            weight = head.weight / head.scale
            self.head.weight.copy_(weight[None])
            self.head.bias.copy_(head.bias - weight @ head.mean)
        return self

    def linear_head(self, history: list[dict[str, Any]]) -> LinearHead:
        """The head as the probe returns it, so that both are used alike: ``head(extract_features(encoder, ...))``."""
        weight, bias = self.head.weight[0].detach().clone(), self.head.bias[0].detach().clone()
        return LinearHead(weight, bias, torch.zeros_like(weight), torch.ones_like(weight), history)


@torch.no_grad()
def score_rows(model: Scorer, view: View, X: Tensor, batch_size: int = 4096) -> Tensor:
    """Scores of raw rows: model in eval mode, un-augmented inputs. Shape: (n, ...) -> (n,)."""
    was_training = model.training
    model.eval()
    scores = torch.cat([model(view.clean(x)) for x in torch.split(X, batch_size)])
    model.train(was_training)
    return scores


def observed(observer: Observer | None, model: Scorer, view: View) -> Mapping[str, float]:
    """What the observer has to say about the model as it is now; nothing without one."""
    return {} if observer is None else observer(lambda X: score_rows(model, view, X))


class Best:
    """The state of a module where a criterion was lowest so far; part of a checkpoint like the module itself."""

    def __init__(self, module: nn.Module) -> None:
        self.criterion = float("inf")
        self.state = _copy(module)

    def offer(self, module: nn.Module, criterion: float, *, or_equal: bool = False) -> None:
        """Keep the module's state if its criterion is lower than any before; with `or_equal` also if it is as low."""
        if criterion < self.criterion or (or_equal and criterion == self.criterion):
            self.criterion, self.state = criterion, _copy(module)

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"criterion": self.criterion, "state": self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""
        self.criterion, self.state = float(state["criterion"]), dict(state["state"])


def on_all_ranks(model: nn.Module) -> nn.Module:
    """The module under DistributedDataParallel where there are several ranks.

    BatchNorm is synchronised already, so buffers need no broadcast; an encoder's projector gets no gradient here.
    """
    if collectives.world_size() == 1:
        return model
    return DistributedDataParallel(model, find_unused_parameters=True, broadcast_buffers=False)


def reinitialise(model: nn.Module, seed: int) -> None:
    """Draw every weight of the module anew from `seed`; the global random stream is left as it was."""
    with seeded(seed, next((weight.device for weight in model.parameters()), None)):
        for name, module in model.named_modules():
            reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
            if reset is not None:
                reset()
            elif next(module.parameters(recurse=False), None) is not None:
                raise InputError(
                    f"{name or type(module).__name__} holds weights but has no reset_parameters(), so training from "
                    "scratch cannot draw them from the seed; add that method, or fine-tune the module as it is"
                )


def check_training_rows(X: Tensor, labels: Labels, who: str) -> None:
    """Refuse rows and labels that no PU stage can train on."""
    if len(X) != len(labels):
        raise InputError(f"{len(X)} rows but {len(labels)} labels")
    check_vocabulary(labels)
    refuse_negatives(labels, who)
    require_positive_and_unlabelled(labels)
    if X.is_floating_point() and not bool(X.isfinite().all()):
        row = int((~X.flatten(1).isfinite().all(1)).nonzero()[0])
        raise InputError(f"row {row} of X holds a non-finite value; fill missing values before training")


def _copy(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}

"""Linear probing: freeze the encoder, extract features once, standardise them, train a linear layer on a PU risk.

The epoch is chosen on a held-out share of P and U, never with true labels: by the PU estimate of the zero-one risk at
the risk's own cut, or for vPU, the scale of whose scores is free, by its variational loss.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from punce.encoders import Encoder
from punce.encoders.encoder import eval_mode
from punce.errors import InputError
from punce.labels import NEGATIVE, Labels, check_vocabulary, require_array, require_positive_and_unlabelled
from punce.risks import VPU, Risk
from punce.risks.base import zero_one_risk
from punce.risks.pvu import Duplicates, RowWeights, weights_of_training_rows
from punce.scenario import check_prior
from punce.stages.given import check_call, check_encoder, check_fit, check_risk, check_view, checked_value, told
from punce.training.loop import Batch, Judgement, Objective, Stage, TrainingConfig, Watched, train
from punce.training.products import fast_products
from punce.training.run import Stateful, fingerprint
from punce.views import View


@dataclass(frozen=True)
class ProbeConfig(TrainingConfig):
    """How to train the linear layer. `validation_share` of P and U chooses the epoch; with 0 it is the last one."""

    epochs: int = 60
    batch_size: int = 4096
    lr: float = 1e-2
    labelled_share: float | None = 0.25
    validation_share: float = 0.2


class LinearHead(nn.Module):
    """A linear score on standardised features: g(h) = w·(h − mean)/scale + b. Shape: weight, mean, scale (D,); bias ().

    It is trained already: its parameters ask for no gradient until ``requires_grad_()`` is called.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self, weight: Tensor, bias: Tensor, mean: Tensor, scale: Tensor, history: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(part.detach(), requires_grad=False) for part in (weight, bias))
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)
        self.history = history or []

    @classmethod
    def of(
        cls, layer: nn.Linear, mean: Tensor | None = None, scale: Tensor | None = None, **history: Any
    ) -> LinearHead:
        """A copy of a layer with one output; without `mean` and `scale` its features are taken as they are."""
        weight, bias = layer.weight[0].detach().clone(), layer.bias[0].detach().clone()
        mean = torch.zeros_like(weight) if mean is None else mean
        return cls(weight, bias, mean, torch.ones_like(weight) if scale is None else scale, **history)

    def forward(self, h: Tensor) -> Tensor:
        """Scores of features, whatever their precision. Shape: (B, D) -> (B,)."""
        require_tensor(h, "features")
        if h.dim() != 2 or h.shape[1] != len(self.weight):
            raise InputError(f"the head is for features (n, {len(self.weight)}), got {tuple(h.shape)}")
        h = h.to(self.weight.dtype)
        return ((h - self.mean) / self.scale) @ self.weight + self.bias

    def extra_repr(self) -> str:
        """The number of features."""
        return f"{len(self.weight)} features"


def extract_features(encoder: Encoder, view: View, X: Tensor) -> Tensor:
    """h of every row: encoder in eval mode, un-augmented inputs. Shape: (n, ...) -> (n, D)."""
    check_encoder(encoder)
    check_view(view, augments=False)
    require_tensor(X)
    check_fit(encoder, view, X)
    return in_eval_mode(encoder, lambda x: encoder.features(view.clean(x)), X)


def require_tensor(X: object, where: str = "X") -> None:
    """Refuse rows of a stage that are an array, or texts before they are tokens."""
    if not isinstance(X, Tensor):
        raise InputError(
            f"{where} must be a tensor, got {type(X).__name__}; torch.as_tensor makes one of numbers, encoder.tokens "
            "one of texts"
        )


@torch.no_grad()
@fast_products()
def in_eval_mode(module: nn.Module, function: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
    """`function` of all rows, with the module in eval mode meanwhile. Shape: (n, ...) -> (n, ...)."""
    with eval_mode(module):
        return torch.cat([function(x) for x in torch.split(X, 4096)])  # bounds the memory of activations


def probe(
    features: Tensor,
    labels: Labels,
    risk: Risk,
    config: ProbeConfig = ProbeConfig(),  # noqa: B008  frozen
    *,
    prior: float,
    weights: RowWeights | None = None,
    **outputs: Unpack[Watched],
) -> LinearHead:
    """Train a linear layer on frozen features and return it at its best epoch by held-out PU risk.

    `prior` is the share of positives among the unlabelled rows that the held-out risk uses. An `observer` is shown
    the head after every epoch, and its numbers go into that epoch's history; it changes nothing. `weights` are w(x) for
    ``PvU(correction="weighted")``; without them they are made out of fold from the features of the training rows.

    Shape: features (n, D); labels (n,) of {1, 0}, also −1 if the risk knows negatives; weights (n,).
    """
    check_call("probe", config, ProbeConfig, outputs)
    check_risk(risk)
    stage = _Probe(features, labels, risk, config, prior, weights)
    return stage.head(train(stage, **outputs))


class _Probe(Stage):
    """A layer on standardised features.

    Every rank trains the same layer on whole batches: a product of a few thousand rows is not worth a message between
    ranks. The first of several equally good epochs is kept, the one with the least training.
    """

    name = "probe"
    is_split_over_ranks = False

    def __init__(
        self,
        features: Tensor,
        labels: Labels,
        risk: Risk,
        config: ProbeConfig,
        prior: float,
        weights: RowWeights | None,
    ) -> None:
        features = checked_features(features, labels)
        require_positive_and_unlabelled(labels)
        if bool((labels == NEGATIVE).any()):
            # The risk itself knows whether it takes negatives; asked of all rows, it names those of the data.
            risk.value(features.new_zeros(len(labels)), torch.from_numpy(labels.astype("int64")))
        check_prior(prior)
        self._layer = zero_linear(features.shape[1], like=features)
        super().__init__(self._layer, labels, config, features.device)
        self._mean, self._scale = standardisation(features[self.train_rows])  # held-out rows must not leak into it
        self._x = (features - self._mean) / self._scale
        self._labels, self._risk, self._prior = labels, risk, prior
        self._duplicates = Duplicates(risk, weights, len(features), features.device)

    def inputs(self, batch: Batch) -> Tensor:
        return self._x[batch.rows]

    def objective(self, model: nn.Module, inputs: Tensor, batch: Batch) -> Objective:
        scores = model(inputs).squeeze(1)
        value = self._risk(scores, self.label_of[batch.rows], **self._duplicates.of(batch.rows))
        return Objective(checked_value("risk", value, scores), {"risk": value})

    def identity(self) -> dict[str, Any]:
        return {
            **{"risk": told(self._risk), "prior": self._prior, "features": list(self._x.shape)},
            "labels": hashlib.sha256(self._labels.astype("int8").tobytes()).hexdigest()[:16],
            "weights": None if (given := self._duplicates.given) is None else fingerprint(given, self._labels),
        }

    def state(self) -> dict[str, Stateful]:
        return {"duplicates": self._duplicates, "rows": Sketch(self._x, "probe of rows with other features", "rows")}

    def begin(self) -> None:
        arguments = (self._labels, self.train_rows, self._prior, self.settings.seed, self.device)
        self._duplicates.ensure(
            lambda: weights_of_training_rows(lambda: self._x[self.train_rows].cpu().numpy(), *arguments)
        )

    def shown(self) -> LinearHead:
        return self.head([])

    @torch.no_grad()
    def judge(self) -> Judgement:
        scores, labels = self._layer(self._x[self.held_out]).squeeze(1), self.label_of[self.held_out]
        if isinstance(self._risk, VPU):  # the scale of its scores is free, so that no cut is known yet
            loss = float(self._risk.value(scores, labels))
            return Judgement(loss, {"held_out_variational": loss}, self._layer)
        error = zero_one_risk(scores, labels, self._prior, self._risk.decision_score)
        return Judgement(error, {"held_out_risk": error}, self._layer)

    def head(self, history: list[dict[str, Any]]) -> LinearHead:
        return LinearHead.of(self._layer, self._mean, self._scale, history=history)


def checked_features(features: Tensor, labels: Labels) -> Tensor:
    """The features as constants: a graph behind them would be freed by the first step. Half precision becomes float32.

    Shape: features (n, D), labels (n,).
    """
    require_array(labels)
    check_vocabulary(labels)
    if not isinstance(features, Tensor) or not features.is_floating_point():
        seen = features.dtype if isinstance(features, Tensor) else type(features).__name__
        raise InputError(
            f"features must be a floating-point tensor, got {seen}; torch.as_tensor(...).float() makes one"
        )
    if features.dim() != 2 or len(features) != len(labels):
        raise InputError(f"features must be (n, D), one row per label: got {tuple(features.shape)} and {len(labels)}")
    # One such value would make the mean of its column, and so every row, NaN: the message could not name the row.
    if not bool((finite := features.isfinite().all(1)).all()):
        raise InputError(f"row {int((~finite).nonzero()[0])} of the features holds a non-finite value")
    # NumPy, and so scikit-learn, has no bfloat16; sums and steps of half precision lose digits.
    features = features.float() if features.dtype in (torch.float16, torch.bfloat16) else features
    return features.detach()


def standardisation(features: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each feature. Shape: (n, D) -> (D,), (D,)."""
    scale = features.std(0)
    return features.mean(0), torch.where(scale > 1e-6, scale, 1.0)  # a dead feature stays zero


def zero_linear(size: int, *, like: Tensor) -> nn.Linear:
    """A linear layer with one output that starts at zero, and so draws nothing from torch's random stream."""
    layer: nn.Linear = skip_init(nn.Linear, size, 1, device=like.device, dtype=like.dtype)  # type: ignore[no-untyped-call]
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class Sketch:
    """A sketch of an array, kept in checkpoints: a checkpoint with another sketch is refused.

    It is not a checksum, because other threads or another machine change the last bits of an encoder's outputs, and
    such a run may be resumed. Each of its 32 numbers is Σ ±x over all entries, with its own signs, divided by the root
    of their number. Rounding changes a number by less than the tolerance. One other row among a million changes it by
    about the tolerance.

    Shape: x (n, D).
    """

    _SIZE, _TOLERANCE = 32, 1e-3

    def __init__(self, x: Tensor, refused: str, same: str) -> None:
        self._x, self._refused, self._same = x, refused, same

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"sketch": self._sketch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Compare with a checkpoint's."""
        size = float(self._x.detach().double().square().mean().sqrt())
        if not bool(((state["sketch"] - self._sketch).abs() <= self._TOLERANCE * size).all()):
            raise InputError(
                f"the folder holds a {self._refused}; give the same {self._same} to resume it, or another folder"
            )

    @cached_property
    def _sketch(self) -> Tensor:
        """Shape: (n, D) -> (32,) float64 on the CPU."""
        signs = torch.Generator().manual_seed(0)  # the same signs in every run, or sketches could not be compared
        columns = _random_signs(self._x.shape[1], self._SIZE, signs)
        parts = [
            (part.detach().cpu().double() @ columns * _random_signs(len(part), self._SIZE, signs)).sum(0)
            for part in torch.split(self._x, 4096)
        ]
        return torch.stack(parts).sum(0) / math.sqrt(self._x.numel())


def _random_signs(n: int, m: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, (n, m), generator=generator).double() * 2 - 1

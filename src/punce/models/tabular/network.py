"""Member "nnpu": small networks on the non-negative risk, one for each fold, trained side by side.

The risk is nnPU (Kiryo et al. 2017) as if both classes were equally common (Su, Chen & Xu 2021):

    r = (E_U ℓ(−g) − π E_P ℓ(−g)) / (1 − π);   step on E_P ℓ(g) + r while r ≥ 0, else on −r alone.

With the weights of plain nnPU and a prior of 0.1, calling everything negative costs 0.1, and networks stay there.

Known negatives N are a second opinion on r: (1 − γ)·r + γ·E_N ℓ(−g), with the γ of Sakai et al. (2017) that makes a
row of N weigh what it weighs for the other members.

A table of a few thousand rows makes steps so small that Python's overhead is most of the time. The K networks of a
cross-fit are independent, so they take their steps together: K batches in one batched matrix product.

Shapes: K networks, B rows in a batch, W input columns, H hidden units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.adamw import adamw

from punce.columns.dense import DenseColumns
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED
from punce.models.route import under
from punce.models.tabular.steps import Step
from punce.models.tabular.teachers import TableLesson, telling_columns
from punce.models.tabular.trees import AnyArray, Arrays, Floats, Rows, Values
from punce.training.optim import warmup_cosine

_HIDDEN = 64
_STEPS = 300
_RATE, _DECAY = 5e-3, 1e-2
_POSITIVE_ROWS, _UNLABELLED_ROWS = 96, 320  # in a batch; both are averaged separately, so that their ratio is free
_NEGATIVE_ROWS = 96
_ROWS_AT_ONCE = 20_000
_CELLS_AT_ONCE = 20_000_000  # input cells scored at once: bounds the memory of scoring


@dataclass(frozen=True)
class Networks:
    """The trained networks and the columns they read."""

    columns: DenseColumns
    weights: dict[str, Tensor]

    @classmethod
    def steps(cls, lesson: TableLesson) -> dict[str, Step]:
        """Network k learns from every fold but k; all learn in one step."""
        return {f"networks-{lesson.seed}": partial(_trained, lesson)}

    @classmethod
    def from_steps(cls, lesson: TableLesson, arrays: Sequence[Arrays]) -> Self:
        """The trained networks."""
        return cls.from_arrays(arrays[0])

    def scores(self, binned: Values) -> Floats:
        """Shape: (n, d) -> (K, n)."""
        first = self.weights["weight.0"]
        net, parts = _Parallel(first.shape[0], first.shape[1], torch.Generator()), []
        net.load_state_dict(self.weights)
        size = max(1, min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // max(1, self.columns.width)))
        for start in range(0, len(binned), size):
            x = torch.from_numpy(self.columns.transform_bins(binned[start : start + size]))
            with torch.no_grad():
                parts.append(net(x.expand(net.n_networks, *x.shape)).double().numpy())
        return np.concatenate(parts, axis=1) if parts else np.empty((net.n_networks, 0))

    def held_out_scores(self, binned: Values, folds: Rows) -> Floats:
        """Each row's score by the network that did not see its fold. Shape: (n,)."""
        chosen: Floats = self.scores(binned)[folds, np.arange(len(folds))]
        return chosen

    def arrays(self) -> Arrays:
        """Everything needed to score."""
        weights = {f"net.{name}": tensor.numpy() for name, tensor in self.weights.items()}
        return {**{f"columns.{name}": array for name, array in self.columns.arrays().items()}, **weights}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> Self:
        """What :meth:`arrays` gave."""
        # Copied: a stored array may be read-only, which torch does not take.
        weights = {name: torch.from_numpy(np.array(array)) for name, array in under(arrays, "net.").items()}
        return cls(DenseColumns.from_arrays(under(arrays, "columns.")), weights)


def _trained(lesson: TableLesson) -> Arrays:
    positive, unlabelled, negative = (_rows(lesson, kind) for kind in (POSITIVE, UNLABELLED, NEGATIVE))
    drawn = [(positive, _POSITIVE_ROWS), (unlabelled, _UNLABELLED_ROWS)]
    if gamma := _share_of_known(lesson):
        drawn.append((negative, _NEGATIVE_ROWS))
    inputs = _Inputs(lesson)
    generator = torch.Generator().manual_seed(lesson.seed)
    net = _Parallel(lesson.n_folds, inputs.width, generator)
    optimizer = _AdamW(list(net.parameters()))
    draw = _draw if lesson.weights is None else partial(_draw_by_weight, torch.from_numpy(lesson.weights))
    for step in range(_STEPS):
        groups = [draw(rows, most, generator) for rows, most in drawn]
        scores = net(inputs.take(torch.cat(groups, dim=1))).split([group.shape[1] for group in groups], dim=1)
        loss = balanced_nnpu(scores[0], scores[1], lesson.prior, scores[2] if gamma else None, gamma).sum()
        optimizer.step(torch.autograd.grad(loss, optimizer.weights), _RATE * warmup_cosine(step, _STEPS, _STEPS // 10))
    weights = inputs.for_all_columns({name: tensor.detach() for name, tensor in net.state_dict().items()})
    return Networks(lesson.columns, weights).arrays()


class _Inputs:
    """The columns each network reads: all, or in a wide table the 1,000 that its own rows choose.

    Shape: x (n, D); columns (K, W).
    """

    def __init__(self, lesson: TableLesson) -> None:
        self._x = torch.from_numpy(lesson.dense)
        chosen = (
            telling_columns(lesson.dense[rows], lesson.labels[rows] == POSITIVE)
            for rows in map(lesson.without, range(lesson.n_folds))
        )
        self._columns = torch.from_numpy(np.stack(list(chosen)))
        self.width = self._columns.shape[1]
        self._is_all = self.width == self._x.shape[1]

    def take(self, rows: Tensor) -> Tensor:
        """Shape: (K, B) -> (K, B, W)."""
        return self._x[rows] if self._is_all else self._x[rows[:, :, None], self._columns[:, None, :]]

    def for_all_columns(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """The first layer with a row of zeros for every column that a network did not read."""
        if self._is_all:
            return weights
        narrow = weights["weight.0"]
        wide = torch.zeros(len(narrow), self._x.shape[1], narrow.shape[2])
        wide.scatter_(1, self._columns[:, :, None].expand_as(narrow), narrow)
        return {**weights, "weight.0": wide}


class _AdamW:
    """AdamW by torch's own kernel. The Optimizer class would import torch's compiler, which takes a second or two."""

    def __init__(self, weights: list[nn.Parameter]) -> None:
        self.weights = weights
        self._mean = [torch.zeros_like(weight) for weight in weights]
        self._square = [torch.zeros_like(weight) for weight in weights]
        self._steps = [torch.zeros(()) for _ in weights]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rate: float) -> None:
        """One step; the fused kernel walks memory, so gradients must lie in it as their weights do."""
        adamw(
            self.weights,  # type: ignore[arg-type]
            [gradient.contiguous() for gradient in gradients],
            self._mean,
            self._square,
            [],
            self._steps,
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=rate,
            weight_decay=_DECAY,
            eps=1e-8,
            maximize=False,
        )


def balanced_nnpu(
    positive: Tensor, unlabelled: Tensor, prior: float, negative: Tensor | None = None, gamma: float = 0.0
) -> Tensor:
    """What each network steps on. Shape: (K, B_P), (K, B_U), (K, B_N) -> (K,)."""
    as_positive = F.softplus(-positive).mean(1)
    r = (F.softplus(unlabelled).mean(1) - prior * F.softplus(positive).mean(1)) / (1.0 - prior)
    as_negative = r if negative is None else (1.0 - gamma) * r + gamma * F.softplus(negative).mean(1)
    return torch.where(r >= 0, as_positive + as_negative, -r)


def _share_of_known(lesson: TableLesson) -> float:
    """γ: what known negatives weigh among all negatives; 0 if a network would see none of them."""
    negative = lesson.labels == NEGATIVE
    if any(not negative[lesson.without(k)].any() for k in range(lesson.n_folds)):
        return 0.0
    known, rest = (lesson.weights_of(np.flatnonzero(lesson.labels == kind)).sum() for kind in (NEGATIVE, UNLABELLED))
    return float(known / (known + (1.0 - lesson.prior) * rest))


class _Parallel(nn.Module):
    """K perceptrons of two hidden layers. Shape: (K, B, W) -> (K, B)."""

    def __init__(self, n_networks: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.n_networks = n_networks
        self.weight = nn.ParameterList()
        self.bias = nn.ParameterList()
        for size_in, size_out in pairwise([width, _HIDDEN, _HIDDEN, 1]):
            spread = (2.0 / max(1, size_in)) ** 0.5  # He's, for ReLU
            drawn = torch.randn(n_networks, size_in, size_out, generator=generator) * spread
            self.weight.append(nn.Parameter(drawn))
            self.bias.append(nn.Parameter(torch.zeros(n_networks, 1, size_out)))

    def forward(self, x: Tensor) -> Tensor:
        for k, (weight, bias) in enumerate(zip(self.weight, self.bias, strict=True)):
            x = torch.baddbmm(bias, F.relu(x) if k else x, weight)
        return x.squeeze(2)


def _rows(lesson: TableLesson, kind: int) -> list[Tensor]:
    """Rows of one label that each network may see."""
    return [torch.from_numpy(rows[lesson.labels[rows] == kind]) for rows in map(lesson.without, range(lesson.n_folds))]


def _draw(rows: list[Tensor], most: int, generator: torch.Generator) -> Tensor:
    """Rows drawn with replacement for every network. Shape: (K, B)."""
    size = min(most, *(len(part) for part in rows))
    return torch.stack([part[torch.randint(len(part), (size,), generator=generator)] for part in rows])


def _draw_by_weight(weights: Tensor, rows: list[Tensor], most: int, generator: torch.Generator) -> Tensor:
    """The same, rows the more often the more they weigh; a fold may leave only rows of weight 0, which then count."""
    size = min(most, *(len(part) for part in rows))
    chances = (weights[part] if bool(weights[part].any()) else torch.ones(len(part)) for part in rows)
    drawn = (torch.multinomial(chance, size, replacement=True, generator=generator) for chance in chances)
    return torch.stack([part[places] for part, places in zip(rows, drawn, strict=True)])

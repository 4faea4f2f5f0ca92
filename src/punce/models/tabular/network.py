"""Member "nnpu": small networks on the non-negative risk, one for each fold, trained side by side.

The risk is nnPU (Kiryo et al. 2017) as if both classes were equally common (Su, Chen & Xu 2021):

    r = (E_U ℓ(−g) − π E_P ℓ(−g)) / (1 − π);   step on E_P ℓ(g) + r while r ≥ 0, else on −r alone.

With the weights of plain nnPU and a prior of 0.1, calling everything negative costs 0.1, and networks stay there.

A table of a few thousand rows makes steps so small that Python's overhead is most of the time. The K networks of a
cross-fit are independent, so they take their steps together: K batches in one batched matrix product.

Shapes: K networks, B rows in a batch, W input columns, H hidden units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from punce.columns.bins import MISSING_BIN
from punce.columns.dense import DenseColumns
from punce.labels import POSITIVE, UNLABELLED
from punce.models.tabular.lesson import Lesson
from punce.training.optim import build_optimizer, set_rate, warmup_cosine

_HIDDEN = 64
_STEPS = 300
_RATE = 5e-3
_DECAY = 1e-2
_POSITIVE_ROWS, _UNLABELLED_ROWS = 96, 320
_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True)
class Networks:
    """The trained networks and the columns they read."""

    columns: DenseColumns
    weights: dict[str, Tensor]

    @classmethod
    def fit(cls, lesson: Lesson) -> Self:
        """Network k learns from every fold but k."""
        columns = DenseColumns.fit(_with_gaps(lesson.binned), lesson.categorical)
        x = torch.from_numpy(columns.transform(_with_gaps(lesson.binned)))
        generator = torch.Generator().manual_seed(lesson.seed)
        net = _Parallel(lesson.n_folds, columns.width, generator)
        positive, hidden = _rows(lesson, POSITIVE), _rows(lesson, UNLABELLED)
        optimizer = build_optimizer(net, "adamw", _RATE, _DECAY)
        for step in range(_STEPS):
            p, u = _draw(positive, _POSITIVE_ROWS, generator), _draw(hidden, _UNLABELLED_ROWS, generator)
            scores = net(x[torch.cat([p, u], dim=1)])
            loss = balanced_nnpu(scores[:, : p.shape[1]], scores[:, p.shape[1] :], lesson.prior).sum()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            set_rate(optimizer, warmup_cosine(step, _STEPS, _STEPS // 10))
            optimizer.step()
        return cls(columns, {name: tensor.detach() for name, tensor in net.state_dict().items()})

    def scores(self, binned: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Shape: (n, d) -> (K, n)."""
        net = _network(self.weights)
        parts = []
        for start in range(0, len(binned), _ROWS_AT_ONCE):
            x = torch.from_numpy(self.columns.transform(_with_gaps(binned[start : start + _ROWS_AT_ONCE])))
            with torch.no_grad():
                parts.append(net(x.expand(net.n_networks, *x.shape)).double().numpy())
        return np.concatenate(parts, axis=1) if parts else np.empty((net.n_networks, 0))

    def held_out_scores(self, binned: npt.NDArray[np.float32], folds: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        """Each row's score by the network that did not see its fold. Shape: (n,)."""
        chosen: npt.NDArray[np.float64] = self.scores(binned)[folds, np.arange(len(folds))]
        return chosen

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything needed to score."""
        weights = {f"net.{name}": tensor.numpy() for name, tensor in self.weights.items()}
        return {**{f"columns.{name}": array for name, array in self.columns.arrays().items()}, **weights}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """What :meth:`arrays` gave."""
        columns = {name.removeprefix("columns."): a for name, a in arrays.items() if name.startswith("columns.")}
        weights = {
            name.removeprefix("net."): torch.from_numpy(np.array(array))
            for name, array in arrays.items()
            if name.startswith("net.")
        }
        return cls(DenseColumns.from_arrays(columns), weights)


def _with_gaps(binned: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """A missing number is in the middle for a network, not below all others."""
    return np.where(binned == MISSING_BIN, np.float32(np.nan), binned)


def balanced_nnpu(positive: Tensor, hidden: Tensor, prior: float) -> Tensor:
    """What each network steps on. Shape: (K, B_P), (K, B_U) -> (K,)."""
    as_positive = F.softplus(-positive).mean(1)
    r = (F.softplus(hidden).mean(1) - prior * F.softplus(positive).mean(1)) / (1.0 - prior)
    return torch.where(r >= 0, as_positive + r, -r)


class _Parallel(nn.Module):
    """K perceptrons of two hidden layers. Shape: (K, B, W) -> (K, B)."""

    def __init__(self, n_networks: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.n_networks = n_networks
        self.weight = nn.ParameterList()
        self.bias = nn.ParameterList()
        for size_in, size_out in pairwise([width, _HIDDEN, _HIDDEN, 1]):
            spread = (2.0 / max(1, size_in)) ** 0.5
            drawn = torch.randn(n_networks, size_in, size_out, generator=generator) * spread
            self.weight.append(nn.Parameter(drawn))
            self.bias.append(nn.Parameter(torch.zeros(n_networks, 1, size_out)))

    def forward(self, x: Tensor) -> Tensor:
        """Scores."""
        for k, (weight, bias) in enumerate(zip(self.weight, self.bias, strict=True)):
            x = torch.baddbmm(bias, F.relu(x) if k else x, weight)
        return x.squeeze(2)


def _network(weights: Mapping[str, Tensor]) -> _Parallel:
    first = weights["weight.0"]
    net = _Parallel(first.shape[0], first.shape[1], torch.Generator())
    net.load_state_dict(dict(weights))
    return net


def _rows(lesson: Lesson, kind: int) -> list[Tensor]:
    """Rows of one label that each network may see."""
    return [torch.from_numpy(rows[lesson.labels[rows] == kind]) for rows in map(lesson.without, range(lesson.n_folds))]


def _draw(rows: list[Tensor], most: int, generator: torch.Generator) -> Tensor:
    """Rows drawn with replacement for every network. Shape: (K, B)."""
    size = min(most, *(len(part) for part in rows))
    return torch.stack([part[torch.randint(len(part), (size,), generator=generator)] for part in rows])

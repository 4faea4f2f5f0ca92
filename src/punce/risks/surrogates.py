"""Surrogate losses ℓ(t) of a margin t = y·g(x), by name.

``sigmoid``      ℓ(t) = σ(−t): bounded by 1, the default of every PU risk here (Kiryo et al. 2017);
``logistic``     ℓ(t) = log(1 + exp(−t)): cross-entropy, unbounded;
``double_hinge`` ℓ(t) = max(−t, max(0, ½ − t/2)): unbounded, convex in uPU (du Plessis et al. 2015).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from punce.errors import InputError


@dataclass(frozen=True)
class Surrogate:
    """A surrogate and whether it stays bounded as the margin goes to −∞.

    With an unbounded surrogate the term −π E_P ℓ(−g) of uPU has no lower bound: a flexible model drives it to −∞.
    """

    name: str
    loss: Callable[[Tensor], Tensor]
    bounded: bool

    def __call__(self, margin: Tensor) -> Tensor:
        """ℓ(margin), elementwise."""
        return self.loss(margin)


def _sigmoid(margin: Tensor) -> Tensor:
    return torch.sigmoid(-margin)


def _logistic(margin: Tensor) -> Tensor:
    return -functional.logsigmoid(margin)  # functional.softplus turns linear at 20 and loses 2e-9 there


def _double_hinge(margin: Tensor) -> Tensor:
    return torch.maximum(-margin, functional.relu(0.5 - 0.5 * margin))


SURROGATES: dict[str, Surrogate] = {
    surrogate.name: surrogate
    for surrogate in (
        Surrogate("sigmoid", _sigmoid, bounded=True),
        Surrogate("logistic", _logistic, bounded=False),
        Surrogate("double_hinge", _double_hinge, bounded=False),
    )
}


def find_surrogate(name: str) -> Surrogate:
    """The surrogate of that name ("double-hinge" and "double_hinge" are the same)."""
    found = SURROGATES.get(str(name).replace("-", "_"))
    if found is None:
        raise InputError(f"surrogate must be one of {sorted(SURROGATES)}, got {name!r}")
    return found

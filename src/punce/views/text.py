"""Two views of a text: the same tokens twice. The encoder's dropout makes them differ; tokens can be dropped as well.

Dropout as the only augmentation is SimCSE's (Gao et al. 2021); it happens in the encoder, which must be in training
mode. Dropping tokens changes the text itself and so also works with an encoder that has no dropout.

A row is what :meth:`punce.encoders.Transformer.tokens` makes: token numbers, −1 beyond the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from punce.errors import InputError
from punce.views import counter
from punce.views.plan import Draws, check_range, check_rows

_DROP = 1  # stream


@dataclass(frozen=True)
class Text:
    """`drop`: probability of a token being left out of a view, each view with its own draw.

    The first and the last token stay (they are the tokeniser's end marks), and so does at least one between them.
    """

    drop: float = 0.0

    def __post_init__(self) -> None:
        check_range("drop", self.drop, 0, 0.99)

    def fit(self, X: Tensor) -> Self:
        """Nothing is learned."""
        return self

    def plan(self, n_rows: int, seed: int, epoch: int, X: Tensor | None = None) -> TextPlan:
        """The views of one epoch; `X` is not needed."""
        return TextPlan(self, Draws(n_rows, seed, epoch))

    def clean(self, x: Tensor) -> Tensor:
        """The rows as they are. (b, L) -> (b, L)."""
        return as_tokens(x)


@dataclass(frozen=True)
class TextPlan:
    """The text views of one epoch."""

    view: Text
    draws: Draws

    def apply(self, x: Tensor, rows: Tensor) -> Tensor:
        """Both views of a batch. Shape: x int (b, L), rows (b,) -> int (2, b, L)."""
        x = as_tokens(x)
        check_rows(rows, len(x), self.draws.n_rows)
        if self.view.drop == 0 or len(x) == 0:
            return x.expand(2, *x.shape)  # no copy: the encoder's dropout makes the two differ
        return torch.stack([self._one(x, keys) for keys in self.draws.keys(rows, len(x), x.device)])

    def _one(self, x: Tensor, keys: Tensor) -> Tensor:
        draws = counter.unit_interval(counter.bits(keys, x.shape[1], stream=_DROP))
        position, last = torch.arange(x.shape[1], device=x.device), (x >= 0).sum(1, keepdim=True) - 1
        is_inner = (position > 0) & (position < last)
        # The inner token with the largest draw always stays, so that no text becomes empty.
        luckiest = torch.where(is_inner, draws, -1.0).argmax(1, keepdim=True)
        kept = (draws >= self.view.drop) | (position == 0) | (position == last) | (position == luckiest)
        kept &= x >= 0
        front = (~kept).to(torch.uint8).argsort(dim=1, stable=True)  # close the gaps, order kept
        return torch.where(kept, x, -1).gather(1, front)


def as_tokens(x: Tensor) -> Tensor:
    """A batch of token numbers, refused when it is anything else. (b, L) -> (b, L)."""
    is_whole = isinstance(x, Tensor) and not x.is_floating_point() and not x.is_complex() and x.dtype != torch.bool
    if not is_whole or x.ndim != 2 or x.shape[1] == 0:
        seen = f"{x.dtype} {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise InputError(f"x must hold token numbers, whole numbers of shape (rows, length), got {seen}")
    return x

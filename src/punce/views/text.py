"""Two views of a text: the same tokens twice. The encoder's dropout makes them differ; tokens can be dropped as well.

Dropout as the only augmentation is SimCSE's (Gao et al. 2021); it happens in the encoder, which must be in training
mode. Dropping tokens changes the text itself and so also works with an encoder that has no dropout.

A row is what :meth:`punce.encoders.Transformer.tokens` makes: token numbers, −1 beyond the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from punce.errors import InputError
from punce.views import counter
from punce.views.plan import RowWise, check_range, keep_plain

_DROP = 1  # stream


@dataclass(frozen=True)
class Text(RowWise):
    """`drop`: probability of a token being left out of a view, each view with its own draw.

    The first and the last token stay (they are the tokeniser's end marks), and so does at least one between them.
    """

    drop: float = 0.0

    def __post_init__(self) -> None:
        keep_plain(self)
        check_range("drop", self.drop, 0, 0.99)

    def clean(self, x: Tensor) -> Tensor:
        """The rows as they are. (b, L) -> (b, L)."""
        is_whole = isinstance(x, Tensor) and not x.is_floating_point() and not x.is_complex() and x.dtype != torch.bool
        if not is_whole or x.ndim != 2 or x.shape[1] == 0:
            seen = f"{x.dtype} {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            raise InputError(f"x must hold token numbers, whole numbers of shape (rows, length), got {seen}")
        return x

    def one(self, x: Tensor, keys: Tensor) -> Tensor:
        """Each row without some of its tokens. (b, L) -> (b, L)."""
        if self.drop == 0:
            return x  # the encoder's dropout makes the two views differ
        draws = counter.unit_interval(counter.bits(keys, x.shape[1], stream=_DROP))
        position, last = torch.arange(x.shape[1], device=x.device), (x >= 0).sum(1, keepdim=True) - 1
        is_inner = (position > 0) & (position < last)
        # The inner token with the largest draw always stays, so that no text becomes empty.
        luckiest = torch.where(is_inner, draws, -1.0).argmax(1, keepdim=True)
        kept = (draws >= self.drop) | (position == 0) | (position == last) | (position == luckiest)
        kept &= x >= 0
        front = (~kept).to(torch.uint8).argsort(dim=1, stable=True)  # close the gaps, order kept
        return torch.where(kept, x, -1).gather(1, front)

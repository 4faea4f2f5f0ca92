"""What every view promises, and the draws and checks that all views share.

A *view* is a frozen dataclass of hyper-parameters (``dataclasses.asdict`` gives its JSON). A *plan* is that view in
one epoch of one run. The two views of a row are a function of (seed, epoch, row) alone: batch order, batch size,
ranks and workers do not change them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from punce.errors import InputError, number_of
from punce.views import counter

_SHOWN = 5  # values that an error message quotes


class Plan(Protocol):
    """The views of one epoch."""

    def apply(self, x: Tensor, rows: Tensor) -> Tensor:
        """Both views of a batch.

        Shape: x (b, ...) raw rows; rows (b,) their global indices, integers in [0, n_rows); result (2, b, ...) float32.
        """
        ...


@runtime_checkable
class View(Protocol):
    """The hyper-parameters of a pair of views."""

    def fit(self, X: Tensor) -> Self:
        """The same view with what it learns from the training rows (images: channel mean and deviation)."""
        ...

    def plan(self, n_rows: int, seed: int, epoch: int, X: Tensor | None = None) -> Plan:
        """The plan of one epoch over `n_rows` training rows; `X` are those rows, needed by the table view only."""
        ...

    def clean(self, x: Tensor) -> Tensor:
        """The rows as the encoder sees them at evaluation: scaled like the views, not augmented. (b, ...) float32."""
        ...


@dataclass(frozen=True)
class Draws:
    """The random draws of one epoch over `n_rows` training rows. Nothing is stored: a draw is a hash of its place."""

    n_rows: int
    seed: int
    epoch: int

    def __post_init__(self) -> None:
        # Row numbers enter a 32-bit product when a donor row is drawn (counter.below); seeds and epochs are int64.
        for name, low, bits in (("n_rows", 1, 31), ("seed", 0, 63), ("epoch", 0, 63)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value < 1 << bits:
                raise InputError(f"{name} must be a whole number from {low} to 2**{bits} - 1, got {value!r}")
            object.__setattr__(self, name, int(value))  # NumPy's, as of an arange of seeds, would overflow in a hash

    def keys(self, rows: Tensor, n_batch: int, device: torch.device | str) -> list[Tensor]:
        """The keys of the first and of the second view of every row, (b,) each, for the functions of `counter`."""
        check_rows(rows, n_batch, self.n_rows)
        rows = rows.to(device=device, dtype=torch.int64)
        return [counter.row_keys(rows, seed=self.seed, epoch=self.epoch, view=which) for which in range(2)]


class RowWise(ABC):
    """A view that needs nothing but the rows of a batch and their keys: it defines `clean` and `one`."""

    @abstractmethod
    def clean(self, x: Tensor) -> Tensor:
        """The checked rows, not augmented. (b, ...) -> (b, ...)."""

    @abstractmethod
    def one(self, x: Tensor, keys: Tensor) -> Tensor:
        """One view of checked rows. Shape: x (b, ...), keys (b,) -> (b, ...)."""

    def fit(self, X: Tensor) -> Self:
        """Nothing is learned."""
        return self

    def plan(self, n_rows: int, seed: int, epoch: int, X: Tensor | None = None) -> RowWisePlan:
        """The views of one epoch; `X` is not needed."""
        return RowWisePlan(self, Draws(n_rows, seed, epoch))


@dataclass(frozen=True)
class RowWisePlan:
    """One epoch of a row-wise view."""

    view: RowWise
    draws: Draws

    def apply(self, x: Tensor, rows: Tensor) -> Tensor:
        """Both views of a batch. Shape: x (b, ...), rows (b,) -> (2, b, ...) on x's device."""
        x = self.view.clean(x)
        return torch.stack([self.view.one(x, keys) for keys in self.draws.keys(rows, len(x), x.device)])


def check_rows(rows: Tensor, n_batch: int, n_rows: int) -> None:
    """Refuse row indices that cannot be the global indices of this batch."""
    if not isinstance(rows, Tensor) or rows.dtype not in (torch.int64, torch.int32):
        kind = str(rows.dtype) if isinstance(rows, Tensor) else type(rows).__name__
        raise InputError(f"rows must be a tensor of int64 row indices, got {kind}")
    if rows.shape != (n_batch,):
        raise InputError(f"rows must hold one index for each of the {n_batch} rows of x, got shape {tuple(rows.shape)}")
    # An index beyond the plan would silently give another row's views.
    outside = (rows < 0) | (rows >= n_rows)
    if bool(outside.any()):
        seen = rows[outside][:_SHOWN].tolist()
        raise InputError(f"rows must lie in [0, {n_rows}), the rows of the plan; got {seen}")


def keep_plain(view: Any) -> None:
    """Make NumPy's numbers, as of a grid, Python's, and JSON's lists tuples: a view is its JSON."""
    for field in fields(view):
        object.__setattr__(view, field.name, _plain(getattr(view, field.name)))


def _plain(value: object) -> object:
    if isinstance(value, tuple | list):
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, np.number) else value


def check_range(
    name: str, value: object, low: float, high: float, *, ordered: bool = False, open_below: bool = False
) -> None:
    """Refuse a hyper-parameter (a number, or numbers in a tuple) outside [low, high]; `ordered` pairs must not fall."""
    values = value if isinstance(value, tuple) else (value,)
    # bool is an int in Python, and `flip=True` is more likely a mistake than a probability of 1.
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    inside = all(low < v <= high if open_below else low <= v <= high for v in numbers)
    if len(numbers) < len(values) or not inside or (ordered and not (len(values) == 2 and values[0] <= values[1])):
        what = "a pair (low, high) within" if ordered else "within"
        raise InputError(f"{name} must be {what} {'(' if open_below else '['}{low:g}, {high:g}], got {value!r}")


def as_features(x: Tensor) -> Tensor:
    """A batch of numeric rows as float32, refused when it is not two-dimensional or not finite. (b, d) -> (b, d)."""
    if not isinstance(x, Tensor):
        raise InputError(f"x must be a torch tensor, got {type(x).__name__}")
    if x.ndim != 2 or x.shape[1] == 0:
        raise InputError(f"x must be a matrix (rows, features), got shape {tuple(x.shape)}")
    if x.dtype == torch.bool or x.is_complex():
        raise InputError(f"x must hold numbers, got dtype {x.dtype}; convert it to float32")
    x = x.to(torch.float32)
    refuse_non_finite(x, "x")
    return x


def refuse_non_finite(x: Tensor, name: str) -> None:
    """Refuse NaN and infinity, naming the first place. Costs one pass and no memory when all is well."""
    if x.numel() == 0 or bool(torch.stack(x.aminmax()).isfinite().all()):  # aminmax propagates NaN
        return
    bad = (~x.isfinite()).nonzero()
    place = ", ".join(str(i) for i in bad[0].tolist())
    raise InputError(
        f"{name} holds {number_of(len(bad), 'value that is', 'values that are')} NaN or infinite, first at "
        f"(row, ...) = ({place}); fill in missing values before making views"
    )

"""Two views of a table row: a share of its features replaced by those of other rows (SCARF, Bahri et al. 2022).

A replacement is the value another row has in the same column, so it is a draw from that feature's own distribution:
never a category that does not exist, never an impossible number. A categorical feature kept as a code occupies one
column; one kept as one-hot columns, or a number with its "was missing" column, occupies several, and `groups` says
which columns are one feature, so that they change together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from punce.errors import InputError
from punce.views import counter
from punce.views.plan import Draws, as_features, check_range, keep_plain, refuse_non_finite

_WHICH, _DONOR = 1, 2  # streams


@dataclass(frozen=True)
class Table:
    """SCARF corruption. `rate` is the share of features replaced in each corrupted view, exactly as many in every row.

    With `both`, each view has its own corruption; without, the first view is the row itself, as in the SCARF paper
    (whose rate is 0.6). `groups` gives the feature each column belongs to, counted from 0, e.g. (0, 1, 1, 1, 2) for a
    number, three one-hot columns and a number; None: every column is a feature.
    """

    rate: float = 0.3
    both: bool = True
    groups: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.groups is not None:
            object.__setattr__(self, "groups", tuple(self.groups))
        keep_plain(self)
        check_range("rate", self.rate, 0, 1)
        if self.groups is not None:
            _check_groups(self.groups)

    def fit(self, X: Tensor) -> Self:
        """Nothing is learned: tables are scaled when they are encoded."""
        return self

    def plan(self, n_rows: int, seed: int, epoch: int, X: Tensor | None = None) -> TablePlan:
        """The views of one epoch, with replacements taken from `X` (n, d).

        `X` is kept by reference, not copied. It must be the training rows only: values of held-out rows would leak.
        When it has `n_rows` rows it is taken to be those rows, and no row replaces its values by its own.
        """
        draws = Draws(n_rows, seed, epoch)
        if X is None:
            raise InputError("the table view takes replacements from other rows: pass them as plan(..., X=X)")
        _check_reference(X, self.groups)
        return TablePlan(self, draws, X)

    def clean(self, x: Tensor) -> Tensor:
        """The rows as they are, in float32. (b, d) -> (b, d)."""
        return as_features(x)


@dataclass(frozen=True, eq=False)
class TablePlan:
    """The table views of one epoch."""

    view: Table
    draws: Draws
    reference: Tensor = field(repr=False)

    def apply(self, x: Tensor, rows: Tensor) -> Tensor:
        """Both views of a batch. Shape: x (b, d), rows (b,) -> (2, b, d), float32 on x's device."""
        x = as_features(x)
        if x.shape[1] != self.reference.shape[1]:
            raise InputError(
                f"x has {x.shape[1]} features, the reference rows have {self.reference.shape[1]}; encode both alike"
            )
        keys = self.draws.keys(rows, len(x), x.device)
        rows = rows.to(device=x.device, dtype=torch.int64)
        first = self._corrupted(x, rows, keys[0]) if self.view.both else x
        return torch.stack([first, self._corrupted(x, rows, keys[1])])

    def _corrupted(self, x: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
        """One corrupted view. Shapes: G features of d columns; hashes (b, G), the result (b, d)."""
        groups = self.view.groups
        n_features = x.shape[1] if groups is None else max(groups) + 1
        chosen = smallest(counter.bits(keys, n_features, stream=_WHICH), _count(self.view.rate, n_features))
        donors = self._donors(counter.bits(keys, n_features, stream=_DONOR), rows)
        if groups is not None:
            # One draw for each feature, repeated for its columns: one-hot columns change together and from one row.
            feature = torch.tensor(groups, device=x.device)
            chosen, donors = chosen[:, feature], donors[:, feature]
        # Other rows lie anywhere in memory: touch only the cells that are replaced.
        row, column = chosen.nonzero(as_tuple=True)
        home, result = self.reference.device, x.clone()
        result[row, column] = self.reference[donors[row, column].to(home), column.to(home)].to(x)
        return result

    def _donors(self, hashes: Tensor, rows: Tensor) -> Tensor:
        """The row each feature would be taken from: any other row with equal chance. (b, G) -> (b, G)."""
        n = len(self.reference)
        if n != self.draws.n_rows or n == 1:
            return counter.below(hashes, n)
        # Step 1 to n − 1 rows ahead, around the end: every other row is equally likely, the row itself impossible.
        return (rows[:, None] + 1 + counter.below(hashes, n - 1)) % n


def smallest(hashes: Tensor, count: int) -> Tensor:
    """Which entries are among the `count` smallest of their row, whose hashes differ. (b, G) -> (b, G) bool."""
    if count == 0 or hashes.numel() == 0:
        return torch.zeros_like(hashes, dtype=torch.bool)
    return hashes <= hashes.kthvalue(count, dim=1, keepdim=True).values


def _count(rate: float, n_features: int) -> int:
    """How many features to replace: rate · G rounded, at least one and not all unless the rate says so."""
    if n_features == 1 or rate in (0, 1):
        return round(rate * n_features)
    return min(max(round(rate * n_features), 1), n_features - 1)


def _check_groups(groups: tuple[int, ...]) -> None:
    are_whole = all(isinstance(group, int) for group in groups)
    if not groups or not are_whole or sorted(set(groups)) != list(range(max(groups) + 1)):
        raise InputError(f"groups must give each column's feature, counted from 0 without gaps; got {groups!r}")


def _check_reference(X: Tensor, groups: tuple[int, ...] | None) -> None:
    if not isinstance(X, Tensor) or X.ndim != 2 or 0 in X.shape or X.dtype == torch.bool or X.is_complex():
        seen = f"shape {tuple(X.shape)}, dtype {X.dtype}" if isinstance(X, Tensor) else type(X).__name__
        raise InputError(f"X must be a numeric tensor of at least one row (rows, features), got {seen}")
    if groups is not None and len(groups) != X.shape[1]:
        raise InputError(f"groups names the features of {len(groups)} columns, but X has {X.shape[1]}")
    refuse_non_finite(X, "X")

"""Which rows make up which batch: a pure function of (seed, step), so that a resumed run sees the same batches.

Every row comes once per epoch, in batches of nearly equal size (BatchNorm would suffer from a small last batch),
with the labelled rows dealt evenly over the batches. Where there are too few labelled rows for every batch to get some
they are dealt again within the epoch. A batch is the *global* batch; :func:`own_part` cuts out a rank's share.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from punce.errors import InputError, is_number
from punce.labels import UNLABELLED, Labels

_CYCLED = 1 << 32  # stream of the shuffles that continue over epochs; those of one epoch are numbered from 0


@dataclass(frozen=True)
class StratifiedBatches:
    """Batches of all rows, labelled rows in each.

    Args:
        labels: (n,) of {1, 0, −1}; each labelled class is dealt on its own.
        batch_size: rows in a global batch, about.
        seed: names the shuffles.
        min_labelled: rows of each labelled class in a batch, at least (repeating rows within an epoch if need be).
        labelled_share: if given, the share of a batch that is labelled (each labelled class has an equal part of it):
            "separate P and U sampling" for risks, where P is cycled through at its own pace.
    """

    labels: Labels
    batch_size: int
    seed: int
    min_labelled: int = 2
    labelled_share: float | None = None
    _rows: dict[int, list[Tensor]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.batch_size < 2:
            raise InputError(f"batch_size must be at least 2, got {self.batch_size}")
        share = self.labelled_share
        if share is not None and not (is_number(share) and 0 < share < 1):
            raise InputError(f"labelled_share must lie in (0, 1) or be None, got {share!r}")

    @property
    def per_epoch(self) -> int:
        """Batches in an epoch."""
        n = len(self.labels)
        if self.labelled_share is not None:  # an epoch is one pass over the unlabelled rows
            n = round(int((self.labels == UNLABELLED).sum()) / (1 - self.labelled_share))
        return max(1, round(n / self.batch_size))

    def rows(self, step: int) -> Tensor:
        """Row numbers of the global batch of this step, int64."""
        epoch, k = divmod(step, self.per_epoch)
        if epoch not in self._rows:
            self._rows.clear()  # one epoch at a time is enough
            self._rows[epoch] = self._deal(epoch)
        return self._rows[epoch][k]

    def _deal(self, epoch: int) -> list[Tensor]:
        parts: list[list[np.ndarray]] = [[] for _ in range(self.per_epoch)]
        for value in np.unique(self.labels):
            members = np.flatnonzero(self.labels == value)
            order = self._order(members, epoch, int(value))
            for part, chunk in zip(parts, np.array_split(order, self.per_epoch), strict=True):
                part.append(chunk)
        return [torch.from_numpy(np.concatenate(part)) for part in parts]

    def _order(self, members: np.ndarray, epoch: int, value: int) -> np.ndarray:
        """The rows of one label value in the order in which this epoch deals them.

        As many whole shuffles as fit, so that no row is left out of an epoch; what is still missing is taken from
        shuffles that continue where the last epoch stopped, so that in the long run every row comes equally often.
        """
        whole, rest = divmod(self._needed(len(members), value), len(members))
        shuffles = [self._shuffled(members, epoch, value, stream) for stream in range(whole)]
        first, last = epoch * rest, (epoch + 1) * rest
        cycles = range(first // len(members), -(-last // len(members)))  # whole shuffles that [first, last) touches
        cycled = [self._shuffled(members, cycle, value, _CYCLED) for cycle in cycles]
        start = first % len(members)
        # members[:0], because nothing may be missing, and NumPy concatenates no empty list
        return np.concatenate([*shuffles, np.concatenate([members[:0], *cycled])[start : start + rest]])

    def _needed(self, available: int, value: int) -> int:
        """How many rows of one label value an epoch deals."""
        if value == UNLABELLED:
            return available
        least = self.min_labelled * self.per_epoch
        if self.labelled_share is None:
            return max(available, least)
        n_classes = len(np.unique(self.labels[self.labels != UNLABELLED]))
        return max(least, round(self.labelled_share * self.batch_size * self.per_epoch / n_classes))

    def _shuffled(self, members: np.ndarray, epoch: int, value: int, stream: int) -> np.ndarray:
        # value + 1, because seeds must not be negative and −1 is a label
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch, value + 1, stream]))
        return generator.permutation(members)


def own_part(rows: Tensor, rank: int, world: int) -> Tensor:
    """A rank's share of a global batch; shares differ by one row at most. Every world-th row, so labels spread too."""
    return rows[rank::world]

"""What every contrastive loss shares: checking the batch, normalising it, and lse_i − z_i·t_i/τ.

Every loss here gives anchor i partners whose weights sum to one, so that

    L = mean_i [ lse_i − z_i·t_i / τ ],    t_i = Σ_j W_ij z_j   (the anchor's target)

and a loss only has to build its target from sums over labelled rows, O(b·d). With several ranks the anchors, the
sums and the mean are those of the global batch.

Shape legend: B rows of this rank, M = 2B anchors (view 0 of every row, then view 1), K projection size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from punce.errors import InputError, number_of
from punce.labels import NEGATIVE, POSITIVE, check_vocabulary
from punce.losses.log_partition import check_temperature, is_batched, log_partition
from punce.training import collectives


@dataclass(frozen=True)
class Anchors:
    """The anchors of a two-view batch: unit rows, their other views, and what is known of their class.

    `posterior` is the chance that an anchor is of the positive class, where rows have one of their own; no gradient
    flows through it.

    Shape: z and pair (M, K); is_positive and is_negative (M, 1) bool; posterior (M, 1).
    """

    z: Tensor
    pair: Tensor
    is_positive: Tensor
    is_negative: Tensor
    posterior: Tensor | None = None

    @cached_property
    def n_others(self) -> int:
        """Anchors of the global batch that are neither a given anchor nor its other view: 2b − 2."""
        # The count is summed over ranks, because ranks may hold different numbers of rows.
        return collectives.global_count(len(self.z), self.z.device) - 2

    @cached_property
    def positives(self) -> LabelledGroup:
        """The labelled positives P of the global batch."""
        return LabelledGroup.of(self.z, self.is_positive)

    @cached_property
    def negatives(self) -> LabelledGroup:
        """The labelled negatives N of the global batch; empty in the PU setting."""
        return LabelledGroup.of(self.z, self.is_negative)


@dataclass(frozen=True)
class LabelledGroup:
    """All labelled views of one class in the global batch, collapsed to their sum and their number."""

    total: Tensor
    count: Tensor

    @classmethod
    def of(cls, z: Tensor, members: Tensor) -> LabelledGroup:
        """Sum the rows of `z` for which `members` is true, over every rank."""
        # Σ_{j∈G\i} z_j = S_G − z_i: one sum serves every anchor, so a target costs O(b·d) and not O(b²·d).
        total = collectives.global_sum(torch.where(members, z, 0.0).sum(0))
        return cls(total, collectives.global_sum(members.sum().to(z.dtype)))

    def mean(self) -> Tensor:
        """mean_j z_j; zero for an empty group (its weight is zero there too)."""
        return self.total / self.count.clamp_min(1.0)

    def mean_without(self, z: Tensor) -> Tensor:
        """Σ_{j≠i} z_j / (|G| − 1) for members `z` = z_i. A labelled row has two views, so |G| ≥ 2 for a member."""
        # The clamp matters only for rows that are not members; torch.where drops their value afterwards.
        return (self.total - z) / (self.count - 1.0).clamp_min(1.0)


class ContrastiveLoss(nn.Module):
    """Base of the losses: ``loss(z, labels)`` with z (2, B, K) and labels (B,) of {1, 0, −1}.

    The projections may have any scale; the loss normalises them. The value is the mean over the 2B anchors of the
    batch (over all ranks if a process group is running: same value on every rank, right gradient under DDP).
    """

    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__()
        check_temperature(temperature)
        self.temperature = float(temperature)

    def forward(self, z: Tensor, labels: Tensor | None = None) -> Tensor:
        """Mean loss of the anchors; `labels` None means that every row is unlabelled."""
        return self.mean(two_view_anchors(z, labels))

    def mean(self, anchors: Anchors) -> Tensor:
        """The loss of anchors that are laid out already."""
        return collectives.global_mean(self.per_anchor(anchors))

    def per_anchor(self, anchors: Anchors) -> Tensor:
        """ℓ⁽ⁱ⁾ = lse_i − z_i·t_i/τ of every anchor of this rank. Shape: (M,)."""
        # The only term with pairs of anchors, and the same for every loss.
        lse = log_partition(anchors.z, self.temperature)
        return lse - (anchors.z * self.target(anchors)).sum(1) / self.temperature

    def target(self, anchors: Anchors) -> Tensor:
        """t_i = Σ_j W_ij z_j with Σ_j W_ij = 1. Shape: (M, K)."""
        # Raised, because nn.Module is no ABC: a method that is only marked abstract would return None.
        raise NotImplementedError(f"{type(self).__name__} does not define target(anchors)")

    def extra_repr(self) -> str:
        """Shown by print(loss)."""
        return f"temperature={self.temperature}"


def labelled_or_pair_target(anchors: Anchors) -> Tensor:
    """Labelled anchors: mean of the *other* labelled views of their class. Unlabelled ones: their other view."""
    # Both branches are computed for all anchors: torch.where is cheaper than indexing, and works under ranks.
    target = torch.where(anchors.is_positive, anchors.positives.mean_without(anchors.z), anchors.pair)
    return torch.where(anchors.is_negative, anchors.negatives.mean_without(anchors.z), target)


def two_view_anchors(z: Tensor, labels: Tensor | None) -> Anchors:
    """Check a (2, B, K) batch with its labels and lay it out as 2B unit anchors."""
    _check_shapes(z, labels)
    unit = unit_rows(z.flatten(0, 1))
    b = z.shape[1]
    if labels is None:
        labels = torch.zeros(b, dtype=torch.int8, device=z.device)
    elif labels.dtype == torch.bool:
        labels = labels.to(torch.int8)
    if not is_batched(labels):
        check_vocabulary(labels)
    # Anchor i and anchor i + b are the two views of row i, so rolling by b gives every anchor its pair.
    both = labels.to(z.device).repeat(2)[:, None]
    return Anchors(unit, unit.roll(b, 0), both == POSITIVE, both == NEGATIVE)


def unit_rows(z: Tensor) -> Tensor:
    """Rows divided by their length, in float32 at least; refuses non-finite rows by number (not under vmap).

    A zero row has no direction: it stays zero and gets no gradient, instead of one divided by nearly nothing.
    """
    z = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z
    lengths = z.norm(dim=1, keepdim=True)
    is_tiny, hidden = lengths < _shortest(z.dtype), is_batched(z)
    if hidden or bool(is_tiny.any()):
        # A direction does not depend on the length.
        z = z * torch.where(is_tiny, z.new_tensor(_shortest(z.dtype) ** -2), 1.0)
        lengths = z.norm(dim=1, keepdim=True)
    if not hidden and not bool(lengths.isfinite().all()):
        raise _non_finite(z, lengths)
    # 1/inf = 0: a zero row stays zero, without the NaN gradient that 0/0 would give.
    return z * torch.where(lengths > 0, lengths, torch.inf).reciprocal()


def _shortest(dtype: torch.dtype) -> float:
    """Length below which the squares of a row's numbers lose digits, because they come near the smallest number."""
    limits = torch.finfo(dtype)
    return float((limits.tiny / limits.eps) ** 0.5)


def _check_shapes(z: Tensor, labels: Tensor | None) -> None:
    made = {"z": "torch.stack([z_first, z_second]) makes one of two views", "labels": "torch.as_tensor makes one"}
    for name, given in (("z", z), ("labels", labels)):
        if given is not None and not isinstance(given, Tensor):
            raise InputError(f"{name} must be a tensor, got {type(given).__name__}; {made[name]}")
    if z.dim() != 3 or z.shape[0] != 2:
        raise InputError(
            f"z must hold the projections of two views, shape (2, b, d), got {tuple(z.shape)}; "
            "stack them with torch.stack([z_first, z_second])"
        )
    if not z.is_floating_point():
        raise InputError(f"z must be floating point, got {z.dtype}")
    # A rank may hold no row of the last batch; only an empty global batch is an error.
    if z.shape[1] == 0 and collectives.world_size() == 1:
        raise InputError("z holds no row: the batch is empty")
    if labels is not None and labels.shape != z.shape[1:2]:
        raise InputError(
            f"labels must be one per row, shape ({z.shape[1]},), got {tuple(labels.shape)}; "
            "give one label per row, not one per view"
        )


def _non_finite(z: Tensor, lengths: Tensor) -> InputError:
    b = len(z) // 2
    bad = (~lengths.squeeze(1).isfinite()).nonzero().squeeze(1)
    where = ", ".join(f"view {int(i) // b} row {int(i) % b}" for i in bad[:5])
    # Finite rows whose squared length overflows are a different mistake from NaN in the input.
    kind = "non-finite" if not bool(z[bad].isfinite().all()) else f"too large for {z.dtype}"
    return InputError(
        f"{number_of(len(bad), 'projection is', 'projections are')} {kind}: {where}{', …' if len(bad) > 5 else ''}; "
        "look at the learning rate, the input rows, or mixed-precision overflow"
    )

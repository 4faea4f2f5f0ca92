"""What every risk shares: checked inputs and means over the *global* batch.

Ranks. A mean over labelled or unlabelled rows is global_sum(local sum) / global count, so every rank holds the same
risk and takes the same branch. Every rank calls ``backward`` on that value, the backward of ``global_sum`` adds the
world_size equal gradients up, and DistributedDataParallel's average divides by world_size again: the parameter
gradient is that of one process holding all rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from punce.errors import InputError
from punce.labels import check_vocabulary
from punce.training.collectives import global_sum

_SHOWN = 5


class RiskWarning(UserWarning):
    """A risk is used in a way that is defined but rarely what is wanted."""


class Risk(nn.Module):
    """A risk on raw scores: ``risk(scores, labels)`` is a scalar to call ``backward()`` on.

    Shape: scores (b,) real, larger means more positive; labels (b,) of {1, 0}; returns (). float16 and bfloat16
    scores are computed in float32. Labelled and unlabelled rows may come in any order and any numbers, also none.
    """

    @abstractmethod
    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The scalar to step on."""

    def value(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The estimate of the risk for a log, without gradient. Where stepping and estimating differ, see the class."""
        with torch.no_grad():
            estimate: Tensor = self(scores, labels)
        return estimate

    @property
    def decision_score(self) -> float:
        """The score above which a row is called positive; 0 unless the risk says otherwise."""
        return 0.0


@dataclass(frozen=True)
class GroupMeans:
    """Weighted means over the rows of every rank, and the weight behind each (0 where a group is empty)."""

    means: tuple[Tensor, ...]
    counts: tuple[Tensor, ...]


def group_means(groups: Sequence[tuple[Tensor, Tensor]]) -> GroupMeans:
    """Mean of values under weights for each (values (b,), weights (b,)), over all ranks in one all-reduce.

    An empty group has mean 0 with gradient 0, never NaN. Weights carry no gradient.
    """
    weights = [weight.detach().to(values.dtype) for values, weight in groups]
    sums = [(values * weight).sum() for (values, _), weight in zip(groups, weights, strict=True)]
    totals = global_sum(torch.stack([*sums, *(weight.sum() for weight in weights)]))
    sums_all, counts = totals[: len(groups)], totals[len(groups) :].detach()
    means = sums_all / torch.where(counts > 0, counts, torch.ones_like(counts))
    return GroupMeans(tuple(means.unbind()), tuple(counts.unbind()))


def checked_scores(scores: Tensor, name: str = "scores") -> Tensor:
    """Refuse anything but finite real scores (b,), naming rows; half precision becomes float32."""
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        seen = scores.dtype if isinstance(scores, Tensor) else type(scores).__name__
        raise InputError(f"{name} must be a floating-point tensor of raw scores, got {seen}")
    if scores.dim() != 1:
        hint = "; squeeze the last dimension: scores.squeeze(1)" if scores.shape[1:] == (1,) else ""
        raise InputError(f"{name} must have shape (b,), got {tuple(scores.shape)}{hint}")
    _refuse_non_finite(scores, name)
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores


def checked_batch(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Scores ready to compute with and labels of the vocabulary on the same device, or the reason why not."""
    scores = checked_scores(scores)
    if not isinstance(labels, Tensor):
        raise InputError(f"labels must be a tensor of 1 and 0, got {type(labels).__name__}")
    if labels.shape != scores.shape:
        raise InputError(f"labels must have the shape of scores {tuple(scores.shape)}, got {tuple(labels.shape)}")
    check_vocabulary(labels)
    return scores, labels.to(scores.device)


def _refuse_non_finite(values: Tensor, name: str) -> None:
    finite = torch.isfinite(values.detach())
    if bool(finite.all()):
        return
    rows = torch.nonzero(~finite).flatten().tolist()
    shown = ", ".join(f"{row} ({float(values[row])})" for row in rows[:_SHOWN])
    raise InputError(
        f"{name}: {len(rows)} of {len(values)} are not finite, at row {shown}{', …' if len(rows) > _SHOWN else ''}; "
        "lower the learning rate or look for NaN in these input rows"
    )

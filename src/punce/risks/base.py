"""What every risk shares: checked inputs, surrogate losses, means over the *global* batch, and the zero-one risk.

Ranks. A mean over labelled or unlabelled rows is global_sum(local sum) / global count, so every rank holds the same
risk and takes the same branch. Every rank calls ``backward`` on that value, the backward of ``global_sum`` adds the
world_size equal gradients up, and DistributedDataParallel's average divides by world_size again: the parameter
gradient is that of one process holding all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from punce.errors import InputError, number_of
from punce.labels import POSITIVE, UNLABELLED, check_vocabulary
from punce.training.collectives import global_sum

_SHOWN = 5  # rows that an error message quotes


class RiskWarning(UserWarning):
    """A risk is used in a way that is defined but rarely what is wanted."""


class Risk(nn.Module):
    """A risk on raw scores: ``risk(scores, labels)`` is a scalar to call ``backward()`` on.

    Shape: scores (b,) real, larger means more positive; labels (b,) of {1, 0}; returns (). float16 and bfloat16
    scores are computed in float32. Labelled and unlabelled rows may come in any order and any numbers, also none.
    """

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The scalar to step on."""
        # Raised, because nn.Module is no ABC: a method that is only marked abstract would return None.
        raise NotImplementedError(f"{type(self).__name__} does not define forward(scores, labels)")

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
    # Sums and weights travel in one tensor: one all-reduce for each risk instead of one for each group.
    weights = [weight.detach().to(values.dtype) for values, weight in groups]
    sums = [(values * weight).sum() for (values, _), weight in zip(groups, weights, strict=True)]
    totals = global_sum(torch.stack([*sums, *(weight.sum() for weight in weights)]))
    sums_all, counts = totals[: len(groups)], totals[len(groups) :].detach()
    # Divide by 1 where a group is empty: 0/0 would put NaN into the gradient even behind a mask.
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
    finite = torch.isfinite(scores.detach())
    if not bool(finite.all()):
        rows = torch.nonzero(~finite).flatten().tolist()
        shown = ", ".join(f"{row} ({float(scores[row].detach())})" for row in rows[:_SHOWN])
        raise InputError(
            f"{name}: {number_of(len(rows), f'of {len(scores)} is', f'of {len(scores)} are')} not finite, "
            f"at row {shown}{', …' if len(rows) > _SHOWN else ''}; "
            "lower the learning rate or look for NaN in these input rows"
        )
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


# Surrogate losses ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Surrogate:
    """A surrogate loss ℓ(t) of the margin t = y·g(x), and whether it stays bounded as the margin goes to −∞.

    With an unbounded surrogate the term −π E_P ℓ(−g) of uPU has no lower bound: a flexible model drives it to −∞.
    """

    name: str
    loss: Callable[[Tensor], Tensor]
    bounded: bool

    def __call__(self, margin: Tensor) -> Tensor:
        """ℓ(margin), elementwise."""
        return self.loss(margin)


# Functions with names and not lambdas: a risk with a lambda in it could not be sent to another process.


def _sigmoid(margin: Tensor) -> Tensor:
    return torch.sigmoid(-margin)


def _logistic(margin: Tensor) -> Tensor:
    return -functional.logsigmoid(margin)  # functional.softplus turns linear at 20 and loses 2e-9 there


def _double_hinge(margin: Tensor) -> Tensor:
    return torch.maximum(-margin, functional.relu(0.5 - 0.5 * margin))


SURROGATES: dict[str, Surrogate] = {
    "sigmoid": Surrogate("sigmoid", _sigmoid, bounded=True),  # at most 1: the default of every PU risk (Kiryo 2017)
    "logistic": Surrogate("logistic", _logistic, bounded=False),  # cross-entropy
    "double_hinge": Surrogate("double_hinge", _double_hinge, bounded=False),  # makes uPU convex (du Plessis 2015)
}


def find_surrogate(name: str) -> Surrogate:
    """The surrogate of that name ("double-hinge" and "double_hinge" are the same)."""
    found = SURROGATES.get(str(name).replace("-", "_"))
    if found is None:
        raise InputError(f"surrogate must be one of {sorted(SURROGATES)}, got {name!r}")
    return found


# Choosing epochs and hyper-parameters without negatives ---------------------------------------------------------


def zero_one_risk(scores: Tensor, labels: Tensor, prior: float, cut: float = 0.0) -> float:
    """π·FNR_P + max(0, PPR_U − π·TPR_P): the error under the unlabelled mix, from held-out P and U alone.

    TPR is the share of labelled rows above the cut, PPR_U that of unlabelled rows. It is nnPU's estimate with the
    zero-one loss. Ties at the cut count as negative. Shape: scores (n,), labels (n,) of {1, 0}.
    """
    above = scores > cut
    tpr = float(above[labels == POSITIVE].float().mean())
    share_of_u = float(above[labels == UNLABELLED].float().mean())
    return prior * (1.0 - tpr) + max(0.0, share_of_u - prior * tpr)

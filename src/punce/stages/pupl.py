"""puPL: PU-aware 2-means pseudo-labels in embedding space, then a linear layer on them. Needs no prior.

From the follow-up to the paper (Acharya et al., "Contrastive approach to prior-free positive unlabeled learning").
If pretraining has pulled the classes apart, two clusters of the embedding are the classes, and the labelled positives
say which is which. Not for embeddings whose largest split is something other than the class: the clusters follow the
geometry, whatever it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from punce.errors import InputError
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.stages.given import check_call
from punce.stages.probe import LinearHead, checked_features, standardisation
from punce.stages.scorer import check_pu_rows

_ENOUGH = 1e-8  # of the gradient, a mean over rows: scikit-learn's 1e-4 stops long before the end
_MOST_STEPS = 10_000


@dataclass(frozen=True)
class PuplConfig:
    """`starts` seedings are tried and the tightest clustering wins; `l2` is the strength C⁻¹ of the linear layer.

    `unit_rows` clusters h/|h|, the geometry in which contrastive losses compare rows.
    """

    starts: int = 10
    max_iterations: int = 100
    unit_rows: bool = True
    l2: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.starts < 1 or self.max_iterations < 1 or not self.l2 > 0:
            raise InputError(f"starts and max_iterations must be at least 1 and l2 above 0, got {self}")


@dataclass(frozen=True)
class Clusters:
    """Shape: is_positive (n,) bool, True for every labelled row; centroids (2, D), negative first."""

    is_positive: Tensor
    centroids: Tensor
    potentials: tuple[float, ...]
    """Mean squared distance to the own centroid after each iteration; it never rises."""


def pupl(features: Tensor, labels: Labels, config: PuplConfig = PuplConfig()) -> LinearHead:  # noqa: B008  frozen
    """A linear layer trained by cross-entropy on the pseudo-labels; its history is that of the clustering.

    The layer is a convex problem, solved to the end by scikit-learn's L-BFGS on standardised features.

    Shape: features (n, D); labels (n,) of {1, 0}.
    """
    from sklearn.linear_model import LogisticRegression

    check_call("pupl", config, PuplConfig, {})
    features = checked_features(features, labels)
    clusters = pseudo_labels(features, labels, config)
    mean, scale = standardisation(features)
    x = ((features - mean) / scale).cpu().numpy().astype(np.float64)  # in float32 L-BFGS solves it less exactly
    model = LogisticRegression(C=1.0 / config.l2, max_iter=_MOST_STEPS, tol=_ENOUGH)
    solved = model.fit(x, clusters.is_positive.cpu().numpy())
    history: list[dict[str, Any]] = [
        {"stage": "pupl", "step": i + 1, "potential": value} for i, value in enumerate(clusters.potentials)
    ]
    weight, bias = (torch.from_numpy(part[0]).to(features) for part in (solved.coef_, solved.intercept_[None]))
    return LinearHead(weight, bias[0], mean, scale, history)


@torch.no_grad()
def pseudo_labels(features: Tensor, labels: Labels, config: PuplConfig = PuplConfig()) -> Clusters:  # noqa: B008
    """PU-aware 2-means: seeded by the labelled rows, which stay in the positive cluster. Shape: (n, D), (n,)."""
    features = checked_features(features, labels)
    _check(features, labels)
    h = normalize(features, dim=1) if config.unit_rows else features
    is_p = torch.from_numpy(labels == POSITIVE).to(h.device)
    runs = [_two_means(h, is_p, config, start) for start in range(config.starts)]
    return min(runs, key=lambda run: run.potentials[-1])


def _two_means(h: Tensor, is_p: Tensor, config: PuplConfig, start: int) -> Clusters:
    """Lloyd's iterations until no row changes its cluster."""
    centroids = _seeds(h, is_p, config.seed, start)
    potentials: list[float] = []
    is_positive = is_p
    for _ in range(config.max_iterations):
        assigned = _assign(h, is_p, centroids)
        if potentials and bool((assigned == is_positive).all()):  # at first there is no assignment to compare with
            break
        is_positive = assigned
        centroids = torch.stack([h[~is_positive].mean(0), h[is_positive].mean(0)])
        own = torch.where(is_positive[:, None], centroids[1], centroids[0])
        potentials.append(float((h - own).square().sum(1).mean()))
    return Clusters(is_positive, centroids, tuple(potentials))


def _seeds(h: Tensor, is_p: Tensor, seed: int, start: int) -> Tensor:
    """Positive: the mean of P. Negative: an unlabelled row drawn with chance ∝ its squared distance from that mean."""
    positive = h[is_p].mean(0)
    candidates = h[~is_p]
    distance = (candidates - positive).square().sum(1).double().cpu().numpy()
    if not distance.sum() > 0:
        raise InputError(
            "every unlabelled row lies on the mean labelled positive, so there is no second cluster; "
            "look for a constant encoder (features that are all the same)"
        )
    generator = np.random.Generator(np.random.PCG64([seed, 41, start]))  # a stream of its own for every start
    drawn = int(generator.choice(len(distance), p=distance / distance.sum()))
    return torch.stack([candidates[drawn], positive])


def _assign(h: Tensor, is_p: Tensor, centroids: Tensor) -> Tensor:
    """The nearer centroid, except that labelled rows stay positive and the negative cluster never runs empty."""
    distance = torch.stack([(h - centroid).square().sum(1) for centroid in centroids])
    is_positive = is_p | (distance[1] <= distance[0])
    if bool(is_positive.all()):
        farthest = int(torch.where(is_p, -1.0, distance[1]).argmax())
        is_positive[farthest] = False
    return is_positive


def _check(features: Tensor, labels: Labels) -> None:
    check_pu_rows(features, labels, "puPL")
    if int((labels == UNLABELLED).sum()) < 2:
        raise InputError("puPL needs at least 2 unlabelled rows to form a second cluster")

"""Heads of the product's portfolio on the features of a cell's encoder, to compare them with the probe on nnPU."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from punce.encoders import Encoder
from punce.errors import InputError
from punce.experiments.cell import PortfolioConfig
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.models.portfolio.heads import HEADS, HeadProblem
from punce.models.portfolio.problem import Linear
from punce.stages.probe import LinearHead, extract_features
from punce.stages.transfer import TrainedHead
from punce.views import View


def portfolio_head(
    config: PortfolioConfig, encoder: Encoder, view: View, X: Tensor, labels: Labels, prior: float, seed: int
) -> TrainedHead:
    """The head on standardised features, cut so that the share `prior` of the unlabelled rows is called positive."""
    features_of = cache(partial(extract_features, encoder, view))
    h = features_of(X).double()
    mean, scale = h.mean(0), h.std(0).clamp(min=1e-6)
    x = ((h - mean) / scale).cpu().numpy()
    n, is_p = len(x), labels == POSITIVE
    found = HEADS[config.head](HeadProblem(x, is_p, np.zeros(n, dtype=np.int8), np.ones(n), prior, seed))
    if not isinstance(found, Linear):
        raise InputError(f"a cell needs a linear head, and {config.head!r} is none")
    # Scores of these heads have no cut of their own: the prior gives it, as in the product.
    cut = float(np.quantile(found.score(x)[labels == UNLABELLED], 1.0 - prior))
    weight, bias = torch.from_numpy(found.weight).double(), torch.tensor(float(found.bias[0]) - cut).double()
    linear = LinearHead(weight, bias, mean.cpu(), scale.cpu()).to(h.device)
    return TrainedHead(linear, 0.0, features_of, is_frozen=True)

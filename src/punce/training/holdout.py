"""Splits that keep labelled rows on both sides."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from punce.errors import InputError
from punce.labels import POSITIVE, UNLABELLED, Labels


def holdout_split(labels: Labels, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Row numbers of (training, held-out) parts, `share` of every label value held out, at least one row each.

    A label value with a single row stays in training. Share 0 holds nothing out.
    """
    if not 0 <= share < 1:
        raise InputError(f"the held-out share must lie in [0, 1), got {share}")
    generator = np.random.Generator(np.random.PCG64([seed, 77]))
    is_held_out = np.zeros(len(labels), dtype=bool)
    for value in np.unique(labels):
        members = generator.permutation(np.flatnonzero(labels == value))
        count = min(len(members) - 1, max(1, round(share * len(members)))) if share > 0 else 0
        is_held_out[members[:count]] = True
    return torch.from_numpy(np.flatnonzero(~is_held_out)), torch.from_numpy(np.flatnonzero(is_held_out))


def can_choose(labels: Labels, held_out: Tensor) -> bool:
    """Whether these rows can choose between models: every PU criterion needs both labelled and unlabelled ones."""
    values = labels[held_out.numpy()]
    return bool((values == POSITIVE).any() and (values == UNLABELLED).any())

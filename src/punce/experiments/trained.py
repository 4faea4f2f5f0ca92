"""What a path of training hands to evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Trained:
    """A trained classifier as evaluation sees it.

    Shape: scores (n_test,), positive above `cut`; features (n, D) and test_features (n_test, D) where they were made
    anyway. `history` holds "oracle_accuracy" (test accuracy) and "held_out_risk" per epoch.
    """

    scores: Tensor
    cut: float
    history: list[dict[str, Any]] = field(default_factory=list)
    features: Tensor | None = None
    test_features: Tensor | None = None
    pretrain_seconds: float = 0.0
    pretrained_here: bool = False

"""Embeddings that are quick to learn from."""

from __future__ import annotations

from typing import Any

import numpy as np

FAST: dict[str, Any] = {"kind": "embedding", "prior": 0.4, "epochs": 3}


def clouds(n: int = 300, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two classes, and labels for half of the first. Shapes: (n, d), (n,)."""
    random = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = random.normal(1.5 * (2 * y[:, None] - 1), 1.0, (n, d)).astype(np.float32)
    return X, np.where((y == 1) & (np.arange(n) < n // 2), 1, 0)

"""What results hold besides numbers: accuracy over epochs, and points of a t-SNE picture. Both are checked here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from punce.experiments.present.grid import Measured, is_number


def curves_by_seed(measured: Measured) -> dict[int, list[float]]:
    """Test accuracy per epoch by seed; seeds without a usable curve are left out."""
    found: dict[int, list[float]] = {}
    for seed, result in sorted(measured.by_seed.items()):
        curve = result.get("curve")
        if isinstance(curve, list) and curve and all(is_number(value) for value in curve):
            found[seed] = [float(value) for value in curve]
    return found


def drop_by_seed(measured: Measured) -> dict[int, float]:
    """Points lost between the best epoch and the last: what over-fitting costs without early stopping."""
    return {seed: max(curve) - curve[-1] for seed, curve in curves_by_seed(measured).items()}


def jitter_by_seed(measured: Measured) -> dict[int, float]:
    """Mean absolute change from one epoch to the next, in points, over the second half of training."""
    found: dict[int, float] = {}
    for seed, curve in curves_by_seed(measured).items():
        # The first half still learns: its steps are progress, not noise.
        late = np.asarray(curve[len(curve) // 2 :])
        if len(late) > 1:
            found[seed] = float(np.abs(np.diff(late)).mean())
    return found


@dataclass(frozen=True)
class Embedding:
    """Points in the plane with their true class. Shape: points (n, 2), is_positive (n,) bool."""

    points: npt.NDArray[np.float64]
    is_positive: npt.NDArray[np.bool_]

    def purity(self) -> float:
        """Mean share of a point's ten nearest neighbours that are of its class."""
        k = min(10, len(self.points) - 1)
        _, nearest = cKDTree(self.points).query(self.points, k=k + 1)
        others = np.asarray(nearest)[:, 1:]  # the nearest point is the point itself
        return float((self.is_positive[others] == self.is_positive[:, None]).mean())


def embedding_of(result: Mapping[str, Any]) -> Embedding | None:
    """The picture in a result; None without one."""
    stored = result.get("embedding")
    if not isinstance(stored, Mapping) or not {"x", "y", "is_positive"} <= stored.keys():
        return None
    points = np.column_stack([np.asarray(stored["x"], dtype=np.float64), np.asarray(stored["y"], dtype=np.float64)])
    is_positive = np.asarray(stored["is_positive"]).astype(bool)
    if len(points) < 2 or len(points) != len(is_positive) or not np.isfinite(points).all():
        return None
    return Embedding(points, is_positive)


def purity_by_seed(measured: Measured) -> dict[int, float]:
    """Neighbour purity of the pictures, in per cent, by seed."""
    pictures = {seed: embedding_of(result) for seed, result in sorted(measured.by_seed.items())}
    return {seed: 100 * picture.purity() for seed, picture in pictures.items() if picture is not None}

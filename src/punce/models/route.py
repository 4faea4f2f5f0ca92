"""What the classifier needs from a route."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor

from punce.labels import Labels
from punce.scenario import Scenario

Floats = npt.NDArray[np.float64]
State = tuple[dict[str, Tensor], dict[str, Any]]  # tensors and JSON: what a model file holds


@dataclass(frozen=True)
class FitSettings:
    """What the classifier was asked for, as every route reads it. `prior` is NaN until it is known."""

    loss: str | None
    risk: str
    transfer: str
    encoder: Any
    prior: float
    scenario: Scenario
    random_state: int
    epochs: int | None
    device: str
    progress: bool
    folder: Path | None


@dataclass(frozen=True)
class Fitted:
    """Scores of rows that no stage had seen (held out, or out of fold), and how training went.

    Shape: rows int64 (m,) of the training set; scores float64 (m,).
    """

    rows: npt.NDArray[np.int64]
    scores: Floats
    history: list[dict[str, Any]]
    notes: tuple[str, ...] = ()
    """What a person should know about how the rows were read."""
    sees_more: bool = True
    """Whether a learned representation can tell rows apart that the first prior's model could not."""


class Route(Protocol):
    """Turns inputs of one kind into real scores g(x), higher for positives."""

    def prepare(self, X: Any, settings: FitSettings) -> Any:
        """Rows to estimate the first prior on, `X` itself or better ones; called before :meth:`fit`, without labels."""
        ...

    def fit(self, X: Any, labels: Labels, settings: FitSettings) -> Fitted:
        """Learn from rows with labels of {1, 0}."""
        ...

    def score(self, X: Any) -> Floats:
        """g(x) of new rows. Shape: (n,)."""
        ...

    def embed(self, X: Any) -> Floats:
        """What the map of the report shows. Shape: (n, D)."""
        ...

    def state(self) -> State:
        """Everything :meth:`score` needs, as tensors and JSON."""
        ...

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> Route:
        """Inverse of :meth:`state`."""
        ...

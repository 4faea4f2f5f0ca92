"""What the classifier needs from a route."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

from punce.columns.encoder import EncodedTable
from punce.labels import Labels, prior_of_rest
from punce.scenario import Scenario

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
State = tuple[dict[str, Tensor], dict[str, Any]]  # tensors and JSON: what a model file holds


LEARNED_FROM_KNOWN = "learned from known rows"
"""The entry of `FitSettings.used` by which a route says that its model learned from the truths."""
Value = TypeVar("Value")


def under(entries: Mapping[str, Value], prefix: str) -> dict[str, Value]:
    """The entries of a model file whose names begin with `prefix`, without it: one part's own."""
    return {name.removeprefix(prefix): value for name, value in entries.items() if name.startswith(prefix)}


@dataclass(frozen=True)
class NamedPart:
    """How a model file names an encoder or a view that is to be built again."""

    name: str
    options: dict[str, Any]


@dataclass(frozen=True)
class FitSettings:
    """What the classifier was asked for, as every route reads it.

    `prior` is the share of positives among the rows whose label is 0, known or not; NaN until it is known.
    """

    loss: Any
    risk: Any
    transfer: str
    encoder: Any
    prior: float
    scenario: Scenario
    random_state: int
    epochs: int | None
    device: str
    progress: bool
    folder: Path | None
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Fields of the stages' Configs, and arguments of loss and risk, that the caller set."""
    weights: Floats | None = None
    """How much each row counts in training. Shape: (n,)."""
    truths: Labels | None = None
    """The class (1 or -1) of rows whose label is 0 although it is known: labelled negatives and judged rows; else 0.

    None if there are none. Learning may use it like a label: held-out scores are by models that did not see it.
    Shape: (n,).
    """
    cross_fit: bool = True
    """Whether training rows are scored by heads that did not see them; not where a fit only tries something."""
    used: dict[str, Any] = field(default_factory=dict, compare=False)
    """What ran, filled in by the routes: the settings of every stage, members and weights, the encoder."""

    def config(self, stage: str, automatic: Any) -> Any:
        """The stage's Config: the automatic one with the caller's changes; kept in `used`."""
        config = replace(automatic, **self.configs.get(stage, {}))
        # The seed is reported once, for the whole fit.
        self.used[stage] = {name: value for name, value in asdict(config).items() if name != "seed"}
        return config

    def prior_of_rest(self, labels: Labels) -> float:
        """The share of positives among the rows of label 0 whose class is not known."""
        return prior_of_rest(self.prior, labels, self.truths)

    def known_classes(self, labels: Labels) -> Labels:
        """The labels with the truths in their places: all that is known of the rows. Shape: (n,) of {1, 0, −1}."""
        known: Labels = labels if self.truths is None else np.where(self.truths != 0, self.truths, labels)
        return known

    def of_rows(self, rows: npt.NDArray[Any]) -> FitSettings:
        """The same settings for some of the rows."""
        weights, truths = (None if array is None else array[rows] for array in (self.weights, self.truths))
        return replace(self, weights=weights, truths=truths)

    def epochs_of(self, stage: str) -> int | None:
        """Epochs that the caller set for this stage, or for all; None leaves the choice to the number of rows."""
        own: int | None = self.configs.get(stage, {}).get("epochs", self.epochs)
        return own


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
    """Whether the scores can tell rows apart that the first prior's models could not."""
    training_scores: Floats | None = None
    """Every training row's score, by a model that did not see the row where one exists. Shape: (n,)."""
    seen: npt.NDArray[np.bool_] | None = None
    """Rows whose label was used by the model that scored them. Shape: (n,)."""
    features: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float32]] | None = None
    """Some of `rows` as numbers on comparable scales, to check how they were labelled. Shape: (k,) -> (k, D)."""
    are_directions: bool = False
    """Whether `features` are leading directions of images, texts or embeddings, and not columns of a table."""
    warnings: tuple[str, ...] = ()
    """Those of the notes that put the fit in doubt: whoever called it should not have to look for them."""

    def only(self, kept: npt.NDArray[np.bool_]) -> Fitted:
        """Without the held-out rows that are not `kept`. Shape: kept (n,), by the rows of the training set."""
        own, features = np.flatnonzero(kept[self.rows]), self.features
        some = None if features is None else lambda rows: features(own[rows])
        return replace(self, rows=self.rows[own], scores=self.scores[own], features=some)

    def of_all_rows(self, n_rows: int, score: Callable[[], Floats]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Scores of all training rows, and which of them are those of a model that saw the row. Shape: (n,), (n,).

        Without better ones, `score` gives those of the final model, which saw every row that was not held out.
        """
        seen = np.ones(n_rows, dtype=bool)
        seen[self.rows] = False
        scores = score() if self.training_scores is None and seen.any() else np.zeros(n_rows)
        if self.training_scores is not None:
            scores = self.training_scores.copy()
        scores[self.rows] = self.scores  # held out, or out of fold
        return scores, seen if self.seen is None else self.seen


@dataclass(frozen=True)
class Tried:
    """What comes of some made-up rows: by this a loaded model shows that its parts fit together."""

    scores: Floats
    looked_at: EncodedTable
    embedded: Floats

    @classmethod
    def on(cls, route: Route, rows: Any) -> Tried:
        """Hand rows to everything that new rows go through."""
        return cls(route.score(rows), route.looked_at(rows), route.embed(rows))


class Route(Protocol):
    """Turns inputs of one kind into real scores g(x), higher for positives."""

    def prepare(self, X: Any, settings: FitSettings) -> Any:
        """Rows to estimate the first prior on, `X` itself or better ones; called before :meth:`fit`, without labels."""

    def fit(self, X: Any, labels: Labels, settings: FitSettings) -> Fitted:
        """Learn from rows with labels of {1, 0}."""

    def score(self, X: Any) -> Floats:
        """g(x) of new rows, NaN for a row in which nothing is known. Shape: (n,)."""

    def looked_at(self, X: Any) -> EncodedTable:
        """Columns by which new rows are compared with those of the fit: a table's own, or a few of each row."""

    def embed(self, X: Any) -> Floats:
        """What the map of the report shows. Shape: (n, D)."""

    def tried(self) -> Tried | None:
        """What comes of made-up rows in the form that the model reads; None where that form is not known."""

    def state(self) -> State:
        """Everything :meth:`score` needs, as tensors and JSON."""

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> Route:
        """Inverse of :meth:`state`."""

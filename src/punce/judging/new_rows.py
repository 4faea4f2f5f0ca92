"""New rows beside those of the fit: what a model file keeps for it, and what is found when they are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.columns.encoder import EncodedTable
from punce.errors import first_of
from punce.judging.calibration import PUCalibrator
from punce.judging.drift import SeenColumns
from punce.judging.shift import SeenScores, Share, count
from punce.judging.used_prior import usable_prior
from punce.priors import PriorEstimate

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

NOTHING_KEPT = "the model was saved by an earlier version, which kept nothing to compare new rows with"
_PREFIX = "seen."
_COUNTED = ("scores", "columns", "outside")


@dataclass(frozen=True)
class Seen:
    """Counts of the rows of a fit by probability and by column. No row of the data is in it."""

    scores: SeenScores
    columns: SeenColumns

    @classmethod
    def of(
        cls,
        scores: Mapping[str, Floats],
        calibrator: PUCalibrator,
        prior: PriorEstimate,
        shares: tuple[float, float],
        columns: SeenColumns,
    ) -> Self:
        """From held-out scores of positives and of unlabelled rows; `shares` are β and γ of the population."""
        p, u = (calibrator.probability(scores[name]) for name in ("positive", "unlabelled"))
        # Labelled negatives make up for labelled positives: what counts is the share of positives in the population.
        odds = usable_prior(prior) / (1.0 - usable_prior(prior))
        return cls(SeenScores.of(p, u, prior, shares[0] - shares[1] * odds, calibrator.prior), columns)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON for the model file."""
        tensors = {f"{_PREFIX}{name}": torch.from_numpy(array) for name, array in self.columns.arrays().items()}
        return tensors, {"scores": self.scores.to_json(), "columns": list(self.columns.names)}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: Mapping[str, Any] | None) -> Self | None:
        """Inverse of :meth:`state`, which takes its tensors out; None for models of earlier versions."""
        if content is None:
            return None
        # Taken out: a network refuses tensors that are none of its own.
        own = [name for name in tensors if name.startswith(_PREFIX)]
        arrays = {name.removeprefix(_PREFIX): tensors.pop(name).numpy() for name in own}
        columns = SeenColumns.from_arrays([str(name) for name in content["columns"]], arrays)
        return cls(SeenScores.from_json(content["scores"]), columns)


class NewRows:
    """Counts new rows, in as many batches as there are, and says how they differ from those of the fit."""

    def __init__(self, seen: Seen, *, has_prior: bool = True) -> None:
        self._seen, self._has_prior = seen, has_prior
        self._scores = np.zeros_like(seen.scores.positive)
        self._columns = np.zeros_like(seen.columns.positive)
        self._outside = np.zeros(len(seen.columns.names), dtype=np.int64)

    def add(self, probability: Floats, table: EncodedTable) -> Flags:
        """Count rows; True for those far outside what was seen.

        `probability` is under the model's own prior, NaN for rows in which nothing is known. Shape: (n,) -> (n,).
        """
        self._scores += count(probability[~np.isnan(probability)])
        self._columns += self._seen.columns.count(table.values)
        outside = self._seen.columns.outside(table.values)
        self._outside += outside.sum(axis=0)
        return np.asarray(outside.any(axis=1))

    def counts(self) -> dict[str, Any]:
        """What was counted so far, as plain whole numbers; for :meth:`add_counts` of another process."""
        return {name: getattr(self, f"_{name}").astype(int).tolist() for name in _COUNTED}

    def add_counts(self, counts: Mapping[str, Any]) -> None:
        """Count the rows that another one counted."""
        for name in _COUNTED:
            mine = getattr(self, f"_{name}")
            mine += np.asarray(counts[name], dtype=mine.dtype).reshape(mine.shape)

    @cached_property
    def share(self) -> Share:
        """The share of positives among the rows that were added."""
        return self._seen.scores.share(self._scores, has_prior=self._has_prior)

    def notes(self) -> tuple[str, ...]:
        """What a person should know before using the scores."""
        return (*self._about_outside(), *self._about_moved())

    def _about_outside(self) -> tuple[str, ...]:
        columns = self._seen.columns
        places = np.flatnonzero(self._outside)
        named = [f"{columns.names[j]!r} ({self._outside[j]:,})" for j in places]
        what = "values far outside what the model saw, where its scores mean little: columns"
        return (f"{what} {first_of(named)}",) if named else ()

    def _about_moved(self) -> tuple[str, ...]:
        moved = self._seen.columns.moved(self._columns, self.share.k, self.share.k_error)
        if not moved:
            return ()
        named = [f"{name!r} ({100 * share:.0f} % of the rows)" for name, share in moved.items()]
        what = "columns are distributed otherwise than in training, which another share of positives does not explain"
        return (f"{what}: {first_of(named)}; probabilities and shares may not hold for these rows",)

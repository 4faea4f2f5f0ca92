"""The scores of every row of the file that was fitted, those too that were not drawn to learn from."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.classifier import PUClassifier
from punce.data import UserData, stream
from punce.labels import Labels
from punce.models.table import TableRoute
from punce.product.page import ranked_rows
from punce.product.plan import DataOptions

Floats = npt.NDArray[np.float64]
_HOW_WRITTEN = ("id", "text", "sep", "encoding", "header", "decimal", "table", "keep")


@dataclass(frozen=True)
class Ranking:
    """Every row of the file. Shape: (n,) each.

    A row that was learned from has the score of a model that did not see it where there is one, any other that of the
    final model, which did not see it either. `seen` marks the rest.
    """

    labels: Labels
    ids: pd.Index[Any]
    probability: Floats
    scores: Floats
    seen: npt.NDArray[np.bool_]

    def order(self) -> npt.NDArray[np.intp]:
        """The unlabelled rows, the most probable first."""
        return ranked_rows(self.labels, self.probability, self.scores)


def ranking_of(classifier: PUClassifier, data: UserData, source: DataOptions) -> Ranking:
    """The scores of the fit; of the rows that were not drawn, those of the model, in one pass over the file."""
    assert data.labels is not None
    own = (classifier.scores_, classifier.decision_scores_, classifier.seen_in_training_)
    if data.drawn is None:
        return Ranking(data.labels, data.ids, *own)
    scored = [_scored(classifier, batch) for batch in _all_rows(classifier, data, source)]
    ids = scored[0][0].append([names for names, _, _ in scored[1:]])
    probability, margin = (np.concatenate([batch[k] for batch in scored]) for k in (1, 2))
    seen = np.zeros(len(probability), dtype=bool)
    for array, of_drawn in zip((probability, margin, seen), own, strict=True):
        array[data.drawn.rows] = of_drawn
    return Ranking(data.drawn.labels, ids, probability, margin, seen)


def _all_rows(classifier: PUClassifier, data: UserData, source: DataOptions) -> Iterator[UserData]:
    route, asked = classifier._route, vars(source)
    options: Any = {name: asked[name] for name in _HOW_WRITTEN}
    # With --keep every other column is left out already, and a drop beside it would be refused.
    drop = [] if source.keep else [*source.drop, *([source.label] if source.label else [])]
    as_text = route.category_columns if isinstance(route, TableRoute) else ()
    options |= {"drop": drop, "as_text": as_text, "number_forms": data.number_forms, "kind": data.kind}
    return stream(source.path, **options).batches()


def _scored(classifier: PUClassifier, batch: UserData) -> tuple[pd.Index[Any], Floats, Floats]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # categories that no drawn row has are no surprise
        scores = classifier._scores(batch.features)
    calibrator = classifier._calibrator
    return batch.ids, calibrator.probability(scores), calibrator.margin(scores, classifier.threshold_)

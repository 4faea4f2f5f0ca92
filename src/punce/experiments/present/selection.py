"""How the epoch of a result was chosen, in words: without negatives, or on labels of both classes where those exist."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from punce.experiments.cell import Cell


@dataclass(frozen=True)
class Selection:
    """`name` heads a column; `words` is a sentence."""

    name: str
    words: str


WITHOUT_NEGATIVES = Selection("PU-selected", "PU-selected: the epoch was chosen without negatives.")
ON_TRAINING_LABELS = Selection(
    "chosen on training labels",
    "Labels of both classes were given (PNU); what was chosen, was chosen on labelled training rows.",
)
ON_VALIDATION_LABELS = Selection(
    "chosen on validation labels",
    "Labels of both classes were given (PNU); the step was chosen on the labels of one half of the dev set, and the "
    "accuracy is that of the other half.",
)


def selection_of(cells: Iterable[Cell]) -> Selection:
    """The one way in which cells of a table were chosen."""
    found = {_of_cell(cell) for cell in cells} or {WITHOUT_NEGATIVES}
    if len(found) > 1:
        raise AssertionError(f"one table with several ways to choose: {sorted(one.name for one in found)}")
    return found.pop()


def _of_cell(cell: Cell) -> Selection:
    if cell.data.setting != "pnu":
        return WITHOUT_NEGATIVES
    return ON_VALIDATION_LABELS if cell.transfer.kind == "fewshot" else ON_TRAINING_LABELS

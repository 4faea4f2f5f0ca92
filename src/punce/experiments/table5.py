"""Table 5: few-shot fine-tuning of a language model on SST-2, with 500 unlabelled sentences."""

from __future__ import annotations

from functools import partial

from punce.experiments.scales import Scale
from punce.experiments.tables import Experiment, Make, Place, row_ids

LABELS = ("20", "100", "1000")
OBJECTIVES = {"ce": None, "ce+scl": "scl", "ce+punce": "punce"}


def places(scale: Scale) -> dict[Place, Make]:
    """CE alone and with each contrastive loss."""
    return {
        (f"sst2/roberta/{n}", column): partial(scale.few_shot_cell, loss, n)
        for n in LABELS
        for column, loss in OBJECTIVES.items()
    }


TABLE5 = Experiment(
    name="table5",
    title="Few-shot fine-tuning on SST-2",
    kind="table",
    row_heads=("data", "encoder", "labelled"),
    column_head="objective",
    rows=row_ids(["sst2/roberta"], LABELS),
    columns=tuple(OBJECTIVES),
    places=places,
    paper="Table 5",
)

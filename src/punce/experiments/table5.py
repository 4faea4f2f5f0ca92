"""Table 5: few-shot fine-tuning of a language model on SST-2, with 500 unlabelled sentences."""

from functools import partial

from punce.experiments.tables import network_experiment

OBJECTIVES = {"ce": None, "ce+scl": "scl", "ce+punce": "punce"}

TABLE5 = network_experiment(
    "table5",
    "Few-shot fine-tuning on SST-2",
    lambda on, n, objective: partial(on.scale.few_shot_cell, OBJECTIVES[objective], n),
    networks=("sst2/roberta",),
    rows=("20", "100", "1000"),
    columns=OBJECTIVES,
    row_heads=("labelled",),
    column_head="objective",
    paper="Table 5",
)

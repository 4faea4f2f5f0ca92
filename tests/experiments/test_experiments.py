"""Tables and figures: every place leads to valid cells, and places that mean the same number share the cell."""

from __future__ import annotations

import pytest

from punce.errors import InputError
from punce.experiments import EXPERIMENTS, Experiment, find_experiments
from punce.experiments.cell import Cell
from punce.experiments.scales import SCALES, Scale
from punce.losses import LOSSES
from punce.priors import PRIORS
from punce.risks import RISKS
from punce.views import VIEWS

experiments = pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
scales = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)


@scales
@experiments
def test_places_lie_in_rows_and_columns_and_every_row_is_used_somewhere(experiment: Experiment, scale: Scale) -> None:
    cells = experiment.cells(scale)
    assert cells or scale.name not in ("paper", "laptop", "smoke")
    for (row, column), found in cells.items():
        assert row in experiment.rows
        assert column in experiment.columns
        assert len(row.split("/")) == len(experiment.row_heads)
        assert [cell.seed for cell in found] == list(range(len(found)))
    assert {row for row, _ in experiment.cells(SCALES["paper"])} == set(experiment.rows)
    assert {column for _, column in experiment.cells(SCALES["paper"])} == set(experiment.columns)


@scales
@experiments
def test_cells_name_things_that_exist(experiment: Experiment, scale: Scale) -> None:
    for cell in (cell for cells in experiment.cells(scale).values() for cell in cells):
        if cell.pretraining is not None:
            assert cell.pretraining.loss in LOSSES
            assert cell.pretraining.view_name in VIEWS
            assert (cell.pretraining.prior is not None) == (cell.pretraining.loss == "punce")
        assert cell.transfer.risk is None or cell.transfer.risk in RISKS
        told = cell.transfer.prior
        assert isinstance(told, str)
        assert told.startswith("true") or told in PRIORS


def test_seeds_can_be_given() -> None:
    cells = EXPERIMENTS["table1"].cells(SCALES["smoke"], [3, 8])
    assert {tuple(cell.seed for cell in found) for found in cells.values()} == {(3, 8)}


def test_the_same_number_is_one_cell_in_every_table() -> None:
    for scale in (scale for scale in SCALES.values() if "mnist" in scale.benches):
        tables = {name: experiment.cells(scale, [0]) for name, experiment in EXPERIMENTS.items()}
        punce: Cell = tables["table1"]["mnist/mlp/1k", "punce"][0]
        assert tables["table2"]["mnist/mlp/punce", "1k"] == [punce]
        assert tables["table3"]["mnist/mlp/1k", "lp"] == [punce]
        assert tables["figure1"]["mnist/mlp/punce", "1k"] == [punce]
        assert tables["ablation_losses"]["mnist/mlp/punce", "1k"] == [punce]
        assert tables["ablation_probing"]["mnist/mlp/nnpu", "1k"] == [punce]
        assert tables["seeds_spread"]["mnist/mlp/punce", "1k"] == [punce]
        assert tables["tsne"]["mnist/mlp", "punce 1k"][0].encoder_name == punce.encoder_name
        assert tables["sensitivity_prior"]["mnist/mlp/loss and probe", "0"] == [punce]
        assert tables["prior_methods"]["mnist/mlp/true", "punce"] == [punce]
        assert tables["scenarios"]["mnist/mlp/single_set/1k", "punce"] == [punce]
        assert tables["biased_labels"]["mnist/mlp/punce", "0"] == [punce]
        assert tables["wrong_labels"]["mnist/mlp/punce", "0%"] == [punce]
        if scale.name != "digits":  # its 1k is a tenth of that, which a curve over counts must not call 1k
            assert tables["label_counts"]["mnist/mlp/punce", "1k"] == [punce]
        assert tables["heads"]["mnist/mlp/1k", "nnpu"] == [punce]


def test_finding_experiments_by_name() -> None:
    assert [e.name for e in find_experiments(["table3", "table1"])] == ["table3", "table1"]
    assert len(find_experiments(["all"])) == len(EXPERIMENTS)
    with pytest.raises(InputError, match="no table or figure is called table9; there are table1"):
        find_experiments(["table1", "table9"])

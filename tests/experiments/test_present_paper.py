"""The paper's numbers: all there, each at a place of our tables, and its slips as it prints them."""

from __future__ import annotations

from pathlib import Path

import pytest

from punce.experiments import EXPERIMENTS
from punce.experiments.present import tables
from punce.experiments.present.grid import Results
from punce.experiments.present.paper_numbers import (
    PaperFigure,
    all_figures,
    paper_figure,
    plotted_table,
    slips,
)
from punce.experiments.scales import find_scale

TABLES = {f"Table {number}": EXPERIMENTS[f"table{number}"] for number in range(1, 6)}


@pytest.mark.parametrize(("table", "number"), list(zip(TABLES, [24, 50, 6, 9, 9], strict=True)))
def test_every_number_is_there_and_has_a_place(table: str, number: int) -> None:
    figures = all_figures(table)
    experiment = TABLES[table]
    places = {frozenset([*row.split("/"), column]) for row in experiment.rows for column in experiment.columns}
    assert len(figures) == number
    assert set(figures) <= places


def test_some_numbers_as_printed() -> None:
    assert [paper_figure("Table 1", f"mnist/mlp/{n_p}", "punce") for n_p in ("1k", "3k", "10k")] == [
        PaperFigure(94.70, 0.19),
        PaperFigure(96.01, 0.21),
        PaperFigure(98.27, 0.11),
    ]
    assert paper_figure("Table 2", "cifar10/resnet18/pn", "1k") == PaperFigure(68.19, 1.38)
    assert paper_figure("Table 5", "sst2/roberta/20", "ce+scl") == PaperFigure(88.18, 3.30)


def test_tables_that_share_a_number_agree() -> None:
    for network in ("mnist/mlp", "cifar10/resnet18"):
        for n_p in ("1k", "3k", "10k"):
            first = paper_figure("Table 1", f"{network}/{n_p}", "punce")
            assert first == paper_figure("Table 2", f"{network}/punce", n_p)
            if network == "cifar10/resnet18":
                assert first == paper_figure("Table 3", f"{network}/{n_p}", "lp")


def test_a_plot_shows_the_numbers_of_its_table() -> None:
    assert plotted_table("Figure 1") == "Table 2"
    assert paper_figure("Figure 1", "cifar10/allconv/punce", "10k") == PaperFigure(98.34, 0.09)
    assert paper_figure("Figure 4a", "cifar10/resnet18/scl", "3k") == PaperFigure(97.66, 0.04)


def test_nothing_is_made_up() -> None:
    assert paper_figure("Table 2", "cifar10/allconv/selfpu", "10k") is None  # the paper prints a dash
    assert paper_figure("Table 2", "mnist/mlp/vpu", "1k") is None
    assert paper_figure("Figure 4b", "mnist/mlp/nnpu", "1k") is None
    assert paper_figure(None, "mnist/mlp/1k", "punce") is None


def test_the_paper_page_says_which_spreads_the_tables_give(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "paper.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith("| ± is never defined"))
    full = tables.full(Results(tmp_path, find_scale("laptop1")).grid(TABLES["Table 1"]))
    assert {"standard deviation", "standard error", "95 % interval"} <= {cell.text for cell in full.head}
    assert "give standard deviation, standard error and a 95 % t-interval over seeds" in line
    assert "not yet" not in line


def test_the_slips_are_slips() -> None:
    probe, tuned = (paper_figure("Table 3", "cifar10/resnet18/1k", column) for column in ("lp", "ft"))
    assert probe is not None
    assert tuned is not None
    assert f"{probe.value - tuned.value:.2f}" == "4.63"
    assert "4.63" in slips("Table 3")[0]
    assert slips(None) == ()

"""Scales: the paper's protocol is the paper's, and the smaller scales keep what they must."""

from __future__ import annotations

from inspect import signature

import pytest

from punce.errors import InputError
from punce.experiments import EXPERIMENTS, protocol
from punce.experiments.cell import Cell
from punce.experiments.scales import SCALES, Scale, find_scale
from punce.risks import RISKS


def all_cells(scale: Scale) -> list[Cell]:
    found = [cell for e in EXPERIMENTS.values() for cells in e.cells(scale).values() for cell in cells]
    return list(dict.fromkeys(found))


def test_every_option_of_a_risk_stands_in_the_cell() -> None:
    apart = {"prior", "known_share"}  # the prior is told apart, and no PU cell has known negatives
    for name, told in protocol.RISK_OPTIONS.items():
        assert set(dict(told)) == set(signature(RISKS[name]).parameters) - apart, name


def test_the_papers_protocol() -> None:
    scale = SCALES["paper"]
    mnist = scale.contrastive("mnist", "mlp", "punce", "1k", 0)
    cifar = scale.contrastive("cifar10", "resnet18", "punce", "10k", 0)
    assert mnist.pretraining is not None
    assert cifar.pretraining is not None
    assert (mnist.pretraining.config.epochs, mnist.pretraining.config.batch_size) == (200, 1024)
    assert (cifar.pretraining.config.epochs, cifar.pretraining.config.batch_size) == (300, 2048)
    for cell in (mnist, cifar):
        assert cell.pretraining is not None
        assert cell.pretraining.config.optimizer == "lars"
        assert cell.pretraining.temperature == 0.5
        assert cell.encoder.width == 1.0
        assert cell.data.n_train is None
    assert (mnist.data.n_labelled, cifar.data.n_labelled) == (1000, 10_000)
    assert {scale.n_seeds(bench) for bench in ("mnist", "cifar10", "sst2")} == {5}
    assert scale.pnu("cifar10", "allconv", "scl", "5%", 0).data.n_labelled == 2500  # of 50,000


def test_laptop_keeps_data_and_temperature() -> None:
    for cell in all_cells(SCALES["laptop"]):
        assert cell.data.source in ("mnist", "cifar10", "sst2")
        assert cell.data.n_train is None
        assert cell.threads == 1
        assert cell.pretraining is None or cell.pretraining.temperature == 0.5


def test_only_cells_on_all_of_the_papers_data_are_compared_with_its_levels() -> None:
    for scale in SCALES.values():
        data = {(cell.data.source, cell.data.n_train) for cell in all_cells(scale)}
        are_papers = data <= {(source, None) for source in ("mnist", "cifar10", "sst2")}
        assert scale.has_papers_rows == are_papers, scale.name


def test_smoke_needs_no_file() -> None:
    assert {cell.data.source for cell in all_cells(SCALES["smoke"])} == {"digits", "shapes", "generated"}


def test_unknown_scales_and_labels_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="there is no scale 'huge'"):
        find_scale("huge")
    with pytest.raises(InputError, match="no cifar10 cells with 7k labels"):
        SCALES["laptop"].contrastive("cifar10", "resnet18", "punce", "7k", 0)

"""Scales: everything that a stage can be told is told, and the paper's protocol is the paper's."""

from __future__ import annotations

from dataclasses import asdict, fields
from inspect import signature
from typing import Any

import pytest

from punce.errors import InputError
from punce.experiments import EXPERIMENTS, protocol
from punce.experiments.cell import Cell, Settings
from punce.experiments.fewshot import run_fewshot
from punce.experiments.scales import SCALES, Scale, find_scale
from punce.risks import RISKS
from punce.stages.fewshot import FewshotConfig
from punce.stages.finetune import FinetuneConfig
from punce.stages.pretrain import PretrainConfig
from punce.stages.probe import ProbeConfig
from punce.stages.selfpu import SelfPUConfig
from punce.stages.vpu import VPUConfig
from punce.views import VIEWS

scales = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
STAGES: dict[str, Any] = {
    "finetune": FinetuneConfig,
    "joint": FinetuneConfig,
    "selfpu": SelfPUConfig,
    "vpu": VPUConfig,
    "probe": ProbeConfig,
}


def all_cells(scale: Scale) -> list[Cell]:
    found = [cell for e in EXPERIMENTS.values() for cells in e.cells(scale).values() for cell in cells]
    return list(dict.fromkeys(found))


def names(settings: Settings) -> set[str]:
    return {name for name, _ in settings}


def arguments(config: Any) -> set[str]:
    return {field.name for field in fields(config)} - {"seed"}


@scales
def test_every_argument_of_a_stage_stands_in_the_cell(scale: Scale) -> None:
    """A stage that gains an argument fails here: say in protocol.py what stored results were made with."""
    for cell in all_cells(scale):
        transfer = cell.transfer
        if transfer.kind == "fewshot":
            assert names(transfer.settings) >= arguments(FewshotConfig) | {"temperature", "pooling", "loss"}
        elif cell.data.setting == "pnu":
            assert transfer.settings == protocol.SUPERVISED_PROBE
        else:
            assert names(transfer.settings) == arguments(STAGES[transfer.kind]), transfer.kind


def test_every_argument_of_a_risk_stands_in_the_cell() -> None:
    for name, settings in protocol.RISK_SETTINGS.items():
        assert names(settings) == set(signature(RISKS[name]).parameters) - {"prior"}, name


def test_every_argument_of_pretraining_stands_in_the_cell() -> None:
    told = {field.name for field in fields(SCALES["smoke"].benches["mnist"].pretraining)}
    assert arguments(PretrainConfig) - {"monitor_prior"} <= told


@pytest.mark.parametrize("name", ["digit", "cifar"])
def test_every_argument_of_a_view_stands_in_the_cell_and_is_its_default(name: str) -> None:
    written = {"digit": protocol.DIGIT_VIEW, "cifar": protocol.CIFAR_VIEW}[name]
    assert dict(written) == asdict(VIEWS[name]())


def test_few_shot_settings_are_arguments_of_few_shot() -> None:
    known = arguments(FewshotConfig) | set(signature(run_fewshot).parameters)
    assert names(SCALES["laptop"].few_shot.settings) <= known


def test_the_papers_protocol() -> None:
    scale = SCALES["paper"]
    mnist = scale.contrastive("mnist", "mlp", "punce", "1k", 0)
    cifar = scale.contrastive("cifar10", "resnet18", "punce", "10k", 0)
    assert mnist.pretraining is not None
    assert cifar.pretraining is not None
    assert (mnist.pretraining.epochs, mnist.pretraining.batch_size) == (200, 1024)
    assert (cifar.pretraining.epochs, cifar.pretraining.batch_size) == (300, 2048)
    for cell in (mnist, cifar):
        assert cell.pretraining is not None
        assert cell.pretraining.optimizer == "lars"
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


def test_smoke_needs_no_file() -> None:
    assert {cell.data.source for cell in all_cells(SCALES["smoke"])} == {"digits", "shapes", "generated"}


def test_unknown_scales_and_labels_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="there is no scale 'huge'"):
        find_scale("huge")
    with pytest.raises(InputError, match="no cifar10 cells with 7k labels"):
        SCALES["laptop"].contrastive("cifar10", "resnet18", "punce", "7k", 0)

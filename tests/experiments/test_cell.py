"""The name of a cell: the same for ever, another for anything that may change the number."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from punce.experiments.cell import VERSIONS, Cell, config_key, options
from punce.stages.probe import ProbeConfig
from punce.views import digit
from tests.experiments.tiny import SMOKE, infonce, joint, punce

OTHER = {
    "setting": "pnu",
    "scenario": "case_control",
    "kind": "vpu",
    "padding": "border",
    "optimizer": "sgd",
    "loss_options": options(tau_plus=0.3),
    "risk_options": options(beta=0.5),
    "start": ProbeConfig(),
    "rates": (1e-3,),
    "view": digit(),
}
FROM_THE_CELL = {"pretraining.config.seed", "pretraining.config.monitor_prior", "transfer.config.seed"}
"""What a stage is told by the cell when it runs: set in the configuration, it would have no effect."""


def other_value(name: str, value: Any) -> Any:
    if name in OTHER:
        return OTHER[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1 if isinstance(value, int) else value / 2 + 0.07
    if isinstance(value, tuple):
        return tuple(number / 2 + 0.05 for number in value)
    return "other" if isinstance(value, str) else 7


def variations(part: Any) -> list[tuple[str, Any]]:
    """(field, the dataclass with that field changed), into nested dataclasses."""
    found = []
    for field in fields(part):
        value = getattr(part, field.name)
        if is_dataclass(value):
            found += [(f"{field.name}.{name}", replace(part, **{field.name: new})) for name, new in variations(value)]
        else:
            found.append((field.name, replace(part, **{field.name: other_value(field.name, value)})))
    return found


@pytest.mark.parametrize(
    ("what", "cell"), variations(punce()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_field_changes_the_name(what: str, cell: Cell) -> None:
    assert (cell.key != punce().key) == (what not in FROM_THE_CELL), what


def test_the_key_is_that_of_the_configuration_as_it_comes_back_from_a_file() -> None:
    for cell in (punce(), joint("vpu"), SMOKE.pnu("cifar10", "allconv", "scl", "5%", 0)):
        assert config_key(json.loads(json.dumps(cell.config()))) == cell.key


def test_a_new_version_of_a_stage_renames_its_cells_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {cell: (cell.key, cell.encoder_name) for cell in (punce(), joint(), joint("vpu"))}
    monkeypatch.setitem(VERSIONS, "vpu", 2)
    assert joint("vpu").key != before[joint("vpu")][0]
    assert (punce().key, joint().key) == (before[punce()][0], before[joint()][0])
    monkeypatch.setitem(VERSIONS, "pretrain", 2)
    assert punce().key != before[punce()][0]
    assert punce().encoder_name != before[punce()][1]
    assert joint().key == before[joint()][0]


def test_options_are_the_same_in_any_order() -> None:
    assert options(a=1, b=2) == options(b=2, a=1)


# Encoders --------------------------------------------------------------------------------------------------------


def test_losses_without_labels_share_one_encoder_over_labelled_sets() -> None:
    names = {infonce(n_p).encoder_name for n_p in ("1k", "3k", "10k")}
    biased = SMOKE.contrastive("mnist", "mlp", "infonce", "1k", 0, label_bias=2.0, scenario="case_control")
    assert names == {biased.encoder_name}
    assert infonce("1k").key != infonce("3k").key


def test_losses_with_labels_do_not() -> None:
    for loss in ("scl", "punce"):
        cells = [SMOKE.contrastive("mnist", "mlp", loss, n_p, 0) for n_p in ("1k", "3k")]
        assert cells[0].encoder_name != cells[1].encoder_name


@pytest.mark.parametrize(
    "same",
    [
        punce(transfer="finetune"),
        punce(risk="upu"),
        punce(risk_prior="true+0.1"),
        punce(embedding=True),
        replace(punce(), data=replace(punce().data, n_test=7)),
    ],
    ids=Cell.describe,
)
def test_what_comes_after_pretraining_does_not_change_the_encoder(same: Cell) -> None:
    assert same.encoder_name == punce().encoder_name
    assert same.key != punce().key


@pytest.mark.parametrize(
    "other",
    [punce(seed=1), punce(loss_prior="bbe"), punce(label_bias=1.0), replace(punce(), threads=2)],
    ids=Cell.describe,
)
def test_what_decides_pretraining_does(other: Cell) -> None:
    assert other.encoder_name != punce().encoder_name


def test_without_pretraining_there_is_no_encoder_to_share() -> None:
    assert joint().encoder_name is None

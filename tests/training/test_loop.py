"""The loop around a stage: the order of its hooks, which epoch it keeps, what it refuses to resume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from punce.errors import InputError
from punce.training.loop import Batch, Judgement, Objective, Settings, Stage, train
from punce.training.run import Stateful
from tests.stages.digits import Interruption, interrupted_at

LABELS = np.tile([1, 0, 0, 0], 10).astype(np.int8)
X = torch.linspace(-1, 1, 40)[:, None]


@dataclass(frozen=True)
class Config:
    epochs: int = 3
    batch_size: int = 16
    optimizer: str = "sgd"
    lr: float = 0.1
    weight_decay: float = 0.0
    validation_share: float = 0.2
    seed: int = 0


class Regression(Stage):
    """y = 2x; `criteria` are what the held-out rows are said to give, epoch by epoch."""

    name = "regression"

    def __init__(self, config: Config = Config(), criteria: list[float] | None = None) -> None:  # noqa: B008
        torch.manual_seed(0)
        super().__init__(nn.Linear(1, 1), LABELS, config, torch.device("cpu"))
        self.calls: list[str] = []
        self.seen: list[Tensor] = []
        self.criteria = criteria or [3.0, 2.0, 1.0]

    def inputs(self, batch: Batch) -> Tensor:
        assert torch.equal(self.train_rows[batch.places], batch.rows)
        return X[batch.rows]

    def objective(self, model: nn.Module, inputs: Tensor, batch: Batch) -> Objective:
        self.calls.append(f"step {batch.step} of epoch {batch.epoch}")
        loss = (model(inputs) - 2 * inputs).square().mean()
        return Objective(loss, {"loss": loss})

    def begin(self) -> None:
        self.calls.append("begin")

    def before_epoch(self, epoch: int) -> None:
        self.calls.append(f"before {epoch}")

    def after_step(self, step: int) -> None:
        self.calls.append(f"after {step}")

    def shown(self) -> float:
        return float(self.model.weight.detach())  # type: ignore[arg-type]

    def epoch_values(self) -> Mapping[str, float]:
        return {"epochs_seen": float(len(self.seen))}

    def judge(self) -> Judgement:
        self.calls.append("judge")
        self.seen.append(self.model.weight.detach().clone())  # type: ignore[operator]
        criterion = self.criteria[len(self.seen) - 1]
        return Judgement(criterion, {"held_out": criterion}, self.model)


class KeepsLast(Regression):
    keeps_last_of_equals = True


def test_hooks_are_called_in_order_and_their_numbers_are_in_history() -> None:
    stage = Regression()
    history = train(stage, observer=lambda weight: {"weight": weight})
    assert stage.batches.per_epoch == 2
    epoch = [["step {0} of epoch {2}", "after {0}"], ["step {1} of epoch {2}", "after {1}", "judge"]]
    expected = ["begin"]
    for e in range(3):
        calls = [call.format(2 * e, 2 * e + 1, e) for step in epoch for call in step]
        expected += [f"before {e}", *calls]
    assert stage.calls == expected
    assert [row["held_out"] for row in history] == stage.criteria
    assert [row["weight"] for row in history] == [float(weight) for weight in stage.seen]
    assert [row["epochs_seen"] for row in history] == [0, 1, 2]
    assert history[-1]["loss"] < history[0]["loss"]
    assert not stage.model.training


@pytest.mark.parametrize(
    ("kind", "criteria", "kept"),
    [(Regression, [2, 1, 3], 1), (Regression, [2, 1, 1], 1), (KeepsLast, [2, 1, 1], 2), (KeepsLast, [1, 2, 2], 0)],
)
def test_the_epoch_with_the_lowest_criterion_is_kept(kind: type[Regression], criteria: list[float], kept: int) -> None:
    stage = kind(criteria=criteria)
    train(stage)
    assert torch.equal(stage.model.weight, stage.seen[kept])  # type: ignore[arg-type]
    assert len({float(weight) for weight in stage.seen}) == 3


def test_without_held_out_rows_the_last_epoch_is_kept() -> None:
    stage = Regression(Config(validation_share=0.0))
    shown: list[float] = []
    train(stage, observer=lambda weight: shown.append(weight) or {})  # type: ignore[func-returns-value]
    assert "judge" not in stage.calls
    assert stage.shown() == shown[-1]


def test_the_rate_warms_up_and_falls_to_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []
    step = torch.optim.SGD.step

    def noting(self: torch.optim.SGD, *args: Any) -> Any:
        rates.append(self.param_groups[0]["lr"])
        return step(self, *args)

    monkeypatch.setattr(torch.optim.SGD, "step", noting)
    stage = Regression()
    object.__setattr__(stage.settings, "warmup_epochs", 1.0)
    train(stage)
    assert rates[:3] == pytest.approx([0.05, 0.1, 0.1])
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert rates[-1] < 0.02


def test_a_checkpoint_with_other_parts_is_refused(tmp_path: Path) -> None:
    """As another version of a stage writes it."""

    class WithMore(Regression):
        def state(self) -> dict[str, Stateful]:
            return {"more": nn.Linear(1, 1)}

    with interrupted_at(3), pytest.raises(Interruption):
        train(WithMore(), folder=tmp_path)
    with pytest.raises(InputError, match=r"another version of punce wrote .*'more'"):
        train(Regression(), folder=tmp_path)
    with pytest.raises(InputError, match=r"another configuration \(lr: 0.1 there, 0.2 here\)"):
        train(WithMore(Config(lr=0.2)), folder=tmp_path)
    train(WithMore(), folder=tmp_path)


GIVEN: dict[str, Any] = {"batch_size": 4, "seed": 0, "lr": 0.1, "weight_decay": 0.0, "epochs": 1}


@pytest.mark.parametrize(
    ("name", "value"), [("seed", -1), ("seed", 0.5), ("epochs", -1), ("epochs", 1.5), ("epochs", True), ("steps", -3)]
)
def test_settings_that_cannot_be_counted_are_refused(name: str, value: Any) -> None:
    """A negative number of epochs would train nothing without a word."""
    with pytest.raises(InputError, match=f"{name} must be a whole number of at least 0, got {value!r}"):
        Settings(**{**GIVEN, name: value})
    assert Settings(**{**GIVEN, "seed": np.int64(3)}).seed == 3


@pytest.mark.parametrize("value", ["32", 32.0, True, None, 1])
def test_a_batch_size_that_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=f"batch_size must be a whole number of at least 2, got {value!r}"):
        Settings(**{**GIVEN, "batch_size": value})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, "1", None])
def test_a_warm_up_that_is_no_length_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=f"warmup_epochs must be a number of at least 0, got {value!r}"):
        Settings(**{**GIVEN, "warmup_epochs": value})


def test_a_stage_that_shows_nothing_says_so() -> None:
    class Silent(Regression):
        shown = Stage.shown

    with pytest.raises(NotImplementedError, match="regression has nothing to show an observer"):
        train(Silent(), observer=lambda _: {})


def test_a_run_inside_the_callers_autocast_learns_and_leaves_trained_weights() -> None:
    """autocast keeps its copy of a weight until its block ends: every step would see that of the first."""
    falling = [float(e) for e in range(20, 0, -1)]
    plain, own = (Regression(Config(epochs=20), falling) for _ in range(2))
    train(plain)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        before = own.model(X)  # kept by autocast, and without a gradient
        with torch.enable_grad():
            train(own)
        after = own.model(X)
        assert torch.is_autocast_cache_enabled()
    assert torch.allclose(own.seen[-1], plain.seen[-1], atol=0.05)
    assert torch.allclose(after.float(), plain.model(X), atol=0.05)
    assert not torch.allclose(after, before, atol=0.5)


@torch.no_grad()
def test_gradients_that_the_caller_switched_off_are_on_in_a_run() -> None:
    stage = Regression()
    train(stage)
    assert float(stage.model.weight.detach()) != pytest.approx(float(Regression().model.weight))
    assert not torch.is_grad_enabled()

"""What a command asks for, what it will cost, and what a person sees of it."""

from __future__ import annotations

import io
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from punce.errors import InputError
from punce.experiments import EXPERIMENTS
from punce.experiments.attempt import Report
from punce.experiments.cell import Cell, EncoderSpec
from punce.experiments.costs import CostModel, forward_operations, pretraining_operations, transfer_operations
from punce.experiments.plan import Plan, as_one_step, make_plan, matches, require_data
from punce.experiments.run_cell import run_cell
from punce.experiments.scales import SCALES
from punce.experiments.store import Record, ResultStore
from punce.experiments.watching import MatrixProgress, show_plan
from punce.stages.selfpu import SelfPUConfig, Trusted
from tests.experiments.tiny import SMOKE, infonce, joint, punce

TABLE1 = EXPERIMENTS["table1"]


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path, "smoke")


def done(store: ResultStore, cell: Cell, **seconds: float) -> None:
    store.write(Record(cell.key, cell.config(), "done", {"test_accuracy": 90.0}, seconds=seconds))


# Which cells -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("only", "kept"),
    [
        ([], True),
        (["mnist"], True),
        (["mnist", "1k"], True),
        (["mnist", "10k"], False),
        (["scl,punce"], True),
        (["scl, punce "], True),
        (["scl"], False),
        (["table1"], True),
        (["mn"], False),  # whole parts: 1k must not find 10k
    ],
)
def test_filters_name_whole_parts_and_all_must_hold(only: list[str], kept: bool) -> None:
    assert matches("table1", ("mnist/mlp/1k", "punce"), only) == kept


def test_a_plan_has_each_cell_once_and_knows_what_is_done(store: ResultStore) -> None:
    done(store, punce())
    store.write(Record(infonce().key, infonce().config(), "failed", {}, "no memory"))
    plan = make_plan([TABLE1, EXPERIMENTS["table3"]], SMOKE, store, only=["mnist"])
    assert plan.done == (punce(),)
    assert plan.failed == (infonce(),)
    assert len(set(plan.cells)) == len(plan.cells) == 2 * (3 * 4 + 3)  # two seeds; table3 adds the fine-tuned ones
    assert punce() not in plan.to_do
    assert infonce() in plan.to_do


@pytest.mark.parametrize("only", [["mnits"], ["mnist", "mnits"], ["mnist,mnits"], ["mnist, mnits"]])
def test_a_filter_with_a_part_that_is_nowhere_says_which_and_what_there_is(store: ResultStore, only: list[str]) -> None:
    with pytest.raises(InputError, match=r"nothing called 'mnits'; there are 10k, 1k, 3k, cifar10, dcl, .* table1"):
        make_plan([TABLE1], SMOKE, store, only=only)


def test_filters_that_leave_nothing_together_say_so(store: ResultStore) -> None:
    with pytest.raises(InputError, match="is left by --only mnist --only resnet18: each part is there"):
        make_plan([TABLE1], SMOKE, store, only=["mnist", "resnet18"])


def test_alternatives_may_have_spaces_between_them(store: ResultStore) -> None:
    plans = [make_plan([TABLE1], SMOKE, store, only=[only]) for only in ("punce,scl", "punce, scl")]
    assert plans[0] == plans[1]


def test_missing_data_names_the_command_that_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(InputError, match="punce data mnist"):
        require_data([SCALES["laptop"].joint("mnist", "mlp", "nnpu", "1k", 0)])
    with pytest.raises(InputError, match="punce data sst2"):
        require_data([SCALES["laptop"].few_shot_cell(None, "20", 0)])
    require_data([punce(), SMOKE.joint("cifar10", "allconv", "nnpu", "1k", 0), SMOKE.few_shot_cell(None, "20", 0)])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_one_step_keeps_batches_and_networks_but_little_else(name: str) -> None:
    for cell in (cell for cells in EXPERIMENTS[name].cells(SCALES["paper"], [0]).values() for cell in cells):
        short = as_one_step(cell)
        assert short.encoder == cell.encoder
        assert short.key != cell.key
        if cell.pretraining is not None:
            assert short.pretraining is not None
            assert short.pretraining.config.batch_size == cell.pretraining.config.batch_size == short.data.n_train
            assert short.pretraining.config.epochs == 1
        if cell.transfer.kind not in ("fewshot", "head") and cell.data.setting == "pu":
            assert asdict(short.transfer.config)["epochs"] == 1


def test_a_cell_of_one_step_runs(tmp_path: Path) -> None:
    assert len(run_cell(as_one_step(punce()), tmp_path).result["curve"]) == 1


@pytest.mark.parametrize("scale", [name for name, scale in SCALES.items() if "mnist" in scale.benches])
def test_one_step_of_selfpu_reaches_the_selection(scale: str) -> None:
    config = as_one_step(SCALES[scale].joint("mnist", "mlp", "selfpu", "1k", 0)).transfer.config
    assert isinstance(config, SelfPUConfig)
    assert (config.epochs, config.select_from, config.select_until) == (1, 0, 0)


def test_one_step_of_selfpu_picks_trusted_rows_for_both_networks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pick, picked = Trusted.pick, []

    def watched(*arguments: Any) -> None:
        picked.append(arguments)
        pick(*arguments)

    monkeypatch.setattr(Trusted, "pick", watched)
    run_cell(as_one_step(joint("selfpu")), tmp_path)
    assert len(picked) == 2


# What it costs ---------------------------------------------------------------------------------------------------


def test_operations_are_those_of_the_papers_network() -> None:
    layers = [(784, 5000), (5000, 5000), (5000, 50), (50, 300), (300, 50)]
    assert forward_operations(EncoderSpec("mlp"), (1, 28, 28)) == sum(2 * a * b for a, b in layers)


def test_shared_pretraining_is_expected_once(store: ResultStore) -> None:
    expected = CostModel(store).seconds_of([infonce("1k"), infonce("3k"), joint()])
    assert expected[infonce("1k")] > expected[infonce("3k")]


def test_expectations_follow_the_pace_of_what_is_done(store: ResultStore) -> None:
    work = pretraining_operations(punce()) + transfer_operations(punce())
    before = CostModel(store).seconds_of([punce(seed=1)])[punce(seed=1)]
    done(store, punce(), pretrain=900.0, transfer=100.0, total=1000.0)
    after = CostModel(store, [punce()]).seconds_of([punce(seed=1)])[punce(seed=1)]
    assert after == pytest.approx(1000.0, rel=0.01)
    assert before < 1
    assert work > 0


@pytest.mark.parametrize(("loss", "seconds"), [("punce", 146), ("scl", 146), (None, 85)])
def test_few_shot_text_is_expected_to_take_what_it_took(store: ResultStore, loss: str | None, seconds: float) -> None:
    cell = SCALES["laptop"].few_shot_cell(loss, "20", 0)
    assert CostModel(store).seconds_of([cell])[cell] == pytest.approx(seconds, rel=0.05)


def test_few_shot_text_grows_with_the_network_and_the_steps(store: ResultStore) -> None:
    small, large = (transfer_operations(SCALES[scale].few_shot_cell("punce", "20", 0)) for scale in ("laptop", "paper"))
    assert large == pytest.approx(2000 / 80 * 85.0 / 10.6 * small, rel=0.2)
    tiny = SMOKE.few_shot_cell("punce", "20", 0)
    assert CostModel(store).seconds_of([tiny])[tiny] < 1


# What a person sees ----------------------------------------------------------------------------------------------


def test_every_end_is_a_line_with_the_time_left(store: ResultStore) -> None:
    plan = Plan((punce(), joint(), joint("upu"), joint("vpu")), (punce(),), ())
    text = Console(file=io.StringIO(), width=200)
    with MatrixProgress(plan, store, text) as progress:
        progress(joint(), Report("done", 61.0, 91.25))
        progress(joint("upu"), Report("there", accuracy=80.0))
        progress(joint("vpu"), Report("failed", error="MemoryError: 7 GB"))
    said = text.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert said[0] == "4 cells, 1 done before, 3 to do"
    assert said[1].startswith(f"[2/4] 91.25 %  {joint().describe()} (61 s); ")
    assert "(by another runner)" in said[2]
    assert "MemoryError: 7 GB" in said[3]
    assert said[3].endswith("; 0 s left")


def test_time_left_is_at_the_pace_of_what_was_computed_here(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("punce.experiments.watching.time", clock)
    some = [joint(seed=seed) for seed in range(6)]
    progress = MatrixProgress(Plan(tuple(some), (), ()), store, Console(file=io.StringIO()))
    ends = [
        (100.0, Report("done", 100.0), 500.0),
        (101.0, Report("failed", 1.0, error="no file"), 400.0),
        (101.0, Report("there"), 300.0),
        (201.0, Report("failed", 100.0, error="no memory"), 200.0),
        (301.0, Report("done", 100.0), 100.0),
    ]
    for cell, (now, report, left) in zip(some, ends, strict=False):
        clock.now = now
        progress(cell, report)
        assert progress.seconds_left == pytest.approx(left)


def test_an_encoder_that_a_failed_cell_did_not_make_is_still_to_be_made(store: ResultStore) -> None:
    plan = Plan((infonce("1k"), infonce("3k")), (), ())
    progress = MatrixProgress(plan, store, Console(file=io.StringIO()))
    progress(infonce("1k"), Report("failed", error="no file"))
    assert progress.seconds_left == CostModel(store).seconds_of([infonce("3k")])[infonce("3k")]


def test_an_interrupted_run_says_that_it_can_go_on(store: ResultStore) -> None:
    text = Console(file=io.StringIO(), width=200)
    with pytest.raises(KeyboardInterrupt), MatrixProgress(Plan((punce(),), (), ()), store, text):
        raise KeyboardInterrupt
    assert "0 of 1 cell done; the same command does the rest" in text.file.getvalue()  # type: ignore[attr-defined]


def test_a_dry_run_lists_the_cells_and_adds_them_up(store: ResultStore) -> None:
    text = Console(file=io.StringIO(), width=200)
    show_plan(text, Plan((punce(), joint(), joint("upu")), (punce(),), (joint(),)), store, 2)
    said = text.file.getvalue()  # type: ignore[attr-defined]
    assert "3 cells: 1 done, 2 to do (1 failed before)" in said
    assert joint("upu").name in said
    assert "failed before" in said
    show_plan(text, Plan((punce(),), (), ()), store, 1)
    assert "1 cell: 0 done, 1 to do" in text.file.getvalue()  # type: ignore[attr-defined]

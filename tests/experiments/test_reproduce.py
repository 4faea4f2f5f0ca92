"""``punce reproduce`` from the command line to the page."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from punce.cli import app
from punce.cli.reproduce import EXIT_INCOMPLETE
from punce.errors import InputError
from punce.experiments import EXPERIMENTS
from punce.experiments.scales import SCALES
from punce.experiments.store import ResultStore
from tests.experiments.tiny import punce as punce_cell

ALL = ["reproduce", "all", "--scale", "smoke"]


def punce(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.slow
@pytest.mark.timeout(900)  # a minute on two quiet cores, five on busy ones
def test_all_tables_and_figures_are_filled_at_the_smallest_scale(tmp_path: Path) -> None:
    """Every cell of every experiment, on two workers, and the page made of them; then there is nothing left to do."""
    done = punce(*ALL, "--jobs", 2, "--results", tmp_path)
    assert done.exit_code == 0, done.output
    store = ResultStore(tmp_path, "smoke")
    for experiment in EXPERIMENTS.values():
        for place, cells in experiment.cells(SCALES["smoke"]).items():
            for cell in cells:
                record = store.read(cell)
                assert getattr(record, "is_done", False), f"{experiment.name} {place}: {record}"
    page = (tmp_path / "smoke" / "report" / "index.html").read_text()
    assert all(experiment.title in page for experiment in EXPERIMENTS.values())
    changed = {path: path.stat().st_mtime_ns for path in store.folder.glob("*.json")}
    assert {json.loads(path.read_text())["attempts"] for path in changed} == {1}
    again = punce(*ALL, "--results", tmp_path)
    assert again.exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in store.folder.glob("*.json")} == changed


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    done = punce("reproduce", "table1", "table2", "--only", "mnist", "--dry-run", "--results", tmp_path / "none")
    assert done.exit_code == 0, done.output
    assert "0 done" in done.output
    assert not (tmp_path / "none").exists()


def test_a_scale_must_have_every_table_that_is_named(tmp_path: Path) -> None:
    options = ("--scale", "part", "--dry-run", "--results", tmp_path)
    named = punce("reproduce", "table5", "table1", *options)
    assert str(named.exception) == ("scale part has no cell of table5; --scale can be paper, laptop, smoke, laptop1")
    assert punce("reproduce", "all", *options).exit_code == 0


@pytest.mark.faults
def test_a_dry_run_leaves_damaged_results_where_they_are(tmp_path: Path) -> None:
    path = ResultStore(tmp_path, "smoke").path(punce_cell())
    path.parent.mkdir()
    path.write_text("damaged")
    done = punce("reproduce", "table1", "--only", "mnist", "--dry-run", "--results", tmp_path)
    assert done.exit_code == 0, done.output
    assert done.output.count("cannot be used") == 1
    assert "StoreWarning" not in done.output
    assert [(found, found.read_text()) for found in tmp_path.rglob("*") if found.is_file()] == [(path, "damaged")]


@pytest.mark.faults
def test_a_run_tells_of_a_damaged_result_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = ResultStore(Path("results"), "smoke").path(punce_cell())
    path.parent.mkdir(parents=True)
    path.write_text("damaged")
    only = ["--only", "mnist", "--only", "1k", "--only", "punce", "--seeds", "1"]
    done = punce("reproduce", "table1", *only)
    assert done.exit_code == 0, done.output
    assert done.output.count("cannot be used") == 1


def test_one_step_runs_every_kind_of_cell_and_writes_no_table(tmp_path: Path) -> None:
    options = ["--one-step", "--seeds", "1", "--only", "mnist", "--only", "1k", "--results", tmp_path]
    done = punce("reproduce", "table2", "table3", *options)
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "smoke-one-step").glob("*.json"))) == 9
    assert not (tmp_path / "smoke").exists()


@pytest.mark.slow  # the same command as above, on 60,000 rows with the full network
@pytest.mark.skipif("PUNCE_DATA" not in os.environ, reason="needs MNIST: PUNCE_DATA is not set")
def test_one_step_of_the_papers_network_on_real_data(tmp_path: Path) -> None:
    only = ["--only", "mnist", "--only", "1k", "--only", "punce", "--seeds", "1"]
    done = punce("reproduce", "table1", "--scale", "paper", "--one-step", *only, "--results", tmp_path)
    assert done.exit_code == 0, done.output
    (path,) = (tmp_path / "paper-one-step").glob("*.json")
    record = json.loads(path.read_text())
    assert record["config"]["encoder"]["width"] == 1.0
    assert record["config"]["pretraining"]["optimizer"] == "lars"


def test_failed_cells_end_in_a_code_of_their_own_and_the_rest_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("punce.experiments.sources.simulate_pu", lambda *_: 1 / 0)
    done = punce("reproduce", "seeds_spread", "--seeds", "1", "--results", tmp_path)
    assert done.exit_code == EXIT_INCOMPLETE
    named = done.output.split("2 of 2 cells failed")[1]
    assert named.count("ZeroDivisionError") == 2
    for name in (path.stem for path in (tmp_path / "smoke").glob("*.json")):
        assert name in named
    assert (tmp_path / "smoke" / "report" / "index.html").exists()


@pytest.mark.faults
def test_a_full_disk_ends_in_the_code_of_failed_cells_and_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    done = punce("reproduce", "seeds_spread", "--seeds", "1", "--results", tmp_path)
    assert done.exit_code == EXIT_INCOMPLETE, done.output
    assert "not all of the page is written" in done.output
    named = done.output.split("2 of 2 cells failed")[1]
    assert named.count("No space left on device") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table7"], "no table or figure is called table7"),
        (["table1", "--scale", "galaxy"], "there is no scale 'galaxy'"),
        (["table1", "--seeds", "many"], "--seeds is a number of seeds"),
        (["table1", "--seeds", "0"], "at least one seed"),
        (["table1", "--seeds", ","], "--seeds is a number of seeds"),
        (["table1", "--seeds", "1,,2"], "--seeds is a number of seeds"),
        (["table1", "--seeds", "20261119"], "--seeds 20261119 is more than 1000 seeds; seed 20261119 alone is"),
        (["table1", "--seeds", "0,4294967296"], "--seeds: a seed is at most 4294967295, got 4294967296"),
        (["table1", "--jobs", "0"], "--jobs must be at least 1"),
        (["table1", "--jobs", "0", "--dry-run"], "--jobs must be at least 1"),
        (["table1", "--jobs", "-2", "--dry-run"], "--jobs must be at least 1"),
        (["table1", "--only", "fashion"], "nothing called 'fashion'"),
        (["table1", "--only", "punce,slc"], "nothing called 'slc'"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = punce("reproduce", *arguments, "--results", tmp_path)
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)


@pytest.mark.parametrize(("seeds", "named"), [("4,9", {4, 9}), ("3,", {3}), ("2", {0, 1})])
def test_seeds_can_be_listed(tmp_path: Path, seeds: str, named: set[int]) -> None:
    done = punce("reproduce", "seeds_spread", "--seeds", seeds, "--only", "nnpu", "--results", tmp_path)
    assert done.exit_code == 0, done.output
    found = {json.loads(path.read_text())["config"]["seed"] for path in (tmp_path / "smoke").glob("*.json")}
    assert found == named


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--no-run", "--one-step"], "--one-step has no effect beside --no-run"),
        (["--no-run", "--jobs", "2", "--only", "mnist"], "--jobs, --only have no effect beside --no-run"),
        (["--dry-run", "--docs", "results.md"], "--docs has no effect beside --dry-run"),
        (["--one-step", "--docs", "results.md"], "--docs has no effect beside --one-step"),
        (["--cluster", "tcp://localhost:1", "--jobs", "2"], "--jobs has no effect beside --cluster"),
    ],
)
def test_options_without_effect_are_refused(options: list[str], why: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=why):
        app(args=["reproduce", "table1", "--results", str(tmp_path / "none"), *options], standalone_mode=False)
    assert not (tmp_path / "none").exists()

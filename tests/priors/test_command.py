"""``punce prior`` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner, Result

from punce.cli.prior import _bars, _interval, prior
from punce.errors import InputError
from punce.priors import PRIORS, estimate_prior
from tests.priors.mixtures import gaussians


def run(*arguments: str, columns: int = 140) -> Result:
    app = typer.Typer()
    app.command()(prior)
    env = {"COLUMNS": str(columns), "TERM": "dumb"}
    return CliRunner().invoke(app, list(arguments), env=env, catch_exceptions=False)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = gaussians(0.3, n_p=60, n_u=200)
    frame = pd.DataFrame(data.X, columns=["a", "b"])
    frame["seen"] = np.where(data.labels == 1, "fraud", "")
    path = tmp_path_factory.mktemp("prior") / "rows.csv"
    frame.to_csv(path, index=False)
    return path


def test_prints_every_estimator_a_picture_and_writes_json(table: Path) -> None:
    out = table.parent / "made" / "prior.json"
    result = run(str(table), "--label", "seen", "--positive", "fraud", "--out", str(out))
    assert result.exit_code == 0
    assert all(f"{name} " in result.output for name in PRIORS)
    assert "of 200 unlabelled rows are positive" in result.output
    assert "  labelled " in result.output
    assert "█" in result.output
    record = json.loads(out.read_text())
    assert [e["method"] for e in record["estimates"]] == list(PRIORS)
    assert (record["scenario"], record["seed"]) == ("single_set", 0)
    default = record["estimates"][0]
    assert default["low"] <= 0.3 <= default["high"]


@pytest.mark.filterwarnings("ignore::punce.priors.PriorWarning")
@pytest.mark.parametrize("method", ["combined", "tice"])
def test_says_what_the_function_says_of_the_same_rows(method: str, table: Path) -> None:
    """Also of "combined", which needs more than the scores that the picture shows."""
    out = table.parent / f"{method}.json"
    run(str(table), "--label", "seen", "--positive", "fraud", "--method", method, "--out", str(out))
    frame = pd.read_csv(table, keep_default_na=False)
    plain = estimate_prior(frame[["a", "b"]], frame["seen"] == "fraud", method)
    record = json.loads(out.read_text())
    assert (record["value"], record["low"], record["high"]) == (plain.value, plain.low, plain.high)


def test_a_column_that_gives_the_label_away_is_named(table: Path) -> None:
    # otherwise the share is 0.00 and nothing says why; punce fit names the column before it learns
    frame = pd.read_csv(table, keep_default_na=False)
    file = table.parent / "leak.csv"
    frame.assign(closed_by=np.where(frame["seen"] == "fraud", "anna", "")).to_csv(file, index=False)
    output = " ".join(run(str(file), "--label", "seen", "--positive", "fraud", "--method", "bbe").output.split())
    assert "note: column 'closed_by': its missing values alone separate labelled from unlabelled rows" in output


def test_several_values_mean_positive(table: Path) -> None:
    frame = pd.read_csv(table, keep_default_na=False)
    frame.loc[frame.index[frame["seen"] == "fraud"][:20], "seen"] = "confirmed fraud"
    frame.to_csv(file := table.parent / "words.csv", index=False)
    options = (str(file), "--label", "seen", "--method", "bbe", "--positive", "fraud")
    assert "of 220 unlabelled rows are positive" in run(*options).output
    assert "of 200 unlabelled rows are positive" in run(*options, "--positive", "confirmed fraud").output


def test_a_narrow_terminal_cuts_no_number(table: Path) -> None:
    options = (str(table), "--label", "seen", "--positive", "fraud", "--method", "bbe")
    wide, narrow = run(*options), run(*options, columns=40)
    row = next(line for line in wide.output.splitlines() if line.strip().startswith("bbe "))
    assert " ".join(row.split()[:5]) in " ".join(narrow.output.split())  # bbe, share, low, –, high
    assert "…" not in narrow.output
    assert all(len(line) <= 40 for line in narrow.output.splitlines())
    assert sum(set("▁▂▃▄▅▆▇█") & set(line) != set() for line in narrow.output.splitlines()) == 2  # not broken


def test_row_numbers_and_infinities_are_read_as_fit_reads_them(table: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(table).sort_values("seen", ignore_index=True)  # labelled rows first
    plain, numbered = tmp_path / "plain.csv", tmp_path / "numbered.csv"
    frame.assign(a=frame["a"].where(frame.index != 9)).to_csv(plain, index=False)
    frame.assign(a=frame["a"].where(frame.index != 9, np.inf)).to_csv(numbered, index=True)
    shares = []
    for path in (plain, numbered):
        options = ("--label", "seen", "--positive", "fraud", "--method", "bbe")
        run(str(path), *options, "--out", str(tmp_path / "e.json"))
        shares.append(json.loads((tmp_path / "e.json").read_text())["value"])
    assert shares[0] == shares[1]
    assert shares[0] == pytest.approx(0.3, abs=0.15)


def test_a_column_far_from_zero_says_as_much_as_one_near_it(table: Path, tmp_path: Path) -> None:
    """Thousandths of a second since 1970 are all one number in single precision."""
    frame = pd.read_csv(table)
    ticks = (1000 * frame["a"]).round()
    near, far = tmp_path / "near.csv", tmp_path / "far.csv"
    frame.assign(a=ticks - ticks.median()).to_csv(near, index=False)
    frame.assign(a=(ticks + 1_700_000_000_000).astype(int)).to_csv(far, index=False)
    records = []
    for path in (near, far):
        options = ("--label", "seen", "--positive", "fraud", "--method", "bbe", "--out", str(tmp_path / "e.json"))
        run(str(path), *options)
        record = json.loads((tmp_path / "e.json").read_text())
        records.append((record["value"], record["low"], record["high"]))
    assert records[0] == records[1]


def test_columns_that_are_left_out_or_read_in_one_of_two_ways_are_told(table: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(table)
    rng = np.random.default_rng(0)
    frame["when"] = [f"{day}/{month}/2024" for day, month in rng.integers(1, 12, (len(frame), 2))]
    frame["comment"] = [" ".join(rng.choice(["red", "blue", "large", "small", "house"], 9)) for _ in frame.index]
    frame.to_csv(file := tmp_path / "more.csv", index=False)
    said = run(str(file), "--label", "seen", "--positive", "fraud", "--method", "bbe").output
    assert "more.csv: column 'comment' is not learned from: it holds text" in said
    assert "more.csv: column 'when':" in said
    assert "are read day first" in said


def test_a_share_that_cannot_be_known_is_not_shown_as_an_estimate(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 4)), columns=list("abcd")).assign(seen=[1] * 40 + [0] * 360)
    frame.to_csv(tmp_path / "noise.csv", index=False)
    result = run(str(tmp_path / "noise.csv"), "--label", "seen", "--method", "combined")
    assert "How many of 360 unlabelled rows are positive cannot be estimated" in result.output
    assert "cannot be known" in next(line for line in result.output.splitlines() if line.startswith(" combined"))
    assert "the share cannot be known from these rows" in result.output


def test_where_the_default_cannot_be_run_no_other_takes_its_place_in_the_headline(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(8, 4)), columns=list("abcd"))
    frame.assign(y=[1, 1, 1, 0, 0, 0, 0, 0]).to_csv(tmp_path / "few.csv", index=False)
    result = run(str(tmp_path / "few.csv"), "--label", "y")
    assert result.exit_code == 0
    assert "How many of 5 unlabelled rows are positive cannot be estimated" in result.output
    assert "combined could not be run" in result.output
    assert "tice" in result.output


def test_one_method_and_the_other_scenario(table: Path) -> None:
    out = table.parent / "one.json"
    run(
        *(str(table), "--label", "seen", "--positive", "fraud", "--method", "bbe"),
        *("--scenario", "case_control", "--seed", "5", "--out", str(out)),
    )
    record = json.loads(out.read_text())
    assert (record["method"], record["seed"]) == ("bbe", 5)
    assert record["population_prior"] == record["value"]


def test_warnings_are_printed_not_raised(tmp_path: Path) -> None:
    data = gaussians(0.5, n_p=12, n_u=60, gap=0.0)
    np.savez(tmp_path / "rows.npz", X=data.X, labels=data.labels)
    result = run(str(tmp_path / "rows.npz"), "--label", "labels", "--method", "bbe")
    assert "note: only 12 labelled positives" in " ".join(result.output.split())


def test_refusals(table: Path) -> None:
    with pytest.raises(InputError, match="--label COL"):
        run(str(table))
    with pytest.raises(InputError, match="no prior estimator is called 'magic'"):
        run(str(table), "--label", "seen", "--positive", "fraud", "--method", "magic")
    with pytest.raises(InputError, match="scenario must be one of"):
        run(str(table), "--label", "seen", "--positive", "fraud", "--scenario", "guess")


def test_a_seed_that_no_model_takes_is_refused(table: Path) -> None:
    done = run(str(table), "--label", "seen", "--positive", "fraud", "--method", "bbe", "--seed", str(2**32))
    assert done.exit_code == 2
    assert "less than or equal to 4294967295" in " ".join(done.output.split())


def test_rows_labelled_negative_are_left_out(tmp_path: Path) -> None:
    data = gaussians(0.3, n_p=60, n_u=200)
    frame = pd.DataFrame(data.X, columns=["a", "b"]).assign(y=data.labels)
    frame.loc[np.flatnonzero(~data.is_positive)[:20], "y"] = -1
    frame.to_csv(tmp_path / "rows.csv", index=False)
    result = run(str(tmp_path / "rows.csv"), "--label", "y", "--method", "bbe")
    assert "of 180 unlabelled rows are positive" in result.output


@pytest.mark.parametrize("convention", [(1, -1), ("pos", "neg")])
def test_minus_one_for_the_unlabelled_rows_is_read_as_by_fit(convention: tuple[object, object], tmp_path: Path) -> None:
    data = gaussians(0.3, n_p=60, n_u=200)
    labels = np.where(data.labels == 1, *(np.array(one, dtype=object) for one in convention))
    pd.DataFrame(data.X, columns=["a", "b"]).assign(y=labels).to_csv(tmp_path / "rows.csv", index=False)
    result = run(str(tmp_path / "rows.csv"), "--label", "y", "--method", "bbe")
    assert "of 200 unlabelled rows are positive" in result.output


def test_labels_no_reading_helps_are_refused_in_the_first_ones_words(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,y\n1,0\n2,-1\n")
    with pytest.raises(InputError, match="no labelled positive among 2 rows"):
        run(str(tmp_path / "rows.csv"), "--label", "y")


def test_bars_and_intervals() -> None:
    assert _bars(np.array([0, 1, 4, 8])) == " ▁▄█"
    assert _bars(np.array([0, 1, 1000])) == " ▁█"
    assert _interval(0.0, 0.5, 1.0) == "─" * 8 + "●" + "─" * 8
    assert _interval(0.2, 0.2, 0.2).strip() == "●"

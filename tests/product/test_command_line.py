"""A newcomer's path through the real command, and what it says when something is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from punce.cli import app
from punce.cli.report import comparison
from punce.data import load, simulate_pu
from punce.report import ReportContent
from tests.copies import punce_command
from tests.in_process import exit_code

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = {"MODEL_CARD.md", "config.json", "history.jsonl", "metrics.json", "model", "report.html", "report.json"}


def punce(*arguments: object, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = punce_command(*arguments, env={"COLUMNS": "160"})
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def blobs(path: Path, n: int = 500, seed: int = 0, label: bool = True) -> np.ndarray:
    random = np.random.default_rng(seed)
    y = (random.random(n) < 0.4).astype(int)
    frame = pd.DataFrame(random.normal(1.5 * (2 * y[:, None] - 1), 1.0, (n, 4)), columns=["a", "b", "c", "<b>d</b>"])
    frame.insert(0, "name", [f"row-{seed}-{i}" for i in range(n)])
    if label:
        frame["fraud"] = ""
        frame.loc[np.flatnonzero(y)[:60], "fraud"] = "yes"
    frame.to_csv(path, index=False)
    return y


def test_csv_fit_report_predict(tmp_path: Path) -> None:
    blobs(tmp_path / "march.csv")
    y = blobs(tmp_path / "april.csv", 200, seed=1, label=False)
    run = tmp_path / "run"
    said = punce("fit", tmp_path / "march.csv", "--label", "fraud", "--id", "name", "--out", run, "--reasons").stdout
    assert "unlabelled rows are positive" in said
    assert "columns that matter most" in said
    assert "report.html" in said
    assert {p.name for p in run.iterdir()} == EXPECTED | {"scores.parquet"}
    ranked = pd.read_parquet(run / "scores.parquet")
    assert len(ranked) == 440
    assert ranked["reasons"].str.contains(r" = -?\d.*\([+-]").all()
    assert ranked["probability"].is_monotonic_decreasing
    assert ranked["probability"].between(0.001, 0.999).all()  # what 60 labelled rows can show
    ties = ranked["probability"].diff() == 0
    assert (ranked["score"].diff()[ties] < 0).all()
    assert ranked["id"].str.startswith("row-0-").all()
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["unlabelled"]["accuracy"]["value"] > 0.8
    page = (run / "report.html").read_text()
    assert "<b>d</b>" not in page
    assert 'id="columns"' in page
    assert 'class="up"' in page
    (run / "report.html").unlink()
    punce("report", run)
    assert (run / "report.html").read_text() == page
    punce("predict", run, tmp_path / "april.csv", "--out", tmp_path / "april.scores.csv")
    scored = pd.read_csv(tmp_path / "april.scores.csv")
    assert ((scored["probability"] > 0.5) == y).mean() > 0.9
    assert scored["id"].tolist()[:2] == ["row-1-0", "row-1-1"]


def test_labelled_negatives_from_the_file_to_the_page(tmp_path: Path) -> None:
    y = blobs(tmp_path / "march.csv", 700)
    frame = pd.read_csv(tmp_path / "march.csv", keep_default_na=False)
    frame.loc[np.flatnonzero(y == 0)[:80], "fraud"] = "no"  # beside empty cells, "no" is an answer
    frame.to_csv(tmp_path / "march.csv", index=False)
    asked = ("fit", tmp_path / "march.csv", "--label", "fraud", "--id", "name", "--out", tmp_path / "run")
    planned = punce(*asked, "--dry-run").stdout
    assert "80 negative" in planned
    assert "'no' in the label column was read as a labelled negative" in planned
    assert "the data have 80 labelled negatives (setting pnu)" in planned
    said = punce(*asked).stdout
    assert "the numbers are counted on 60 labelled positives and 80 labelled negatives" in said
    assert "with 80 labelled negatives" in said
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["setting"], metrics["basis"], metrics["held_out"]["negative"]) == ("pnu", "pnu", 80)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["ran"]["setting"] == "pnu"
    assert "80 labelled negatives" in (tmp_path / "run" / "MODEL_CARD.md").read_text()
    assert "labelled positives and 80 labelled negatives" in (tmp_path / "run" / "report.html").read_text()
    assert len(pd.read_parquet(tmp_path / "run" / "scores.parquet")) == 700 - 60 - 80  # they need no ranking
    blobs(tmp_path / "april.csv", 100, seed=1, label=False)
    scored = punce("predict", tmp_path / "run", tmp_path / "april.csv", "--out", tmp_path / "april.scores.csv").stdout
    assert "learned from 80 labelled negatives beside the labelled positives" in scored


def test_embeddings(tmp_path: Path) -> None:
    embeddings(tmp_path / "train.npz", 500)
    data = load("digits")
    np.save(tmp_path / "new.npy", data.test.X.reshape(len(data.test.X), -1).astype(np.float32) / 16)
    run = tmp_path / "run"
    punce("fit", tmp_path / "train.npz", "--label", "fraud", "--out", run, "--epochs", 3, "--scores", "csv")
    assert (run / "scores.csv").exists()
    punce("predict", run, tmp_path / "new.npy", "--out", tmp_path / "new.parquet")
    scored = pd.read_parquet(tmp_path / "new.parquet")
    assert len(scored) == len(data.test.X)


def test_a_folder_of_images(tmp_path: Path) -> None:
    data = load("digits")
    sample = simulate_pu(data.train.y_true, 60, seed=0)
    keep = np.r_[np.flatnonzero(sample.labels == 1), np.flatnonzero(sample.labels == 0)[:240]]
    for part in ("labelled", "unlabelled"):
        (tmp_path / "images" / part).mkdir(parents=True)
    for i in keep:
        part = "labelled" if sample.labels[i] else "unlabelled"
        Image.fromarray((data.train.X[i, 0] * 15).astype(np.uint8)).save(tmp_path / "images" / part / f"{i}.png")
    run = tmp_path / "run"
    punce("fit", tmp_path / "images", "--out", run, "--epochs", 3, "--prior", 0.45)
    assert "data:image/" in (run / "report.html").read_text()
    punce("predict", run, tmp_path / "images" / "unlabelled", "--out", tmp_path / "scores.csv")
    assert len(pd.read_csv(tmp_path / "scores.csv")) == 240


def embeddings(path: Path, n: int | None = None) -> None:
    data = load("digits")
    sample = simulate_pu(data.train.y_true, 200, seed=0)
    flat = data.train.X.reshape(len(data.train.X), -1).astype(np.float32) / 16
    np.savez(path, X=flat[:n], fraud=sample.labels[:n])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "kill_at"),
    [
        ("train.npz", ["--epochs", "12"], "work/infonce/history.jsonl"),
        ("train.csv", ["--id", "name"], "config.json"),  # nothing is trained yet: it begins again
    ],
)
@pytest.mark.faults
def test_killed_half_way_and_repeated(name: str, options: list[str], kill_at: str, tmp_path: Path) -> None:
    (embeddings if name.endswith("npz") else blobs)(tmp_path / name)
    common = ["fit", str(tmp_path / name), "--label", "fraud", "--prior", "0.45", *options, "--out"]
    run = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-m", "punce", *common, str(run)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None and not (run / kill_at).exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (run / kill_at).exists()
    assert not (run / "report.html").exists()
    said = punce(*common, run).stdout
    assert "resuming the unfinished run" in said
    assert {p.name for p in run.iterdir()} == EXPECTED | {"scores.parquet"}
    punce(*common, tmp_path / "whole")
    first, second = (pd.read_parquet(folder / "scores.parquet") for folder in (run, tmp_path / "whole"))
    pd.testing.assert_frame_equal(first, second)
    if name == "train.csv":
        (tmp_path / "other").mkdir()
        (run).rename(tmp_path / "other" / "whole")
        punce("report", tmp_path / "whole", tmp_path / "other" / "whole", "--out", tmp_path / "both.html")
        page = (tmp_path / "both.html").read_text()
        assert all(str(folder) in page for folder in (tmp_path / "whole", tmp_path / "other" / "whole"))


def test_a_finished_or_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    blobs(tmp_path / "data.csv", 120)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = punce("fit", tmp_path / "data.csv", "--label", "fraud", "--out", tmp_path / "mine", expect=2)
    assert "not empty and holds no punce run" in done.stderr
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    blobs(tmp_path / "data.csv", 120)
    said = punce("fit", tmp_path / "data.csv", "--label", "fraud", "--out", tmp_path / "run", "--dry-run").stdout
    assert f"would learn with the ensemble for tables, prior auto, and write {tmp_path / 'run'}" in said
    assert not (tmp_path / "run").exists()


def test_a_dry_run_names_what_stands_in_for_the_ensemble(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": np.arange(60.0), "fraud": np.arange(60) == 0})
    table.to_csv(tmp_path / "data.csv", index=False)
    said = punce("fit", tmp_path / "data.csv", "--label", "fraud", "--dry-run").stdout
    assert "would learn with ridge logistic regression (too few rows for the ensemble)" in said


def test_a_dry_run_refuses_a_table_that_the_fit_would_refuse(tmp_path: Path) -> None:
    table = pd.DataFrame({"vector": [[1.0, 2.0]] * 60, "label": (np.arange(60) < 10).astype(int)})
    table.to_parquet(tmp_path / "t.parquet")
    done = punce("fit", tmp_path / "t.parquet", "--label", "label", "--dry-run", expect=2)
    assert "no column of the table can be used" in done.stderr
    assert "--kind embedding" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.csv", "--label", "y"], "missing.csv"),
        (["data.csv", "--label", "frod"], "fraud"),
        (["data.csv"], "--label"),
        (["data.csv", "--label", "fraud", "--positive", "maybe"], "no row equals the positive value 'maybe'"),
        (["empty.csv", "--label", "y"], "empty.csv"),
        (["unlabelled.csv", "--label", "y"], "no labelled positive"),
        (["data.csv", "--label", "fraud", "--prior", "1.5"], "prior must lie in (0, 1)"),
        (["data.csv", "--label", "fraud", "--loss", "mse"], "loss must be one of"),
        (["data.csv", "--label", "fraud", "--threshold", "high"], "threshold must be"),
        (["data.csv", "--label", "fraud", "--scenario", "none"], "scenario must be one of"),
        (["pickled.npy", "--label", "fraud"], "pickled.npy"),
        (
            ["data.csv", "--label", "fraud", "--positive", "yes", "--positive", "maybe"],
            "no row equals the positive value 'maybe'",
        ),
        (["data.csv", "--label", "fraud", "--label", "kind"], "--label was given 2 times"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    blobs(tmp_path / "data.csv", 120)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "unlabelled.csv").write_text("a,y\n1,0\n2,0\n")
    np.save(tmp_path / "pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    path, *options = arguments
    assert exit_code(monkeypatch, "fit", tmp_path / path, *options, "--out", tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.faults
def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    blobs(tmp_path / "data.csv", 120)
    (tmp_path / "model").mkdir()
    done = punce("predict", tmp_path, tmp_path / "data.csv", expect=2)
    assert "is not a saved model: the folder is empty" in done.stderr


def test_noise_gives_no_numbers_on_the_terminal_the_card_and_in_the_json(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc")).assign(label=rng.random(400) < 0.15)
    table.to_csv(tmp_path / "noise.csv", index=False)
    done = punce("fit", str(tmp_path / "noise.csv"), "--label", "label", "--out", str(tmp_path / "run"))
    assert "unlabelled rows are positive cannot be estimated" in done.stdout
    assert ", with an assumed share of 0." in done.stdout
    numbers = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert numbers["auc"]["value"] is None
    assert numbers["unlabelled"]["accuracy"]["value"] is numbers["unlabelled"]["precision"]["low"] is None
    assert "do not tell labelled from unlabelled rows" in numbers["auc"]["reason"]
    card = (tmp_path / "run" / "MODEL_CARD.md").read_text()
    assert "precision, accuracy, f1, auc: cannot be estimated" in card
    assert "1.000" not in card
    done = punce("predict", tmp_path / "run", tmp_path / "noise.csv")
    assert "share of positives in these rows: cannot be estimated" in done.stdout
    assert comparison({"run": ReportContent.read(tmp_path / "run" / "report.json")})["run"]["prior"] is None


def test_a_given_share_that_the_rows_contradict_is_said_on_the_terminal_and_the_card_too(tmp_path: Path) -> None:
    y = blobs(tmp_path / "data.csv", 300)
    assert y.mean() < 0.5
    done = punce("fit", tmp_path / "data.csv", "--label", "fraud", "--prior", 0.95, "--out", tmp_path / "run")
    card = (tmp_path / "run" / "MODEL_CARD.md").read_text()
    for said in (" ".join(done.stdout.split()), card, (tmp_path / "run" / "report.html").read_text()):
        assert "better than a perfect classifier could at a share of positives of 0.95" in said


def test_a_given_share_is_not_said_to_be_estimated(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(50, 2)), columns=list("ab")).assign(label=(np.arange(50) < 2).astype(int))
    table.to_csv(tmp_path / "few.csv", index=False)
    done = punce("fit", tmp_path / "few.csv", "--label", "label", "--prior", 0.25, "--out", tmp_path / "run")
    assert "About 12 of 48 unlabelled rows are positive, if the given share of 0.25 is right" in done.stdout
    assert "share of positives among the unlabelled rows: 0.25 (given)" in (tmp_path / "run/MODEL_CARD.md").read_text()


def test_the_help_is_broken_by_the_terminal_and_not_by_the_source() -> None:
    helps = [command.help for command in app.registered_commands]
    assert len(helps) == 7
    assert all(text and "\n" not in text.replace("\n\n", " ") for text in helps)


def test_several_values_mean_positive(tmp_path: Path) -> None:
    blobs(tmp_path / "data.csv", 200)
    text = (tmp_path / "data.csv").read_text().splitlines()
    (tmp_path / "data.csv").write_text("\n".join(line.replace("yes", "proven") for line in text[:50]) + "\n")
    with (tmp_path / "data.csv").open("a") as file:
        file.write("\n".join(text[50:]) + "\n")
    options = ("fit", tmp_path / "data.csv", "--label", "fraud", "--positive", "yes", "--dry-run")
    one, both = punce(*options).stdout, punce(*options, "--positive", "proven").stdout
    assert "200 rows: 60 labelled positive" in both
    assert "200 rows: 60 labelled positive" not in one

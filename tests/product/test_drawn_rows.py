"""Tables too large to learn from at once: rows are drawn by kind, every row is scored."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from punce import PUClassifier
from punce.cli import app
from punce.data import drawn as module
from punce.data import read, read_at_most
from punce.data.drawn import draw
from punce.errors import InputError
from punce.product.fit import DataOptions, ModelOptions, run_fit
from punce.product.plan import RunOptions, plan_fit
from punce.report import ReportContent
from tests.product.parts import local_cluster, rows

pytestmark = pytest.mark.usefixtures("quick_tables")
N, LABELLED = 3_000, 150


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    table = rows(0, N)
    label = np.zeros(N, dtype=int)
    label[np.flatnonzero(table["y"])[:LABELLED]] = 1
    return table.assign(label=label, name=[f"n{k}" for k in range(N)]).drop(columns="y")


@pytest.fixture
def parts(frame: pd.DataFrame, tmp_path: Path) -> Path:
    folder = tmp_path / "parts"
    folder.mkdir()
    for k, start in enumerate(range(0, N, 700)):
        frame.iloc[start : start + 700].to_parquet(folder / f"{k}.parquet", index=False)
    return folder


def test_labelled_rows_come_first_and_unlabelled_ones_at_random() -> None:
    labels = np.repeat(np.array([1, -1, 0], dtype=np.int8), [100, 60, 5_000])
    chosen = draw(labels, 1_000, seed=0)
    assert len(chosen) == len(set(chosen.tolist())) == 1_000
    assert (np.diff(chosen) > 0).all()
    assert np.bincount(labels[chosen] + 1).tolist() == [60, 840, 100]
    assert draw(labels, 1_000, seed=0).tolist() == chosen.tolist() != draw(labels, 1_000, seed=1).tolist()
    few = draw(labels, 100, seed=0)
    assert np.bincount(labels[few] + 1).tolist() == [25, 25, 50]
    often = np.zeros(len(labels))
    for seed in range(300):
        often[draw(labels, 1_000, seed)] += 1
    assert often[160:].mean() == pytest.approx(300 * 840 / 5_000)
    assert often[160:].std() == pytest.approx(np.sqrt(300 * 0.168 * 0.832), rel=0.1)  # binomial: every row alike


@pytest.mark.parametrize("form", ["csv", "parquet", "parts"])
def test_drawn_rows_are_rows_of_the_file(frame: pd.DataFrame, parts: Path, tmp_path: Path, form: str) -> None:
    path = parts if form == "parts" else tmp_path / f"t.{form}"
    if form == "csv":
        frame.to_csv(path, index=False)
    elif form == "parquet":
        frame.to_parquet(path, index=False)
    data = read_at_most(path, "label", max_rows=500, id="name")
    assert data.drawn is not None
    assert len(data) == 500
    assert (data.labels == 1).sum() == LABELLED
    pd.testing.assert_frame_equal(
        data.features, frame.loc[data.drawn.rows, [*"abcd", "town"]].reset_index(drop=True), check_dtype=False
    )
    assert data.ids.tolist() == frame["name"][data.drawn.rows].tolist()
    assert "all 150 labelled rows, 350 of 2,850 unlabelled rows, at random" in data.notes[0]


def test_a_small_file_is_read_as_a_whole(parts: Path) -> None:
    whole = read_at_most(parts, "label", max_rows=N)
    assert whole.drawn is None
    pd.testing.assert_frame_equal(whole.features, read(parts, "label").features)


@pytest.mark.parametrize("limit", ["MOST_CELLS", "MOST_BYTES"])
def test_a_file_beyond_the_limits_is_drawn_from(parts: Path, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, limit, {"MOST_CELLS": 7_000, "MOST_BYTES": 40_000}[limit])
    data = read_at_most(parts, "label")
    assert data.drawn is not None
    assert len(data) == 1_000 if limit == "MOST_CELLS" else 300 < len(data) < 2_000


def test_no_more_rows_are_drawn_than_learning_can_use(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DRAWN", 400)
    assert len(read_at_most(parts, "label")) == N  # it fits, so that nothing is drawn
    monkeypatch.setattr(module, "MOST_CELLS", 7_000)
    assert len(read_at_most(parts, "label")) == 400


def test_a_column_that_is_text_in_some_batches_stays_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH", 100)
    codes = [str(k % 7) for k in range(200)] + ["x"] * 100
    pd.DataFrame({"code": codes, "a": range(300), "y": [1] * 30 + [0] * 270}).to_csv(tmp_path / "t.csv", index=False)
    data = read_at_most(tmp_path / "t.csv", "y", max_rows=250)
    assert {type(value) for value in data.features["code"]} == {str}


def test_every_row_is_scored_and_the_run_says_what_was_drawn(parts: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    source = DataOptions(str(parts / "*.parquet"), "label", id="name")
    outcome = run_fit(source, ModelOptions(prior=0.25), run, RunOptions(max_rows=900), say=lambda _: None)
    listed = pd.read_parquet(run / "scores.parquet")
    assert len(listed) == N - LABELLED
    assert listed["id"].tolist() == [f"n{row}" for row in listed["row"]]
    assert (listed["probability"].diff().dropna() <= 0).all()
    truth = rows(0, N)["y"].to_numpy()[listed["row"]]
    assert truth[:500].mean() > 2 * truth[-500:].mean()
    drawn = outcome.data.drawn
    assert drawn is not None
    by_row = listed.set_index("row")["probability"]
    u = drawn.labels[drawn.rows] == 0
    assert by_row[drawn.rows[u]].to_numpy() == pytest.approx(outcome.classifier.scores_[u])
    rest = np.setdiff1d(listed["row"], drawn.rows)[:50]
    X = rows(0, N).drop(columns="y").iloc[rest]
    assert by_row[rest].to_numpy() == pytest.approx(outcome.classifier.predict_proba(X)[:, 1])
    assert json.loads((run / "config.json").read_text())["drawn"] == {"rows": 900, "of": N}
    assert "all 150 labelled rows, 750 of 2,850 unlabelled rows" in (run / "MODEL_CARD.md").read_text()
    assert "every row is scored" in (run / "report.html").read_text()
    assert "of 750 drawn unlabelled rows are positive" in (run / "report.html").read_text().replace("\u00a0", " ")
    assert ReportContent.read(run / "report.json").review.of == len(listed)  # of which a person reviews the top rows
    # 150 of 900 drawn rows are labelled, of the file 150 of 3,000: what rests on that is told for the file.
    numbers = json.loads((run / "metrics.json").read_text())
    positives = LABELLED + 0.25 * (N - LABELLED)
    assert numbers["prior"]["population_prior"] == pytest.approx(positives / N)
    assert numbers["prior"]["label_frequency"] == pytest.approx(LABELLED / positives)
    assert numbers["population"]["accuracy"]["value"] is None
    assert "drawn rows" in numbers["population"]["accuracy"]["reason"]
    loaded = PUClassifier.load(run / "model")
    assert loaded._seen is not None
    assert loaded._seen.scores.labelled_share == pytest.approx(LABELLED / N)


def test_columns_can_be_kept_where_rows_are_drawn(parts: Path, tmp_path: Path) -> None:
    source = DataOptions(str(parts), "label", keep=("a", "b"))
    run = RunOptions(max_rows=900)
    outcome = run_fit(source, ModelOptions(prior=0.25, scenario="case_control"), tmp_path / "run", run, say=str)
    assert len(pd.read_parquet(tmp_path / "run" / "scores.parquet")) == N - LABELLED
    assert outcome.classifier.feature_names_in_.tolist() == ["a", "b"]
    assert outcome.classifier.metrics_.population.accuracy == outcome.classifier.metrics_.unlabelled.accuracy
    # all rows of the file are in the ranked list, so a review draws from all of them
    reviewed = CliRunner().invoke(app, ["review", str(tmp_path / "run"), "--rows", "1100"])
    assert f"drew 1,100 of {N - LABELLED:,} unlabelled rows" in reviewed.output
    assert "0 rows judged, 1,100 open" in reviewed.output
    drawn_rows = outcome.data.drawn.rows if outcome.data.drawn else []
    judged = pd.read_csv(tmp_path / "run" / "review" / "review.csv")
    assert not set(judged["id"]) <= set(drawn_rows)


@pytest.mark.parametrize(
    ("more", "model", "message"),
    [
        ({"reasons": True}, {}, "--reasons is not possible"),
        ({"review": Path("run")}, {}, "--review is not possible"),
        ({}, {"target": "population"}, "--target population is not possible"),
    ],
)
def test_what_needs_all_rows_is_refused(parts: Path, tmp_path: Path, more: dict, model: dict, message: str) -> None:
    asked = RunOptions(max_rows=900, **more)
    with pytest.raises(InputError, match=message):
        plan_fit(DataOptions(str(parts), "label"), ModelOptions(**model), tmp_path / "r", asked, say=str)


def test_the_options_are_refused_where_they_mean_nothing(parts: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((5, 2)))
    with pytest.raises(InputError, match="--max-rows has no effect"):
        read_at_most(tmp_path / "x.npy", max_rows=100)
    with pytest.raises(InputError, match="--cluster reads the parts"):
        read_at_most(parts / "0.parquet", "label", cluster="tcp://127.0.0.1:9")


def estimates(parts: Path, out: Path, *more: str) -> dict:
    line = ["prior", str(parts), "--label", "label", "--drop", "name", "--method", "bbe", "--out", str(out), *more]
    found = CliRunner().invoke(app, line, catch_exceptions=False)
    assert found.exit_code == 0, found.output
    numbers = json.loads(out.read_text())
    numbers["diagnostics"].pop("seconds")
    return {**numbers, "output": found.output.replace(out.name, "")}


def test_the_share_is_estimated_from_drawn_rows_and_told_for_all(parts: Path, tmp_path: Path) -> None:
    found = estimates(parts, tmp_path / "a.json", "--max-rows", "1500")
    assert found["diagnostics"]["n_unlabelled"] == N - LABELLED
    c = LABELLED / (LABELLED + found["value"] * (N - LABELLED))
    assert found["label_frequency"] == pytest.approx(c)
    assert "of 2,850 unlabelled rows are positive" in found["output"]
    assert "all 150 labelled rows" in found["output"].replace("\n", " ")


@pytest.mark.slow
def test_workers_draw_the_same_rows(parts: Path, tmp_path: Path) -> None:
    with local_cluster() as cluster:
        more = ["--max-rows", "1500", "--cluster", cluster.scheduler_address]
        far = estimates(parts, tmp_path / "a.json", *more)
    assert far == estimates(parts, tmp_path / "b.json", "--max-rows", "1500")

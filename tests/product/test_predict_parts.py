"""Many Parquet files are scored part by part: whole, once, and with the same bytes wherever it is done."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from punce.cli import app
from punce.errors import InputError
from punce.product import predict_parts as module
from punce.product.predict import run_predict
from punce.product.predict_parts import predict_parts
from tests.killer import Killer
from tests.product.parts import PARTS, ROWS, contents, local_cluster, rows, saved_model, written_parts

pytestmark = pytest.mark.usefixtures("quick_tables")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_model(tmp_path_factory.mktemp("model") / "m")


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    return written_parts(tmp_path / "parts")


def test_parts_are_scored_as_one_file_would_be(model: Path, parts: Path, tmp_path: Path) -> None:
    done = predict_parts(model, parts, tmp_path / "out")
    together = run_predict(model, parts, tmp_path / "one.parquet")
    assert done.together == together
    assert (done.parts, done.skipped) == (PARTS, 0)
    names = [f"part-{k:03}.scores.parquet" for k in range(PARTS)]
    assert list(contents(tmp_path / "out")) == names
    frames = [pd.read_parquet(tmp_path / "out" / name) for name in names]
    one = pd.read_parquet(tmp_path / "one.parquet")
    assert pd.concat(frames)["probability"].to_numpy() == pytest.approx(one["probability"].to_numpy(), abs=1e-12)
    assert all(frame["row"].tolist() == list(range(ROWS)) for frame in frames)


def test_a_pattern_names_some_parts_and_reads_as_one_table(model: Path, parts: Path, tmp_path: Path) -> None:
    done = predict_parts(model, parts / "part-00[12].parquet", tmp_path / "out")
    assert done.parts == 2
    assert run_predict(model, parts / "part-00[12].parquet", tmp_path / "one.csv").rows == 2 * ROWS


@pytest.mark.parametrize("pattern", ["", "*.parquet"])
def test_links_to_files_of_one_name_give_a_result_each(pattern: str, model: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    for seed, month in enumerate(("feb", "jan")):
        (tmp_path / month).mkdir()
        rows(seed, ROWS).drop(columns="y").to_parquet(tmp_path / month / "part-0.parquet", index=False)
        (tmp_path / "links" / f"{month}.parquet").symlink_to(tmp_path / month / "part-0.parquet")
    assert predict_parts(model, tmp_path / "links" / pattern, tmp_path / "out").together.rows == 2 * ROWS
    assert list(contents(tmp_path / "out")) == ["feb.scores.parquet", "jan.scores.parquet"]


def test_what_is_done_is_skipped_and_what_changed_is_done_again(
    model: Path, parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    first = predict_parts(model, parts, out)
    before = contents(out)
    scored: list[str] = []
    score = module.score_part
    monkeypatch.setattr(module, "score_part", lambda job: scored.append(job.part.name) or score(job))
    again = predict_parts(model, parts, out)
    assert (again.together, again.skipped, scored) == (first.together, PARTS, [])
    (out / "part-000.scores.parquet").unlink()
    (out / "part-001.scores.parquet").write_bytes(before["part-001.scores.parquet"][:-100])  # cut off by a full disk
    rows(99, ROWS).drop(columns="y").to_parquet(parts / "part-003.parquet", index=False)
    predict_parts(model, parts, out)
    assert scored == ["part-000.parquet", "part-001.parquet", "part-003.parquet"]
    after = contents(out)
    assert [name for name in before if before[name] != after[name]] == ["part-003.scores.parquet"]
    predict_parts(model, parts, out, share=0.6)
    assert len(scored) == 3 + PARTS  # for another share every probability is another one


def test_the_share_of_all_parts_is_that_of_one_file(model: Path, parts: Path, tmp_path: Path) -> None:
    done = predict_parts(model, parts, tmp_path / "out", share="auto")
    assert done.together == run_predict(model, parts, tmp_path / "one.parquet", share="auto")


def test_notes_are_said_once(model: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    for k in range(3):
        rows(k, 50).drop(columns="y").assign(town="Ur").to_parquet(parts / f"{k}.parquet")
    said = [note for note in predict_parts(model, parts, tmp_path / "out").together.notes if "town" in note]
    assert said[0].startswith("0.parquet: ")
    assert said[0].endswith("(and in 2 other parts)")


def test_two_notes_on_one_column_are_both_said(model: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    for k in range(2):
        frame = rows(k, 50).drop(columns="y").astype({"a": "str"})
        frame.loc[: k + 1, "a"] = ["none of it", "1e39", *["1e38"] * k]
        frame.to_parquet(parts / f"{k}.parquet")
    said = [note for note in predict_parts(model, parts, tmp_path / "out").together.notes if "column 'a'" in note]
    lost, huge = said
    assert "1 value is no number" in lost
    assert "beyond ±" in huge
    assert all(note.startswith("0.parquet: ") and note.endswith("(and in 1 other part)") for note in said)


@pytest.mark.parametrize(
    ("data", "out", "message"),
    [
        ("parts/part-000.parquet", "out", "has no Parquet parts"),
        ("parts/*.csv", "out", "must name Parquet files"),
        ("parts/x-*.parquet", "out", "no file matches"),
        ("parts", "out.parquet", "name a folder with --out"),
        ("parts", "parts", "would be read as parts"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    model: Path, parts: Path, tmp_path: Path, data: str, out: str, message: str
) -> None:
    line = ["predict", str(model), str(tmp_path / data), "--out", str(tmp_path / out), "--cluster", "tcp://127.0.0.1:9"]
    found = CliRunner().invoke(app, line)
    assert isinstance(found.exception, InputError)
    assert message in str(found.exception)


def test_parts_with_other_columns_are_refused_before_any_is_scored(model: Path, parts: Path, tmp_path: Path) -> None:
    rows(3, 20)[["a", "b"]].to_parquet(parts / "part-009.parquet")
    with pytest.raises(InputError, match="do not have the same columns"):
        predict_parts(model, parts, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_workers_write_the_same_bytes_as_one_process(model: Path, parts: Path, tmp_path: Path) -> None:
    with local_cluster() as cluster:
        line = ["predict", str(model), str(parts), "--cluster", cluster.scheduler_address]
        found = CliRunner().invoke(app, line, catch_exceptions=False)
        again = CliRunner().invoke(app, line, catch_exceptions=False)
    assert f"{PARTS * ROWS:,} rows scored" in found.output
    assert f"{PARTS} of them were done before" in again.output
    predict_parts(model, parts, tmp_path / "alone")
    assert contents(parts.parent / "parts.scores") == contents(tmp_path / "alone")


def at_a_part(out: Path) -> list[int]:
    """The processes that are writing a part: their temporary files have their number in the name."""
    begun = [file.name.removesuffix(".punce-tmp") for file in out.glob(".*.punce-tmp")]
    return [int(name.rpartition(".")[2].partition("-")[0]) for name in begun]


@pytest.mark.slow
@pytest.mark.faults
def test_killed_workers_change_nothing(model: Path, tmp_path: Path) -> None:
    parts = written_parts(tmp_path / "many", 12, 2_000)
    out = tmp_path / "out"
    (killer := Killer(lambda: at_a_part(out), 3)).start()
    with local_cluster() as cluster:
        done = predict_parts(model, parts, out, cluster=cluster.scheduler_address, batch_rows=200)
    killer.join()
    assert len(killer.killed) == 3
    assert done.together == predict_parts(model, parts, tmp_path / "alone", batch_rows=200).together
    assert contents(out) == contents(tmp_path / "alone")  # and no temporary file is left


@pytest.mark.slow
@pytest.mark.faults
def test_a_lost_scheduler_is_one_line_and_the_finished_parts_are_kept(model: Path, tmp_path: Path) -> None:
    parts, out = written_parts(tmp_path / "many", 12, 2_000), tmp_path / "out"
    with local_cluster() as cluster:
        ends = threading.Thread(target=lambda: (_wait_for(out), cluster.close()), daemon=True)
        ends.start()
        with pytest.raises(ConnectionError, match="finished parts are kept"):
            predict_parts(model, parts, out, cluster=cluster.scheduler_address, batch_rows=200)
        ends.join()
    kept = len(list(out.glob("*.parquet")))
    assert 0 < kept < 12
    assert predict_parts(model, parts, out, batch_rows=200).skipped == kept
    predict_parts(model, parts, tmp_path / "alone", batch_rows=200)
    assert contents(out) == contents(tmp_path / "alone")


def _wait_for(out: Path) -> None:
    until = time.monotonic() + 120
    while not any(out.glob("*.parquet")) and time.monotonic() < until:
        time.sleep(0.01)


def test_the_counts_of_a_part_are_in_its_own_file(model: Path, parts: Path, tmp_path: Path) -> None:
    predict_parts(model, parts, tmp_path / "out")
    metadata = pq.read_metadata(tmp_path / "out" / "part-000.scores.parquet").metadata
    assert b'"rows": 300' in metadata[b"punce"]

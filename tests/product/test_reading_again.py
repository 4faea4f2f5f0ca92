"""New rows are read as the run's own were: images in their form, columns by name, whatever the new file holds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from punce.classifier import PUClassifier
from punce.data import read
from punce.errors import InputError
from punce.product.fit import DataOptions, ModelOptions, run_fit
from punce.product.predict import run_predict
from tests.in_process import exit_code

pytestmark = pytest.mark.usefixtures("quick_tables")


def fitted(source: DataOptions, run: Path, encoder: str = "auto") -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("punce.product.fit.report_content", lambda *_: _NoContent())
        patch.setattr("punce.product.fit.write_report", lambda *_: None)
        run_fit(source, ModelOptions(prior=0.4, epochs=1, encoder=encoder), run, say=lambda _: None)
    return run


class _NoContent:
    """The page takes longer than the fit and is not what these tests are about."""

    def to_json(self) -> dict[str, object]:
        return {}


def probabilities(run: Path, data: Path, out: Path) -> list[float]:
    run_predict(run, data, out)
    return pd.read_csv(out)["probability"].tolist()


def earlier_run(run: Path, folder: Path) -> Path:
    """The run as an earlier punce left it, which did not store how the rows were read."""
    folder.mkdir()
    (folder / "model").symlink_to(run / "model")
    config = json.loads((run / "config.json").read_text())
    del config["reading"]
    (folder / "config.json").write_text(json.dumps(config))
    return folder


# Images ------------------------------------------------------------------------------------------------------------


def picture(path: Path, seed: int, size: int, mode: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((size, size)).convert(mode).save(path)


def pictures(folder: Path, sizes: tuple[int, ...], mode: str, n: int = 12) -> Path:
    for k in range(n):
        picture(folder / f"{k}.png", k, sizes[k % len(sizes)], mode)
    return folder


@pytest.fixture(scope="module")
def colour_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Learned from colour images of two sizes, so at 64 × 64, by an encoder that takes any size."""
    place = tmp_path_factory.mktemp("colour")
    pictures(place / "mixed" / "labelled", (12, 16), "RGB")
    pictures(place / "mixed" / "unlabelled", (12, 16), "RGB", 24)
    return fitted(DataOptions(str(place / "mixed"), None), place / "run", encoder="resnet18")


def as_learned(folder: Path, size: int, channels: int) -> np.ndarray:
    mode = "L" if channels == 1 else "RGB"
    opened = [Image.open(folder / name).convert(mode).resize((size, size)) for name in read(folder).ids]
    stack = np.stack([np.asarray(one, dtype=np.uint8) for one in opened])
    return stack[:, None] if channels == 1 else stack.transpose(0, 3, 1, 2)


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The rows that reached the classifier: probabilities can be equal for different images."""
    seen: list[np.ndarray] = []
    rows = PUClassifier._rows

    def spy(self: PUClassifier, X: np.ndarray) -> np.ndarray:
        seen.append(X)
        return rows(self, X)

    monkeypatch.setattr(PUClassifier, "_rows", spy)
    return seen


@pytest.mark.parametrize(("size", "mode"), [(10, "RGB"), (64, "L"), (10, "L")])
def test_new_pictures_take_the_form_of_the_runs_own(
    size: int, mode: str, colour_run: Path, scored: list[np.ndarray], tmp_path: Path
) -> None:
    new = pictures(tmp_path / "new", (size,), mode)
    assert len(probabilities(colour_run, new, tmp_path / "out.csv")) == 12
    np.testing.assert_array_equal(scored[0], as_learned(new, 64, 3))


def test_colour_pictures_for_a_model_of_small_grey_ones(scored: list[np.ndarray], tmp_path: Path) -> None:
    for part, n in (("labelled", 12), ("unlabelled", 24)):
        pictures(tmp_path / "grey" / part, (3,), "L", n)  # below what --image-size takes
    run = fitted(DataOptions(str(tmp_path / "grey"), None), tmp_path / "run")
    new = pictures(tmp_path / "new", (10,), "RGB")
    assert len(probabilities(run, new, tmp_path / "out.csv")) == 12
    np.testing.assert_array_equal(scored[-1], as_learned(new, 3, 1))


def test_a_run_that_did_not_store_the_form(colour_run: Path, tmp_path: Path) -> None:
    run = earlier_run(colour_run, tmp_path / "run")
    assert len(probabilities(run, pictures(tmp_path / "like", (9, 20), "RGB"), tmp_path / "out.csv")) == 12
    with pytest.raises(
        InputError, match=r"shape \(3, 10, 10\), but the model learned from rows of shape \(3, 64, 64\)"
    ):
        run_predict(run, pictures(tmp_path / "new", (10,), "RGB"), tmp_path / "none.csv")
    assert not (tmp_path / "none.csv").exists()


def test_the_folder_one_stands_in(colour_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pictures(tmp_path / "may", (10,), "RGB"))
    assert exit_code(monkeypatch, "predict", colour_run, ".") == 0
    assert len(pd.read_parquet(tmp_path / "may.scores.parquet")) == 12


# Embeddings and texts in a table -------------------------------------------------------------------------------------


def matrix(n: int = 120, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3 == 0
    frame = pd.DataFrame(random.normal(np.where(y, 1.0, -1.0)[:, None], [1.0, 2.0, 4.0], (n, 3)), columns=list("abc"))
    return frame.assign(z=np.arange(n), y=(y & (np.arange(n) < n // 2)).astype(int))


@pytest.fixture(scope="module")
def matrix_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("matrix")
    matrix().to_csv(place / "emb.csv", index=False)
    return fitted(DataOptions(str(place / "emb.csv"), "y", kind="embedding", drop=("z",)), place / "run")


@pytest.mark.parametrize("columns", [list("abc"), list("cab"), list("abcyz"), ["z", "c", "y", "b", "a"]], ids="".join)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_of_embeddings_are_found_by_name(
    columns: list[str], form: str, matrix_run: Path, tmp_path: Path
) -> None:
    new = matrix(40, seed=1)
    path = tmp_path / f"new.{form}"
    new[columns].to_csv(path, index=False) if form == "csv" else new[columns].to_parquet(path)
    expected = PUClassifier.load(matrix_run / "model").predict_proba(new[list("abc")].to_numpy(np.float32))[:, 1]
    np.testing.assert_allclose(probabilities(matrix_run, path, tmp_path / "out.csv"), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("id", "columns", "why"),
    [
        (None, {"id": "one"}, "the run was fitted without --id"),
        ("name", {}, "the file has no column 'name', which named the rows"),
        ("name", {"name": "one", "id": "two"}, ""),
        (None, {}, ""),
    ],
)
def test_an_id_that_is_no_name_is_said(
    id: str | None, columns: dict[str, str], why: str, matrix_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "model").symlink_to(matrix_run / "model")
    config = json.loads((matrix_run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "data": {**config["data"], "id": id}}))
    matrix(40, seed=1).assign(**columns).to_csv(tmp_path / "new.csv", index=False)
    done = run_predict(run, tmp_path / "new.csv", tmp_path / "out.csv")
    said = [note for note in done.notes if "the id of the result" in note]
    assert said == ([f"{why}; the id of the result is the number of the row"] if why else [])


def test_a_missing_column_of_embeddings(matrix_run: Path, tmp_path: Path) -> None:
    matrix(40)[["a", "c", "z"]].to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(InputError, match=r"new.csv has no column 'b' \(it has: a, c, z\)"):
        run_predict(matrix_run, tmp_path / "new.csv", tmp_path / "out.csv")


def test_embeddings_without_names_are_still_taken_in_order(matrix_run: Path, tmp_path: Path) -> None:
    rows = matrix(40, seed=1)[list("abc")].to_numpy(np.float32)
    np.save(tmp_path / "new.npy", rows)
    expected = PUClassifier.load(matrix_run / "model").predict_proba(rows)[:, 1]
    np.testing.assert_allclose(probabilities(matrix_run, tmp_path / "new.npy", tmp_path / "out.csv"), expected)
    np.save(tmp_path / "wide.npy", np.c_[rows, rows])
    with pytest.raises(InputError, match=r"has 6 features, but PUClassifier is expecting 3"):
        run_predict(matrix_run, tmp_path / "wide.npy", tmp_path / "out.csv")


def test_an_earlier_run_takes_the_columns_in_order(matrix_run: Path, tmp_path: Path) -> None:
    run = earlier_run(matrix_run, tmp_path / "run")
    matrix(40)[list("abc")].to_csv(tmp_path / "new.csv", index=False)
    assert len(probabilities(run, tmp_path / "new.csv", tmp_path / "out.csv")) == 40


def test_the_text_column_is_found_by_name(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    words = [["river", "bank", "fish", "boat"], ["money", "loan", "rate", "debt"]]
    y = np.arange(90) % 3 == 0
    body = [" ".join(random.choice(words[int(one)], 12)) for one in y]
    frame = pd.DataFrame({"body": body, "y": (y & (np.arange(90) < 60)).astype(int)})
    frame.to_csv(tmp_path / "march.csv", index=False)
    run = fitted(DataOptions(str(tmp_path / "march.csv"), "y"), tmp_path / "run")
    frame.assign(answer=body[::-1]).to_csv(tmp_path / "april.csv", index=False)
    expected = PUClassifier.load(run / "model").predict_proba(body)[:, 1]
    np.testing.assert_allclose(probabilities(run, tmp_path / "april.csv", tmp_path / "out.csv"), expected, rtol=1e-5)
    frame.assign(body=7).to_csv(tmp_path / "numbers.csv", index=False)  # nothing in it looks like a text
    assert len(probabilities(run, tmp_path / "numbers.csv", tmp_path / "out.csv")) == 90


@pytest.mark.faults
def test_a_damaged_reading_is_said(matrix_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "model").symlink_to(matrix_run / "model")
    matrix(40).to_csv(tmp_path / "new.csv", index=False)
    for reading in (5, {"pictures": {"size": "large", "channels": 3}}, {"columns": 3}):
        (run / "config.json").write_text(json.dumps({"data": {}, "reading": reading}))
        with pytest.raises(InputError, match=r"config\.json cannot be read"):
            run_predict(run, tmp_path / "new.csv", tmp_path / "out.csv")


def test_columns_asked_for_come_in_that_order(tmp_path: Path) -> None:
    matrix().to_csv(tmp_path / "rows.csv", index=False)
    data = read(tmp_path / "rows.csv", "y", kind="embedding", columns=["c", "a"])
    assert data.source_columns == ("c", "a")
    np.testing.assert_array_equal(data.features, matrix()[["c", "a"]].to_numpy(np.float32))
    with pytest.raises(InputError, match=r"both as features and as something else: \['y'\]"):
        read(tmp_path / "rows.csv", "y", columns=["a", "y"])


def test_a_decimal_mark_that_the_fit_was_told_holds_for_new_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"plain": rng.normal(size=120).round(3), "label": np.arange(120) < 30})
    table["m"] = [f"{k % 9 + 1},{k % 900 + 100:03d}" for k in range(120)]  # 1,100 is 1.1 or 1100
    table.to_csv(tmp_path / "t.csv", index=False)
    source = DataOptions(str(tmp_path / "t.csv"), label="label", decimal=",")
    run = fitted(source, tmp_path / "run", encoder="mlp")
    done = run_predict(run, tmp_path / "t.csv", tmp_path / "out.csv")
    assert not [note for note in done.notes if "outside" in note or "is 1100" in note], done.notes
    assert any("the decimal mark , does not fit 'plain'" in note for note in done.notes)

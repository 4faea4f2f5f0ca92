"""The classifier as an ONNX file gives the probabilities of predict_proba, or is refused in one line.

Evaluated by onnxruntime where it is installed, else by onnx itself, which walks trees in Python: tests use few rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer

from punce import PUClassifier
from punce.errors import InputError
from punce.judging.calibration import PUCalibrator
from punce.models.exported.graph import Graph
from punce.models.exported.probability import add_outputs
from punce.models.tabular.model import MEMBERS
from tests.models.stored.write import HERE as STORED
from tests.product.parts import rows as four_columns

onnx = pytest.importorskip("onnx", reason="the extra punce[export] is not installed")
pytestmark = [
    pytest.mark.usefixtures("quick_tables"),
    pytest.mark.filterwarnings("ignore::punce.models.table.TableWarning"),  # of rows that are odd on purpose
    pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning"),  # of how well a quick fit learns
]
SOME = slice(None, None, 25)


def evaluated(path: Path, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    try:
        from onnxruntime import InferenceSession

        run = InferenceSession(str(path)).run
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        run = ReferenceEvaluator(str(path)).run
    label, probabilities = run(None, inputs)
    return label, probabilities


def names(path: Path) -> dict[str, list[str]]:
    return {entry.key: json.loads(entry.value) for entry in onnx.load(path).metadata_props}


def inputs_of(path: Path, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """A frame as the lines of the documentation hand it over."""
    page = (Path(__file__).parents[2] / "docs" / "using.md").read_text(encoding="utf-8")
    given: dict[str, Any] = {"frame": frame, "names": names(path)}
    exec(page[page.index("X = frame[names") : page.index("label, probabilities = ")], given)
    given = {name: given[name] for name in ("X", "categories")}
    return {name: values for name, values in given.items() if values.shape[1]}


def assert_same(classifier: PUClassifier, path: Path, frame: pd.DataFrame) -> None:
    label, probabilities = evaluated(path, inputs_of(path, frame))
    expected = classifier.predict_proba(frame)
    assert probabilities == pytest.approx(expected, abs=1e-6)
    sure = np.abs(expected[:, 1] - classifier.threshold_) > 1e-6
    assert (label == classifier.predict(frame))[sure].all()


# A real table of numbers ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    return load_breast_cancer(as_frame=True).data


@pytest.fixture(scope="module")
def of_cells(
    cells: pd.DataFrame, quick_tables: None, tmp_path_factory: pytest.TempPathFactory
) -> tuple[PUClassifier, Path]:
    rng = np.random.default_rng(0)
    labels = (load_breast_cancer().target == 0) & (rng.random(len(cells)) < 0.4)
    classifier = PUClassifier(prior=0.25).fit(cells, labels.astype(int))
    # Every member takes part, whatever these few rows say of it.
    classifier._route._model.weights_ = dict.fromkeys(MEMBERS, 1 / len(MEMBERS))
    path = tmp_path_factory.mktemp("export") / "cells.onnx"
    classifier.export(path)
    return classifier, path


def with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    gaps = frame.mask(np.random.default_rng(2).random(frame.shape) < 0.3)
    gaps.iloc[0] = np.nan  # nothing is known of this row
    return gaps


def extreme(frame: pd.DataFrame) -> pd.DataFrame:
    values = [1e308, -1e308, np.inf, -np.inf, 3.4e38, 1e-320, -0.0, 0.0, np.nan]
    drawn = np.random.default_rng(3).choice(values, size=(20, frame.shape[1]))
    return pd.DataFrame(drawn, columns=frame.columns)


def drawn(frame: pd.DataFrame) -> pd.DataFrame:
    values = np.random.default_rng(1).normal(frame.mean(), 2 * frame.std(), size=(30, frame.shape[1]))
    return pd.DataFrame(values, columns=frame.columns)


ROWS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "training": lambda frame: frame[SOME],
    "float32": lambda frame: frame[SOME].astype(np.float32),
    "new": drawn,
    "gaps": lambda frame: with_gaps(drawn(frame)),
    "extreme": extreme,
}


@pytest.mark.parametrize("which", ROWS)
def test_a_table_of_numbers_gives_the_same_probabilities(cells: pd.DataFrame, of_cells: tuple, which: str) -> None:
    assert_same(*of_cells, ROWS[which](cells))


@pytest.mark.parametrize("moved", ["on", "above", "below", "float32"])
def test_a_number_on_an_edge_falls_into_the_same_bin(cells: pd.DataFrame, of_cells: tuple, moved: str) -> None:
    encoder, model = of_cells[0]._route.parts
    median, scale = (np.array([getattr(column, name) for column in encoder.columns]) for name in ("median", "scale"))
    edges = median + scale * model.bins_.edges[::4].astype(np.float64)
    on = pd.DataFrame(np.where(np.isfinite(edges), edges, median), columns=cells.columns)
    move: dict[str, Callable[[Any], Any]] = {
        "on": lambda x: x,
        "above": lambda x: np.nextafter(x, np.inf),
        "below": lambda x: np.nextafter(x, -np.inf),
        "float32": lambda x: x.astype(np.float32),
    }
    assert_same(*of_cells, move[moved](on))


def test_a_loaded_classifier_writes_the_same_file(of_cells: tuple, tmp_path: Path) -> None:
    classifier, path = of_cells
    classifier.save(tmp_path / "model")
    PUClassifier.load(tmp_path / "model").export(tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()


# Categories and gaps ----------------------------------------------------------------------------------------------


def orders(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers with gaps, truth values, few and many categories, and columns that are left out."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    frame = pd.DataFrame(
        {
            "amount": np.exp(rng.normal(size=n) + y).round(2),
            "colour": rng.choice(["red", "green", "weiß", "Blau"], n),
            "town": [f"town {k}" for k in rng.integers(0, 300 + 200 * y)],
            "flag": rng.random(n) < 0.3 + 0.4 * y,
            "agreed": rng.choice(["yes", "no"], n),
            "level": pd.Categorical(rng.integers(1, 5, n) + y),
            "always": 7.0,
            "order_id": np.arange(n),
        }
    )
    for column in ("amount", "colour", "agreed"):
        frame.loc[rng.random(n) < 0.2, column] = None
    return frame, y


@pytest.fixture(scope="module")
def of_orders(quick_tables: None) -> PUClassifier:
    frame, y = orders(900, 0)
    return PUClassifier(prior=0.25).fit(frame, (y & (np.arange(900) % 2 == 0)).astype(int))


@pytest.mark.parametrize("member", MEMBERS)
def test_each_member_reads_numbers_and_categories(
    of_orders: PUClassifier, member: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(of_orders._route._model, "weights_", {**dict.fromkeys(MEMBERS, 0.0), member: 1.0})
    of_orders.export(tmp_path / "m.onnx")
    assert_same(of_orders, tmp_path / "m.onnx", orders(40, 1)[0])


def test_unknown_missing_and_respelled_categories_are_read_as_by_punce(of_orders: PUClassifier, tmp_path: Path) -> None:
    of_orders.export(tmp_path / "m.onnx")
    assert names(tmp_path / "m.onnx") == {
        "numbers": ["amount", "flag"],
        "categories": ["colour", "town", "agreed", "level"],
    }
    frame = orders(40, 2)[0]
    frame.loc[::3, "colour"] = "purple"
    frame.loc[::4, "town"] = None
    frame.loc[::5, "colour"] = " red "  # spaces that a CSV file may have
    frame["agreed"] = np.where(np.arange(40) % 2, "TRUE", "n")
    frame["level"] = frame["level"].astype(float)
    assert_same(of_orders, tmp_path / "m.onnx", frame)
    columns = ["amount", "colour", "town", "agreed", "level"]
    empty = frame.astype({"level": object, "flag": object}).assign(**dict.fromkeys([*columns, "flag"], None))
    assert_same(of_orders, tmp_path / "m.onnx", empty[:3].astype({"amount": float, "flag": float}))


def test_a_table_of_categories_alone_has_one_input(tmp_path: Path) -> None:
    frame, y = orders(300, 3)
    frame = frame[["colour", "level"]]
    classifier = PUClassifier(prior=0.25).fit(frame, (y & (np.arange(300) % 2 == 0)).astype(int))
    classifier.export(tmp_path / "m.onnx")
    assert list(inputs_of(tmp_path / "m.onnx", frame)) == ["categories"]
    assert_same(classifier, tmp_path / "m.onnx", frame[:40])


# Other inputs -------------------------------------------------------------------------------------------------------


def test_a_matrix_is_given_with_all_its_columns(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    X[:, 1] = 5.0  # constant, so the model does not read it
    X[:60, 2] += 2.0
    classifier = PUClassifier(prior=0.3, kind="table").fit(sparse.csr_matrix(X), (np.arange(200) < 40).astype(int))
    classifier.export(tmp_path / "m.onnx")
    assert names(tmp_path / "m.onnx")["numbers"] == ["x0", "x1", "x2", "x3"]
    _, probabilities = evaluated(tmp_path / "m.onnx", {"X": X[::5].astype(np.float64)})
    assert probabilities == pytest.approx(classifier.predict_proba(X[::5]), abs=1e-6)


def test_the_model_of_two_labelled_rows_can_be_exported(tmp_path: Path) -> None:
    frame = orders(200, 4)[0].drop(columns="order_id")
    classifier = PUClassifier(prior=0.3).fit(frame, (np.arange(200) < 2).astype(int))
    classifier.export(tmp_path / "m.onnx")
    assert_same(classifier, tmp_path / "m.onnx", orders(100, 5)[0])


def test_a_linear_model_of_embeddings_can_be_exported(tmp_path: Path) -> None:
    X = four_columns(0, 600).drop(columns=["y", "town"]).to_numpy()
    options = {"kind": "embedding", "encoder": "identity", "loss": None, "epochs": 3, "prior": 0.3}
    classifier = PUClassifier(**options).fit(X, (np.arange(600) < 120).astype(int))
    classifier.export(tmp_path / "model.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    X = np.random.default_rng(5).normal(size=(500, 4)).astype(np.float32) * 4
    label, probabilities = evaluated(tmp_path / "model.onnx", {"X": X})
    assert probabilities == pytest.approx(classifier.predict_proba(X), abs=1e-5)
    sure = np.abs(probabilities[:, 1] - classifier.threshold_) > 1e-4
    assert (label == classifier.predict(X))[sure].all()


@pytest.mark.parametrize(
    ("scores", "logits"),
    [((0.5,), (1.0,)), ((-1.0, 2.0), (-3.0, 1.0)), ((-1.0, 0.0, 1e-9, 1e-6, 3.0), (-3.0, -2.0, -1.0, 1.0, 1.5))],
)
def test_the_map_to_probabilities_has_the_knots_of_the_calibrator(scores: tuple, logits: tuple, tmp_path: Path) -> None:
    calibrator = PUCalibrator(scores, logits, 0.3, "isotonic")
    threshold = float(calibrator.probability(scores[-1]))  # that of all rows beyond the last knot
    graph = Graph()
    add_outputs(graph, graph.input("score", np.float64, 1), calibrator, threshold)
    (tmp_path / "m.onnx").write_bytes(graph.model({}))
    x = np.concatenate([scores, np.linspace(-2.0, 4.0, 50), [-1e9, 5e-10, 5e-7, 1e9]])
    label, probabilities = evaluated(tmp_path / "m.onnx", {"score": x[:, None]})
    assert probabilities[:, 1] == pytest.approx(calibrator.probability(x), abs=1e-12)
    assert label.tolist() == (calibrator.probability(x) >= threshold).astype(int).tolist()


# Refused -------------------------------------------------------------------------------------------------------------


def test_columns_that_the_file_cannot_read_are_named(tmp_path: Path) -> None:
    dated = PUClassifier.load(STORED / "table")
    with pytest.raises(InputError, match=r"column 'day' holds dates.*give numbers in its place"):
        dated.export(tmp_path / "m.onnx")
    frame, y = orders(200, 6)
    frame["colour"] = frame["colour"].fillna("")
    with pytest.raises(InputError, match="column 'colour' has the empty text as a category"):
        PUClassifier(prior=0.3).fit(frame[["amount", "colour"]], y.astype(int)).export(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_only_an_earlier_export_is_replaced(tmp_path: Path, of_orders: PUClassifier) -> None:
    (tmp_path / "m.onnx").write_bytes(b"weights of another program")
    with pytest.raises(InputError, match=r"m.onnx is not an ONNX file of punce and would be replaced; name another"):
        of_orders.export(tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes() == b"weights of another program"
    of_orders.export(tmp_path / "own.onnx")
    of_orders.export(tmp_path / "own.onnx")


def test_models_that_no_file_can_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"of tables only the default model .* a network"):
        PUClassifier.load(STORED / "table_network").export(tmp_path / "m.onnx")
    X, y = np.random.default_rng(0).normal(size=(200, 4)), (np.arange(200) < 40).astype(int)
    curved = PUClassifier(prior=0.3, kind="embedding", encoder="mlp", loss=None, epochs=1).fit(X, y)
    with pytest.raises(InputError, match="only models whose scores are linear in the columns"):
        curved.export(tmp_path / "m.onnx")
    with pytest.raises(InputError, match="tables and embeddings can be exported, not of texts"):
        PUClassifier.load(STORED / "words").export(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())

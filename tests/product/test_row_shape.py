"""A network is for rows of the shape it learned from; others are refused in words, not in torch or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from punce.classifier import PUClassifier
from punce.errors import InputError
from punce.models import NetworkRoute
from punce.models.network import as_tensor

# noise: what is learned from it is not the matter here
pytestmark = pytest.mark.filterwarnings("ignore:the classifier does not tell rows apart")
LABELS = (np.arange(40) % 4 == 0).astype(int)


@pytest.fixture(scope="module")
def classifier() -> PUClassifier:
    """Of an encoder that takes images of any size."""
    X = np.random.default_rng(0).integers(0, 256, (40, 3, 8, 8), dtype=np.uint8)
    return PUClassifier(encoder="resnet18", prior=0.4, epochs=1, random_state=0).fit(X, LABELS)


@pytest.mark.parametrize("shape", [(2, 3, 16, 16), (2, 1, 8, 8), (2, 192)], ids=str)
@pytest.mark.parametrize("method", ["predict_proba", "embed"])
def test_another_shape_is_refused(
    shape: tuple[int, ...], method: str, classifier: PUClassifier, tmp_path: Path
) -> None:
    classifier.save(tmp_path / "model")
    for one in (classifier, PUClassifier.load(tmp_path / "model")):
        with pytest.raises(InputError, match=r"but the model learned from rows of shape \(3, 8, 8\)"):
            getattr(one, method)(np.zeros(shape, dtype=np.uint8))


@pytest.mark.parametrize("loss", ["infonce", None])
def test_colour_images_that_are_not_square_get_a_network_that_reads_them(loss: str | None) -> None:
    X = np.random.default_rng(0).integers(0, 256, (40, 3, 8, 12), dtype=np.uint8)
    fitted = PUClassifier(loss=loss, risk="nnpu", prior=0.4, epochs=1, encoder="auto").fit(X, LABELS)
    assert fitted.ran_["encoder"] == "resnet18"


@pytest.mark.parametrize(
    ("kind", "shape", "message"),
    [
        ("image", (40, 64), r"images have the shape .*, got \(40, 64\); bring flat images back"),
        ("embedding", (40, 1, 8, 8), r"embeddings are a matrix \(n, d\), got \(40, 1, 8, 8\)"),
    ],
)
def test_rows_of_another_kind_than_the_named_one_are_refused(kind: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PUClassifier(kind=kind, prior=0.4).fit(np.zeros(shape, dtype=np.uint8), LABELS)


def test_channels_may_still_come_last(classifier: PUClassifier) -> None:
    assert classifier.embed(np.zeros((2, 8, 8, 3), dtype=np.uint8)).shape[0] == 2


@pytest.mark.parametrize(
    ("X", "why"),
    [
        (np.full((40, 3), "word"), "embeddings must be numbers; .*word"),
        (np.full((40, 3), np.datetime64("2024-01-01")), r"must be numbers, got datetime64\[D\]"),
    ],
)
def test_words_and_dates_are_no_embeddings(X: np.ndarray, why: str) -> None:
    with pytest.raises(InputError, match=why):
        PUClassifier(kind="embedding", prior=0.4).fit(X, LABELS)


@pytest.mark.parametrize(
    ("shape", "mend"), [((6, 8, 8), r"grey images \(n, H, W\) are X\[:, None\]$"), ((8,), r"one row is \(1, d\)$")]
)
def test_rows_with_an_axis_too_few_say_how_to_add_it(shape: tuple[int, ...], mend: str) -> None:
    with pytest.raises(InputError, match=mend):
        as_tensor(np.zeros(shape, dtype=np.uint8))


def test_numbers_that_are_written_as_text_are_numbers() -> None:
    X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    assert as_tensor(X.astype(str)).numpy().tolist() == X.tolist()


def test_embeddings_of_another_width_are_refused_after_loading(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 5))
    PUClassifier(kind="embedding", prior=0.4, epochs=1, random_state=0).fit(X, LABELS).save(tmp_path / "model")
    with pytest.raises(InputError, match="X has 4 features, but PUClassifier is expecting 5"):
        PUClassifier.load(tmp_path / "model").predict(X[:, :4])


def test_a_model_saved_without_its_shape_scores_as_before(classifier: PUClassifier) -> None:
    tensors, content = classifier._route.state()
    assert content.pop("row_shape") == [3, 8, 8]
    assert NetworkRoute.from_state(tensors, content).score(np.zeros((2, 3, 16, 16), dtype=np.uint8)).shape == (2,)


def test_rows_of_a_read_only_file_are_taken_without_a_word(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 2), np.float32))
    x = as_tensor(np.load(tmp_path / "x.npy", mmap_mode="r"))  # torch warns, and warnings are errors here
    assert x.shape == (3, 2)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e20, -3e38])
def test_an_embedding_with_a_number_that_cannot_be_learned_from_is_refused_by_row(value: float) -> None:
    """Before the share is estimated. The squares of the last two are infinite in single precision."""
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    X[7, 2] = value
    with pytest.raises(InputError, match="row 7 of the embeddings holds a NaN, infinite or too large value"):
        PUClassifier(kind="embedding").fit(X, np.arange(30) < 10)


def test_embeddings_in_a_column_of_a_frame_are_told_how_to_become_a_matrix() -> None:
    frame = pd.DataFrame({"name": list("abc") * 10, "vector": list(np.zeros((30, 4)))})
    with pytest.raises(InputError, match=r"column 'vector' of X holds a vector .*np\.stack\(X\['vector'\]\)"):
        PUClassifier(kind="embedding").fit(frame, np.arange(30) < 10)


def test_grey_images_without_an_axis_for_channels_are_told_how_to_get_it() -> None:
    with pytest.raises(InputError, match=r"neither a table .*; grey images \(n, H, W\) are X\[:, None\]"):
        PUClassifier().fit(np.zeros((30, 8, 8), dtype=np.uint8), np.arange(30) < 10)

"""Static word vectors: read from an installed package, whole texts, and refused where they are others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from punce import PUClassifier
from punce.encoders.static import StaticVectors, has_static_vectors
from punce.errors import InputError
from punce.models.sentences import SentenceVectors

WORDS = ["[UNK]", "good", "bad", "film", "dull", "fine"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of the same layout with six words."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    folder = tmp_path / "wordllama"
    for name in ("weights", "tokenizers"):
        (folder / name).mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('the package is not to be imported')")
    table = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float16)
    save_file({"embedding.weight": table}, folder / "weights" / "small.safetensors")
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))  # type: ignore[call-arg]
    tokenizer.pre_tokenizer = Whitespace()  # type: ignore[assignment]
    tokenizer.save(str(folder / "tokenizers" / "small.json"))
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_a_text_is_the_mean_of_its_words_and_nothing_is_cut(package: Path) -> None:
    vectors = StaticVectors()
    assert has_static_vectors()
    good, bad, both, nothing = vectors.embed(["good", "bad", "good bad", ""]).numpy()
    assert both == pytest.approx((good + bad) / 2, abs=1e-6)
    assert not nothing.any()
    long = vectors.embed(["good " * 999 + "bad"]).numpy()[0]
    assert long == pytest.approx((999 * good + bad) / 1000, abs=1e-5)
    assert vectors.embed([]).shape == (0, 8)


def test_the_classifier_takes_installed_vectors_by_itself_and_saves_no_weights(package: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    texts = [
        " ".join(rng.choice(["film", "fine", "good"] if k % 2 else ["film", "dull", "bad"], 6)) for k in range(120)
    ]
    labels = np.array([int(k % 2 == 1 and k < 60) for k in range(120)])
    model = PUClassifier(prior=0.33, epochs=1, random_state=0).fit(texts, labels)
    chances = model.predict_proba(["good fine film", "dull bad film"])[:, 1]
    assert chances[0] > chances[1]
    model.save(tmp_path / "model")
    again = PUClassifier.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(texts), model.predict_proba(texts))


def test_other_vectors_than_those_of_the_fit_are_refused(package: Path) -> None:
    state = SentenceVectors(StaticVectors()).fit(["good film", "bad film"]).state()
    assert SentenceVectors.from_state(*state).vectors(["good film"]).shape == (1, 8)
    table = next((package / "weights").iterdir())
    save_file({"embedding.weight": np.ones((6, 8), dtype=np.float16)}, table)
    with pytest.raises(InputError, match="other weights or another tokeniser"):
        SentenceVectors.from_state(*state)


def test_errors_name_what_is_missing(package: Path) -> None:
    with pytest.raises(InputError, match="need the package nothing_here"):
        StaticVectors("nothing_here")
    with pytest.raises(InputError, match="cannot be trained"):
        PUClassifier(encoder="wordllama", transfer="finetune", loss="punce", risk="nnpu", prior=0.5).fit(
            ["good film"] * 8 + ["bad film"] * 8, [1] * 4 + [0] * 12
        )
    save_file({"a": np.ones(3, np.float16)}, next((package / "weights").iterdir()))
    with pytest.raises(InputError, match="one table of word vectors"):
        StaticVectors()

"""PUClassifier and ``punce fit`` on texts: word counts, a frozen encoder, a trained one."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score

from punce import PUClassifier
from punce.datasets.generated_text import WORDS, generated_reviews
from punce.encoders import Transformer
from punce.encoders.tiny_roberta import write_tiny_roberta
from punce.errors import InputError
from punce.models import Fitted, TextRoute, kind_of
from punce.models.sentences import SentenceVectors
from punce.models.text import _cut_texts
from punce.models.words import WordVectors
from punce.ran import ran_in_words
from punce.storage.model_file import ModelFileError
from tests.in_process import exit_code

FAST: dict[str, Any] = {"epochs": 6, "prior": 0.36}


def problem(n: int = 400, n_labelled: int = 90) -> tuple[list[str], np.ndarray, np.ndarray]:
    part = generated_reviews(n, seed=5)
    labels = np.zeros(n, int)
    labels[np.flatnonzero(part.y_true)[:n_labelled]] = 1
    return part.X, labels, part.y_true


@pytest.fixture(scope="module")
def frozen(roberta: Path) -> PUClassifier:
    texts, labels, _ = problem()
    return PUClassifier(encoder=str(roberta), **FAST).fit(texts, labels)


def test_a_frozen_encoder_end_to_end(frozen: PUClassifier, roberta: Path) -> None:
    new = generated_reviews(80, seed=6)
    probability = frozen.predict_proba(new.X)[:, 1]
    assert roc_auc_score(new.y_true, probability) > 0.85
    assert frozen.kind_ == "text"
    assert {row["stage"] for row in frozen.history_} == {"pretrain", "labelled rows, scl"}
    assert {"raw, logistic", "scl, self_consistent", "words, logistic"} <= set(frozen.ran_["teachers"])
    assert {"scl, taught_linear", "words, taught_linear"} <= set(frozen.ran_["members"])
    assert frozen.notes_ == ()
    assert f"held-out labelled rows, texts read by {roberta.resolve()} (" in ran_in_words(frozen.ran_)
    assert frozen.embed(new.X).shape[0] == 80


def test_a_saved_model_remembers_its_encoder_and_checks_it(
    frozen: PUClassifier, roberta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = shutil.copytree(roberta, tmp_path / "encoder")
    texts, labels, _ = problem()
    classifier = PUClassifier(encoder=str(home), **FAST).fit(texts, labels)
    classifier.save(tmp_path / "model")
    kept = json.loads((tmp_path / "model" / "model.json").read_text())["route"]["vectors"]["encoder"]
    assert kept["source"] == str(home)
    assert kept["sha256"] == Transformer(roberta).sha256
    expected = classifier.predict_proba(texts)
    assert PUClassifier.load(tmp_path / "model").predict_proba(texts) == pytest.approx(expected, abs=1e-5)
    home.rename(tmp_path / "moved")
    with pytest.raises(ModelFileError, match=r"trained on the text encoder .*or set PUNCE_TEXT_ENCODER"):
        PUClassifier.load(tmp_path / "model")
    monkeypatch.setenv("PUNCE_TEXT_ENCODER", str(tmp_path / "moved"))
    assert PUClassifier.load(tmp_path / "model").predict_proba(texts) == pytest.approx(expected, abs=1e-5)
    write_tiny_roberta(home, WORDS, seed=1)
    monkeypatch.delenv("PUNCE_TEXT_ENCODER")
    with pytest.raises(ModelFileError, match="holds other weights"):
        PUClassifier.load(tmp_path / "model")


def test_every_text_is_embedded_once(roberta: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels, _ = problem()
    seen: list[str] = []
    embed = Transformer.embed

    def counting(self: Transformer, some: list[str], **options: Any) -> torch.Tensor:
        seen.extend(some)
        return embed(self, some, **options)

    monkeypatch.setattr(Transformer, "embed", counting)
    classifier = PUClassifier(encoder=str(roberta), **FAST).fit(texts, labels)
    classifier.embed(texts[:30])
    assert sorted(seen) == sorted(set(texts))
    classifier.predict(["mud mud", "mud mud", texts[0]])
    assert seen.count("mud mud") == 1


@pytest.mark.faults
def test_embeddings_outlive_a_kill(encoder: Transformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = problem(60, 20)[0]
    whole = SentenceVectors(encoder).fit(texts, folder=tmp_path).vectors(texts)
    other = SentenceVectors(encoder).fit([*texts, "mud"], folder=tmp_path / "other").vectors(texts)
    embed = Transformer.embed

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("embedded again")

    monkeypatch.setattr(Transformer, "embed", refuse)
    assert (SentenceVectors(encoder).fit(texts, folder=tmp_path).vectors(texts) == whole).all()
    monkeypatch.setattr(Transformer, "embed", embed)
    shutil.copy(tmp_path / "embeddings.safetensors", tmp_path / "other")  # of other texts: not used
    assert (SentenceVectors(encoder).fit([*texts, "mud"], folder=tmp_path / "other").vectors(texts) == other).all()
    (tmp_path / "embeddings.safetensors").write_bytes(b"damaged")
    assert (SentenceVectors(encoder).fit(texts, folder=tmp_path).vectors(texts) == whole).all()


@pytest.mark.parametrize("loss", ["punce", None])
def test_the_transformer_itself_can_be_trained(roberta: Path, tmp_path: Path, loss: str | None) -> None:
    texts, labels, y = problem(300, 70)
    classifier = PUClassifier(encoder=str(roberta), transfer="finetune", loss=loss, epochs=2, prior=0.36)
    classifier.fit(texts, labels)
    stages = {row["stage"] for row in classifier.history_}
    assert stages == {"finetune"} | ({"pretrain"} if loss else set())
    assert roc_auc_score(y, classifier.decision_function(texts)) > 0.8
    before = Transformer(roberta).state_dict()
    after = classifier._route._reader._encoder.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before if name.startswith("backbone"))
    classifier.save(tmp_path / "model")
    again = PUClassifier.load(tmp_path / "model")
    assert again.predict_proba(texts) == pytest.approx(classifier.predict_proba(texts), abs=1e-5)


@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")  # a single label is no good, and it says so
def test_one_labelled_text_and_a_given_share_are_enough_to_train_the_transformer(roberta: Path) -> None:
    texts, labels, _ = problem(60, 1)
    classifier = PUClassifier(encoder=str(roberta), transfer="finetune", epochs=1, prior=0.36, random_state=0)
    classifier.fit(texts, labels)
    assert classifier.seen_in_training_[labels == 1].all()  # calibrated on a row that the model saw, and said so
    assert np.isfinite(classifier.predict_proba(texts)).all()


def test_risks_that_cannot_train_a_transformer_are_refused(roberta: Path) -> None:
    texts, labels, _ = problem(60, 20)
    with pytest.raises(InputError, match="risk 'vpu' cannot train a transformer"):
        PUClassifier(encoder=str(roberta), transfer="finetune", risk="vpu", **FAST).fit(texts, labels)


def test_an_encoder_object_is_used_as_it_is(roberta: Path, tmp_path: Path) -> None:
    texts, labels, _ = problem()
    classifier = PUClassifier(encoder=Transformer(roberta, "first", max_length=8), **FAST).fit(texts, labels)
    assert "longer than 8 tokens and read in parts" in classifier.notes_[0]
    classifier.save(tmp_path / "model")
    again = PUClassifier.load(tmp_path / "model")
    assert again.predict_proba(texts) == pytest.approx(classifier.predict_proba(texts), abs=1e-5)


def test_one_long_text_is_told_in_the_singular(roberta: Path) -> None:
    texts = ["good " * 40, "good"]
    (note,) = _cut_texts(Transformer(roberta, max_length=8), texts, trained=True)
    assert note == "1 of 2 texts is at least 8 tokens long; what comes after is not read"
    (note,) = _cut_texts(Transformer(roberta, max_length=8), texts, trained=False)
    assert note.startswith("1 of 2 texts is longer than 8 tokens and read in parts, whose features are averaged")


def test_a_trained_encoder_object_keeps_its_weights_and_is_left_alone(roberta: Path, tmp_path: Path) -> None:
    texts, labels, _ = problem()
    encoder = Transformer(roberta)
    with torch.no_grad():
        for weight in encoder.backbone.parameters():
            weight.mul_(1.3)
    before = encoder.weights_digest()
    assert encoder.is_trained
    classifier = PUClassifier(encoder=encoder, **FAST).fit(texts, labels)
    classifier.save(tmp_path / "model")
    again = PUClassifier.load(tmp_path / "model")
    new = generated_reviews(40, seed=8).X
    assert again.predict_proba(new) == pytest.approx(classifier.predict_proba(new), abs=1e-6)
    tuned = PUClassifier(encoder=encoder, transfer="finetune", epochs=1, prior=0.36)
    assert (tuned.fit(texts, labels).scores_ == tuned.fit(texts, labels).scores_).all()
    assert encoder.weights_digest() == before


def test_the_seed_decides_a_trained_transformer_whatever_torch_drew_before(roberta: Path) -> None:
    texts, labels, _ = problem(200, 60)
    found = []
    for noise in (1, 5):
        torch.manual_seed(noise)
        classifier = PUClassifier(encoder=str(roberta), transfer="finetune", epochs=1, prior=0.36, random_state=0)
        found.append(classifier.fit(texts, labels).scores_)
    assert (found[0] == found[1]).all()


# What counts as texts ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def words() -> PUClassifier:
    texts, labels, _ = problem()
    return PUClassifier(encoder="tfidf", **FAST).fit(texts, labels)


def test_missing_texts_are_empty_ones(words: PUClassifier) -> None:
    texts, expected = ["a fine film", None, "dull"], words.predict_proba(["a fine film", "", "dull"])
    for missing in (None, float("nan"), pd.NA):
        rows = [missing if text is None else text for text in texts]
        for given in (rows, pd.Series(rows), pd.Series(rows, dtype=object), np.array(rows, dtype=object)):
            assert kind_of(given) == "text"
            assert (words.predict_proba(given) == expected).all()


def test_a_frame_is_its_only_column_and_one_text_is_not_a_list(words: PUClassifier, encoder: Transformer) -> None:
    texts = generated_reviews(5, seed=2).X
    assert (words.predict_proba(pd.DataFrame({"review": texts})) == words.predict_proba(texts)).all()
    with pytest.raises(InputError, match=r"texts are one column, but the table has \['a', 'b'\]"):
        words.predict_proba(pd.DataFrame({"a": texts, "b": texts}))
    with pytest.raises(InputError, match="X is one text"):
        words.predict_proba("sun sea")
    with pytest.raises(InputError, match="there are no texts"):
        words.predict_proba([])
    with pytest.raises(InputError, match="got one str"):
        encoder.tokens("sun sea")
    assert encoder.embed(["a lone \ud800 surrogate"]).isfinite().all()


def test_texts_without_spaces_are_read_by_letters(tmp_path: Path) -> None:
    _, labels, y = problem()
    random = np.random.default_rng(0)
    kinds = ["好美喜乐", "坏丑悲苦"]
    texts = ["".join(random.choice(list(kinds[0 if is_good else 1] + "天地人水"), 12)) for is_good in y]
    classifier = PUClassifier(encoder="tfidf", **FAST).fit(texts, labels)
    assert roc_auc_score(y, classifier.scores_) > 0.9
    classifier.save(tmp_path / "model")
    assert PUClassifier.load(tmp_path / "model").predict_proba(texts) == pytest.approx(classifier.predict_proba(texts))


def test_clauses_that_some_texts_without_spaces_share_do_not_hide_the_rest() -> None:
    """They were the only words of such texts: none was counted by its letters, nor beside texts with spaces."""
    random = np.random.default_rng(0)
    texts = ["".join(random.choice(list("好美喜乐坏丑悲苦天地人水"), 12)) for _ in range(40)]
    texts = [f"{text}，{closing}" for text, closing in zip(texts, ["谢谢", "再见", "", ""] * 10, strict=True)]
    for rows in (texts, [*texts, *generated_reviews(40, seed=1).X]):
        words = WordVectors().fit(rows, 0, reduced=False)
        assert words.knows(texts).all()
        assert (words.counts(texts).getnnz(axis=1) > 8).all()


@pytest.mark.parametrize("encoder", ["tfidf", "frozen"])
@pytest.mark.filterwarnings("error")
def test_texts_that_are_all_equal_are_refused(encoder: str, roberta: Path) -> None:
    """They gave scikit-learn's "invalid value" warning and a model that ranks like a coin."""
    model = PUClassifier(kind="text", encoder="tfidf" if encoder == "tfidf" else Transformer(roberta))
    with pytest.raises(InputError, match="all 40 texts are equal: nothing in them tells one row from another"):
        model.fit(["the same words each time"] * 40, np.tile([1, 0, 0, 0], 10))


@pytest.mark.filterwarnings("error")
def test_texts_of_equal_words_are_read_by_what_differs() -> None:
    texts = ["the sea!", "the sea?"] * 20
    assert len(np.unique(WordVectors().fit(texts, 0).vectors(texts).round(5), axis=0)) == 2


def test_what_the_model_says_stays_beside_what_the_reader_says() -> None:
    route = TextRoute()
    route._notes = ("read as word counts",)
    fitted = Fitted(np.arange(1), np.zeros(1), [], notes=("memorised labelled rows",))
    route._reader = SimpleNamespace(fit=lambda *_: fitted)  # type: ignore[assignment]
    settings = SimpleNamespace(used={})
    fitted = route.fit(["a"], np.array([1]), settings)  # type: ignore[arg-type]
    assert fitted.notes == ("read as word counts", "memorised labelled rows")


# Which way "auto" goes -----------------------------------------------------------------------------------------------


def way(encoder: str) -> tuple[Any, tuple[str, ...]]:
    """How a route would read texts, and what it says about it."""
    route, classifier = TextRoute(), PUClassifier(encoder=encoder)
    classifier.seed_, classifier.kind_, classifier.encoder_ = 0, "text", encoder
    route.prepare(problem(60, 20)[0], classifier._settings(None))
    assert route._reader is not None
    return route._reader.how, route._notes


def test_auto_reads_words_and_says_what_an_encoder_would_bring(monkeypatch: pytest.MonkeyPatch, roberta: Path) -> None:
    how, notes = way("auto")
    assert how == "words"
    assert "name one with encoder=, --encoder or the variable PUNCE_TEXT_ENCODER" in notes[0]
    monkeypatch.setenv("PUNCE_TEXT_ENCODER", str(roberta))
    assert way("auto") == ("frozen", ())
    assert way("tfidf") == way("mlp") == ("words", ())


def test_without_the_extra_words_work_and_the_message_says_what_it_brings(
    monkeypatch: pytest.MonkeyPatch, roberta: Path
) -> None:
    texts, labels, y = problem()
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setenv("PUNCE_TEXT_ENCODER", str(roberta))
    classifier = PUClassifier(**FAST).fit(texts, labels)
    assert "reads what words mean" in classifier.notes_[0]
    assert "pip install 'punce[text]'" in classifier.notes_[0]
    assert classifier.ran_["texts"] == "word counts"
    assert roc_auc_score(y, classifier.decision_function(texts)) > 0.9
    with pytest.raises(InputError, match=r"pip install 'punce\[text\]'"):
        PUClassifier(encoder=str(roberta), **FAST).fit(texts, labels)


def test_encoders_that_cannot_be_had(roberta: Path) -> None:
    texts, labels, _ = problem(60, 20)
    for encoder, message in (
        ("some-encoder", "cannot be reached"),
        ("./nowhere", "no encoder folder"),
        ("transformer", "name the transformer"),
        ("", "encoder must be 'auto'"),
        (3, "encoder must be 'auto'"),
    ):
        with pytest.raises(InputError, match=message):
            PUClassifier(encoder=encoder, **FAST).fit(texts, labels)
    with pytest.raises(InputError, match="encoder must be 'auto'"):
        PUClassifier(encoder=str(roberta), **FAST).fit(np.random.default_rng(0).random((60, 3)), labels)


# The command ---------------------------------------------------------------------------------------------------------


def test_fit_report_and_predict(
    roberta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts, labels, _ = problem()
    texts[0] = "<script>alert(1)</script> sun sea"
    pd.DataFrame({"review": texts, "good": labels}).to_csv(tmp_path / "reviews.csv", index=False)
    options = ("--label", "good", "--text", "review", "--prior", "0.36", "--epochs", "6")
    run = tmp_path / "run"
    assert exit_code(monkeypatch, "fit", tmp_path / "reviews.csv", *options, "--encoder", roberta, "--out", run) == 0
    assert "word counts" not in capsys.readouterr().out
    page = (run / "report.html").read_text()
    ranked = pd.read_parquet(run / "scores.parquet")
    assert texts[int(ranked["row"][0])] in page
    assert "<script>alert(1)" not in page
    new = generated_reviews(40, seed=8)
    pd.DataFrame({"review": new.X}).to_csv(tmp_path / "new.csv", index=False)
    assert exit_code(monkeypatch, "predict", run, tmp_path / "new.csv", "--out", tmp_path / "scored.csv") == 0
    scored = pd.read_csv(tmp_path / "scored.csv")
    assert roc_auc_score(new.y_true, scored["probability"]) > 0.8
    assert exit_code(monkeypatch, "fit", tmp_path / "reviews.csv", *options, "--out", tmp_path / "words") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "texts were read as word counts" in said
    assert "word counts" in (tmp_path / "words" / "report.html").read_text()
    wrong = ("--encoder", "no-such-encoder", "--out", tmp_path / "wrong")
    assert exit_code(monkeypatch, "fit", tmp_path / "reviews.csv", *options, *wrong) == 2
    assert "'no-such-encoder' cannot be reached" in capsys.readouterr().err
    assert not (tmp_path / "wrong").exists()

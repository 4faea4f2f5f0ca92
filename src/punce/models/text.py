"""Texts: read as word counts, through a frozen pretrained encoder, or with that encoder trained (docs/text.md)."""

from __future__ import annotations

import copy
import re
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unicodedata import category

import numpy as np
import pandas as pd
from torch import Tensor

from punce.columns.counts import refuse_equal
from punce.columns.encoder import EncodedTable, plain_columns
from punce.columns.given import is_missing
from punce.encoders import ENCODERS, Encoder, Transformer
from punce.encoders.pretrained import VARIABLE, has_transformers, named_encoder
from punce.encoders.static import PACKAGE, StaticVectors, has_static_vectors
from punce.errors import InputError, number_of
from punce.labels import Labels
from punce.models.insight import Reason
from punce.models.network import NetworkRoute, check_device, fit_chosen_network
from punce.models.portfolio.model import FeatureModel
from punce.models.route import FitSettings, Fitted, Flags, Floats, State, Tried, under
from punce.models.sentences import SentenceVectors
from punce.models.tuned_text import TunedTransformer
from punce.models.words import WordVectors
from punce.training.random_stream import seeded

WORD_COUNTS = "tfidf"
_WORD = re.compile(r"\w+")
_MOST_WORDS = 40  # of a text whose effects are measured: each costs one more score
_INNER, _WORDS = "vectors.", "words."


class TextRoute:
    """What "auto" does: the encoder that PUNCE_TEXT_ENCODER names, frozen; else static vectors, if they are installed;
    else word counts.

    Frozen embeddings or reduced word counts, features learned from them and the counts of all words are candidates for
    several heads. Where a loss or risk is named, contrastive features by a network, then a linear head. With
    ``transfer="finetune"`` the transformer itself is trained.
    """

    _reader: _OnVectors | _Weighed | TunedTransformer

    def __init__(self) -> None:
        self._notes: tuple[str, ...] = ()
        self._read_by = "word counts"

    def prepare(self, X: Any, settings: FitSettings) -> Any:
        """Choose how to read the texts, and return what the first prior is estimated on: embeddings, or the texts."""
        texts = as_texts(X)
        refuse_equal(texts)
        with seeded(settings.random_state):  # a new encoder draws its projector
            encoder = _encoder_for(settings.encoder)
        if encoder is None:
            self._notes = _why_word_counts(settings.encoder)
            self._reader = _on_vectors(WordVectors().fit(texts, settings.random_state), settings)
            return texts
        self._read_by = encoder.source
        if isinstance(encoder, Transformer):
            self._notes = _cut_texts(encoder, texts, trained=settings.transfer == "finetune")
            encoder.to(check_device(settings.device))
            if settings.transfer == "finetune":
                encoder.max_parts = 1  # it is trained on the beginning of a text, so it is asked about that
        frozen = SentenceVectors(encoder).fit(texts, folder=settings.folder, progress=settings.progress)
        self._reader = _reader_of(encoder, frozen, settings)
        return frozen.vectors(texts)

    def fit(self, X: Any, labels: Labels, settings: FitSettings) -> Fitted:
        """Learn from texts that :meth:`prepare` has seen; the reader holds rows out."""
        settings.used["texts"] = self._read_by
        fitted = self._reader.fit(as_texts(X), labels, settings)
        return replace(fitted, notes=(*self._notes, *fitted.notes))

    def score(self, X: Any) -> Floats:
        """Scores of the linear head, NaN for a text without any known word. Shape: (n,)."""
        texts = as_texts(X)
        scores = self._reader.score(texts)
        scores[~self._reader.knows(texts)] = np.nan  # what the head makes of nothing means nothing
        return scores

    def looked_at(self, X: Any) -> EncodedTable:
        """How long the texts are."""
        lengths = np.array([[len(text.split())] for text in as_texts(X)])
        return plain_columns(lengths, ["number of words"])

    def embed(self, X: Any) -> Floats:
        """What the head sees. Shape: (n, D)."""
        return self._reader.embed(as_texts(X))

    @property
    def reads_quickly(self) -> bool:
        """Whether texts are read as word counts."""
        return self._reader.how == WordVectors.how

    def reasons(self, X: Any, rows: Any = None, background: Any = None) -> list[list[Reason]]:
        """Each text's words with their effects: its score, by the final model, less that without the word."""
        if background is not None:
            raise InputError("background has no effect on texts: a word is taken out, nothing stands in for it")
        texts = as_texts(X)
        words = [words_of(text) for text in texts]
        changed = [without_word(text, word) for text, own in zip(texts, words, strict=True) for word in own]
        scores = self._reader.score([*texts, *changed])
        own, rest = scores[: len(texts)], iter(scores[len(texts) :].tolist())
        return [
            [Reason(word, None, float(score) - less, less) for word, less in zip(each, rest, strict=False)]
            for score, each in zip(own, words, strict=True)
        ]

    def tried(self) -> Tried:
        """On texts of one word, which the model knows if it counts words."""
        return Tried.on(self, [getattr(getattr(self._reader, "_vectors", None), "known_text", "word")] * 2)

    def state(self) -> State:
        """How the texts are read, and that reader's state."""
        tensors, content = self._reader.state()
        return tensors, {"how": self._reader.how, **content}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> TextRoute:
        """Inverse of :meth:`state`. The encoder is not part of a model file unless it was trained: it must be there."""
        route = cls()
        readers: dict[bool, Any] = {True: _Weighed, False: _OnVectors}
        reader = TunedTransformer if content["how"] == TunedTransformer.how else readers["portfolio" in content]
        route._reader = reader.from_state(tensors, content)
        return route


class _OnVectors:
    """Texts are turned into vectors, and a network learns from the vectors."""

    def __init__(self, vectors: WordVectors | SentenceVectors, network: NetworkRoute | None = None) -> None:
        self._vectors, self._network = vectors, network or NetworkRoute()

    @property
    def how(self) -> str:
        return self._vectors.how

    def fit(self, texts: list[str], labels: Labels, settings: FitSettings) -> Fitted:
        x = self._vectors.vectors(texts)
        if isinstance(self._vectors, WordVectors) and _is_network(settings.encoder):
            return self._network.fit(x, labels, settings)
        self._network, fitted = fit_chosen_network(x, labels, self._vectors.view, settings)
        return fitted

    def score(self, texts: list[str]) -> Floats:
        return self._network.score(self._vectors.vectors(texts))

    def knows(self, texts: list[str]) -> Flags:
        return self._vectors.knows(texts)

    def embed(self, texts: list[str]) -> Floats:
        return self._network.embed(self._vectors.vectors(texts))

    def state(self) -> State:
        own, vectors = self._vectors.state()
        tensors, network = self._network.state()
        tensors |= {f"{_INNER}{name}": value for name, value in own.items()}
        return tensors, {"network": network, "vectors": vectors}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> _OnVectors:
        network = {k: v for k, v in tensors.items() if not k.startswith(_INNER)}
        return cls(_stored_vectors(tensors, content), NetworkRoute.from_state(network, content["network"]))


class _Weighed:
    """Texts as vectors and as counts of all their words: candidates weighted by held-out labelled rows."""

    _model: FeatureModel

    def __init__(self, vectors: WordVectors | SentenceVectors, counts: WordVectors | None) -> None:
        self._vectors, self._counts = vectors, counts

    @property
    def how(self) -> str:
        return self._vectors.how

    def fit(self, texts: list[str], labels: Labels, settings: FitSettings) -> Fitted:
        if isinstance(self._vectors, SentenceVectors):
            with suppress(InputError):  # texts without words
                self._counts = WordVectors().fit(texts, settings.random_state, reduced=False)
        self._model, fitted = FeatureModel.fit(self._vectors.vectors(texts), labels, settings, self._counted(texts))
        return fitted

    def _counted(self, texts: list[str]) -> Any:
        return None if self._counts is None else self._counts.counts(texts).astype(np.float32)

    def score(self, texts: list[str]) -> Floats:
        return self._model.score(self._vectors.vectors(texts), self._counted(texts))

    def knows(self, texts: list[str]) -> Flags:
        return self._vectors.knows(texts)

    def embed(self, texts: list[str]) -> Floats:
        return self._model.embed(self._vectors.vectors(texts))

    def state(self) -> State:
        tensors, portfolio = self._model.state()
        parts = {_INNER: self._vectors} | ({_WORDS: self._counts} if self._has_own_counts else {})
        content: dict[str, Any] = {"portfolio": portfolio, "counts": None}
        for prefix, part in parts.items():
            assert part is not None
            own, content["vectors" if prefix == _INNER else "counts"] = part.state()
            tensors |= {f"{prefix}{name}": value for name, value in own.items()}
        return tensors, content

    @property
    def _has_own_counts(self) -> bool:
        return self._counts is not None and self._counts is not self._vectors

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> _Weighed:
        vectors, counts = _stored_vectors(tensors, content), None
        if content["counts"] is not None:
            counts = WordVectors.from_state(under(tensors, _WORDS), content["counts"])
        elif isinstance(vectors, WordVectors):
            counts = vectors
        reader = cls(vectors, counts)
        reader._model = FeatureModel.from_state(tensors, content["portfolio"])
        return reader


def _reader_of(
    encoder: Transformer | StaticVectors, frozen: SentenceVectors, settings: FitSettings
) -> _OnVectors | _Weighed | TunedTransformer:
    if settings.transfer != "finetune":
        return _on_vectors(frozen, settings)
    if isinstance(encoder, StaticVectors):
        raise InputError("static word vectors cannot be trained: use transfer='probe', or name a transformer")
    return TunedTransformer(encoder)


def _on_vectors(vectors: WordVectors | SentenceVectors, settings: FitSettings) -> _OnVectors | _Weighed:
    if settings.loss != "auto":
        return _OnVectors(vectors)
    return _Weighed(vectors, vectors if isinstance(vectors, WordVectors) else None)


def _stored_vectors(tensors: dict[str, Tensor], content: dict[str, Any]) -> WordVectors | SentenceVectors:
    readers: list[type[WordVectors | SentenceVectors]] = [WordVectors, SentenceVectors]
    reader = {each.how: each for each in readers}[content["how"]]
    return reader.from_state(under(tensors, _INNER), content["vectors"])


def as_texts(X: Any) -> list[str]:
    """Rows of text as a list; a missing text (None, NaN) is an empty one. A frame may be its only column."""
    if isinstance(X, str):
        raise InputError("X is one text; give a list of texts: [text]")
    if isinstance(X, pd.DataFrame):
        if X.shape[1] != 1:
            raise InputError(f"texts are one column, but the table has {list(X.columns)[:8]}: give table['column']")
        X = X.iloc[:, 0]
    texts = ["" if is_missing(text) else text for text in X]
    if not texts:
        raise InputError("there are no texts: X is empty")
    if wrong := [i for i, text in enumerate(texts) if not isinstance(text, str)]:
        such = number_of(len(wrong), "such row", "such rows")
        raise InputError(f"row {wrong[0]} is {type(texts[wrong[0]]).__name__}, not text ({such})")
    return texts


def words_of(text: str) -> list[str]:
    """The distinct words of a text, at most 40; its letters where no spaces tell words apart."""
    found = list(dict.fromkeys(word.lower() for word in _WORD.findall(text)))
    if len(found) == 1 and category(found[0][0]) == "Lo":  # neither capital nor small: Chinese, Japanese, Thai
        found = list(dict.fromkeys(found[0]))
    return found[:_MOST_WORDS]


def without_word(text: str, word: str) -> str:
    """The text without any occurrence of the word, or of the letter where the text is a single word."""
    kept = _WORD.sub(lambda match: "" if match.group().lower() == word else match.group(), text)
    return kept if kept != text or len(word) > 1 else re.sub(re.escape(word), "", text, flags=re.IGNORECASE)


def _encoder_for(asked: Any) -> Transformer | StaticVectors | None:
    """The encoder that was asked for, a copy if it is the caller's own; None means word counts."""
    if isinstance(asked, Transformer):
        return copy.deepcopy(asked)
    if asked == "auto":
        name = named_encoder()
        if name is None and has_static_vectors():
            return StaticVectors()
        return _named(name) if name is not None and has_transformers() else None
    if asked == "transformer":
        raise InputError("name the transformer: encoder='roberta-base', or the path of its folder")
    return None if asked == WORD_COUNTS or _is_network(asked) else _named(asked)


def _named(source: str) -> Transformer | StaticVectors:
    return StaticVectors(source) if source == PACKAGE else Transformer(source)


def _is_network(asked: Any) -> bool:
    """Whether a network for vectors was asked for; the vectors are then word counts."""
    return asked in ENCODERS if isinstance(asked, str) else isinstance(asked, Encoder)


def _why_word_counts(asked: Any) -> tuple[str, ...]:
    """What a person who left the choice to us should know about it."""
    if asked != "auto":
        return ()
    brings = "a pretrained encoder reads what words mean and usually ranks texts better (docs/text.md)"
    how = f"name one with encoder=, --encoder or the variable {VARIABLE}"
    if not has_transformers():
        how = f"pip install 'punce[text]', then {how}"
    return (f"texts were read as word counts; {brings}: {how}",)


def _cut_texts(encoder: Transformer, texts: list[str], *, trained: bool) -> tuple[str, ...]:
    """How long texts are read: in parts, or their beginning only where the network itself is trained."""
    longest, n = encoder.max_length, len(texts)
    if trained or encoder.max_parts == 1:
        full = int((encoder.tokens(texts)[:, longest - 1 :] >= 0).sum())  # padding is negative
        are = number_of(full, f"of {n} texts is", f"of {n} texts are")
        return (f"{are} at least {longest} tokens long; what comes after is not read",) if full else ()
    counts = np.bincount(encoder.parts(texts)[1], minlength=n)
    split, full = int((counts > 1).sum()), int((counts == encoder.max_parts).sum())
    longer = number_of(split, f"of {n} texts is longer", f"of {n} texts are longer")
    note = f"{longer} than {longest} tokens and read in parts, whose features are averaged"
    rest = f"; of {full} no more than the first {encoder.max_parts} parts are read" if full else ""
    return (note + rest,) if split else ()

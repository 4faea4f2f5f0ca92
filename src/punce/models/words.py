"""Texts as word counts: TF-IDF of words and word pairs, reduced by SVD. Needs no encoder and no extra."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from torch import Tensor

from punce.errors import InputError
from punce.models.route import State

_MOST_WORDS = 50_000
_SIZE = 256
_UNITS: dict[str, tuple[int, int]] = {"word": (1, 2), "char": (1, 3)}
"""What is counted, and how many in a row: words, or letters where no spaces tell words apart (Chinese, Japanese)."""


class WordVectors:
    """TF-IDF weights of words and word pairs (else of letters), reduced to 256 directions."""

    how = "words"
    view: ClassVar[dict[str, float]] = {"noise": 0.1, "dropout": 0.2}

    def __init__(self) -> None:
        self._unit = "word"
        self._words: dict[str, int] = {}
        self._idf = torch.zeros(0)
        self._components = torch.zeros(0, 0)

    def fit(self, texts: list[str], seed: int) -> WordVectors:
        """Learn words and directions; labels are not looked at."""
        self._unit, vectorizer, weights = _counted(texts)
        svd = TruncatedSVD(min(_SIZE, weights.shape[1] - 1, len(texts) - 1), random_state=seed)
        svd.fit(weights)
        self._words = {word: int(i) for word, i in vectorizer.vocabulary_.items()}
        self._idf = torch.from_numpy(vectorizer.idf_.astype(np.float64))
        self._components = torch.from_numpy(svd.components_.astype(np.float64))
        return self

    def vectors(self, texts: list[str], *, progress: bool = False) -> Any:
        """Unit rows. Shape: n texts -> float32 (n, 256)."""
        vectorizer = _vectorizer(self._unit, vocabulary=self._words)
        vectorizer.idf_ = self._idf.numpy()
        vectors = vectorizer.transform(texts) @ self._components.numpy().T
        return normalize(vectors).astype(np.float32)

    def state(self) -> State:
        """Words as JSON; weights and directions as tensors."""
        words = sorted(self._words, key=self._words.__getitem__)
        return {"idf": self._idf, "components": self._components.contiguous()}, {"words": words, "unit": self._unit}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> WordVectors:
        """Inverse of :meth:`state`."""
        vectors = cls()
        vectors._unit = content.get("unit", "word")
        if vectors._unit not in _UNITS:
            raise ValueError(f"texts are counted by {list(_UNITS)}, not by {vectors._unit!r}")
        vectors._words = {word: i for i, word in enumerate(content["words"])}
        vectors._idf, vectors._components = tensors["idf"], tensors["components"]
        return vectors


def _vectorizer(unit: str, **options: Any) -> TfidfVectorizer:
    return TfidfVectorizer(analyzer=unit, ngram_range=_UNITS[unit], sublinear_tf=True, **options)


def _counted(texts: list[str]) -> tuple[str, TfidfVectorizer, Any]:
    """What was counted, by what, and the TF-IDF weights: the first unit of which at least two are frequent enough."""
    if any(letter.isalnum() for text in texts for letter in text):
        for unit in _UNITS:
            vectorizer = _vectorizer(unit, min_df=2, max_features=_MOST_WORDS)
            with suppress(ValueError):  # nothing is in two texts
                weights = vectorizer.fit_transform(texts)
                if weights.shape[1] > 1:
                    return unit, vectorizer, weights
    raise InputError(f"no words to learn from in {len(texts)} texts: none is in at least two of them")

"""Texts as word counts: TF-IDF of words and word pairs, reduced by SVD. Needs no encoder and no extra."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from torch import Tensor

from punce.errors import InputError
from punce.routes.route import State

_MOST_WORDS = 50_000
_SIZE = 256


class WordVectors:
    """TF-IDF weights of words and word pairs, reduced to 256 directions."""

    how = "words"
    view: ClassVar[dict[str, float]] = {"noise": 0.1, "dropout": 0.2}

    def __init__(self) -> None:
        self._words: dict[str, int] = {}
        self._idf = torch.zeros(0)
        self._components = torch.zeros(0, 0)

    def fit(self, texts: list[str], seed: int) -> WordVectors:
        """Learn words and directions; labels are not looked at."""
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, max_features=_MOST_WORDS, sublinear_tf=True)
        try:
            weights = vectorizer.fit_transform(texts)
        except ValueError as error:
            raise InputError(f"no words to learn from in {len(texts)} texts: {error}") from error
        svd = TruncatedSVD(min(_SIZE, weights.shape[1] - 1, len(texts) - 1), random_state=seed)
        svd.fit(weights)
        self._words = {word: int(i) for word, i in vectorizer.vocabulary_.items()}
        self._idf = torch.from_numpy(vectorizer.idf_.astype(np.float64))
        self._components = torch.from_numpy(svd.components_.astype(np.float64))
        return self

    def vectors(self, texts: list[str], *, progress: bool = False) -> Any:
        """Unit rows. Shape: n texts -> float32 (n, 256)."""
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), vocabulary=self._words, sublinear_tf=True)
        vectorizer.idf_ = self._idf.numpy()
        vectors = vectorizer.transform(texts) @ self._components.numpy().T
        return normalize(vectors).astype(np.float32)

    def state(self) -> State:
        """Words as JSON; weights and directions as tensors."""
        words = sorted(self._words, key=self._words.__getitem__)
        return {"idf": self._idf, "components": self._components.contiguous()}, {"words": words}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> WordVectors:
        """Inverse of :meth:`state`."""
        vectors = cls()
        vectors._words = {word: i for i, word in enumerate(content["words"])}
        vectors._idf, vectors._components = tensors["idf"], tensors["components"]
        return vectors

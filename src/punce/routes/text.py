"""Texts: TF-IDF and SVD make an embedding, and the embedding goes the network's way."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from torch import Tensor

from punce.errors import InputError
from punce.labels import Labels
from punce.routes.network import NetworkRoute
from punce.routes.route import FitSettings, Fitted, Floats, State

log = logging.getLogger("punce")

_MOST_WORDS = 50_000
_SIZE = 256


class TextRoute:
    """TF-IDF of words and word pairs, reduced to 256 dimensions, then contrastive features and a linear head."""

    def __init__(self) -> None:
        self._words: dict[str, int] = {}
        self._idf = torch.zeros(0)
        self._components = torch.zeros(0, 0)
        self._network = NetworkRoute()

    def fit(self, X: Any, labels: Labels, settings: FitSettings) -> Fitted:
        """Learn words, directions, features and head; the network route holds rows out."""
        texts = as_texts(X)
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, max_features=_MOST_WORDS, sublinear_tf=True)
        try:
            weights = vectorizer.fit_transform(texts)
        except ValueError as error:
            raise InputError(f"no words to learn from in {len(texts)} texts: {error}") from error
        svd = TruncatedSVD(min(_SIZE, weights.shape[1] - 1, len(texts) - 1), random_state=settings.random_state)
        svd.fit(weights)
        self._words = {word: int(i) for word, i in vectorizer.vocabulary_.items()}
        self._idf = torch.from_numpy(vectorizer.idf_.astype(np.float64))
        self._components = torch.from_numpy(svd.components_.astype(np.float64))
        return self._network.fit(self._vectors(texts), labels, settings)

    def score(self, X: Any) -> Floats:
        """Scores of the linear head. Shape: (n,)."""
        return self._network.score(self._vectors(as_texts(X)))

    def embed(self, X: Any) -> Floats:
        """Features of the encoder. Shape: (n, D)."""
        return self._network.embed(self._vectors(as_texts(X)))

    def _vectors(self, texts: list[str]) -> Any:
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), vocabulary=self._words, sublinear_tf=True)
        vectorizer.idf_ = self._idf.numpy()
        vectors = vectorizer.transform(texts) @ self._components.numpy().T
        return normalize(vectors).astype(np.float32)

    def state(self) -> State:
        """Words as JSON; weights, directions and the network as tensors."""
        tensors, content = self._network.state()
        words = sorted(self._words, key=self._words.__getitem__)
        own = {"text.idf": self._idf, "text.components": self._components.contiguous()}
        return tensors | own, {"network": content, "words": words}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> TextRoute:
        """Inverse of :meth:`state`."""
        route = cls()
        route._words = {word: i for i, word in enumerate(content["words"])}
        route._idf, route._components = tensors["text.idf"], tensors["text.components"]
        route._network = NetworkRoute.from_state(
            {k: v for k, v in tensors.items() if not k.startswith("text.")}, content["network"]
        )
        return route


def as_texts(X: Any) -> list[str]:
    """Rows of text as a list; a missing text is an empty one."""
    texts = list(X)
    if wrong := [i for i, text in enumerate(texts) if text is not None and not isinstance(text, str)]:
        raise InputError(f"row {wrong[0]} is {type(texts[wrong[0]]).__name__}, not text ({len(wrong)} such rows)")
    return [text or "" for text in texts]

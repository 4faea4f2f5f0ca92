"""Texts as word counts: TF-IDF of words and word pairs, reduced by SVD. Needs no encoder and no extra."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize
from torch import Tensor

from punce.columns.counts import UNITS, counted, tf_idf
from punce.models.route import Flags, State
from punce.storage.json_tree import decode

_SIZE = 256  # directions, at most


@dataclass(frozen=True)
class _WordsFile:
    words: tuple[str, ...]
    unit: str = "word"


class WordVectors:
    """TF-IDF weights of words and word pairs (else of letters), reduced to 256 directions."""

    how = "words"
    view: ClassVar[dict[str, float]] = {"noise": 0.1, "dropout": 0.2}

    def __init__(self) -> None:
        self._unit = "word"
        self._words: dict[str, int] = {}
        self._idf = torch.zeros(0)
        self._components = torch.zeros(0, 0)

    def fit(self, texts: list[str], seed: int, *, reduced: bool = True) -> WordVectors:
        """Learn words and, if they are to be `reduced`, directions; labels are not looked at."""
        self._unit, vectorizer, weights = counted(texts)
        self._words = {word: int(i) for word, i in vectorizer.vocabulary_.items()}
        self._idf = torch.from_numpy(vectorizer.idf_.astype(np.float64))
        if reduced:
            # scikit-learn's solver needs fewer directions than words, and more rows than directions
            svd = TruncatedSVD(min(_SIZE, weights.shape[1] - 1, len(texts) - 1), random_state=seed).fit(weights)
            self._components = torch.from_numpy(svd.components_.astype(np.float64))
        return self

    def vectors(self, texts: list[str]) -> Any:
        """Unit rows. Shape: n texts -> float32 (n, 256)."""
        return normalize(self.counts(texts) @ self._components.numpy().T).astype(np.float32)

    def knows(self, texts: list[str]) -> Flags:
        """Whether a text has any known word. Shape: (n,)."""
        return np.asarray(self.counts(texts).getnnz(axis=1) > 0)

    def counts(self, texts: list[str]) -> Any:
        """TF-IDF weights of all words. Shape: n texts -> sparse (n, W)."""
        vectorizer = tf_idf(self._unit, vocabulary=self._words)
        vectorizer.idf_ = self._idf.numpy()
        return vectorizer.transform(texts)

    @property
    def known_text(self) -> str:
        """A text of one known word."""
        return next(iter(self._words), "")

    def state(self) -> State:
        """Words as JSON; weights and directions as tensors."""
        words = sorted(self._words, key=self._words.__getitem__)
        return {"idf": self._idf, "components": self._components.contiguous()}, {"words": words, "unit": self._unit}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> WordVectors:
        """Inverse of :meth:`state`."""
        vectors = cls()
        saved: _WordsFile = decode(_WordsFile, content, "words")
        vectors._unit = saved.unit
        if vectors._unit not in UNITS:
            raise ValueError(f"texts are counted by {list(UNITS)}, not by {vectors._unit!r}")
        vectors._words = {word: i for i, word in enumerate(saved.words)}
        vectors._idf, vectors._components = tensors["idf"], tensors["components"]
        return vectors

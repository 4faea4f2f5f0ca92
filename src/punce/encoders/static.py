"""Static word vectors: a table with one vector for each token; a text is the mean of its tokens' vectors.

Much faster than a transformer (thousands of texts a second on one core) and without a limit to the length of a text,
but without regard to the order of the words. The package `wordllama` (MIT) carries such a table. Its two files are read
as they are: the package itself is not imported.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from punce.encoders.pretrained import TEXT, find_again
from punce.errors import InputError

PACKAGE = "wordllama"
_TABLE, _TOKENIZER = "weights/*.safetensors", "tokenizers/*.json"
_TEXTS_AT_ONCE = 4096


def has_static_vectors() -> bool:
    """Whether the package with the vectors and the one that splits texts into tokens are installed."""
    return all(importlib.util.find_spec(name) is not None for name in (PACKAGE, "tokenizers"))


class StaticVectors:
    """Shape: n texts -> (n, D). A text without any token is the zero vector."""

    is_trained = False

    def __init__(self, source: str = PACKAGE) -> None:
        files = _files(source)
        self.source, self.sha256 = source, _fingerprint(files)
        self._table = _read_table(files[0])
        self._tokenizer = _read_tokenizer(files[1])

    @property
    def feature_size(self) -> int:
        """D."""
        return int(self._table.shape[1])

    @property
    def spec(self) -> dict[str, Any]:
        """What a model file keeps: where the vectors were and what they were."""
        return {"source": self.source, "sha256": self.sha256, "static": True}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> StaticVectors:
        """The vectors that a model file names; others are refused."""
        return find_again(spec, TEXT, lambda source: _fingerprint(_files(source)), cls)

    def weights_digest(self) -> str:
        """The sha256 of the files, because the vectors are never trained."""
        return self.sha256

    def eval(self) -> StaticVectors:
        """Does nothing: unlike a network, it has no dropout to switch off."""
        return self

    def embed(self, texts: Sequence[str], *, progress: bool = False) -> Tensor:
        """Mean vector of each text, all of it. Shape: n -> float32 (n, D)."""
        parts = [self._means(texts[k : k + _TEXTS_AT_ONCE]) for k in range(0, len(texts), _TEXTS_AT_ONCE)]
        return torch.from_numpy(np.concatenate(parts) if parts else np.zeros((0, self.feature_size), np.float32))

    def _means(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        encodable = [text.encode("utf-8", "replace").decode() for text in texts]  # lone surrogates are no characters
        rows = [each.ids for each in self._tokenizer.encode_batch_fast(encodable, add_special_tokens=False)]
        lengths = np.array([len(row) for row in rows])
        means = np.zeros((len(rows), self.feature_size), dtype=np.float32)
        filled = np.flatnonzero(lengths)
        if len(filled):
            vectors = self._table[np.concatenate([rows[i] for i in filled])].astype(np.float32)
            starts = np.concatenate([[0], np.cumsum(lengths[filled])[:-1]])
            means[filled] = np.add.reduceat(vectors, starts, axis=0) / lengths[filled, None]
        return means


def _files(source: str) -> tuple[Path, Path]:
    """The table and the tokeniser of an installed package."""
    spec = importlib.util.find_spec(source) if source.isidentifier() else None
    if spec is None or spec.origin is None:
        raise InputError(f"static word vectors need the package {source}: pip install {source} tokenizers")
    found = [sorted(Path(spec.origin).parent.glob(pattern)) for pattern in (_TABLE, _TOKENIZER)]
    if not all(found):
        raise InputError(f"the package {source} holds no {_TABLE} and {_TOKENIZER}: install its version 0.4")
    return found[0][0], found[1][0]


def _fingerprint(files: tuple[Path, Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _read_table(path: Path) -> npt.NDArray[np.float16]:
    try:
        with safe_open(path, framework="np") as file:
            tables = [file.get_tensor(name) for name in file.keys()]  # noqa: SIM118  not a dictionary
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path.name} is no table of word vectors: {error}") from error
    if len(tables) != 1 or tables[0].ndim != 2:
        raise InputError(f"{path.name} must hold one table of word vectors, tokens x numbers")
    table: npt.NDArray[np.float16] = tables[0]
    return table


def _read_tokenizer(path: Path) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise InputError("static word vectors need the package tokenizers: pip install tokenizers") from error
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer

"""Texts as the embeddings of a frozen pretrained encoder, each text embedded once."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from punce.encoders import Transformer
from punce.encoders.static import StaticVectors
from punce.models.route import Flags, State, under
from punce.storage.files import replacing
from punce.storage.json_tree import decode
from punce.training import collectives

_FILE = "embeddings.safetensors"
_WEIGHTS = "encoder."


def are_there(texts: list[str]) -> Flags:
    """Which texts are more than spaces. Shape: (n,)."""
    return np.array([bool(text.strip()) for text in texts], dtype=np.bool_)


class SentenceVectors:
    """Embeddings of a transformer, or static word vectors, standardised over the training texts.

    Standardised, because the raw features of most encoders have a few directions of huge variance that say little.
    What was embedded while fitting is kept, so that scoring the training rows costs nothing.
    """

    how = "frozen"
    view: ClassVar[dict[str, float]] = {"noise": 0.3, "dropout": 0.5}

    def __init__(self, encoder: Transformer | StaticVectors) -> None:
        self.encoder: Any = encoder.eval()
        self._mean, self._scale = torch.zeros(encoder.feature_size), torch.ones(encoder.feature_size)
        self._known: dict[str, int] = {}
        self._rows = torch.zeros(0, encoder.feature_size)

    def fit(self, texts: list[str], *, folder: Path | None = None, progress: bool = False) -> SentenceVectors:
        """Embed every different text once; with a `folder` what is embedded stays there for a repeated call."""
        unique = list(dict.fromkeys(texts))
        self._rows = self._read(folder, unique)
        if len(self._rows) != len(unique):
            self._rows = self.encoder.embed(unique, progress=progress and collectives.rank() == 0)
            self._write(folder, unique)
        self._known = {text: row for row, text in enumerate(unique)}
        whole = self._rows[[self._known[text] for text in texts]]
        scale = whole.std(0) if len(whole) > 1 else torch.ones_like(self._scale)
        self._mean, self._scale = whole.mean(0), torch.where(scale > 1e-6, scale, 1.0)
        return self

    def vectors(self, texts: list[str]) -> Any:
        """Standardised embeddings in the order of the texts. Shape: n texts -> float32 (n, D)."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        known = self._known | {text: len(self._rows) + i for i, text in enumerate(new)}
        rows = torch.cat([self._rows, self.encoder.embed(new)]) if new else self._rows
        chosen = rows[torch.tensor([known[text] for text in texts], dtype=torch.int64)]
        vectors: np.ndarray[Any, np.dtype[np.float32]] = ((chosen - self._mean) / self._scale).numpy()
        return vectors

    def knows(self, texts: list[str]) -> Flags:
        """Whether there is any text. Shape: (n,)."""
        return are_there(texts)

    def state(self) -> State:
        """Mean and scale as tensors; the encoder by name and fingerprint, its weights only if they were trained."""
        own = {"mean": self._mean, "scale": self._scale}
        if self.encoder.is_trained:
            own |= {f"{_WEIGHTS}{name}": value for name, value in self.encoder.backbone.state_dict().items()}
        return own, {"encoder": self.encoder.spec}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> SentenceVectors:
        """Inverse of :meth:`state`; refuses an encoder that is not the one the model was trained on."""
        spec: dict[str, Any] = decode(dict[str, Any], content["encoder"], "encoder")
        vectors = cls(StaticVectors.from_spec(spec) if spec.get("static") else Transformer.from_spec(spec))
        if trained := under(tensors, _WEIGHTS):
            vectors.encoder.backbone.load_state_dict(trained)
        vectors._mean, vectors._scale = tensors["mean"], tensors["scale"]
        return vectors

    # Embeddings on disk, for a fit that was killed -----------------------------------------------------------------

    def _read(self, folder: Path | None, texts: list[str]) -> Tensor:
        path = None if folder is None else folder / _FILE
        if path is None or not path.exists():
            return self._rows
        try:
            with safe_open(path, framework="pt") as file:
                is_ours = (file.metadata() or {}).get("key") == self._key(texts)
                return file.get_tensor("rows") if is_ours else self._rows
        except (OSError, SafetensorError):
            return self._rows  # a damaged file costs time, not the fit: the texts are embedded again

    def _write(self, folder: Path | None, texts: list[str]) -> None:
        if folder is not None and collectives.rank() == 0:
            with replacing(folder / _FILE, in_folder=True) as temporary:
                save_file({"rows": self._rows.contiguous()}, temporary, metadata={"key": self._key(texts)})

    def _key(self, texts: list[str]) -> str:
        encoder = [*sorted(self.encoder.spec.items()), self.encoder.weights_digest()]
        digest = hashlib.sha256(repr(encoder).encode())
        for text in texts:
            # Hashed one by one, so that ["ab", "c"] and ["a", "bc"] differ; files may hold half a surrogate pair.
            digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        return digest.hexdigest()

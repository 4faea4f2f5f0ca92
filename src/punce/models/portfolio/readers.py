"""How rows become features: as they are along their main directions, or through an encoder trained on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.encoders import Encoder, build_encoder
from punce.encoders.encoder import eval_mode
from punce.models.portfolio.costs import reduced
from punce.models.portfolio.directions import Directions
from punce.models.portfolio.patches import Patches
from punce.models.route import NamedPart, State, under
from punce.stages.probe import extract_features
from punce.storage.json_tree import decode
from punce.views import View, build_view
from punce.views.taught import SmallImageView, view_from_state

Values = npt.NDArray[np.float32]
_DIRECTIONS, _ENCODER = "directions.", "encoder."
_COUNTED, _PATCHED, _TAUGHT = "counted", "patched", "taught"
_AT_ONCE = 512  # images: bounds the memory of activations


@dataclass(frozen=True)
class Given:
    """Rows as numbers, and for texts also as word counts. Shape: x (n, ...), counts sparse (n, W)."""

    x: Tensor
    counts: Any = None

    def __len__(self) -> int:
        return len(self.x)

    def part(self, start: int, size: int) -> Given:
        """Some rows in a row."""
        counts = None if self.counts is None else self.counts[start : start + size]
        return Given(self.x[start : start + size], counts)

    def of(self, rows: npt.NDArray[np.intp]) -> Given:
        """The rows of these numbers."""
        return Given(self.x[torch.from_numpy(rows)], None if self.counts is None else self.counts[rows])


@dataclass(frozen=True)
class Counted:
    """Word counts as they are, sparse: a linear head on all words needs no reduction."""

    def __call__(self, rows: Given) -> Any:
        """Shape: n rows -> sparse (n, W)."""
        return rows.counts

    def state(self) -> State:
        """Nothing but the mark of its kind: nothing was learned."""
        return {}, {_COUNTED: True}


@dataclass(frozen=True)
class Raw:
    """The rows' own numbers. Shape: (n, ...) -> (n, M)."""

    directions: Directions

    @classmethod
    def fit(cls, x: Tensor, seed: int) -> Raw:
        """Learn the directions; labels are not looked at."""
        return cls(Directions.fit(_flat(x), seed))

    def __call__(self, rows: Given) -> Values:
        """Features of rows."""
        return self.directions(_flat(rows.x))

    def state(self) -> State:
        """Arrays as tensors."""
        return _tensors(self.directions), {}


@dataclass(frozen=True)
class Patched:
    """Similarity to patches of the images themselves; nothing is trained. Shape: (n, C, H, W) -> (n, M)."""

    patches: Patches

    def __call__(self, rows: Given) -> Values:
        """Features of rows."""
        return self.patches(rows.x)

    def state(self) -> State:
        """Everything as tensors."""
        own = {"kernel": self.patches.kernel, "bias": self.patches.bias}
        return _tensors(self.patches.directions) | own, {_PATCHED: True}


@dataclass(frozen=True)
class Learned:
    """The features of a trained encoder. Shape: (n, ...) -> (n, M)."""

    encoder: Encoder
    spec: dict[str, Any]
    view: View
    view_name: str
    directions: Directions
    factor: int = 1
    """By which images are reduced before the encoder sees them."""

    @classmethod
    def of(
        cls, encoder: Encoder, spec: dict[str, Any], view: View, view_name: str, x: Tensor, seed: int, factor: int
    ) -> Learned:
        """A trained encoder and the directions of its features of `x`, rows as it was trained on them."""
        return cls(encoder, spec, view, view_name, Directions.fit(_encoded(encoder, view, x), seed), factor)

    def __call__(self, rows: Given) -> Values:
        """Features of rows."""
        return self.directions(_encoded(self.encoder, self.view, reduced(rows.x, self.factor)))

    def state(self) -> State:
        """Weights as tensors; encoder and view as JSON."""
        own = {f"{_ENCODER}{k}": v.detach().cpu().contiguous() for k, v in self.encoder.state_dict().items()}
        view = {"name": self.view_name, "options": asdict(self.view)}  # type: ignore[call-overload]
        return _tensors(self.directions) | own, {"encoder": self.spec, "view": view, "factor": self.factor}


@dataclass(frozen=True)
class TaughtReader:
    """The features of a network that students taught: where mirrored, the mean of an image's and its mirror image's.

    Shape: (n, C, H, W) -> (n, M).
    """

    encoder: Encoder
    spec: dict[str, Any]
    view: SmallImageView
    factor: int = 1
    """By which images are reduced before the encoder sees them."""

    @torch.no_grad()
    def __call__(self, rows: Given) -> Values:
        """Features of rows."""
        found = np.empty((len(rows), self.encoder.feature_size), dtype=np.float32)
        with eval_mode(self.encoder):
            for start in range(0, len(rows), _AT_ONCE):
                x = reduced(rows.x[start : start + _AT_ONCE], self.factor)
                features = self.encoder.features(self.view.clean(x))
                if self.view.is_mirrored:
                    features = (features + self.encoder.features(self.view.mirrored(x))) / 2
                found[start : start + _AT_ONCE] = features.numpy()
        return found

    def state(self) -> State:
        """Weights as tensors; encoder and view as JSON."""
        own = {f"{_ENCODER}{k}": v.detach().cpu().contiguous() for k, v in self.encoder.state_dict().items()}
        tensors, view = self.view.state()
        return own | tensors, {"encoder": self.spec, "factor": self.factor, _TAUGHT: view}


Reader = Raw | Patched | Learned | Counted | TaughtReader


def reader_from_state(tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> Reader:
    """Inverse of the readers' `state`."""
    saved: _ReaderFile = decode(_ReaderFile, content, "reader")
    if saved.counted:
        return Counted()
    if saved.encoder is not None and saved.taught is not None:
        taught = view_from_state(tensors, saved.taught)
        return TaughtReader(_built(tensors, saved.encoder), asdict(saved.encoder), taught, saved.factor)
    arrays = {name: tensor.numpy() for name, tensor in under(tensors, _DIRECTIONS).items()}
    directions = Directions.from_arrays(arrays)
    if saved.patched:
        return Patched(Patches(tensors["kernel"], tensors["bias"], directions))
    if saved.encoder is None or saved.view is None:
        return Raw(directions)
    view, spec = build_view(saved.view.name, **saved.view.options), asdict(saved.encoder)
    return Learned(_built(tensors, saved.encoder), spec, view, saved.view.name, directions, saved.factor)


@dataclass(frozen=True)
class _ReaderFile:
    """What the JSON of a reader may hold; which of it is there says of which kind it is."""

    counted: bool = False
    patched: bool = False
    encoder: NamedPart | None = None
    view: NamedPart | None = None
    taught: dict[str, Any] | None = None
    factor: int = 1

    def __post_init__(self) -> None:
        if self.factor < 1:
            raise ValueError(f"images are reduced by a whole number of 1 or more, not by {self.factor}")


def _built(tensors: Mapping[str, Tensor], spec: NamedPart) -> Encoder:
    with torch.device("meta"):  # no memory until the shapes are known to fit: a file may claim any width
        encoder = build_encoder(spec.name, **spec.options)
    encoder.load_state_dict(under(tensors, _ENCODER), assign=True)
    return encoder.eval()


def _flat(x: Tensor) -> npt.NDArray[Any]:
    """In the type they have: pixels as floats would take four times the memory; directions convert part by part."""
    values: npt.NDArray[Any] = x.flatten(1).numpy()
    return values


def _encoded(encoder: Encoder, view: View, x: Tensor) -> Values:
    device = next(encoder.parameters()).device
    features: Values = extract_features(encoder, view, x.to(device)).cpu().numpy()
    return features


def _tensors(directions: Directions) -> dict[str, Tensor]:
    return {f"{_DIRECTIONS}{k}": torch.from_numpy(np.ascontiguousarray(v)) for k, v in directions.arrays().items()}

"""Images: heads on the features of a frozen encoder, or a network trained from scratch (docs/images.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from torch import Tensor

from punce.columns.encoder import EncodedTable, plain_columns
from punce.data.image_files import ImageFiles
from punce.encoders.vision import IMAGE, OWN, PACKAGES, Vision
from punce.errors import InputError
from punce.labels import Labels
from punce.models.auto import AutoRoute
from punce.models.network import BRIGHTNESS_OF, check_device, rows_of_zeros
from punce.models.pictures import ImageVectors
from punce.models.portfolio.directions import Directions
from punce.models.portfolio.model import FeatureModel
from punce.models.route import FitSettings, Fitted, Floats, State, Tried, under
from punce.models.tuned_pictures import TUNED, TunedImages
from punce.options import is_pretrained
from punce.storage.json_tree import decode
from punce.training.random_stream import seeded

_HEADS = "heads."
_FROZEN = "frozen"
_TIMES = 3  # of their own side, to which small images are enlarged for an encoder that takes any size
_STEP = 32  # the encoder halves the side five times


class ImageRoute:
    """Images as files or as an array (n, C, H, W) or (n, H, W, C)."""

    def __init__(self) -> None:
        self._reader: _Frozen | TunedImages | AutoRoute = AutoRoute()
        self._notes: tuple[str, ...] = ()

    def prepare(self, X: Any, settings: FitSettings) -> Any:
        """Choose how to read the images, and return what the first prior is estimated on: features, or pixels."""
        if not is_pretrained(settings.encoder):
            self._notes = _why_from_scratch(X, settings.encoder)
            return self._reader.prepare(_pixels(X), settings)
        encoder = vision_for(X, settings.encoder)
        encoder.to(check_device(settings.device))
        tunes = settings.transfer == "finetune"
        self._reader = TunedImages(encoder) if tunes else _Frozen(ImageVectors(encoder))
        return self._reader.prepare(X, settings)

    def fit(self, X: Any, labels: Labels, settings: FitSettings) -> Fitted:
        """Learn from images that :meth:`prepare` has seen."""
        rows = X if isinstance(self._reader, TunedImages) else self._rows(X)
        fitted = self._reader.fit(rows, labels, settings)
        own = self._reader.notes if isinstance(self._reader, _Frozen) else ()
        return replace(fitted, notes=(*fitted.notes, *self._notes, *own))

    def _rows(self, X: Any) -> Any:
        """Files stay files for a frozen encoder; a network reads pixels, those of its own size."""
        if isinstance(self._reader, TunedImages):
            return self._reader.pixels(X)
        return X if isinstance(self._reader, _Frozen) else _pixels(X)

    def score(self, X: Any) -> Floats:
        """Shape: (n,)."""
        return self._reader.score(self._rows(X))

    def looked_at(self, X: Any) -> EncodedTable:
        """The mean of each channel."""
        return self._reader.looked_at(self._rows(X))

    def embed(self, X: Any) -> Floats:
        """What the heads see. Shape: (n, D)."""
        return self._reader.embed(self._rows(X))

    def look(self, files: ImageFiles, *, progress: bool = False) -> None:
        """One pass over files to be scored, in which they are decoded and, by a frozen encoder, embedded."""
        if isinstance(self._reader, _Frozen):
            self._reader.vectors.look(files, progress=progress)
        else:
            files.look(keep=True, progress=progress)

    def tried(self) -> Tried | None:
        """On black images. A trained encoder brings them to its own size."""
        if isinstance(self._reader, TunedImages):
            return Tried.on(self, rows_of_zeros((3, _STEP, _STEP)))
        return self._reader.tried()

    def state(self) -> State:
        """As :class:`AutoRoute` writes it, or the heads and the name of the encoder."""
        return self._reader.state()

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> ImageRoute:
        """Inverse of :meth:`state`. A pretrained encoder is not part of a model file: it must be there."""
        route = cls()
        kinds: dict[Any, type[_Frozen | TunedImages]] = {_FROZEN: _Frozen, TUNED: TunedImages}
        if content.get("how") not in kinds:
            route._reader = AutoRoute.from_state(tensors, content)
            return route
        route._reader = kinds[content["how"]].from_state(tensors, content)
        return route


@dataclass(frozen=True)
class _FrozenFile:
    how: str
    encoder: dict[str, Any]
    heads: dict[str, Any]


class _Frozen:
    """Every image embedded once; heads learn from the features."""

    _heads: FeatureModel

    def __init__(self, vectors: ImageVectors) -> None:
        self.vectors = vectors

    @property
    def notes(self) -> tuple[str, ...]:
        return self.vectors.notes()

    def prepare(self, X: Any, settings: FitSettings) -> Any:
        features = self.vectors.embedded(X, progress=settings.progress)[0]
        return Directions.fit(features, settings.random_state)(features)

    def fit(self, X: Any, labels: Labels, settings: FitSettings) -> Fitted:
        encoder = self.vectors.encoder
        settings.used["encoder"] = encoder.source
        settings.used["pictures"] = encoder.preprocessing.to_json()
        self._heads, fitted = FeatureModel.fit(self.vectors.embedded(X)[0], labels, settings)
        return fitted

    def score(self, X: Any) -> Floats:
        return self._heads.score(self.vectors.embedded(X)[0])

    def embed(self, X: Any) -> Floats:
        return self._heads.embed(self.vectors.embedded(X)[0])

    def looked_at(self, X: Any) -> EncodedTable:
        means = self.vectors.embedded(X)[1]
        return plain_columns(means, [BRIGHTNESS_OF.format(i) for i in range(means.shape[1])])

    def tried(self) -> Tried:
        """On features of zeros: the encoder is no part of the file."""
        x, names = np.zeros((2, self.vectors.encoder.feature_size), np.float32), map(BRIGHTNESS_OF.format, range(3))
        return Tried(self._heads.score(x), plain_columns(np.zeros((2, 3)), list(names)), self._heads.embed(x))

    def state(self) -> State:
        encoder = self.vectors.encoder
        if encoder.source == OWN:
            raise InputError("a classifier with an encoder object of your own cannot be saved; name an encoder")
        tensors, heads = self._heads.state()
        content = {"how": _FROZEN, "encoder": encoder.spec, "heads": heads}
        return {f"{_HEADS}{name}": value for name, value in tensors.items()}, content

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> _Frozen:
        saved: _FrozenFile = decode(_FrozenFile, content, "route")
        reader = cls(ImageVectors(Vision.from_spec(saved.encoder)))
        reader._heads = FeatureModel.from_state(under(tensors, _HEADS), saved.heads)
        return reader


def look(files: ImageFiles, encoder: Any, device: str = "auto", *, progress: bool = False) -> None:
    """One pass over files to learn from: decoded, and embedded if the encoder is a pretrained one."""
    if not is_pretrained(encoder):
        files.look(keep=True, progress=progress)
        return
    vision = vision_for(files, encoder)
    vision.to(check_device(device))
    ImageVectors(vision).look(files, progress=progress)


def vision_for(X: Any, encoder: Any) -> Vision:
    """The encoder, for images of this size. A size that a person asked for goes before the encoder's own."""
    if isinstance(encoder, Vision):
        return encoder
    size = X.asked_size if isinstance(X, ImageFiles) else None
    if size is None and encoder in PACKAGES:
        own = min(PACKAGES[encoder].preprocessing.size)
        native = X.native_size if isinstance(X, ImageFiles) else max(sorted(np.shape(X)[1:])[-2:])
        # Small images hold no more than this: 32 pixels enlarged to 224 take five times as long as to 96.
        enlarged = -(-_TIMES * native // _STEP) * _STEP if native else own
        size = enlarged if enlarged < own else None
    return _loaded(str(encoder), size)


@lru_cache(maxsize=1)  # a fit of files asks for it twice: to look at them, and to learn
def _loaded(source: str, size: int | None) -> Vision:
    with seeded(0):  # it draws a projector, which must not depend on torch's own stream, nor move it
        return Vision(source, size)


def _pixels(X: Any) -> Any:
    return X.load() if isinstance(X, ImageFiles) else X


def _why_from_scratch(X: Any, asked: Any) -> tuple[str, ...]:
    """What a person who left the choice to us should know about it."""
    if asked != "auto" or 3 not in (np.shape(X)[1], np.shape(X)[-1]):
        return ()
    return (
        "images were learned from scratch; a pretrained encoder usually ranks photographs far better: "
        f"pip install 'punce[images]', or name one with encoder=, --encoder or {IMAGE.variable} (docs/images.md)",
    )

"""Images by a pretrained encoder that is trained further: the contrastive loss, then the risk, on encoder and head.

For a GPU or for few images: all of them are held in memory at the encoder's size, as uint8.
"""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from punce.data.image_files import ImageFiles
from punce.data.pictures import decoded_images
from punce.encoders.preprocessing import Preprocessing
from punce.encoders.vision import OWN, Vision
from punce.errors import InputError
from punce.labels import Labels
from punce.models.heads import load_network, network_tensors
from punce.models.network import NetworkRoute, as_tensor
from punce.models.pictures import ImageVectors
from punce.models.portfolio.directions import Directions
from punce.models.route import FitSettings, Fitted, State
from punce.storage.json_tree import decode
from punce.views import Image, build_view
from punce.views.image import check_images

TUNED = "tuned"
_VIEW = "crop_flip_colour"
_EPOCHS = 5  # of either stage, unless the caller says
_RATE = 1e-4  # at the usual rate for random weights, what the encoder had learned would be lost


@dataclass(frozen=True)
class _TunedFile:
    how: str
    encoder: dict[str, Any]
    view: dict[str, Any]
    row_shape: tuple[int, ...]


class TunedImages(NetworkRoute):
    """Encoder and head for images that are brought to the encoder's size first."""

    def __init__(self, encoder: Vision) -> None:
        super().__init__()
        self._vision, self._view = encoder, view_of(encoder.preprocessing)

    def prepare(self, X: Any, settings: FitSettings) -> Any:
        """What the first prior is estimated on: features of the encoder as it is now."""
        features = ImageVectors(self._vision).embedded(X, progress=settings.progress)[0]
        return Directions.fit(features, settings.random_state)(features)

    def fit(self, X: Any, labels: Labels, settings: FitSettings) -> Fitted:
        """Both stages at a low rate."""
        low = {stage: {"lr": _RATE, **settings.configs.get(stage, {})} for stage in ("pretrain", "finetune")}
        told = replace(settings, configs={**settings.configs, **low}, epochs=settings.epochs or _EPOCHS)
        return super().fit(self.pixels(X), labels, told)

    def _choose(self, x: Tensor, settings: FitSettings) -> None:
        # A copy: a second fit must start at the encoder that was given, not where the first one left it.
        self._encoder = copy.deepcopy(self._vision).to(self._device)
        self._encoder.train_last(settings.configs.get("finetune", {}).get("blocks"))  # for the contrastive loss, too
        self._encoder_spec = self._vision.spec
        settings.used["encoder"] = self._vision.source
        settings.used["pictures"] = self._vision.preprocessing.to_json()

    def pixels(self, X: Any) -> Tensor:
        """Files or arrays as the encoder takes them. Shape: uint8 (n, 3, H, W)."""
        form = self._vision.preprocessing
        if not isinstance(X, ImageFiles):
            check_images(x := as_tensor(X), "X")
            return form.batch(x).contiguous()
        X.require_readable()
        decoded = np.empty((len(X), 3, *form.size), dtype=np.uint8)
        for rows, chunk in decoded_images(X.folder, X.names, form):
            for row, each in zip(range(rows.start, rows.stop), chunk, strict=True):
                if each.pixels is None:
                    raise InputError(f"{X.names[row]} cannot be read: {each.reason}")
                decoded[row] = each.pixels
        return torch.from_numpy(decoded)

    def state(self) -> State:
        """Weights of encoder and head, and where the encoder came from: its code is not part of a model file."""
        if self._vision.source == OWN:
            raise InputError("a classifier with an encoder object of your own cannot be saved; name an encoder")
        shape = None if self._row_shape is None else list(self._row_shape)
        content = {"how": TUNED, "encoder": self._encoder_spec, "view": asdict(self._view), "row_shape": shape}  # type: ignore[call-overload]
        return network_tensors(self._encoder, self._head), content

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> TunedImages:
        """Inverse of :meth:`state`; the encoder must be there, and its weights are replaced by the trained ones."""
        saved: _TunedFile = decode(_TunedFile, content, "route")
        route = cls(Vision.from_spec(saved.encoder))
        route._encoder, route._encoder_spec = copy.deepcopy(route._vision), saved.encoder
        route._view = build_view(_VIEW, **saved.view)
        route._row_shape = saved.row_shape
        route._head = load_network(route._encoder, tensors)
        return route


def view_of(form: Preprocessing) -> Image:
    """The view whose normalisation is the encoder's: (value · scale − mean) / std of values in [0, 255]."""
    top = 255.0 * form.scale
    mean, std = (tuple(value / top for value in values) for values in (form.mean, form.std))
    view = build_view(_VIEW, mean=mean, std=std)
    assert isinstance(view, Image)
    return view

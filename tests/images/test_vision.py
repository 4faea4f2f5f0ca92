"""The Vision encoder: what it loads, what it refuses, and that it is found again by its fingerprint."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModel, BertConfig, BertModel, CLIPVisionModel, ViTMAEConfig, ViTMAEModel

from punce.encoders import Vision
from punce.encoders import vision as module
from punce.errors import InputError
from punce.options import automatic_encoder, check_encoder, packaged_encoder
from tests.images.conftest import SIDE, write_model

PIXELS = torch.randint(0, 256, (5, 3, SIDE, SIDE), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", ["vit", "clip", "convnext", "mobilenet"])
def test_features_are_those_of_the_bare_network(kind: str, tmp_path: Path) -> None:
    folder = write_model(tmp_path, kind)
    encoder = Vision(folder)
    x = (PIXELS / 255 - torch.tensor([0.5, 0.4, 0.3]).view(3, 1, 1)) / torch.tensor([0.2, 0.3, 0.4]).view(3, 1, 1)
    bare = (CLIPVisionModel if kind == "clip" else AutoModel).from_pretrained(folder).eval()
    with torch.no_grad():
        out = bare(pixel_values=x)
    # The classifier's ViT holds no weights for the pooling layer, which would be random: the first token instead.
    expected = out.last_hidden_state[:, 0] if kind == "vit" else out.pooler_output.flatten(1)
    torch.testing.assert_close(encoder.embed(PIXELS), expected, rtol=1e-4, atol=1e-5)
    assert encoder.feature_size == expected.shape[1]


def test_an_encoder_is_found_again_by_its_fingerprint_and_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_model(tmp_path / "a", "convnext")
    spec = Vision(folder, size=64).spec
    assert Vision.from_spec(spec).preprocessing.size == (64, 64)
    write_model(folder, "convnext", image_mean=[0.1, 0.1, 0.1])  # the same weights, other settings
    with pytest.raises(InputError, match=r"trained on the image encoder.*another preprocessor.*PUNCE_IMAGE_ENCODER"):
        Vision.from_spec(spec)
    moved = write_model(tmp_path / "b", "convnext")
    monkeypatch.setenv("PUNCE_IMAGE_ENCODER", str(moved))
    assert Vision.from_spec(spec).sha256 == spec["sha256"]


def test_what_is_no_image_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'nobody/nothing' cannot be reached.*preprocessor_config\.json.*PUNCE_IMAGE"):
        Vision("nobody/nothing")
    text = write_model(tmp_path / "text", "convnext")
    BertModel(BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=50)).save_pretrained(
        text
    )
    with pytest.raises(InputError, match="reads input_ids, not images"):
        Vision(text)
    masked = write_model(tmp_path / "masked", "convnext")
    config = ViTMAEConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=8
    )
    ViTMAEModel(config).save_pretrained(masked)
    with pytest.raises(InputError, match="two results for one image"):
        Vision(masked)
    with pytest.raises(InputError, match=r"network in .* cannot be loaded"):
        Vision(write_model(tmp_path / "vit", "vit", size={"height": 48, "width": 48}))  # not the size of its positions


class _Hostile:
    def __reduce__(self) -> Any:
        return print, ("code of a pickle ran",)


def test_pickles_are_never_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_model(tmp_path / "a", "convnext")
    (folder / "model.safetensors").unlink()
    hostile = pickle.dumps({"weight": _Hostile()}, protocol=2)  # torch's own
    (folder / "pytorch_model.bin").write_bytes(hostile)
    with pytest.raises(InputError, match="can run code"):
        Vision(folder)
    weights = tmp_path / "weights.pth"
    weights.write_bytes(hostile)
    monkeypatch.setattr(module, "_required_file", lambda name: weights)
    with pytest.raises(InputError, match=r"more than weights.*not loaded|cannot be loaded"):
        Vision(next(iter(module.PACKAGES)))
    assert capsys.readouterr().out == ""


class _Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)  # type: ignore[no-any-return]


def test_a_network_of_your_own() -> None:
    network = _Small()
    encoder = Vision(network, size=16, mean=0.0, std=1.0)
    pixels = PIXELS[:, :, :16, :16]
    expected = network(pixels / 255).mean((2, 3))
    torch.testing.assert_close(encoder.embed(pixels), expected, rtol=1e-4, atol=1e-5)
    again = Vision(_Small(), size=16, mean=0.0, std=1.0)
    assert encoder.key != again.key  # other weights
    with pytest.raises(InputError, match="needs size="):
        Vision(network)
    with pytest.raises(InputError, match="mean and std are for a network of your own"):
        Vision("some-name", mean=0.5)


@pytest.mark.parametrize("kind", [dict, tuple])
def test_a_network_that_gives_no_tensor_is_refused(kind: type) -> None:
    class Several(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return kind({"features": x})

    with pytest.raises(InputError, match=f"gives a {kind.__name__}, not a tensor"):
        Vision(Several(), size=8)


def test_a_layer_learns_from_embeddings_and_the_encoder_keeps_its_mode() -> None:
    encoder = Vision(_Small(), size=16).train()
    features = encoder.embed(PIXELS[:, :, :16, :16])
    layer = torch.nn.Linear(features.shape[1], 1)
    layer(features).sum().backward()
    assert layer.weight.grad is not None
    with pytest.raises(RuntimeError):
        encoder.embed(PIXELS[:, :2])
    assert encoder.training


def test_the_weights_of_the_packaged_encoder_are_those_of_its_package(own_cache: Path) -> None:
    """Not those of a copy, in which nobody would see a changed bit."""
    name = packaged_encoder()
    if name is None:
        pytest.skip("needs punce[images]")
    assert Vision(name, 96).embed(torch.zeros(1, 3, 96, 96, dtype=torch.uint8)).shape == (1, 1280)
    assert not (own_cache / "encoders").exists()


def test_auto_takes_what_the_environment_names_or_a_package_for_coloured_pictures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PUNCE_IMAGE_ENCODER", "some/encoder")
    assert automatic_encoder("image", (9, 1, 8, 8), "auto") == "some/encoder"
    assert automatic_encoder("image", (9, 1, 8, 8), "mlp") == "mlp"
    assert automatic_encoder("text", (9,), "auto") == "auto"
    monkeypatch.setenv("PUNCE_IMAGE_ENCODER", "")
    assert automatic_encoder("image", (9, 3, 8, 8), "auto") == "auto"
    monkeypatch.delenv("PUNCE_IMAGE_ENCODER")
    monkeypatch.setattr("punce.options.packaged_encoder", lambda: "a-package")
    assert automatic_encoder("image", (9, 3, 8, 8), "auto") == "a-package"
    assert automatic_encoder("image", (9, 8, 8, 3), "auto") == "a-package"
    assert automatic_encoder("image", (9, 1, 8, 8), "auto") == "auto"  # digits and scans: learned from scratch


@pytest.mark.parametrize("name", ["tfidf", "transformer"])
def test_a_reader_of_texts_is_not_looked_for_among_encoders_of_images(name: str) -> None:
    with pytest.raises(InputError, match=r"encoder must be 'auto', one of .* got"):
        check_encoder(name, "image")

"""A tiny RoBERTa with random weights, written to disk by the tests: no network, no download."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from punce.datasets.generated_text import WORDS
from punce.encoders import Transformer
from punce.encoders.tiny_roberta import write_tiny_roberta


@pytest.fixture(scope="session")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the encoder."""
    return write_tiny_roberta(tmp_path_factory.mktemp("roberta"), WORDS)


@pytest.fixture
def encoder(roberta: Path) -> Transformer:
    """The encoder, freshly loaded, its projector drawn from seed 0."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Transformer(roberta)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub is out of reach, no encoder is named by the environment, and no installed one is found."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.delenv("PUNCE_TEXT_ENCODER", raising=False)
    monkeypatch.setattr("punce.models.text.has_static_vectors", lambda: False)

"""Pretrained encoders that several cells share: trained once, kept as safetensors, made again when missing or damaged.

A probe, a fine-tuning and a t-SNE plot of the same encoder are three cells but one pretraining. The name of an encoder
is the hash of what decides it, so it does not matter which cell trained it.
"""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from punce.encoders import Encoder
from punce.errors import PunceError, WriteError
from punce.experiments.cell import config_key
from punce.experiments.store import StoreWarning
from punce.storage.checkpoint import CheckpointError
from punce.storage.files import locked
from punce.storage.model_file import ModelFileError, read_model, write_model
from punce.training.run import OtherRunError

Train = Callable[[Encoder, Path], list[dict[str, Any]]]
"""Trains the encoder in place, with checkpoints in the folder, and returns the history."""


Result = TypeVar("Result")


def from_checkpoints_or_start(folder: Path, run: Callable[[], Result]) -> Result:
    """The result of `run`, which keeps its checkpoints in `folder`.

    From the start where they are of another configuration, of another version, or can no longer be read.
    """
    has_begun = folder.exists()
    try:
        return run()
    except (OtherRunError, CheckpointError) as error:
        if not has_begun or isinstance(error, WriteError):
            raise  # not the checkpoints' fault
        shutil.rmtree(folder)
        return run()


class EncoderBusyError(PunceError):
    """Another process is pretraining this encoder right now: do another cell first."""


@dataclass(frozen=True)
class Pretrained:
    """What is kept about an encoder beside its weights."""

    history: list[dict[str, Any]]
    seconds: float


class EncoderCache:
    """Encoders below one folder, used by any number of processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, name: str) -> bool:
        """Whether the encoder was pretrained (it may still turn out to be damaged)."""
        return (self.folder / name / "manifest.json").exists()  # the writer's last file

    def fill(self, encoder: Encoder, config: dict[str, Any], train: Train) -> Pretrained:
        """Give `encoder` its pretrained weights, training it if need be; refuses while another process does."""
        name = config_key(config)[:16]
        if (found := self._load(encoder, name)) is not None:
            return found
        with locked(self.folder / f"{name}.lock") as is_ours:
            if not is_ours:
                raise EncoderBusyError(f"encoder {name} is being pretrained by another process")
            # Again under the lock: it may have been pretrained between the first look and the lock.
            return self._load(encoder, name) or self._train(encoder, name, config, train)

    def _load(self, encoder: Encoder, name: str) -> Pretrained | None:
        if not self.has(name):
            return None
        first = deepcopy(encoder.state_dict())
        try:
            tensors, content = read_model(self.folder / name)
            encoder.load_state_dict(tensors)
            found = Pretrained(list(content["history"]), float(content["seconds"]))
        except (ModelFileError, KeyError, RuntimeError) as error:
            warnings.warn(f"the pretrained encoder {name} is made again: {error}", StoreWarning, stacklevel=3)
            encoder.load_state_dict(first)  # some weights may be in it, and training must begin at those of the seed
            return None
        encoder.eval()
        return found

    def _train(self, encoder: Encoder, name: str, config: dict[str, Any], train: Train) -> Pretrained:
        began, work = time.perf_counter(), self.folder / f"{name}.run"
        first = deepcopy(encoder.state_dict())

        def from_first_weights() -> list[dict[str, Any]]:
            encoder.load_state_dict(first)  # a checkpoint that does not fit may have been loaded in part
            return train(encoder, work)

        history = from_checkpoints_or_start(work, from_first_weights)
        made = Pretrained(history, time.perf_counter() - began)
        content = {"config": config, "history": made.history, "seconds": made.seconds}
        write_model(self.folder / name, dict(encoder.state_dict()), content)
        shutil.rmtree(work, ignore_errors=True)
        return made

"""The steps of a table fit: each is computed once, stored, and read back when a killed fit is repeated."""

from __future__ import annotations

import hashlib
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from punce.models.tabular.trees import Arrays
from punce.storage.model_file import ModelFileError, read_model, write_model
from punce.training.parallel import in_parallel
from punce.training.progress import StageProgress

Step = Callable[[], Arrays]


class Steps:
    """Runs named steps, with progress, on a limited number of threads.

    Args:
        folder: where results are stored; None stores nothing.
        inputs: arrays and settings that decide the results. What a fit with other inputs has stored is not used.
        threads: at most so many in a step; with one, several steps run at once.
        progress: told of every finished step.
    """

    def __init__(
        self,
        folder: Path | None = None,
        inputs: Mapping[str, Any] | None = None,
        threads: int = 1,
        progress: StageProgress | None = None,
    ) -> None:
        self._folder, self._threads, self._progress = folder, threads, progress
        # Hashing reads the whole table, and is needed only to recognise what was stored.
        self._fingerprint = "" if folder is None else _fingerprint(inputs or {})

    def __call__(self, steps: Mapping[str, Step]) -> list[Arrays]:
        """The arrays of every step: stored ones if there are, else computed, and stored as they come.

        Steps must not depend on each other: those of a small table run side by side.
        """
        found = {name: self._stored(name) for name in steps}
        missing = [steps[name] for name, arrays in found.items() if arrays is None]
        computed = in_parallel(missing, self._threads)
        results = []
        for name, arrays in found.items():
            if arrays is None:
                arrays = next(computed)
                self._store(name, arrays)
            results.append(arrays)
            if self._progress is not None:
                self._progress.advance(name)
        return results

    def _stored(self, name: str) -> Arrays | None:
        if self._folder is None or not (self._folder / name).exists():
            return None
        try:
            tensors, content = read_model(self._folder / name)
        except ModelFileError as error:
            # The step is computed again: a damaged file costs time, not the run.
            warnings.warn(f"a stored step of the fit is damaged and is repeated: {error}", stacklevel=3)
            shutil.rmtree(self._folder / name, ignore_errors=True)
            return None
        if content.get("inputs") != self._fingerprint:
            return None
        return {key: tensor.numpy() for key, tensor in tensors.items()}

    def _store(self, name: str, arrays: Arrays) -> None:
        if self._folder is not None:
            tensors = {key: torch.from_numpy(np.ascontiguousarray(array)) for key, array in arrays.items()}
            # A power cut may damage a step, which is then repeated: to wait for the disk at each would cost more.
            write_model(self._folder / name, tensors, {"inputs": self._fingerprint}, is_durable=False)


def _fingerprint(inputs: Mapping[str, Any]) -> str:
    """sha256 of arrays by shape, type and bytes, of other values by their text."""
    digest = hashlib.sha256()
    for name, value in inputs.items():
        is_array = isinstance(value, np.ndarray)
        digest.update(f"{name} {(value.shape, value.dtype) if is_array else value!r}\n".encode())
        if is_array:
            digest.update(np.ascontiguousarray(value).data)
    return digest.hexdigest()

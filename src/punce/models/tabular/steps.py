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
from punce.training.cpus import limited_threads
from punce.training.progress import StageProgress


class Steps:
    """Runs named steps, with progress, on a limited number of threads.

    Args:
        folder: where results are stored; None stores nothing.
        inputs: arrays and settings that decide the results. What a fit with other inputs has stored is not used.
        threads: at most so many in a step.
        progress: told of every finished step.
    """

    def __init__(
        self,
        folder: Path | None = None,
        inputs: Mapping[str, Any] | None = None,
        threads: int = 1,
        progress: StageProgress | None = None,
    ) -> None:
        self._folder, self.threads, self._progress = folder, threads, progress
        # Hashing reads the whole table, and is needed only to recognise what was stored.
        self._fingerprint = "" if folder is None else _fingerprint(inputs or {})

    def __call__(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """The arrays of step `name`: stored ones if there are, else computed and stored before this returns."""
        arrays = self._stored(name)
        if arrays is None:
            with limited_threads(self.threads):
                arrays = compute()
            self._store(name, arrays)
        if self._progress is not None:
            self._progress.advance(name)
        return arrays

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
            write_model(self._folder / name, tensors, {"inputs": self._fingerprint})


def _fingerprint(inputs: Mapping[str, Any]) -> str:
    """sha256 of arrays by shape, type and bytes, of other values by their text."""
    digest = hashlib.sha256()
    for name, value in inputs.items():
        is_array = isinstance(value, np.ndarray)
        digest.update(f"{name} {(value.shape, value.dtype) if is_array else value!r}\n".encode())
        if is_array:
            digest.update(np.ascontiguousarray(value).data)
    return digest.hexdigest()

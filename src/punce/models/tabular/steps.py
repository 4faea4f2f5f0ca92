"""The steps of a table fit: each is computed once, stored, and read back when a killed fit is repeated."""

from __future__ import annotations

import hashlib
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from punce.storage.model_file import ModelFileError, read_model, write_model
from punce.training.cpus import limited_threads
from punce.training.progress import StageProgress

Arrays = dict[str, npt.NDArray[Any]]


class Steps:
    """Runs named steps, with progress, on a limited number of threads.

    Args:
        folder: where results are stored; None stores nothing.
        inputs: arrays and settings that decide the results. What another fit has stored is not used.
        total: number of steps, for the time left.
        rows: rows of the table, for the rate.
    """

    def __init__(
        self,
        folder: Path | None = None,
        inputs: Mapping[str, Any] | None = None,
        *,
        total: int = 1,
        rows: int = 0,
        threads: int = 1,
        shown: bool = False,
    ) -> None:
        self._folder, self.threads = folder, threads
        self._fingerprint = "" if folder is None else _fingerprint(inputs or {})
        self._progress = StageProgress("table", total, rows, shown=shown)

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._progress.__exit__(kind, error, tb)

    def __call__(self, name: str, compute: Callable[[], Arrays]) -> Arrays:
        """The arrays of step `name`: stored ones if there are, else computed and stored before this returns."""
        arrays = self._stored(name)
        if arrays is None:
            with limited_threads(self.threads):
                arrays = compute()
            self._store(name, arrays)
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

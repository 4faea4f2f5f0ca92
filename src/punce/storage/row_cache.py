"""Rows that took long to compute, kept on disk under a key each, for later runs and after a kill.

A folder holds pieces: safetensors files of some thousand rows, each written whole or not at all, with the sha256 of
its content. A damaged piece is left out, and a disk that is full or read-only costs time later but fails nothing.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from punce.errors import WriteError
from punce.storage.files import replacing

Columns = dict[str, npt.NDArray[np.generic]]
_KEYS, _DIGEST = "keys", "sha256"
_ROWS = 2048  # of a piece
_SECONDS = 30.0  # of work that a kill may cost


class RowCache:
    """Rows by key, each with the same columns, in a folder; without a folder it holds nothing."""

    def __init__(self, folder: Path | None, *, writes: bool = True) -> None:
        self._folder, self._writes = folder, writes and folder is not None
        self._pieces: list[Any] = []  # opened, so that no other process can take them away
        self._places: dict[bytes, tuple[int, int]] = {}
        self._new: list[tuple[bytes, Columns]] = []
        self._written = time.monotonic()
        self._open: tuple[int, Columns] = (-1, {})
        self._whole: dict[int, bool] = {}
        self.trouble = ""
        """Why rows could not be kept, if so."""
        for path in sorted(folder.glob("*.safetensors")) if folder is not None and folder.is_dir() else []:
            self._enter(path)

    def __contains__(self, key: bytes) -> bool:
        place = self._places.get(key)
        return place is not None and self._is_whole(place[0])

    def get(self, key: bytes) -> Columns:
        """One row."""
        piece, row = self._places[key]
        return {name: values[row] for name, values in self._columns(piece).items()}

    def add(self, keys: Sequence[bytes], columns: Columns) -> None:
        """Keep these rows, at the latest when :meth:`flush` is called."""
        if not self._writes:
            return
        self._new += [(key, {name: values[i] for name, values in columns.items()}) for i, key in enumerate(keys)]
        if len(self._new) >= _ROWS or time.monotonic() - self._written > _SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what is not on disk yet."""
        new, self._new, self._written = self._new, [], time.monotonic()
        if self._folder is None or not self._writes or self.trouble or not new:
            return
        content: Columns = {name: np.stack([row[name] for _, row in new]) for name in new[0][1]}
        content[_KEYS] = np.frombuffer(b"".join(key for key, _ in new), dtype=np.uint8).reshape(len(new), -1)
        path = self._folder / f"{time.time_ns():x}-{os.getpid()}.safetensors"
        try:
            with replacing(path, in_folder=True) as temporary:
                save_file(content, temporary, metadata={_DIGEST: _digest(content)})
        except (WriteError, OSError, SafetensorError) as error:
            self.trouble = str(error)
            return
        self._enter(path)

    def _enter(self, path: Path) -> None:
        try:
            piece: Any = safe_open(path, framework="np")
            keys = piece.get_tensor(_KEYS)
        except (OSError, SafetensorError):
            return  # damaged: its rows are computed again
        self._pieces.append(piece)
        place = len(self._pieces) - 1
        self._places |= {key.tobytes(): (place, row) for row, key in enumerate(keys)}

    def _is_whole(self, piece: int) -> bool:
        """Whether a piece holds what was written; looked at once, when the first of its rows is asked for.

        Earlier versions wrote no digest: their pieces are believed.
        """
        if piece not in self._whole:
            file = self._pieces[piece]
            content: Columns = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            written = (file.metadata() or {}).get(_DIGEST)
            self._whole[piece] = written is None or written == _digest(content)
        return self._whole[piece]

    def _columns(self, piece: int) -> Columns:
        """All rows of a piece. The last one stays in memory: rows are asked for in the order they were written."""
        if self._open[0] != piece:
            file = self._pieces[piece]
            self._open = piece, {name: file.get_tensor(name) for name in file.keys() if name != _KEYS}  # noqa: SIM118
        return self._open[1]


def _digest(content: Columns) -> str:
    """sha256 over the columns by name, with their types and shapes."""
    digest = hashlib.sha256()
    for name, values in sorted(content.items()):
        digest.update(f"{name} {values.dtype} {values.shape} ".encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()

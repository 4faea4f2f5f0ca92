"""The one writer behind checkpoints and saved models: tensors, a JSON file and a manifest with their sha256, no pickle.

A folder is filled under a temporary name and flushed to disk; the caller then renames it, so that readers see all of
it or none.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from punce.errors import PunceError
from punce.storage.temporary import allow_as

MANIFEST = "manifest.json"
STORABLE = frozenset(
    {torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.bool, torch.uint8, torch.int8}
    | {torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64}
)
Listed = dict[str, dict[str, Any]]
"""For each file its size ("bytes") and "sha256"."""


class TensorError(PunceError):
    """A tensor that no safetensors file can hold."""


def fill_folder(
    folder: Path,
    name: str,
    tensors: dict[str, Tensor],
    text_name: str,
    text: bytes,
    seal: Callable[[Listed], bytes],
    *,
    is_durable: bool = True,
) -> None:
    """Make `folder`, or fill it if it is empty, with the tensors, the text and the manifest that `seal` writes.

    Nothing is left if it fails. What is `is_durable` survives a power cut.
    """
    try:
        folder.mkdir(exist_ok=True)
        save_file(tensors, folder / name)
        (folder / text_name).write_bytes(text)
        allow_as(folder / name, (folder / text_name).stat().st_mode)
        (folder / MANIFEST).write_bytes(seal({file: _listed(folder / file) for file in (text_name, name)}))
        if is_durable:
            for file in (folder / name, folder / text_name, folder / MANIFEST, folder):
                sync(file)
    except BaseException:  # also Ctrl-C
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _listed(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}


def storable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous CPU tensors that share no memory, which is what safetensors takes; tied weights are stored twice."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, value in tensors.items():
        if not isinstance(value, Tensor) or value.layout != torch.strided or value.dtype not in STORABLE:
            kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
            raise TensorError(f"tensor {name!r} cannot be stored: {kind}; use a dense tensor of real numbers")
        if name == "__metadata__":
            raise TensorError("the tensor name '__metadata__' is reserved by safetensors; rename it")
        tensor = value.detach().cpu().contiguous()
        memory = tensor.untyped_storage().data_ptr()
        found[name] = tensor.clone() if memory in seen else tensor  # safetensors refuses shared memory
        seen.add(memory)
    return found


def sync(path: Path) -> None:
    """Flush a file, or a directory's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def size_in_words(n_bytes: int) -> str:
    """4.0 MB or 1.25 GB."""
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:.2f} GB"

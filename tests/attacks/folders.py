"""Model folders as somebody else may hand them over: any JSON, any tensors, and a manifest that fits."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from punce.storage.checkpoint import _manifest as checkpoint_manifest
from tests.models.stored.write import HERE, MODELS, table, texts

STORED = tuple(MODELS)
_BETWEEN = b"\n=== tensors ===\n"
NAMES = ("model.safetensors", "model.json")


@dataclass(frozen=True)
class Parts:
    """What a folder is made of, kept in one file so that it can be changed as a whole."""

    text: bytes
    tensors: bytes

    @classmethod
    def of(cls, content: bytes) -> Parts:
        """From one file."""
        text, _, tensors = content.partition(_BETWEEN)
        return cls(text, tensors)

    def joined(self) -> bytes:
        """As one file."""
        return self.text + _BETWEEN + self.tensors


def stored(name: str) -> Parts:
    """A good model."""
    return Parts((HERE / name / "model.json").read_bytes(), (HERE / name / "model.safetensors").read_bytes())


def joined(name: str) -> bytes:
    """A good model as one file."""
    return stored(name).joined()


def write_folder(folder: Path, parts: Parts, *, names: tuple[str, str] = NAMES, is_checkpoint: bool = False) -> Path:
    """The folder, with the digests of what is in it: only who looks inside can tell it from a good one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    listed: dict[str, dict[str, Any]] = {}
    for name, content in zip(names, (parts.tensors, parts.text), strict=True):
        (folder / name).write_bytes(content)
        listed[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    if is_checkpoint:
        manifest = checkpoint_manifest(1, listed)
    else:
        manifest = json.dumps({"sha256": {name: one["sha256"] for name, one in listed.items()}}).encode()
    (folder / "manifest.json").write_bytes(manifest)
    return folder


def rows_for(kind: str) -> Any:
    """Some rows that a stored model of this kind scores."""
    return texts(4) if kind == "text" else table(4)

"""Checkpoints that survive kill -9, a full disk and a flipped bit, without pickle.

A checkpoint is a folder ``checkpoint-<sequence>-step-<step>`` with ``tensors.safetensors``, ``state.json`` and
``manifest.json`` (size and sha256 of the other two and of itself). It is written under a temporary name in the same
directory, flushed to disk with the directory, and renamed: a checkpoint exists whole or not at all. Reading verifies
every byte and steps back to the previous checkpoint, with a warning, where one is damaged.

Only the one rank that owns the folder saves; any number may load.

``torch.save`` with ``torch.load(weights_only=True)`` would be shorter, but it reads pickle (its restricted reader ran
code in torch before 2.6), has no checksum and cannot be read by eye; so tensors and a JSON tree stay.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
import warnings
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from_bytes
from torch import Tensor

from punce.errors import InputError, PunceError, WriteError
from punce.storage.tensor_folder import MANIFEST, Listed, TensorError, fill_folder, size_in_words, storable, sync

FORMAT = 1
TENSORS = "tensors.safetensors"
STATE = "state.json"

_NAME = re.compile(r"checkpoint-(\d{6,})-step-(\d+)")
_TEMPORARY = ".tmp-"
_LARGEST_MANIFEST = 1 << 20  # bytes; a damaged or foreign file of any size must not fill the memory


class CheckpointError(PunceError):
    """A checkpoint could not be written, or none in the folder can be read."""


class CheckpointWriteError(CheckpointError, WriteError):
    """A checkpoint could not be written: full disk, no permission."""


class CheckpointWarning(UserWarning):
    """A damaged checkpoint was passed over, or an old one could not be removed."""


class _DamagedError(Exception):
    """Names the file and what is wrong with it."""


@dataclass(frozen=True)
class Checkpoint:
    """What was saved at `step`: tensors by name on the CPU, and the JSON state."""

    step: int
    tensors: dict[str, Tensor]
    state: dict[str, Any]
    path: Path


@dataclass
class CheckpointStore:
    """The checkpoints of one run in one folder; the last `keep` stay. Pair it with :func:`flatten_state`."""

    folder: Path
    keep: int = 2
    _damaged: set[str] = field(default_factory=set, init=False, repr=False)
    _last: int = field(default=0, init=False, repr=False)  # sequence numbers are never used twice

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise InputError(f"keep must be at least 1, got {self.keep}")
        self.folder = Path(self.folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointWriteError(f"cannot make the checkpoint folder {self.folder}: {error.strerror}") from error

    def save(self, step: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> Path:
        """Write a checkpoint and return its folder; earlier ones stay untouched until it is safely on disk."""
        text = _state_text(state)
        try:
            kept = storable(tensors)
        except TensorError as error:
            raise CheckpointError(str(error)) from None
        self._last = max([self._last, *(int(name.split("-")[1]) for name in self.names())]) + 1
        self._prune()  # left by runs that were killed between renaming and pruning
        self._remove_temporary()
        path, temporary = self.folder / f"checkpoint-{self._last:06d}-step-{step}", self._temporary()
        try:
            fill_folder(temporary, TENSORS, kept, STATE, text, partial(_manifest, step))
            temporary.rename(path)
            sync(self.folder)
        except (OSError, SafetensorError) as error:
            needed = sum(tensor.nbytes for tensor in kept.values()) + len(text)
            raise self._explained(error, step, needed) from error
        self._prune()
        return path

    def load_latest(self) -> Checkpoint | None:
        """The newest intact checkpoint, or None in an empty folder; refuses a folder with only damaged ones."""
        names = self.names()
        for name in reversed(names):
            try:
                return _read(self.folder / name)
            except _DamagedError as damage:
                if not (self.folder / name).exists():
                    continue  # removed by the run that owns the folder, between listing and reading
                self._damaged.add(name)
                warnings.warn(
                    f"checkpoint {name} is damaged and passed over: {damage}", CheckpointWarning, stacklevel=2
                )
        if self._damaged.intersection(names):
            raise CheckpointError(
                f"no checkpoint in {self.folder} is intact ({', '.join(names)}); remove the folder to start again"
            )
        # All that were listed are gone: the owner of the folder has pruned them, and newer ones may be there.
        return self.load_latest() if self.names() not in ([], names) else None

    def names(self) -> list[str]:
        """Names of the checkpoints, oldest first. Links, files and folders of other names are not looked at."""
        found = {}
        for entry in os.scandir(self.folder):
            match = _NAME.fullmatch(entry.name)
            if match and entry.is_dir(follow_symlinks=False):
                found[entry.name] = int(match[1])
        return sorted(found, key=lambda name: (found[name], name))  # by number: step 10 comes after step 9

    def _prune(self) -> None:
        """Keep the last `keep` that are not known to be damaged."""
        names = self.names()
        intact = [name for name in names if name not in self._damaged]
        for name in set(names) - set(intact[-self.keep :]):
            # Renamed first: a kill in the middle of removal must not leave half a checkpoint under a real name.
            doomed = self._temporary()
            try:
                (self.folder / name).rename(doomed)
                self._damaged.discard(name)
                shutil.rmtree(doomed)
            except OSError as error:
                warnings.warn(f"could not remove old checkpoint {name}: {error}", CheckpointWarning, stacklevel=3)

    def _temporary(self) -> Path:
        return self.folder / f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}"

    def _remove_temporary(self) -> None:
        """Remove what killed runs left half written. Only the owner of the folder saves, so nothing of it is in use."""
        for entry in os.scandir(self.folder):
            if entry.name.startswith(_TEMPORARY) and entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)

    def _explained(self, error: OSError | SafetensorError, step: int, needed: int) -> CheckpointError:
        names, free = self.names(), size_in_words(shutil.disk_usage(self.folder).free)
        kept = f"earlier checkpoints are intact, the last is {names[-1]}" if names else "there is no earlier checkpoint"
        # Each run removes what it takes for the rest of a killed one.
        other = "Does another run write to this folder? " if "No such file" in str(error) else ""
        return CheckpointWriteError(
            f"could not write the checkpoint of step {step} ({size_in_words(needed)}) to {self.folder}: {error}; "
            f"{free} are free on that disk; {kept}. {other}Repeat the command to continue from there"
        )


def _state_text(state: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(state, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"state is not JSON ({error}); pass it through flatten_state") from None
    if json.loads(text) != state:  # JSON turns tuples into lists and all keys into text without a word
        raise CheckpointError("state changes in JSON (tuples? keys that are not text?); pass it through flatten_state")
    return text.encode()


def _manifest(step: int, listed: Listed) -> bytes:
    return _sealed({"format": FORMAT, "step": step, "files": listed})


def _sealed(content: dict[str, Any]) -> bytes:
    """Canonical JSON with its own sha256, so that no byte of the manifest can change unseen."""
    seal = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({**content, "sha256": seal}, sort_keys=True, indent=1).encode()


def _read(path: Path) -> Checkpoint:
    manifest = _read_manifest(path / MANIFEST)
    content = {name: _read_listed(path / name, manifest["files"][name]) for name in (STATE, TENSORS)}
    try:
        tensors, state = tensors_from_bytes(content[TENSORS]), json.loads(content[STATE])
    except (SafetensorError, ValueError, RecursionError) as error:  # written so: the digests agree
        raise _DamagedError(f"{path.name} cannot be decoded: {error}") from error
    if not isinstance(state, dict):
        raise _DamagedError(f"{path / STATE} holds no JSON object")
    return Checkpoint(manifest["step"], tensors, state, path)


def _read_manifest(path: Path) -> dict[str, Any]:
    raw = _read_regular(path, _LARGEST_MANIFEST)
    try:
        manifest: dict[str, Any] = json.loads(raw)
        content = {key: value for key, value in manifest.items() if key != "sha256"}
        intact = _sealed(content) == raw
    except (ValueError, AttributeError, RecursionError):
        intact = False
    if not intact:
        raise _DamagedError(f"{path} does not agree with its own checksum")
    if content.get("format") != FORMAT:
        raise _DamagedError(f"{path} has format {content.get('format')!r}, this version reads {FORMAT}")
    # The checksum is no proof of who wrote it: anybody can seal a manifest.
    if not _is_count(content.get("step")) or not all(
        _is_listed(content.get("files"), name) for name in (STATE, TENSORS)
    ):
        raise _DamagedError(f"{path} does not list a step, {STATE} and {TENSORS}: punce did not write it")
    return content


def _is_listed(files: Any, name: str) -> bool:
    listed = files.get(name) if isinstance(files, dict) else None
    return isinstance(listed, dict) and _is_count(listed.get("bytes")) and isinstance(listed.get("sha256"), str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _read_listed(path: Path, listed: dict[str, Any]) -> bytes:
    raw = _read_regular(path, listed["bytes"])
    if len(raw) != listed["bytes"]:
        raise _DamagedError(f"{path} has {len(raw)} bytes instead of {listed['bytes']}")
    if hashlib.sha256(raw).hexdigest() != listed["sha256"]:
        raise _DamagedError(f"{path} does not have the sha256 of the manifest: its content has changed")
    return raw


def _read_regular(path: Path, most: int) -> bytes:
    """Up to `most` bytes and one more; a pipe would block for ever, and a link is not what was written."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise _DamagedError(f"{path} is not a regular file")
        with path.open("rb") as file:
            return file.read(most + 1)
    except FileNotFoundError:
        raise _DamagedError(f"{path} is missing") from None
    except OSError as error:
        raise _DamagedError(f"{path} cannot be read: {error.strerror}") from None


# Nested state -----------------------------------------------------------------------------------------------------


def flatten_state(state: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Split nested state into tensors by name and a JSON tree; :func:`unflatten_state` puts it together exactly.

    Takes dicts with any plain keys, lists, tuples, None, bool, int of any size, float (also NaN and infinite), NumPy's
    numbers (which come back as Python's), str and tensors with their memory layout: the state of models, optimisers and
    ``torch.Generator.get_state()``.
    """
    tensors: dict[str, Tensor] = {}
    return tensors, _encode(state, "state", tensors)


def unflatten_state(tensors: dict[str, Tensor], tree: dict[str, Any]) -> Any:
    """Inverse of :func:`flatten_state`; tensors are on the CPU."""
    kind, value = tree["kind"], tree.get("value")
    if kind == "tensor":
        tensor, stride = tensors[tree["name"]], tree["stride"]
        return tensor if stride is None else torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype).copy_(tensor)
    if kind == "dict":
        return {unflatten_state(tensors, k): unflatten_state(tensors, v) for k, v in tree["value"]}
    if kind in ("list", "tuple"):
        items = [unflatten_state(tensors, item) for item in tree["value"]]
        return items if kind == "list" else tuple(items)
    return float(str(value)) if kind == "float" else value


def _encode(value: Any, path: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    if isinstance(value, Tensor):
        return _encode_tensor(value, path, tensors)
    if isinstance(value, dict):
        items = [[_encode(k, path, tensors), _encode(v, f"{path}/{k}", tensors)] for k, v in value.items()]
        return {"kind": "dict", "value": items}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {"kind": kind, "value": [_encode(v, f"{path}/{i}", tensors) for i, v in enumerate(value)]}
    if isinstance(value, np.generic):
        value = plain_number(value)
    if isinstance(value, float) and not math.isfinite(value):  # JSON has no such numbers
        return {"kind": "float", "value": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return {"kind": "plain", "value": value}
    raise InputError(
        f"{path} is a {type(value).__name__}, which a checkpoint cannot hold; give tensors, numbers, text, None, and "
        "dicts, lists or tuples of them"
    )


def plain_number(value: object) -> Any:
    """A number of NumPy, such as a seed of an arange, as Python's; also the `default` of ``json.dumps``."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is no number")


def _encode_tensor(value: Tensor, path: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    name = path
    while name in tensors:  # the keys 1 and "1" of one dict read the same
        name += "+"
    tensors[name] = value.detach()
    # Layout matters: fused optimiser kernels read a contiguous buffer beside a channels_last weight wrongly.
    extent = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    is_permuted = not value.is_contiguous() and extent == value.numel()  # dense, in another order of dimensions
    return {"kind": "tensor", "name": name, "stride": list(value.stride()) if is_permuted else None}

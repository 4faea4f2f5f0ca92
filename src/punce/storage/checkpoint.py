"""Checkpoints that survive kill -9, a full disk and a flipped bit, without pickle.

A checkpoint is a folder ``checkpoint-<sequence>-step-<step>`` with ``tensors.safetensors``, ``state.json`` and
``manifest.json`` (size and sha256 of the other two and of itself). It is written under a temporary name in the same
directory, flushed to disk with the directory, and renamed: a checkpoint exists whole or not at all. Reading verifies
every byte and steps back to the previous checkpoint, with a warning, where one is damaged.

Only the one rank that owns the folder saves; any number may load.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import stat
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save_file
from torch import Tensor

from punce.errors import InputError, PunceError, WriteError
from punce.storage.state_tree import flatten_state, unflatten_state

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "CheckpointStore",
    "CheckpointWarning",
    "flatten_state",
    "unflatten_state",
]

FORMAT = 1
TENSORS = "tensors.safetensors"
STATE = "state.json"
MANIFEST = "manifest.json"

_NAME = re.compile(r"checkpoint-(\d{6,})-step-(\d+)")
_TEMPORARY = re.compile(r"\.tmp-(?P<host>.+)-(?P<pid>\d{1,9})-[0-9a-f]+")
_OS_ERROR = re.compile(r"os error (\d+)")  # safetensors reports the errno of a failed write only in its text
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_STORABLE = frozenset(
    {torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.bool, torch.uint8, torch.int8}
    | {torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64}
)
_LARGEST_MANIFEST = 1 << 20
_FOREIGN_AGE = 24 * 3600.0  # seconds after which a temporary folder of another machine counts as abandoned
_BEING_WRITTEN: set[str] = set()  # temporary names of this process, which share its pid with those of a dead one


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
        _remove_abandoned(self.folder)

    def save(self, step: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> Path:
        """Write a checkpoint and return its folder; earlier ones stay untouched until it is safely on disk."""
        text = _state_text(state)
        storable = _storable(tensors)
        needed = sum(tensor.nbytes for tensor in storable.values()) + len(text)
        self._last = max(self._last, self._newest())
        self._prune()  # what runs killed between renaming and pruning have left, which would add up
        try:
            path = self._write(step, storable, text)
        except (OSError, SafetensorError) as error:
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
        return self.load_latest() if self.names() not in ([], names) else None

    def names(self) -> list[str]:
        """Names of the checkpoints, oldest first. Links, files and folders of other names are not looked at."""
        found = {}
        for entry in os.scandir(self.folder):
            match = _NAME.fullmatch(entry.name)
            if match and entry.is_dir(follow_symlinks=False):
                found[entry.name] = int(match[1])
        return sorted(found, key=lambda name: (found[name], name))

    def _write(self, step: int, tensors: dict[str, Tensor], text: bytes) -> Path:
        temporary = self.folder / f".tmp-{_host()}-{os.getpid()}-{secrets.token_hex(4)}"
        _BEING_WRITTEN.add(temporary.name)
        try:
            temporary.mkdir()
            save_file(tensors, temporary / TENSORS)
            (temporary / STATE).write_bytes(text)
            (temporary / MANIFEST).write_bytes(_manifest(temporary, step))
            for name in (TENSORS, STATE, MANIFEST):
                _sync(temporary / name)
            _sync(temporary)
            path = self._publish(temporary, step)
        except BaseException:  # also Ctrl-C: never leave half a checkpoint behind
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        finally:
            _BEING_WRITTEN.discard(temporary.name)
        _sync(self.folder)
        return path

    def _publish(self, temporary: Path, step: int) -> Path:
        """Rename into place under the next free sequence number; the same step may be saved again."""
        while True:
            self._last = max(self._last, self._newest()) + 1
            path = self.folder / f"checkpoint-{self._last:06d}-step-{step}"
            try:
                return temporary.rename(path)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise

    def _newest(self) -> int:
        return max((int(name.split("-")[1]) for name in self.names()), default=0)

    def _prune(self) -> None:
        """Keep the last `keep` that are not known to be damaged."""
        names = self.names()
        intact = [name for name in names if name not in self._damaged]
        for name in set(names) - set(intact[-self.keep :]):
            # Renamed first: a kill in the middle of removal must not leave half a checkpoint under a real name.
            doomed = self.folder / f".tmp-{_host()}-{os.getpid()}-{secrets.token_hex(4)}"
            try:
                (self.folder / name).rename(doomed)
                self._damaged.discard(name)
                shutil.rmtree(doomed)
            except OSError as error:
                warnings.warn(f"could not remove old checkpoint {name}: {error}", CheckpointWarning, stacklevel=3)

    def _explained(self, error: OSError | SafetensorError, step: int, needed: int) -> CheckpointError:
        names = self.names()
        kept = f"earlier checkpoints are intact, the last is {names[-1]}" if names else "there is no earlier checkpoint"
        if _errno(error) not in _DISK_FULL:
            return CheckpointWriteError(
                f"could not write the checkpoint of step {step} to {self.folder}: {error}; {kept}"
            )
        free = shutil.disk_usage(self.folder).free
        return CheckpointWriteError(
            f"the disk (or quota) of {self.folder} is full: the checkpoint of step {step} needs {_size(needed)} and "
            f"{_size(free)} are free; {kept}. Free some space and repeat the command to continue from there"
        )


def _storable(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous CPU tensors that share no memory, which is what safetensors takes; tied weights are stored twice."""
    storable: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, value in tensors.items():
        if not isinstance(value, Tensor) or value.layout != torch.strided or value.dtype not in _STORABLE:
            seen_type = value.dtype if isinstance(value, Tensor) else type(value).__name__
            raise CheckpointError(f"tensor {name!r} cannot be stored: {seen_type}; use a dense tensor of real numbers")
        if name == "__metadata__":
            raise CheckpointError("the tensor name '__metadata__' is reserved by safetensors; rename it")
        tensor = value.detach().cpu().contiguous()
        memory = tensor.untyped_storage().data_ptr()
        storable[name] = tensor.clone() if memory in seen else tensor
        seen.add(memory)
    return storable


def _state_text(state: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(state, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"state is not JSON ({error}); pass it through flatten_state") from None
    if json.loads(text) != state:
        raise CheckpointError("state changes in JSON (tuples? keys that are not text?); pass it through flatten_state")
    return text.encode()


def _manifest(folder: Path, step: int) -> bytes:
    files = {}
    for name in (STATE, TENSORS):
        with (folder / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            files[name] = {"bytes": file.tell(), "sha256": digest}
    return _sealed({"format": FORMAT, "step": step, "files": files})


def _sealed(content: dict[str, Any]) -> bytes:
    """Canonical JSON with its own sha256, so that no byte of the manifest can change unseen."""
    seal = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({**content, "sha256": seal}, sort_keys=True, indent=1).encode()


def _read(path: Path) -> Checkpoint:
    manifest = _read_manifest(path / MANIFEST)
    content = {name: _read_listed(path / name, manifest["files"][name]) for name in (STATE, TENSORS)}
    try:
        tensors = tensors_from_bytes(content[TENSORS])
        state = json.loads(content[STATE])
    except (SafetensorError, ValueError) as error:  # written so: the digests agree
        raise _DamagedError(f"{path.name} cannot be decoded: {error}") from error
    return Checkpoint(manifest["step"], tensors, state, path)


def _read_manifest(path: Path) -> dict[str, Any]:
    raw = _read_regular(path, _LARGEST_MANIFEST)
    try:
        manifest: dict[str, Any] = json.loads(raw)
        content = {key: value for key, value in manifest.items() if key != "sha256"}
        intact = _sealed(content) == raw
    except (ValueError, AttributeError):
        intact = False
    if not intact:
        raise _DamagedError(f"{path} does not agree with its own checksum")
    if content["format"] != FORMAT:
        raise _DamagedError(f"{path} has format {content['format']}, this version reads {FORMAT}")
    return content


def _read_listed(path: Path, listed: dict[str, Any]) -> bytes:
    raw = _read_regular(path, listed["bytes"])
    if len(raw) != listed["bytes"]:
        raise _DamagedError(f"{path} has {len(raw)} bytes instead of {listed['bytes']}")
    if hashlib.sha256(raw).hexdigest() != listed["sha256"]:
        raise _DamagedError(f"{path} does not have the sha256 of the manifest: its content has changed")
    return raw


def _read_regular(path: Path, most: int) -> bytes:
    """Up to `most` bytes and one more; refuses links, pipes and devices without opening what they lead to."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _DamagedError(f"{path} is not a regular file")
            return file.read(most + 1)
    except FileNotFoundError:
        raise _DamagedError(f"{path} is missing") from None
    except OSError as error:
        reason = "is a symbolic link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise _DamagedError(f"{path} {reason}") from None


def _remove_abandoned(folder: Path) -> None:
    """Remove temporary folders whose process is gone; those of a live process or another machine may be in use."""
    for entry in os.scandir(folder):
        match = _TEMPORARY.fullmatch(entry.name)
        if not match or not entry.is_dir(follow_symlinks=False) or entry.name in _BEING_WRITTEN:
            continue
        if match["host"] == _host():
            abandoned = int(match["pid"]) == os.getpid() or not _is_alive(int(match["pid"]))
        else:
            abandoned = time.time() - entry.stat(follow_symlinks=False).st_mtime > _FOREIGN_AGE
        if abandoned:
            shutil.rmtree(entry.path, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno != errno.ESRCH  # not permitted means alive
    return True


def _sync(path: Path) -> None:
    """Flush a file, or a directory's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "_", socket.gethostname()) or "unknown"


def _errno(error: OSError | SafetensorError) -> int | None:
    if isinstance(error, OSError):
        return error.errno
    match = _OS_ERROR.search(str(error))
    return int(match[1]) if match else None


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:.2f} GB"

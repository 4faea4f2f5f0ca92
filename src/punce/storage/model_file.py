"""A saved classifier: ``model.safetensors``, ``model.json`` and ``manifest.json`` with their sha256. Never pickle.

The folder is written beside its place and renamed, so a reader sees all of it or none; only an earlier model or an
empty folder is replaced, never other files. A file that does not match the manifest, whether damaged or tampered with,
is refused before anything in it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor

from punce.errors import InputError, PunceError, WriteError, first_of
from punce.storage.files import file_sha256
from punce.storage.temporary import held_temporary
from punce.storage.tensor_folder import MANIFEST, STORABLE, Listed, fill_folder, size_in_words, storable

FORMAT = 1
_TENSORS, _CONTENT = "model.safetensors", "model.json"
_FILES = {_TENSORS, _CONTENT, MANIFEST}
_OLD = ".earlier.punce-tmp"
_LARGEST_MANIFEST = 1 << 20  # bytes
_MAY_BE_WILD = ("seen.",)  # what the columns held, to compare with
_MAY_BE_INFINITE = (".edges", ".threshold")  # the last bin has no end


class ModelFileError(PunceError):
    """The folder does not hold a model that can be trusted."""


class ModelWriteError(ModelFileError, WriteError):
    """The model could not be written: full disk, no permission."""


def write_model(folder: Path, tensors: dict[str, Tensor], content: dict[str, Any], *, is_durable: bool = True) -> None:
    """Write the model folder whole; an existing one is replaced at the last moment, if it holds nothing but a model."""
    folder = folder.resolve()  # resolved, so that a link keeps pointing to the model and "." gets a name
    text = json.dumps({"format": FORMAT, **content}, allow_nan=False).encode()
    kept = storable(tensors)
    try:
        _bring_back(folder)
        _refuse_to_replace(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with held_temporary(folder, is_folder=True) as temporary:
            fill_folder(temporary, _TENSORS, kept, _CONTENT, text, _manifest, is_durable=is_durable)
            _replace(temporary, folder)
    except (OSError, SafetensorError) as error:
        size = size_in_words(sum(tensor.nbytes for tensor in kept.values()) + len(text))
        reason = getattr(error, "strerror", None) or error
        raise ModelWriteError(f"cannot write the model ({size}) to {folder}: {reason}") from error


def _manifest(listed: Listed) -> bytes:
    return json.dumps({"sha256": {name: one["sha256"] for name, one in listed.items()}}, indent=1).encode()


def read_model(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and content of a model folder, verified against its manifest."""
    _bring_back(folder)
    digests = _digests(folder)
    if digests is None:
        raise ModelFileError(f"{folder / MANIFEST} does not list {_TENSORS} and {_CONTENT}: not a punce model")
    data = {name: _verified(folder / name, digest) for name, digest in digests.items()}
    try:
        content = json.loads(data[_CONTENT])
        tensors = load_tensors(data[_TENSORS])
    except (ValueError, RecursionError, SafetensorError) as error:
        raise ModelFileError(f"{folder} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ModelFileError(f"{folder / _CONTENT} holds no JSON object: not a punce model")
    _refuse_wild_numbers(folder, tensors)
    if content.get("format") != FORMAT:
        raise ModelFileError(f"{folder} has model format {content.get('format')!r}; this punce reads format {FORMAT}")
    return tensors, content


def _refuse_wild_numbers(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Weights that are not numbers would pass for a model: rows it cannot score get the share of positives."""
    for name, tensor in tensors.items():
        if tensor.dtype not in STORABLE:
            raise ModelFileError(f"{folder / _TENSORS}: {name!r} is {tensor.dtype}, which punce does not write")
        if not tensor.is_floating_point() or name.startswith(_MAY_BE_WILD):
            continue
        if bool(tensor.isnan().any()) or (not name.endswith(_MAY_BE_INFINITE) and bool(tensor.isinf().any())):
            raise ModelFileError(f"{folder / _TENSORS}: {name!r} holds NaN or infinite numbers; fit again")


def _refuse_to_replace(folder: Path) -> None:
    """Replacing deletes: refuse a file, and a folder with anything in it that is not a model of ours."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"the model cannot be saved: {folder} is a file; name a folder")
    names = {entry.name for entry in folder.iterdir()}
    if names and not _is_model(folder, names):
        found = ", ".join(sorted(names - _FILES or names)[:3])
        raise InputError(
            f"the model cannot be saved: {folder} holds what is not a punce model ({found}) and would be deleted; "
            "name another folder, or empty this one"
        )


def _is_model(folder: Path, names: set[str]) -> bool:
    """Whether a folder holds a model and nothing else; a damaged one too, which is what replacing may be for."""
    try:
        return names == _FILES or (names < _FILES and _digests(folder) is not None)
    except ModelFileError:
        return False


def _digests(folder: Path) -> dict[str, Any] | None:
    """sha256 of each file by the manifest; None where it is not the manifest of a model."""
    digests = _json(folder / MANIFEST).get("sha256")
    return digests if isinstance(digests, dict) and set(digests) == {_TENSORS, _CONTENT} else None


def _replace(temporary: Path, folder: Path) -> None:
    if not folder.exists():
        temporary.rename(folder)
        return
    old = folder.with_name(f".{folder.name}{_OLD}")
    shutil.rmtree(old, ignore_errors=True)
    folder.rename(old)
    try:
        temporary.rename(folder)
    except OSError:
        old.rename(folder)  # the earlier model must not be lost with the new one
        raise
    shutil.rmtree(old, ignore_errors=True)


def _bring_back(folder: Path) -> None:
    """The earlier model, if a process was killed in the moment between taking it away and putting the new one there."""
    old = folder.with_name(f".{folder.name}{_OLD}") if folder.name else folder
    with suppress(OSError):
        if not folder.exists() and (old / MANIFEST).is_file():
            old.rename(folder)


def _json(path: Path) -> dict[str, Any]:
    try:
        if not os.path.lexists(path):
            raise ModelFileError(f"{path.parent} is not a saved model: {_found_instead(path.parent)}")
        if not stat.S_ISREG(path.lstat().st_mode) or path.stat().st_size > _LARGEST_MANIFEST:
            raise ModelFileError(f"{path} is not a manifest that punce wrote: a link, or too large")
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} cannot be read: {error}") from error
    return content if isinstance(content, dict) else {}


def _found_instead(folder: Path) -> str:
    """What is in the place of a model folder."""
    near = [place for place in (folder / "model", folder.parent) if (place / MANIFEST).is_file()]  # of a run; of a file
    if near:
        return f"there is one in {near[0]}"
    if not folder.is_dir():
        return "it is a file; save() writes a folder" if folder.exists() else "there is no such folder"
    names = sorted(entry.name for entry in folder.iterdir())
    return f"the folder holds {first_of(names)}, but no {MANIFEST}" if names else "the folder is empty"


def _verified(path: Path, digest: Any) -> bytes:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):  # a link may lead to a device without an end, a pipe waits for ever
            raise ModelFileError(f"{path} is no regular file but a link or a device; copy the model again")
        # In pieces first: what is not as announced is never taken into memory.
        data = path.read_bytes() if file_sha256(path) == digest else None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}") from error
    if data is None or hashlib.sha256(data).hexdigest() != digest:  # again: it may have changed in between
        raise ModelFileError(f"{path} does not match its manifest: it is damaged or was changed; copy the model again")
    return data

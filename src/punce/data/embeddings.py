"""Embedding matrices (or stacks of images) in .npy and .npz files. Pickles are never loaded."""

from __future__ import annotations

import tokenize
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.columns.kinds import missing_column
from punce.data.text_files import BROKEN
from punce.data.unpacked import refuse_bomb
from punce.errors import InputError

# A header is parsed as Python text, of which any kind of nonsense can be made.
_WRONG = (*BROKEN, ValueError, TypeError, SyntaxError, tokenize.TokenError, OverflowError, RecursionError)
LARGEST_EMBEDDING = 1e15  # covariances sum the squares of many such numbers in single precision, which ends at 3.4e38
_FEATURE_KEYS = ("X", "x", "embeddings", "features", "data")
_LABEL_KEYS = ("y", "label", "labels")
_ID_KEYS = ("ids", "id")


def read_npy(path: Path) -> npt.NDArray[Any]:
    """The array of a .npy file, mapped into memory rather than read."""
    try:
        if zipfile.is_zipfile(path):
            raise InputError(f"{path} is an archive of arrays; give it the ending .npz")
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except InputError:  # a ValueError too
        raise
    except _WRONG as error:
        raise _refused(path, error) from error
    return array


def read_npz(path: Path, label: str | None, id_key: str | None) -> tuple[Any, Any, Any]:
    """Features, labels and row names of an .npz file; labels and names are None where it holds none."""
    if path.stat().st_size and not zipfile.is_zipfile(path):
        raise InputError(f"{path} cannot be read as a NumPy file: it is no .npz archive")
    try:
        # opened here, because np.load leaves a damaged archive open
        with zipfile.ZipFile(path) as packed:
            refuse_bomb(path, packed)
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            keys = list(archive.files)
            features = _array(archive, _feature_key(archive, keys, path), path)
            labels = _optional(archive, keys, label, _LABEL_KEYS, path)
            ids = _optional(archive, keys, id_key, _ID_KEYS, path)
        if ids is not None and ids.ndim != 1:
            raise InputError(f"{path} holds row names of shape {ids.shape}; give one name for each row, shape (rows,)")
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{path} announces more numbers than fit into memory; it is damaged, or too large") from error
    except _WRONG as error:
        raise _refused(path, error) from error
    return features, labels, ids


def check_features(features: npt.NDArray[Any], path: Path) -> npt.NDArray[Any]:
    """(n, d) numbers pass; (n, C, H, W) and (n, H, W, C) bytes come back as (n, C, H, W)."""
    if features.dtype.kind not in "fiub" or features.dtype == np.bool_:
        raise InputError(f"{path} holds {features.dtype}; an embedding matrix holds real numbers")
    if features.ndim == 2 and features.size:
        return features
    if features.ndim == 4 and features.size and features.dtype == np.uint8:
        if features.shape[1] in (1, 3):
            return features
        if features.shape[3] in (1, 3):
            return np.ascontiguousarray(features.transpose(0, 3, 1, 2))
    if features.ndim and len(features) == 0:
        raise InputError(f"{path} has no rows: its array has the shape {features.shape}")
    raise InputError(
        f"{path} holds an array of shape {features.shape} and type {features.dtype}; expected (rows, dimensions), "
        "or uint8 images (rows, 1 or 3 channels, height, width)"
    )


def _feature_key(archive: Any, keys: list[str], path: Path) -> str:
    usual = [key for key in _FEATURE_KEYS if key in keys]
    candidates = usual or [key for key in keys if _array(archive, key, path).ndim >= 2]
    if usual or len(candidates) == 1:  # without a usual name, the only matrix
        return candidates[0]
    raise InputError(f"{path}: which array holds the features? Call it one of {list(_FEATURE_KEYS)}; it has {keys}")


def _optional(archive: Any, keys: list[str], wanted: str | None, usual: tuple[str, ...], path: Path) -> Any:
    if wanted is not None:
        if wanted not in keys:
            raise missing_column(wanted, keys, str(path))
        return _array(archive, wanted, path)
    key = next((key for key in usual if key in keys), None)
    return None if key is None else _array(archive, key, path)


def _array(archive: Any, key: str, path: Path) -> npt.NDArray[Any]:
    """A member of the archive. Of one that is no array numpy gives the bare bytes."""
    found = archive[key]
    if not isinstance(found, np.ndarray):
        raise InputError(f"{path} cannot be read as a NumPy file: its member {key!r} is no array")
    return found


def _refused(path: Path, error: Exception) -> InputError:
    if path.stat().st_size == 0:
        return InputError(f"{path} is empty")
    if "allow_pickle" in str(error) or "Python objects" in str(error):
        return InputError(
            f"{path} holds Python objects (a pickle), which can run code when loaded; "
            "save a plain array instead, e.g. np.save(path, array.astype('float32'))"
        )
    return InputError(f"{path} cannot be read as a NumPy file: {error}")

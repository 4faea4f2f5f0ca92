"""Nested training state as tensors plus a JSON tree, and back exactly: what a checkpoint can hold without pickle.

``torch.load(weights_only=True)`` would replace this file, but it reads pickle (its restricted reader ran code in torch
before 2.6), takes no numpy arrays unless they are allowed one type at a time, and cannot be read by eye; so this stays.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from punce.errors import InputError


def flatten_state(state: Any, prefix: str = "state") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Split nested state into tensors by name and a JSON tree; :func:`unflatten_state` puts it together exactly.

    Takes dicts with any plain keys, lists, tuples, None, bool, int of any size, float (also NaN and infinite), str,
    bytes, torch tensors with their memory layout, numpy arrays and scalars: the state of models, optimisers,
    ``torch.Generator.get_state()``, ``numpy.random.Generator.bit_generator.state`` and ``random.getstate()``.
    """
    tensors: dict[str, Tensor] = {}
    return tensors, _encode(state, prefix, tensors)


def unflatten_state(tensors: dict[str, Tensor], tree: dict[str, Any]) -> Any:
    """Inverse of :func:`flatten_state`; tensors are on the CPU."""
    kind, value = tree["kind"], tree.get("value")
    if kind == "tensor":
        return _laid_out(tensors[tree["name"]], tree["stride"])
    if kind == "dict":
        return {unflatten_state(tensors, k): unflatten_state(tensors, v) for k, v in tree["value"]}
    if kind in ("list", "tuple"):
        items = [unflatten_state(tensors, item) for item in tree["value"]]
        return items if kind == "list" else tuple(items)
    if kind == "array":
        array = np.frombuffer(base64.b64decode(tree["base64"]), dtype=np.dtype(tree["dtype"]))
        array = array.reshape(tree["shape"]).copy()
        return array[()] if tree["scalar"] else array
    if kind == "float":
        return float(value)  # type: ignore[arg-type]
    return base64.b64decode(value) if kind == "bytes" else value  # type: ignore[arg-type]


def _encode(value: Any, path: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    if isinstance(value, Tensor):
        return _encode_tensor(value, path, tensors)
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(value, path)
    if isinstance(value, dict):
        items = [[_encode(k, path, tensors), _encode(v, f"{path}/{k}", tensors)] for k, v in value.items()]
        return {"kind": "dict", "value": items}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {"kind": kind, "value": [_encode(v, f"{path}/{i}", tensors) for i, v in enumerate(value)]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"kind": "float", "value": str(value)}
    if isinstance(value, bytes):
        return {"kind": "bytes", "value": base64.b64encode(value).decode()}
    if value is None or isinstance(value, bool | int | float | str):
        return {"kind": "plain", "value": value}
    raise InputError(
        f"{path} is a {type(value).__name__}, which a checkpoint cannot hold; give tensors, arrays, numbers, text, "
        "None, and dicts, lists or tuples of them"
    )


def _encode_tensor(value: Tensor, path: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    name = path
    while name in tensors:  # the keys 1 and "1" of one dict read the same
        name += "+"
    tensors[name] = value.detach()
    # Layout matters: fused optimiser kernels read a contiguous buffer beside a channels_last weight wrongly.
    is_permuted = not value.is_contiguous() and _extent(value) == value.numel()
    return {"kind": "tensor", "name": name, "stride": list(value.stride()) if is_permuted else None}


def _extent(tensor: Tensor) -> int:
    """Elements of memory a tensor spans: its number of elements when it is dense in some order of dimensions."""
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _encode_array(value: np.ndarray[Any, Any] | np.generic, path: str) -> dict[str, Any]:
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise InputError(f"{path} is an array of Python objects, which a checkpoint cannot hold")
    return {
        "kind": "array",
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "scalar": isinstance(value, np.generic),
        "base64": base64.b64encode(array.tobytes()).decode(),
    }


def _laid_out(tensor: Tensor, stride: list[int] | None) -> Tensor:
    if stride is None:
        return tensor
    return torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype).copy_(tensor)

"""Trees of frozen dataclasses to JSON and back, checked against their annotations."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from punce.errors import InputError

_LARGEST = 2**1023  # about the largest float: JSON has whole numbers of any size
_hints = cache(get_type_hints)  # the rows of a page are hundreds of the same few classes


def encode(value: Any) -> Any:
    """Anything to JSON's types. NaN and infinity, which JSON lacks, become None; the unknown becomes its text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(name): encode(inner) for name, inner in value.items()}
    if isinstance(value, np.ndarray | list | tuple | set | frozenset):
        return [encode(inner) for inner in (value.tolist() if isinstance(value, np.ndarray) else value)]
    # Before float: np.float64 is a float, but np.float32 and np.int64 are nothing json knows.
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def decode(kind: Any, tree: Any, where: str) -> Any:
    """Build `kind` from JSON, or say which place does not fit."""
    if kind is Any:
        return tree
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(kind, tree, where)
    if origin is Literal:
        return _decode_literal(get_args(kind), tree, where)
    if origin is tuple:
        return _decode_tuple(get_args(kind), tree, where)
    if origin in (dict, Mapping):
        inner = get_args(kind)[1]
        return {name: decode(inner, value, f"{where}.{name}") for name, value in _is(dict, tree, where).items()}
    if dataclasses.is_dataclass(kind):
        return _decode_fields(kind, _is(dict, tree, where), where)
    return _decode_scalar(kind, tree, where)


def load_json(path: Path) -> Any:
    """Read a JSON file; the errors name it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; is this a run folder that finished?") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not valid JSON ({error}); it may be cut off, fit again to rewrite it") from None


def _decode_union(kind: Any, tree: Any, where: str) -> Any:
    options = get_args(kind)
    if tree is None and types.NoneType in options:
        return None
    if type(tree) in options:  # exact first, so that True stays a bool and 3 an int
        return tree
    # `X | None` with a value: decode as X. Unions of several classes do not occur.
    rest = [option for option in options if option is not types.NoneType]
    if len(rest) == 1:
        return decode(rest[0], tree, where)
    raise _misfit(" or ".join(option.__name__ for option in options), tree, where)


def _decode_literal(values: tuple[Any, ...], tree: Any, where: str) -> Any:
    if not any(type(tree) is type(value) and tree == value for value in values):
        raise _misfit(f"one of {list(values)}", tree, where)
    return tree


def _decode_tuple(inner: tuple[Any, ...], tree: Any, where: str) -> tuple[Any, ...]:
    items = _is(list, tree, where)
    if inner[-1] is Ellipsis:
        return tuple(decode(inner[0], item, f"{where}[{i}]") for i, item in enumerate(items))
    if len(items) != len(inner):
        raise _misfit(f"{len(inner)} entries", tree, where)
    return tuple(decode(kind, item, f"{where}[{i}]") for i, (kind, item) in enumerate(zip(inner, items, strict=True)))


def _decode_fields(kind: Any, tree: dict[str, Any], where: str) -> Any:
    hints = _hints(kind)
    # Strict: a field that this version does not know would otherwise vanish from the page unnoticed.
    if unknown := sorted(set(tree) - set(hints)):
        raise InputError(f"{where}: unknown field {unknown[0]!r}; known are {sorted(hints)}")
    no_default = [f for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING]
    if missing := sorted({f.name for f in no_default} - set(tree)):
        raise InputError(f"{where}: the field {missing[0]!r} is missing")
    return kind(**{name: decode(hints[name], value, f"{where}.{name}") for name, value in tree.items()})


def _decode_scalar(kind: Any, tree: Any, where: str) -> Any:
    # JSON writes 1.0 as 1 in other languages; bool is an int in Python and must not pass for a number.
    if kind is float and isinstance(tree, int) and not isinstance(tree, bool) and abs(tree) <= _LARGEST:
        return float(tree)
    if type(tree) is not kind or (kind is float and not math.isfinite(tree)):
        raise _misfit(kind.__name__, tree, where)
    return tree


def _is(kind: type, tree: Any, where: str) -> Any:
    if not isinstance(tree, kind):
        raise _misfit(kind.__name__, tree, where)
    return tree


def _misfit(expected: str, tree: Any, where: str) -> InputError:
    return InputError(f"{where}: expected {expected}, got {repr(tree)[:60]}")

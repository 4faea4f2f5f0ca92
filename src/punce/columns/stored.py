"""Fitted columns whose fields are all arrays, so that a model folder can hold them without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

from punce.errors import InputError


@dataclass(frozen=True)
class StoredArrays:
    """A base for dataclasses of arrays."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by the name of their field."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """What :meth:`arrays` gave; other entries are ignored."""
        absent = [field.name for field in fields(cls) if field.name not in arrays]
        if absent:
            raise InputError(f"not stored {cls.__name__.lower()}: {absent} are missing")
        found = {field.name: np.asarray(arrays[field.name]) for field in fields(cls)}
        hints = get_type_hints(cls)
        for name, array in found.items():
            wanted = _number_type(hints[name])
            if not np.can_cast(array.dtype, wanted, "same_kind"):
                raise InputError(f"not stored {cls.__name__.lower()}: {name} holds {array.dtype}, not {wanted}")
        return cls(**found)


def _number_type(annotation: Any) -> np.dtype[Any]:
    """Of `npt.NDArray[np.float32]`, which is `np.ndarray[shape, np.dtype[np.float32]]`, the last."""
    wanted: np.dtype[Any] = np.dtype(get_args(get_args(annotation)[1])[0])
    return wanted

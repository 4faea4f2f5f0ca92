"""Fitted columns whose fields are all arrays, so that a model folder can hold them without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

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
        return cls(**{field.name: np.asarray(arrays[field.name]) for field in fields(cls)})

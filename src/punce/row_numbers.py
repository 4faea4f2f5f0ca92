"""What a caller gives of each row as one number (a score, a weight, a chance to be labelled), as an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.errors import InputError


def floats_of(given: Any, name: str) -> npt.NDArray[np.float64]:
    """An argument of numbers, NaN where a value is missing or masked; refused by its name. Shape: as given."""
    if hasattr(given, "detach"):  # a torch tensor, without importing torch
        given = given.detach().cpu().numpy()
    given = without_mask(given)
    is_pandas = isinstance(given, pd.Series | pd.api.extensions.ExtensionArray)
    try:
        if np.iscomplexobj(given):  # NumPy would drop the imaginary parts, with a warning
            raise TypeError("complex numbers have no order")
        found = given.to_numpy(dtype=np.float64, na_value=np.nan) if is_pandas else np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must hold numbers: {error}") from error
    return found


def without_mask(values: Any) -> Any:
    """A masked array as a plain one, empty where it is masked: NumPy itself would bring back what is hidden."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return values.data
    kind, empty = (np.float64, np.nan) if values.dtype.kind in "fiub" else (object, None)
    return np.ma.filled(values.astype(kind), empty)

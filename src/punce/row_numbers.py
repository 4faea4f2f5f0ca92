"""What a caller gives of each row as one number: a score, a weight, a chance to be labelled."""

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


def require_same_index(y: Any, X: Any, name: str = "y", of_rows: str = "X") -> None:
    """Refuse `y`, one entry a row, whose index is not that of the rows `X`: matched by position, they may be mixed up.

    Of what is not pandas' nothing is known.
    """
    if not (isinstance(y, pd.Series | pd.DataFrame) and isinstance(X, pd.Series | pd.DataFrame) and len(y) == len(X)):
        return
    if y.index.equals(X.index):
        return
    same_names = y.index.is_unique and X.index.is_unique and y.index.isin(X.index).all()
    in_order = f"{name}.loc[{of_rows}.index] brings it into that order"
    mend = in_order if same_names else f"{name}.to_numpy() if they do belong together in order"
    first = f"first {y.index[:3].tolist()} and {X.index[:3].tolist()}"
    raise InputError(
        f"the index of {name} is not the index of {of_rows} ({first}), so which entry belongs to which row is not "
        f"clear; {mend}"
    )

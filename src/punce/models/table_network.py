"""Tables through a network, where an encoder is asked for: normal scores, one-hot codes, SCARF views, a PU head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.columns.dense import DenseColumns
from punce.labels import Labels
from punce.models.network import NetworkRoute
from punce.models.route import FitSettings, Fitted, Floats, State

Values = npt.NDArray[np.float32]
_COLUMNS = "columns."


class TableNetwork:
    """The paper's method on an encoded table. Shape of values: (n, d), missing numbers and codes as NaN."""

    def __init__(self, columns: DenseColumns, network: NetworkRoute) -> None:
        self._columns, self._network = columns, network

    @classmethod
    def untrained(cls, values: Values, categorical: npt.NDArray[np.bool_]) -> TableNetwork:
        """Knots and categories are taken from the rows; the one-hot columns of a category are replaced together."""
        columns = DenseColumns.fit(values, categorical)
        return cls(columns, NetworkRoute({"name": "table", "options": {"groups": columns.groups}}))

    def fit(self, values: Values, labels: Labels, settings: FitSettings) -> Fitted:
        """Pretrain and train the head; the network route holds rows out."""
        return self._network.fit(self._columns.transform(values), labels, settings)

    def score(self, values: Values) -> Floats:
        """Scores of the head. Shape: (n,)."""
        return self._network.score(self._columns.transform(values))

    def embed(self, values: Values) -> Floats:
        """Features of the encoder. Shape: (n, D)."""
        return self._network.embed(self._columns.transform(values))

    def state(self) -> State:
        """Knots, categories and network as tensors."""
        tensors, content = self._network.state()
        own = {f"{_COLUMNS}{name}": torch.from_numpy(array) for name, array in self._columns.arrays().items()}
        return tensors | own, {"network": content}

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> TableNetwork:
        """Inverse of :meth:`state`."""
        own = {k.removeprefix(_COLUMNS): v.numpy() for k, v in tensors.items() if k.startswith(_COLUMNS)}
        rest = {name: tensor for name, tensor in tensors.items() if not name.startswith(_COLUMNS)}
        return cls(DenseColumns.from_arrays(own), NetworkRoute.from_state(rest, content["network"]))

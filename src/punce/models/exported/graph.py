"""The nodes and constants of an ONNX file, in the order in which they are added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from punce.errors import InputError

AnyArray = npt.NDArray[Any]
ML = "ai.onnx.ml"
"""The operators of trees and of lookups by text."""
_OPSETS, _IR = {"": 17, ML: 3}, 8  # of 2022: runtimes of the last years read it


class Graph:
    """Grows by :meth:`add`. A value is known by its name, and an array that a node reads becomes a constant."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise InputError(f"export needs onnx: pip install 'punce[export]' ({error})") from None
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, kind: type, width: int) -> str:
        """An input of `width` columns; `kind` is NumPy's type of its cells."""
        self._inputs.append(self._described(name, kind, ["n", width]))
        return name

    def output(self, name: str, source: str, kind: type, *shape: str | int) -> None:
        """A value that the file gives, under its public name."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [source], [name]))
        self._outputs.append(self._described(name, kind, list(shape)))

    def add(self, operator: str, *inputs: str | AnyArray | float, domain: str = "", **attributes: Any) -> str:
        """A node; returns the name of its only output. A plain number is one of double precision."""
        names = [each if isinstance(each, str) else self._constant(each) for each in inputs]
        name = f"{operator}_{len(self._nodes)}"
        node = self._onnx.helper.make_node(operator, names, [name], domain=domain, **attributes)
        self._nodes.append(node)
        return name

    def cast(self, value: str, kind: type) -> str:
        """The value in another type of NumPy's."""
        return self.add("Cast", value, to=self._type(kind))

    def columns(self, value: str, places: AnyArray) -> str:
        """Some columns of a matrix. Shape: (n, d), (m,) -> (n, m)."""
        return self.add("Gather", value, places.astype(np.int64), axis=1)

    def model(self, metadata: Mapping[str, str]) -> bytes:
        """The file; refuses nodes that do not fit together, which would be a mistake in this package."""
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "punce", self._inputs, self._outputs, self._constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR, producer_name="punce")
        helper.set_model_props(model, dict(metadata))
        self._onnx.checker.check_model(model)
        return bytes(model.SerializeToString())

    def _constant(self, value: AnyArray | float) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def _described(self, name: str, kind: type, shape: list[str | int]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._type(kind), shape)

    def _type(self, kind: type) -> int:
        if kind is str:
            return int(self._onnx.TensorProto.STRING)
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind)))

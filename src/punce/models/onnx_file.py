"""A linear model as an ONNX file: scores, the map to probabilities, the threshold. Needs the extra punce[export].

    input   X              float32 (n, d): the columns in the order of the fit
    output  label          int64 (n,): 1 where the probability reaches the threshold, else 0
    output  probabilities  float64 (n, 2): of negative and positive

Whether a model is linear is found out by asking it: the score of the zero row and of each unit row give the
coefficients, and random rows must then have the scores that follow from them. So nothing has to be known of its parts.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.errors import InputError
from punce.judging.calibration import PUCalibrator
from punce.models.route import Route
from punce.storage.files import replacing

Floats = npt.NDArray[np.float64]
_OPSET, _IR = 17, 8  # of 2022: runtimes of the last years read it
_TRIED, _CLOSE = 200, 1e-4
_MOST_COLUMNS = 20_000


def write_onnx(
    path: Path, route: Route, columns: tuple[str, int, Sequence[str] | None], calibrator: PUCalibrator, threshold: float
) -> None:
    """Write the file whole, or refuse in one line."""
    try:
        import onnx
    except ImportError as error:
        raise InputError(f"export needs onnx: pip install 'punce[export]' ({error})") from None
    kind, width, names = columns
    if kind not in ("table", "embedding"):
        raise InputError(f"only linear models of columns can be exported, this one reads {kind}s; save() keeps it")
    weights, bias = _linear(route, kind, width, names)
    model = _model(onnx, weights, bias, calibrator, threshold)
    onnx.checker.check_model(model)
    with replacing(path) as temporary:
        temporary.write_bytes(model.SerializeToString())


def _linear(route: Route, kind: str, width: int, names: Sequence[str] | None) -> tuple[Floats, float]:
    """Coefficients and intercept of the scores; refuses a model whose scores are no such sum."""
    if width > _MOST_COLUMNS:
        raise InputError(
            f"{width:,} columns are too many to export (at most {_MOST_COLUMNS:,}); save() keeps the model"
        )

    def score(x: Floats) -> Floats:
        rows: Any = x.astype(np.float32)
        return route.score(pd.DataFrame(rows, columns=list(names)) if kind == "table" and names else rows)

    rows = np.random.default_rng(0).normal(size=(_TRIED, width)) * 3.0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about made-up rows
            bias = float(score(np.zeros((1, width)))[0])
            weights = score(np.eye(width)) - bias
            found = score(rows)
    except (InputError, ValueError, TypeError):  # categories and dates are no numbers
        reads = "only models of numbers can be exported, and this one reads categories or dates"
        raise InputError(f"{reads}; save() keeps it") from None
    gap = float(np.abs(found - (rows @ weights + bias)).max())
    if not gap <= _CLOSE * max(1.0, float(np.abs(found).max())):
        raise InputError(
            "only models whose scores are linear in the columns can be exported (encoder='identity' with loss=None is "
            "one); save() keeps this one"
        )
    return weights, bias


def _model(onnx: Any, weights: Floats, bias: float, calibrator: PUCalibrator, threshold: float) -> Any:
    make, types = onnx.helper, onnx.TensorProto
    first, jumps = _hinges(calibrator)
    constants = {
        "weights": weights[:, None],
        "bias": np.array([bias]),
        "knots": np.array(calibrator.scores)[None, :],
        "ends": np.array([calibrator.scores[0], calibrator.scores[-1]]),
        "jumps": jumps[:, None],
        "first": np.array([first]),
        "one": np.array([1.0]),
        "threshold": np.array([threshold]),
    }
    nodes = [
        make.make_node("Cast", ["X"], ["x"], to=types.DOUBLE),
        make.make_node("MatMul", ["x", "weights"], ["product"]),
        make.make_node("Add", ["product", "bias"], ["score"]),
        make.make_node("Gather", ["ends", "zero_at"], ["low"]),
        make.make_node("Gather", ["ends", "one_at"], ["high"]),
        make.make_node("Clip", ["score", "low", "high"], ["inside"]),
        make.make_node("Sub", ["inside", "knots"], ["beyond"]),
        make.make_node("Relu", ["beyond"], ["hinges"]),
        make.make_node("MatMul", ["hinges", "jumps"], ["rise"]),
        make.make_node("Add", ["rise", "first"], ["log_odds"]),
        make.make_node("Sigmoid", ["log_odds"], ["positive"]),
        make.make_node("Sub", ["one", "positive"], ["negative"]),
        make.make_node("Concat", ["negative", "positive"], ["probabilities"], axis=1),
        make.make_node("GreaterOrEqual", ["positive", "threshold"], ["is_called"]),
        make.make_node("Cast", ["is_called"], ["called"], to=types.INT64),
        make.make_node("Reshape", ["called", "flat"], ["label"]),
    ]
    tensors = [
        onnx.numpy_helper.from_array(np.asarray(value, dtype=np.float64), name) for name, value in constants.items()
    ]
    whole = {"zero_at": np.array(0), "one_at": np.array(1), "flat": np.array([-1])}
    tensors += [onnx.numpy_helper.from_array(value.astype(np.int64), name) for name, value in whole.items()]
    graph = make.make_graph(
        nodes,
        "punce",
        [make.make_tensor_value_info("X", types.FLOAT, ["n", len(weights)])],
        [
            make.make_tensor_value_info("label", types.INT64, ["n"]),
            make.make_tensor_value_info("probabilities", types.DOUBLE, ["n", 2]),
        ],
        tensors,
    )
    return make.make_model(graph, opset_imports=[make.make_opsetid("", _OPSET)], ir_version=_IR, producer_name="punce")


def _hinges(calibrator: PUCalibrator) -> tuple[float, Floats]:
    """The piecewise linear map as its first value and, at each knot, how much steeper it gets: Σ jumpₖ·(s − knotₖ)₊."""
    knots, logits = np.array(calibrator.scores), np.array(calibrator.logits)
    width = np.diff(knots)
    slopes = np.divide(np.diff(logits), width, out=np.zeros_like(width), where=width > 0)
    return float(logits[0]), np.append(np.diff(slopes, prepend=0.0), 0.0)

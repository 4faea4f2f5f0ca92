"""Any model whose scores are linear in the columns.

Whether a model is linear is found out by asking it: the score of the zero row and of each unit row give the
coefficients, and random rows must then have the scores that follow from them. So nothing has to be known of its parts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from punce.errors import InputError
from punce.models.exported.graph import Graph
from punce.models.route import Route

Floats = npt.NDArray[np.float64]
_TRIED, _CLOSE = 200, 1e-4


def linear_scores(graph: Graph, route: Route, width: int) -> str:
    """The input `X` and its scores; refuses a model whose scores are no weighted sum. Shape: (n, 1)."""
    weights, bias = _linear(route, width)
    x = graph.cast(graph.input("X", np.float32, width), np.float64)
    return graph.add("Add", graph.add("MatMul", x, weights[:, None]), bias)


def _linear(route: Route, width: int) -> tuple[Floats, float]:
    """Coefficients and intercept of the scores."""

    def score(x: Floats) -> Floats:
        return route.score(x.astype(np.float32))

    rows = np.random.default_rng(0).normal(size=(_TRIED, width)) * 3.0
    bias = float(score(np.zeros((1, width)))[0])
    weights = score(np.eye(width)) - bias
    found = score(rows)
    gap = float(np.abs(found - (rows @ weights + bias)).max())
    if not gap <= _CLOSE * max(1.0, float(np.abs(found).max())):
        raise InputError(
            "of embeddings only models whose scores are linear in the columns can be exported (encoder='identity' with "
            "loss=None is one); save() keeps this one"
        )
    return weights, bias

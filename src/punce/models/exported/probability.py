"""From scores to probabilities and calls: the piecewise linear map of PUCalibrator."""

from __future__ import annotations

import numpy as np

from punce.judging.calibration import Floats, PUCalibrator
from punce.models.exported.graph import Graph


def add_outputs(graph: Graph, score: str, calibrator: PUCalibrator, threshold: float) -> None:
    """The outputs `label` and `probabilities` of scores in double precision. Shape: (n, 1) -> (n,), (n, 2)."""
    positive = graph.add("Sigmoid", _log_odds(graph, score, calibrator))
    negative = graph.add("Sub", 1.0, positive)
    # By the score: rows beyond the last knot share one probability, which may be the threshold up to its last bit.
    is_called = graph.add("GreaterOrEqual", score, calibrator.score_at(threshold))
    label = graph.add("Reshape", graph.cast(is_called, np.int64), np.array([-1]))
    graph.output("label", label, np.int64, "n")
    graph.output("probabilities", graph.add("Concat", negative, positive, axis=1), np.float64, "n", 2)


def _log_odds(graph: Graph, score: str, calibrator: PUCalibrator) -> str:
    """np.interp: the segment of each score is found by counting knots. Shape: (n, 1) -> (n, 1)."""
    knots, logits = np.array(calibrator.scores), np.array(calibrator.logits)
    inside = graph.add("Clip", score, knots[0], knots[-1])
    reached = graph.cast(graph.add("GreaterOrEqual", inside, knots[None, 1:-1]), np.int64)
    segment = graph.add("ReduceSum", reached, np.array([1]), keepdims=1)
    start, base, slope = (graph.add("Gather", each, segment) for each in segments(knots, logits))
    return graph.add("Add", base, graph.add("Mul", slope, graph.add("Sub", inside, start)))


def segments(knots: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
    """Start, value there and slope of each segment of a piecewise linear map; a single knot is one. Shape: (Q − 1,)."""
    if len(knots) == 1:
        return knots, values, np.zeros(1)
    width = np.diff(knots)
    slopes = np.divide(np.diff(values), width, out=np.zeros_like(width), where=width > 0)
    return knots[:-1], values[:-1], slopes

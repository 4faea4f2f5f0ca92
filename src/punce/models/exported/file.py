"""Which graph a classifier needs, and the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from punce.errors import InputError
from punce.judging.calibration import PUCalibrator
from punce.models.columns import Columns
from punce.models.exported.columns import encoded_rows, metadata
from punce.models.exported.graph import Graph
from punce.models.exported.linear import linear_scores
from punce.models.exported.members import ensemble_scores, few_labelled_scores
from punce.models.exported.probability import add_outputs
from punce.models.tabular import TabularPU
from punce.models.tabular.few_labelled import FewLabelled
from punce.storage.files import replacing

_MOST_COLUMNS = 20_000


def write_onnx(path: Path, kind: str, route: Any, columns: Columns, calibrator: PUCalibrator, threshold: float) -> None:
    """Write the file whole, or refuse in one line."""
    graph, named = Graph(), {}
    if kind not in ("table", "embedding"):
        raise InputError(
            f"only models of tables and embeddings can be exported, this one reads {kind}s; save() keeps it"
        )
    width = columns.width or 0
    if width > _MOST_COLUMNS:
        raise InputError(
            f"{width:,} columns are too many to export (at most {_MOST_COLUMNS:,}); save() keeps the model"
        )
    if kind == "table":
        score = _table_scores(graph, route, columns, calibrator.score_of_prior)
        named = metadata(route.parts[0])
    else:
        score = linear_scores(graph, route, width)
    add_outputs(graph, score, calibrator, threshold)
    content = graph.model(named)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _table_scores(graph: Graph, route: Any, columns: Columns, of_empty: float) -> str:
    """Scores of rows of a table; a row in which nothing is known has the score of the prior. Shape: (n, 1)."""
    encoder, model = route.parts
    rows = encoded_rows(graph, encoder, columns.width or 0, is_matrix=columns.names is None)
    if isinstance(model, TabularPU):
        score = ensemble_scores(graph, model, rows.values)
    elif isinstance(model, FewLabelled):
        score = few_labelled_scores(graph, model, rows.values)
    else:
        raise InputError(
            "of tables only the default model can be exported (encoder='auto'), this one is a network; save() keeps it"
        )
    return graph.add("Where", rows.empty, of_empty, score)

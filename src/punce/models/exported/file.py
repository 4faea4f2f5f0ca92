"""Which graph a classifier needs, and the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from punce.errors import InputError
from punce.judging.calibration import PUCalibrator
from punce.models.columns import Columns
from punce.models.exported.columns import TableInputs, encoded_rows
from punce.models.exported.graph import Graph
from punce.models.exported.linear import linear_scores
from punce.models.exported.members import ensemble_scores, few_labelled_scores
from punce.models.exported.probability import add_outputs
from punce.models.tabular import TabularPU
from punce.models.tabular.few_labelled import FewLabelled
from punce.storage.files import refuse_to_replace_others, replacing

_MOST_COLUMNS = 20_000
_PRODUCER, _BEGINNING = b"\x12\x05punce", 16  # its name in the first bytes of a file


def write_onnx(path: Path, kind: str, route: Any, columns: Columns, calibrator: PUCalibrator, threshold: float) -> None:
    """Write the file whole, or refuse in one line."""
    graph = Graph()  # first: it says if onnx is not there
    refuse_to_replace_others(path, "an ONNX file of punce", _is_ours, "path=")
    width = columns.width or 0
    if kind not in ("table", "embedding"):
        raise InputError(f"only models of tables and embeddings can be exported, not of {kind}s; save() keeps this one")
    if width > _MOST_COLUMNS:
        raise InputError(
            f"{width:,} columns are too many to export (at most {_MOST_COLUMNS:,}); save() keeps the model"
        )
    if kind == "table":
        encoder, model = route.parts
        _refuse_network(model)
        inputs = TableInputs.of(encoder, columns)
        score, metadata = _table_scores(graph, inputs, model, calibrator.score_of_prior), inputs.metadata
    else:
        score, metadata = linear_scores(graph, route, width), {}
    add_outputs(graph, score, calibrator, threshold)
    content = graph.model(metadata)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return _PRODUCER in file.read(_BEGINNING)


def _refuse_network(model: object) -> None:
    if not isinstance(model, TabularPU | FewLabelled):
        raise InputError(
            "of tables only the default model can be exported (encoder='auto'), this one is a network; save() keeps it"
        )


def _table_scores(graph: Graph, inputs: TableInputs, model: TabularPU | FewLabelled, of_empty: float) -> str:
    """Scores of rows of a table; a row in which nothing is known has the score of the prior. Shape: (n, 1)."""
    rows = encoded_rows(graph, inputs)
    if isinstance(model, TabularPU):
        score = ensemble_scores(graph, model, rows.values)
    else:
        score = few_labelled_scores(graph, model, rows.values)
    return graph.add("Where", rows.empty, of_empty, score)

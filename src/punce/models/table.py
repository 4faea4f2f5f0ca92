"""Tables: columns encoded once, then the ensemble that does best on tables (docs/tables.md says why), or a network."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy.sparse import issparse
from torch import Tensor

from punce.columns.dense import DenseColumns
from punce.columns.encoder import EncodedTable, TableEncoder
from punce.columns.fitted import CategoryColumn
from punce.columns.sparse import frame_from_sparse
from punce.errors import InputError
from punce.judging.importance import (
    Importance,
    Rows,
    Score,
    column_importances,
    row_effects,
    rows_to_measure,
    telling_columns,
)
from punce.judging.joint_leaks import find_joint_leak
from punce.labels import UNLABELLED, Labels
from punce.models.insight import NoImportancesError, Reason
from punce.models.network import NetworkRoute
from punce.models.route import LEARNED_FROM_KNOWN, FitSettings, Fitted, Floats, State, Tried, under
from punce.models.tabular import TabularPU
from punce.models.tabular.few_labelled import FewLabelled
from punce.models.tabular.trees import Flags, Values
from punce.options import TOO_FEW_FOR_ENSEMBLE, are_too_few
from punce.storage.json_tree import decode

_COLUMNS = "columns."
_MOST_EXPLAINED = 50  # columns of which a row's reasons are chosen


@dataclass(frozen=True)
class KeptRows:
    """Rows that were held out, as the model reads them, their labels, and which rows of the training table they are."""

    values: Values
    labels: Labels
    rows: Rows
    seed: int


class TableWarning(UserWarning):
    """Something in which rows to be scored differ from those the model learned from."""


class TableRoute:
    """A table encoder and :class:`~punce.models.tabular.TabularPU`, for DataFrames or matrices (n, d).

    With an encoder other than "auto" a network is trained instead.
    """

    _encoder: TableEncoder
    _model: TabularPU | TableNetwork | FewLabelled

    def __init__(self) -> None:
        self._notes: tuple[str, ...] = ()
        self._said: tuple[str, ...] = ()
        self._kept: KeptRows | None = None

    @property
    def category_columns(self) -> tuple[str, ...]:
        """Columns whose values are names: a file of new rows must not be read as if 01 were the number 1."""
        return tuple(column.name for column in self._encoder.columns if isinstance(column, CategoryColumn))

    @property
    def unused_columns(self) -> frozenset[str]:
        """Columns that the fit set aside (empty, constant, names of rows): new rows need not have them."""
        return frozenset(self._encoder.left_out)

    @property
    def parts(self) -> tuple[TableEncoder, TabularPU | TableNetwork | FewLabelled]:
        """How the columns are read and what scores them, for a file that needs no punce (models/exported)."""
        return self._encoder, self._model

    def prepare(self, X: Any, settings: FitSettings) -> Any:
        """Decide how the columns are read, and return them so: the first prior must see what the model sees."""
        frame = as_frame(X)
        self._encoder = TableEncoder.fit(frame)
        self._notes = self._encoder.notes
        if frame.shape[1] < (width := np.shape(X)[1]):
            what = f"the {frame.shape[1]} of {width} sparse columns with the most non-zero rows were read"
            self._notes += (f"{what}; all of them would not fit into memory when dense",)
        return self._encoder.unscaled(frame, is_resolved=True)

    def fit(self, X: Any, labels: Labels, settings: FitSettings) -> Fitted:
        """Cross-fitted: every row's held-out score comes from members that did not see it."""
        table = self._encoded(X)
        self._said, notes = table.notes, (*self._notes, *table.notes)
        if settings.encoder != "auto":
            self._model = TableNetwork.untrained(table.values, table.categorical)
            fitted = self._model.fit(table.values, labels, settings)
            self._keep(table.values, labels, fitted.rows, settings.random_state)
            return replace(fitted, notes=(*notes, *fitted.notes))
        settings.used[LEARNED_FROM_KNOWN] = True
        if are_too_few(labels):
            settings.used["way"] = TOO_FEW_FOR_ENSEMBLE
            known = settings.known_classes(labels)
            self._model, scores, seen = FewLabelled.fit(table.values, table.categorical, known, settings.weights)
            self._keep(table.values, labels, np.arange(len(labels)), settings.random_state)  # for the reasons of rows
            return Fitted(np.arange(len(labels)), scores, [], notes, sees_more=False, seen=seen)
        self._model = TabularPU(settings.prior, settings.scenario, settings.random_state)
        own = {name: getattr(settings, name) for name in ("weights", "truths", "folder", "progress")}
        self._model.fit(table.values, table.categorical, labels, **own)
        settings.used["members"] = dict(self._model.weights_)
        self._keep(table.values, labels, np.arange(len(labels)), settings.random_state)
        scores = np.asarray(self._model.out_of_fold_scores_, dtype=np.float64)
        leak = self._about_leak(table.values, labels, scores, settings.random_state)
        fitted = Fitted(np.arange(len(labels)), scores, [], (*notes, *leak, *self._model.notes_), warnings=leak)
        return replace(fitted, features=lambda some: _dense(table.values[some], table.categorical))

    def score(self, X: Any) -> Floats:
        """Scores of the ensemble or the head, NaN for a row of empty cells. Shape: (n,).

        Warns of what differs from the table of the fit.
        """
        table = self._encoded(X)
        for note in table.notes:
            if note not in self._said:  # the fit has said it, and scores its own rows
                warnings.warn(note, TableWarning, stacklevel=4)  # the caller of predict_proba
        scores = np.array(self._model.score(table.values), dtype=np.float64)
        # The model would score an empty row by what gaps mean in single columns, which says nothing of such a row.
        if table.empty is not None:
            scores[table.empty] = np.nan
        return scores

    def looked_at(self, X: Any) -> EncodedTable:
        """The columns that are used, in their own units."""
        return self._encoder.unscaled(self._named(X))

    def embed(self, X: Any) -> Floats:
        """The encoded columns, missing values at the column's centre; a network's features. Shape: (n, d)."""
        if isinstance(self._model, TableNetwork):
            return self._model.embed(self._encoded(X).values)
        centred: Floats = np.nan_to_num(self._encoded(X).values.astype(np.float64))
        return centred

    # What the model says about itself (models/insight.py) ------------------------------------------------------------

    def importances(self) -> tuple[Importance, ...]:
        """How much each column matters, on the kept rows; only in the process that fitted."""
        kept = self._kept
        if kept is None or are_too_few(kept.labels):
            raise NoImportancesError(
                "no importances: they are measured on held-out rows of the fit, which a loaded model has not, and with "
                "fewer than 3 labelled rows there are none; ask for importances_ before save()"
            )
        score = self._scorer(kept.rows)
        return column_importances(score, kept.values, kept.labels, self._encoder.outputs, seed=kept.seed)

    def reasons(self, X: Any, rows: Rows | None, background: Any = None) -> list[list[Reason]]:
        """Each row's columns with their effects on its score; `rows` are their places in the training table."""
        values, others = self._inputs(self._encoded(X).values), self._background(background)
        columns = self._encoder.outputs
        if len(columns) > _MOST_EXPLAINED:
            scores = self._scorer(None)(others, np.arange(len(others)))
            columns = {name: columns[name] for name in telling_columns(others, scores, columns, _MOST_EXPLAINED)}
        own, without = row_effects(self._scorer(rows), values, np.arange(len(values)), columns, others)
        frame = self._named(X)
        cells = frame.set_axis([*map(str, frame.columns)], axis=1)[list(columns)]  # names may be numbers
        return [
            [
                Reason(name, value, float(score - less), float(less))
                for name, value, less in zip(columns, line, rest, strict=True)
            ]
            for line, score, rest in zip(cells.itertuples(index=False), own, without, strict=True)
        ]

    def _about_leak(self, values: Values, labels: Labels, scores: Floats, seed: int) -> tuple[str, ...]:
        """A note that names columns which seem to give the label away; the rows are put into bins only if needed."""

        def binned(rows: Rows) -> Values:
            return self._inputs(values[rows])

        leak = find_joint_leak(binned, labels, self._encoder.outputs, scores, seed)
        return (str(leak),) if leak else ()

    def _keep(self, values: Values, labels: Labels, held_out: Rows, seed: int) -> None:
        """Keep some of the held-out rows: the table itself may be too large to keep."""
        rows = held_out[rows_to_measure(labels[held_out], len(self._encoder.columns), seed)]
        self._kept = KeptRows(self._inputs(values[rows]), labels[rows], rows, seed)

    def _inputs(self, values: Values) -> Values:
        """Rows as the model reads them; bins are made once and not for every changed copy."""
        binned: Values = self._model.bins_.transform(values) if isinstance(self._model, TabularPU) else values
        return binned

    def _background(self, X: Any) -> Values:
        if X is not None:
            return self._inputs(self._encoded(X).values)
        if self._kept is None:
            raise InputError("give background=, unlabelled rows whose values stand in: a loaded model has no rows")
        unlabelled: Values = self._kept.values[self._kept.labels == UNLABELLED]
        return unlabelled

    def _scorer(self, rows: Rows | None) -> Score:
        """Scores of :meth:`_inputs`; of copies of training `rows` by models that did not see them."""
        model = self._model
        if not isinstance(model, TabularPU):
            return lambda values, copies: np.asarray(model.score(values), dtype=np.float64)
        folds = getattr(model, "folds_", None)
        if rows is None or folds is None:
            return lambda values, copies: model.score_binned(values)
        return lambda values, copies: model.score_binned(values, folds[rows[copies]])

    def _encoded(self, X: Any) -> EncodedTable:
        return self._encoder.transform(self._named(X))

    def _named(self, X: Any) -> pd.DataFrame:
        names = tuple(column.name for column in self._encoder.columns)
        return frame_from_sparse(X, names) if issparse(X) else as_frame(X)

    def tried(self) -> Tried:
        """On rows of empty cells: they are read and scored as any others, and their scores are not used."""
        names = [column.name for column in self._encoder.columns]
        return Tried.on(self, pd.DataFrame(np.full((2, len(names)), np.nan), columns=names))

    def state(self) -> State:
        """The model's arrays, and the encoder as JSON."""
        tensors, content = self._model.state()
        return tensors, {"encoder": json.loads(self._encoder.to_json()), "model": content}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> TableRoute:
        """Inverse of :meth:`state`."""
        route = cls()
        saved = decode(dict[str, dict[str, Any]], content, "route")
        route._encoder = TableEncoder.from_json(json.dumps(saved["encoder"]))
        kinds: dict[str, Any] = {"network": TableNetwork, "few_labelled": FewLabelled}
        kind = next((kinds[key] for key in kinds if key in saved["model"]), TabularPU)
        route._model = kind.from_state(tensors, saved["model"])
        return route


class TableNetwork:
    """The paper's method on an encoded table: normal scores, one-hot codes, SCARF views, a PU head.

    Shape of values: (n, d), missing numbers and codes as NaN.
    """

    def __init__(self, columns: DenseColumns, network: NetworkRoute) -> None:
        self._columns, self._network = columns, network

    @classmethod
    def untrained(cls, values: Values, categorical: Flags) -> TableNetwork:
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
        columns = {name: tensor.numpy() for name, tensor in under(tensors, _COLUMNS).items()}
        rest = {name: tensor for name, tensor in tensors.items() if not name.startswith(_COLUMNS)}
        return cls(DenseColumns.from_arrays(columns), NetworkRoute.from_state(rest, content["network"]))


def _dense(values: Values, categorical: Flags) -> npt.NDArray[np.float32]:
    return DenseColumns.fit(values, categorical).transform(values)


def as_frame(X: Any) -> pd.DataFrame:
    """A table as a frame; the columns of a matrix are called x0, x1, …"""
    if isinstance(X, pd.DataFrame):
        return X
    if issparse(X):
        return frame_from_sparse(X)
    values = np.asarray(X)
    if values.ndim != 2:
        raise InputError(
            f"a table has rows and columns, got shape {values.shape}; Reshape your data: one column is (-1, 1)"
        )
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])

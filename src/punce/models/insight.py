"""What a fitted classifier says about itself: which columns matter, and why a row ranks high.

Tables answer by columns and texts by words; images and embeddings have neither (``punce.options.EXPLAINED``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from punce.errors import InputError
from punce.judging.calibration import PUCalibrator
from punce.judging.importance import Floats, Importance
from punce.judging.metrics import PUMetrics
from punce.models.columns import ReadsColumns
from punce.models.exported.file import write_onnx
from punce.models.route import Route
from punce.notebook import html_table
from punce.options import check_explained
from punce.priors import PriorEstimate
from punce.ran import ran_in_words


@dataclass(frozen=True)
class Reason:
    """One column or word of a row: how much it moved the score, and the score without it.

    `value` is the row's value of the column; a word has none.
    """

    feature: str
    value: Any
    effect: float
    score: float


class NoImportancesError(AttributeError):
    """There are no importances. An AttributeError: scikit-learn asks with ``hasattr``."""


class Insight(ReadsColumns):
    """The part of PUClassifier that explains it; what the other parts learn is declared here."""

    ran_: dict[str, Any]
    notes_: tuple[str, ...]
    setting_: str
    threshold_: float
    prior_: PriorEstimate
    metrics_: PUMetrics
    _route: Route
    _calibrator: PUCalibrator

    @property
    def importances_(self) -> pd.DataFrame:
        """How much each column of a table matters, most first: columns column, drop, low, high.

        `drop` is how much the AUC of labelled against unlabelled rows falls when the column's values are shuffled, on
        rows and with models that were held out of each other, with a 90 % interval. A column whose interval holds 0
        is not known to matter. Computed when first asked for, in about a second; saved with the classifier if it was.
        Of tables with more than 200 columns, 20 to 100 are measured; the others have drop 0 and no interval.
        """
        rows = [asdict(each) for each in self._importances()]
        frame = pd.DataFrame(rows).rename(columns={"name": "column"})
        return frame.sort_values("drop", ascending=False, kind="stable", ignore_index=True)

    @property
    def feature_importances_(self) -> Floats:
        """The drops of ``importances_`` in the order of the columns; 0 for columns that were left out. Shape: (d,)."""
        drops = {each.name: each.drop for each in self._importances()}
        names = self._columns.names or [f"x{j}" for j in range(self._columns.width)]
        return np.array([drops.get(name, 0.0) for name in names])

    def _importances(self) -> tuple[Importance, ...]:
        check_is_fitted(self, "classes_")
        if not hasattr(self, "_measured"):
            if self.kind_ != "table":
                raise NoImportancesError(
                    f"importances are for the columns of a table; this classifier reads {self.kind_}"
                )
            self._measured: tuple[Importance, ...] = self._route.importances()  # type: ignore[attr-defined]
        return self._measured

    @property
    def explains_quickly(self) -> bool:
        """Whether many rows can be explained: not where a pretrained encoder reads every changed text."""
        return bool(getattr(self._route, "reads_quickly", True))

    def explain(self, X: Any, most: int = 3, *, training_rows: Any = None, background: Any = None) -> pd.DataFrame:
        """Which columns or words moved each row's score most: `most` lines a row, the strongest first.

        For a table, a column's value is replaced by those of 12 other unlabelled rows, spread over its range; for a
        text, a word is taken out. `effect` is the score less the (mean) score after that, above 0 where the value or
        word makes the row rank higher; `probability` and `without` are the probabilities before and after. One column
        is changed at a time: columns that say the same can hide each other.

        Args:
            X: rows, best a few: each costs a dozen scores a column, or one a word.
            most: lines a row.
            training_rows: which rows of the fit these are, if they are: tables then explain them by models that did not
                see them.
            background: rows whose values stand in (tables only); needed after :meth:`load`, which has no rows.

        Returns:
            A frame with columns row (place in X), feature, value (of the column), effect, probability, without.
        """
        rows = self._rows(X)  # first: it says if there is no fit yet
        check_explained(self.kind_)
        if most < 1:
            raise InputError(f"most must be at least 1, got {most}")
        which = None if training_rows is None else self._places(training_rows, np.shape(rows)[0])
        background = None if background is None else self._rows(background)
        found = self._route.reasons(rows, which, background)  # type: ignore[attr-defined]
        lines = [
            {"row": row, **asdict(reason), "own": reason.score + reason.effect}
            for row, reasons in enumerate(found)
            for reason in sorted(reasons, key=lambda reason: -abs(reason.effect))[:most]
        ]
        names = ["row", "feature", "value", "effect", "score", "own"]
        frame = pd.DataFrame(lines, columns=names)
        for name, score in (("probability", "own"), ("without", "score")):
            frame[name] = self._calibrator.probability(frame.pop(score).to_numpy(np.float64))
        return frame

    def _places(self, training_rows: Any, n_rows: int) -> npt.NDArray[np.intp]:
        """The place of each of `n_rows` rows in the training table."""
        places = np.asarray(training_rows)
        if places.shape != (n_rows,) or (n_rows and places.dtype.kind not in "iu"):
            raise InputError(
                "training_rows must be whole numbers, the place of each row of X in the training table: "
                f"{n_rows} of them, got {places.dtype} {places.shape}"
            )
        n_fitted = len(getattr(self, "seen_in_training_", ()))  # 0: a loaded model does not know it
        outside = places[(places < 0) | (places >= (n_fitted or np.inf))]
        if len(outside):
            raise InputError(f"training_rows count the rows of the fit, 0 to {n_fitted - 1}, got {outside[0]}")
        return places.astype(np.intp)

    def _measured_json(self) -> list[list[Any]] | None:
        """What a model file keeps of the importances, if they were measured; JSON has no NaN."""
        if not hasattr(self, "_measured"):
            return None
        return [[None if value != value else value for value in astuple(each)] for each in self._measured]

    def _restore_measured(self, entries: Sequence[Sequence[Any]] | None) -> None:
        if entries:
            self._measured = tuple(
                Importance(name, *(np.nan if value is None else value for value in three)) for name, *three in entries
            )

    def export(self, path: str | Path) -> None:
        """Write the classifier as an ONNX file: the probabilities of :meth:`predict_proba` in programs without punce.

        Default models of tables of numbers and categories can be exported, and models of embeddings whose scores are
        linear in the columns. Inputs and outputs are those of ``punce.models.exported``. Any other model is refused:
        :meth:`save` keeps it.
        """
        check_is_fitted(self, "classes_")
        write_onnx(Path(path), self.kind_, self._route, self._columns, self._calibrator, self.threshold_)

    def _repr_html_inner(self) -> str:
        """What notebooks show: scikit-learn calls it for ``_repr_html_``."""
        return self._with_results(str(super()._repr_html_inner()))  # type: ignore[misc]  # BaseEstimator's

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        return {kind: self._with_results(text) if kind == "text/html" else text for kind, text in bundle.items()}

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """What scikit-learn 1.9 lists of a fit. It reads every property; to show a model must not measure importances.

        So it is handed the attributes alone, of a class without properties.
        """
        own = type(self)
        attributes: Any = type(own.__name__, (BaseEstimator,), {"__doc__": own.__doc__, "__module__": own.__module__})()
        vars(attributes).update(vars(self))
        return attributes._get_fitted_attr_html(doc_link)

    def _with_results(self, diagram: str) -> str:
        """scikit-learn's diagram, and after a fit what ran, the share of positives and the quality."""
        if not hasattr(self, "classes_"):
            return diagram
        ran = [("learned by", ran_in_words(self.ran_))] if hasattr(self, "ran_") else []
        ran += [("from", f"{self.kind_} rows, setting {self.setting_}")]
        ran += [("called positive from", f"probability {self.threshold_:.3f}")]
        # A model folder keeps no notes, which may quote cells; one of an earlier version may lack the others, too.
        learned = html_table("PUClassifier, fitted", ("", ""), ran, getattr(self, "notes_", ()))
        found = (getattr(self, name)._repr_html_() for name in ("prior_", "metrics_") if hasattr(self, name))
        return "".join([diagram, learned, *found])

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters, and after a fit what ran, as a comment: it can still be pasted into a program."""
        text = str(super().__repr__(N_CHAR_MAX=N_CHAR_MAX))  # type: ignore[call-arg]  # BaseEstimator's
        return f"{text}  # fitted: {ran_in_words(self.ran_)}" if hasattr(self, "ran_") else text

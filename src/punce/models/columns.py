"""Which columns rows were learned from, and new rows with these columns in this order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from punce.columns.given import plain_rows
from punce.columns.kinds import did_you_mean
from punce.errors import InputError, first_of

_SHOWN = 8
_NAME_IN_MATRIX = re.compile(r"x\d+")  # the names that the columns of a matrix get


@dataclass(frozen=True)
class Columns:
    """`names` of a table's columns as text, None for rows without names; `width` of a matrix, None for other shapes."""

    names: tuple[str, ...] | None
    width: int | None

    @classmethod
    def of(cls, X: Any) -> Columns:
        """The columns of rows to learn from."""
        shape = np.shape(X)
        names = tuple(map(str, X.columns)) if isinstance(X, pd.DataFrame) else None
        return cls(names, int(shape[1]) if len(shape) == 2 else None)

    def take(self, X: Any, estimator: str, *, and_new: bool = False, unused: Collection[str] = ()) -> Any:
        """Rows to score with the columns that were learned from, by name where they have names; refuses what lacks one.

        `estimator` is whose columns they are, for the error. `and_new` leaves others behind them, for a route that
        reads by name and says what is new. `unused` are columns that such a route set aside: they may be missing.
        """
        if self.names is not None:
            return self._by_name(X, self.names, and_new, unused)
        shape = np.shape(X)
        if self.width is not None and len(shape) == 2 and shape[1] != self.width:
            raise InputError(f"X has {shape[1]} features, but {estimator} is expecting {self.width} features as input")
        if and_new and isinstance(X, pd.DataFrame) and not any(map(_NAME_IN_MATRIX.fullmatch, map(str, X.columns))):
            raise InputError(
                "this classifier learned from a matrix, whose columns have no names; give one with the same columns in "
                "the same order: X.to_numpy()"
            )
        return X

    def _by_name(self, X: Any, names: tuple[str, ...], and_new: bool, unused: Collection[str]) -> Any:
        """A route that reads positions would score columns in another order without noticing."""
        if not isinstance(X, pd.DataFrame):
            raise InputError("this classifier learned from a table with named columns; give a DataFrame with the same")
        found = list(map(str, X.columns))
        if tuple(found) == names:
            return X
        count = Counter(found)
        names = tuple(name for name in names if count[name] or name not in unused)
        if missing := [name for name in names if not count[name]]:
            # only columns that are new: one that was learned from, too, is no other spelling of another
            hint = did_you_mean(missing[0], sorted(count.keys() - set(names)))
            raise InputError(
                f"columns the classifier learned from are missing: {_quoted(missing)}; the table has {_quoted(found)}"
                f"{hint}"
            )
        if twice := [name for name in dict.fromkeys(names) if count[name] > 1]:
            raise InputError(f"column names occur twice: {twice[:5]}; rename or remove one of each")
        new = [place for place, name in enumerate(found) if name not in names] if and_new else []
        return X.iloc[:, [*(found.index(name) for name in names), *new]]


def _quoted(names: list[str]) -> str:
    return first_of(list(map(repr, names)), _SHOWN)


class ReadsColumns:
    """The part of PUClassifier that remembers the columns of a fit and finds them in new rows."""

    kind: str
    kind_: str
    _route: Any
    _columns: Any  # Columns; its parts are None where rows have no columns

    def _remember_columns(self, X: Any) -> None:
        self._columns = Columns.of(X)
        is_named = isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns)
        self._show_columns(list(X.columns) if is_named else None)

    def _show_columns(self, names: Sequence[str] | None) -> None:
        """scikit-learn's attributes, which are there only where they mean something."""
        if self._columns.width is not None:
            self.n_features_in_ = self._columns.width
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _rows(self, X: Any) -> Any:
        """New rows as the route expects them; says if there is no fit yet."""
        check_is_fitted(self, "classes_")
        of_table = {"and_new": True, "unused": self._route.unused_columns} if self.kind_ == "table" else {}
        return self._columns.take(plain_rows(X), type(self).__name__, **of_table)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may hand over: two classes, and what the kind of rows can have."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # BaseEstimator comes after this class
        tags.classifier_tags.multi_class = False
        is_table = self.kind in ("auto", "table")
        tags.input_tags.sparse = self.kind in ("auto", "table", "embedding")
        tags.input_tags.allow_nan = is_table
        tags.input_tags.categorical = is_table
        tags.input_tags.string = self.kind != "embedding"
        return tags

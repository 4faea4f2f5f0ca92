"""The label vocabulary: 1 labelled positive, 0 unlabelled, -1 labelled negative.

This module alone knows how other conventions (bools, ``{1, -1}``, empty cells, a named positive value)
translate, what is refused, and the words of the refusal. Everything behind it sees int8 arrays of {1, 0, -1}.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.errors import InputError, first_of, number_of
from punce.row_numbers import floats_of, require_same_index, without_mask

if TYPE_CHECKING:
    import torch

POSITIVE = 1
UNLABELLED = 0
NEGATIVE = -1

Labels = npt.NDArray[np.int8]
Setting = Literal["pu", "pnu"]

_ZEROS = ("0", "0.0")
_NO = ("false", "no", "f", "n")
_NOTHING_SAID = ("", "nan", "none", "null", "unlabelled", "unlabeled", "unknown")  # also how empty cells are written
_WORDS = {
    **dict.fromkeys(("1", "1.0", "true", "yes", "positive", "pos", "t", "y"), POSITIVE),
    **dict.fromkeys((*_ZEROS, *_NO, *_NOTHING_SAID), UNLABELLED),
    **dict.fromkeys(("-1", "-1.0", "negative", "neg"), NEGATIVE),
}
_SHOWN = 5
_FEWEST_LEFT = 0.05  # of a class among the rows of unknown class, as a share of what the prior gives
_NO_IS_NEGATIVE = (
    "{!r} in the label column was read as a labelled negative, because other rows say nothing; leave these cells empty "
    "if the class of the rows is not known"
)
_EMPTY_AND_ZERO = (
    "both 0 and {} of the label column were read as unlabelled; write -1 where a row is known to be negative"
)
_NO_ZERO = (
    "the labels are 1 and -1 without a 0, so -1 was read as unlabelled; for known negatives, mark the unlabelled rows 0"
)

_SCORERS = (
    "predict says 1 and 0, but y holds {}: scorers of scikit-learn other than the default compare the two as they are, "
    "and can fail (accuracy) or be reversed (roc_auc); use the default, or give y as 1 and 0"
)
_SCORERS_AND_NEGATIVES = (
    "predict says 1 and 0, but y holds -1 for known negatives: scorers of scikit-learn other than the default "
    "compare the two as they are, and fail (roc_auc) or count every such row as wrong (accuracy); use the default, or "
    "score the rows of known class with y > 0"
)
_OTHERS = (
    "beside empty cells the label column holds {}, read as unlabelled, too; --negative (negative= of read) names "
    "values that mean known to be negative"
)
_NEARLY = "{} {}, which differs from {!r} in capital letters only and was read as unlabelled"


def as_labels(y: Any, *, setting: Setting = "pu", positive: Any = None, negative: Any = None) -> Labels:
    """The labels of :func:`read_labels`."""
    return read_labels(y, setting=setting, positive=positive, negative=negative)[0]


def read_labels(
    y: Any, *, setting: Setting = "pu", positive: Any = None, negative: Any = None
) -> tuple[Labels, tuple[str, ...]]:
    """Translate a caller's labels into the vocabulary, or refuse them with the reason; and what to know about it.

    Accepted: bools (True is a labelled positive), ``{1, 0}``, ``{1, -1}``, ``{1, 0, -1}``, the same as text,
    and 1 against empty (NaN, None, ""). With `positive` given, rows equal to it are labelled positives, rows
    equal to `negative` labelled negatives, and every other row is unlabelled; a list names several values.

    A column of only 1 and -1 holds no unlabelled row in our vocabulary. In the PU setting that can only be the
    convention in which -1 means *unlabelled*, so it is read that way; with ``setting="pnu"`` it stays negative. Beside
    a 0, -1 is a labelled negative in both. "no" and "false" are unlabelled, unless other cells are empty or say
    "unlabelled": then they are an answer, and labelled negatives.
    """
    column = _one_dimensional(y)
    if pd.api.types.is_complex_dtype(column):
        raise InputError("labels are complex numbers; give 1 (labelled positive), 0 (unlabelled), -1 (negative)")
    if positive is not None or negative is not None:
        return _named(column, positive, negative)
    is_numeric = pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column)
    labels, notes = _from_numbers(column) if is_numeric else _from_words(column)
    if setting == "pnu" or not lacks_zero(labels):
        return labels, notes
    return _unlabelled_for_negative(labels), (*notes, _NO_ZERO)


def lacks_zero(labels: Labels) -> bool:
    """Whether there is a -1 and no 0: then -1 can only mean unlabelled."""
    return bool((labels == NEGATIVE).any() and not (labels == UNLABELLED).any())


def _unlabelled_for_negative(labels: Labels) -> Labels:
    read: Labels = np.where(labels == NEGATIVE, UNLABELLED, labels).astype(np.int8)
    return read


@dataclass(frozen=True)
class RowLabels:
    """What a fit knows about its rows.

    `codes` says how a row came by its label: 1 and -1 are rows labelled at random from their class, every other row is
    0. A *judged* row is 0: a person looked up its class because the row was chosen, so it is no random sample of a
    class. `truths` has the class of judged rows and of labelled negatives, else 0. Shape: (n,) each.
    """

    codes: Labels
    truths: Labels
    note: str = ""
    """What a person should know about how the labels were read."""

    @classmethod
    def of(cls, codes: Labels, judged: Any = None) -> RowLabels:
        """From labels of {1, 0, -1} and a mask of the judged rows; a judged row of 0 stays unknown."""
        is_judged = np.zeros(len(codes), dtype=bool) if judged is None else _mask(judged, len(codes))
        note, own = "", np.where(is_judged, UNLABELLED, codes).astype(np.int8)
        if lacks_zero(codes[~is_judged]):
            note, own = _NO_ZERO, _unlabelled_for_negative(own)
        truths = np.where(is_judged, codes, np.where(own == NEGATIVE, NEGATIVE, UNLABELLED))
        return cls(own, truths.astype(np.int8), note)

    @property
    def labels(self) -> Labels:
        """1 for labelled positives, 0 for every other row: what models are told beside the truths."""
        labelled: Labels = (self.codes == POSITIVE).astype(np.int8)
        return labelled

    @property
    def known(self) -> Labels | None:
        """The truths; None where there are none."""
        return self.truths if self.truths.any() else None

    @property
    def setting(self) -> Setting:
        """ "pnu" with labelled negatives, else "pu"."""
        return "pnu" if (self.codes == NEGATIVE).any() else "pu"

    @property
    def counts(self) -> dict[str, int]:
        """How many rows are known beside the labelled positives, by how they became known; without zeros."""
        negatives = int((self.codes == NEGATIVE).sum())
        found = {"labelled negatives": negatives, "judged rows": int((self.truths != 0).sum()) - negatives}
        return {name: count for name, count in found.items() if count}

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of labelled positives and of labelled negatives among all rows."""
        return float((self.codes == POSITIVE).mean()), float((self.codes == NEGATIVE).mean())

    def diluted(self, prior: float) -> float:
        """The share of positives among all rows that :attr:`labels` calls 0, if it is `prior` among unlabelled ones."""
        n_u, n_n = int((self.codes == UNLABELLED).sum()), int((self.codes == NEGATIVE).sum())
        return prior * n_u / (n_u + n_n)


def prior_of_rest(prior: float, labels: Labels, truths: Labels | None) -> float:
    """The share of positives among the rows of label 0 whose class is not known, if it is `prior` among all of them.

    Known positives can be more than the prior allows: then there are hardly any left.
    """
    if truths is None:
        return prior
    of_0 = truths[labels == UNLABELLED]
    rest = int((of_0 == 0).sum())
    if not rest:
        return prior
    left = prior * len(of_0) - int((of_0 == POSITIVE).sum())
    return float(np.clip(left / rest, _FEWEST_LEFT * prior, 1.0 - _FEWEST_LEFT * (1.0 - prior)))


def _mask(judged: Any, n_rows: int) -> npt.NDArray[np.bool_]:
    mask = np.asarray(judged)
    if mask.shape != (n_rows,) or mask.dtype != bool:
        raise InputError(f"judged must be True or False for each of {n_rows} rows, got {mask.dtype} {mask.shape}")
    return mask


def labels_of_rows(y: Any, X: Any) -> tuple[Labels, tuple[str, ...]]:
    """The labels of an estimator's `y` for the rows `X`, refused in scikit-learn's words where its users expect them.

    -1 stays -1; :class:`RowLabels` says what it means. Also what to know about how they were read.

    A Series is matched to a table by position everywhere in scikit-learn; with another index that is a silent mistake.
    """
    if y is None:
        raise InputError("PUClassifier requires y to be passed, but the target y is None")
    require_same_index(y, X)
    if np.ndim(y) == 2 and np.shape(y)[1] == 1:
        from sklearn.exceptions import DataConversionWarning  # here, because the command line must start quickly

        what = "A column-vector y was passed when a 1d array was expected; it was read as one"
        warnings.warn(what, DataConversionWarning, stacklevel=5)  # the caller of fit
    try:
        return read_labels(y, setting="pnu")
    except InputError as error:
        raise InputError(_in_scikit_learns_words(y, error)) from error


def about_scorers(y: Any, rows: RowLabels) -> str:
    """What to know before labels other than 1 and 0 meet a scorer of scikit-learn; empty where nothing is.

    It expects the values of `y` from predict, and of two words it takes the last in the alphabet for the positive one.
    """
    words = [repr(value) for value in _one_dimensional(y).unique() if isinstance(value, str)]
    if words:
        return _SCORERS.format(" and ".join(words[:_SHOWN]))
    if rows.note == _NO_ZERO:
        return _SCORERS.format("1 and -1")
    return _SCORERS_AND_NEGATIVES if (rows.truths == NEGATIVE).any() else ""


def _in_scikit_learns_words(y: Any, error: InputError) -> str:
    from sklearn.utils.multiclass import type_of_target

    try:
        with np.errstate(invalid="ignore"):  # it casts infinity to a whole number
            kind = type_of_target(y) if np.ndim(y) == 1 and np.size(y) else ""
    except ValueError:  # it has no kind for infinity; what is wrong with the labels is known already
        kind = ""
    if kind == "continuous":
        return f"Unknown label type: continuous. {error}"
    if kind == "multiclass":
        return f"Only binary classification is supported. The type of the target is multiclass. {error}"
    return str(error)


def row_weights(sample_weight: Any, labels: Labels) -> npt.NDArray[np.float64]:
    """One finite weight of at least 0 a row; some labelled and some unlabelled row must count."""
    weights = floats_of(sample_weight, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(len(labels), weights)
    if weights.ndim != 1:
        raise InputError(f"Sample weights must be 1D array or scalar, got shape {weights.shape}")
    if len(weights) != len(labels):
        raise InputError(f"sample_weight.shape == {weights.shape}, expected ({len(labels)},): one for each row")
    if not np.isfinite(weights).all() or weights.min() < 0:
        raise InputError("sample_weight must hold finite numbers of at least 0")
    for value, name in ((POSITIVE, "labelled"), (UNLABELLED, "unlabelled")):
        if not weights[labels == value].any():
            raise InputError(f"sample_weight is zero for every {name} row: that class has nothing left to learn from")
    return weights


def require_positive_and_unlabelled(labels: Labels, where: str = "labels") -> None:
    """Refuse labels no PU method can learn from."""
    if not (labels == POSITIVE).any():
        raise InputError(f"{where}: no labelled positive among {len(labels)} rows; mark at least one row with 1")
    if not (labels == UNLABELLED).any():
        raise InputError(
            f"{where}: no unlabelled row among {len(labels)}; PU learning needs rows marked 0, or images in "
            "unlabelled/ (with negatives for every other row, use an ordinary classifier)"
        )


def require_array(labels: object, where: str = "labels") -> None:
    """Refuse labels of a stage that are no array (n,): rows are chosen by their numbers, and a Series by its index."""
    if not isinstance(labels, np.ndarray):
        raise InputError(f"{where} must be a NumPy array, got {type(labels).__name__}; np.asarray({where}) makes one")
    if labels.ndim != 1:
        raise InputError(f"{where} must be one-dimensional, got shape {labels.shape}")
    is_object = labels.dtype.kind == "O"  # of numbers, where pandas' nullable columns come from
    words = [value for value in labels if not isinstance(value, Real | np.bool_)] if is_object else labels
    if labels.dtype.kind not in "biuf" and len(words):
        raise InputError(
            f"{where} must be numbers, 1, 0 or -1, got {str(words[0])!r}; punce.labels.as_labels translates words"
        )


def check_vocabulary(labels: npt.NDArray[Any] | torch.Tensor, where: str = "labels", hint: str = "") -> None:
    """Refuse values outside {1, 0, -1}, naming the first offending rows. Works on arrays and tensors alike."""
    bad = (labels != POSITIVE) & (labels != UNLABELLED) & (labels != NEGATIVE)
    bad = bad | (labels > POSITIVE)  # to torch, 255 of a uint8 equals -1
    if bool(bad.any()):
        values, rows = np.asarray(labels.tolist()), np.flatnonzero(np.asarray(bad.tolist()))
        # labels are floats where some may be missing, but their owner wrote 2 and not 2.0
        seen = [int(v) if np.isfinite(v) and v == int(v) else v for v in np.unique(values[rows])[:_SHOWN].tolist()]
        raise InputError(
            f"{where} must be 1 (labelled positive), 0 (unlabelled) or -1 (labelled negative); "
            f"{number_of(len(rows), f'of {len(values)} is', f'of {len(values)} are')} not: values {seen}, "
            f"first at {_rows(rows)}{hint}"
        )


def refuse_negatives(labels: npt.NDArray[Any] | torch.Tensor, who: str) -> None:
    """Refuse PNU labels where only the PU setting is defined."""
    negative = labels == NEGATIVE
    if bool(negative.any()):
        rows = np.flatnonzero(np.asarray(negative.tolist()))
        raise InputError(
            f"{who} is defined for positives (1) and unlabelled rows (0) only, but "
            f"{number_of(len(rows), 'row is', 'rows are')} labelled negative (-1), first at "
            f"{_rows(rows)}; mark them 0, or use PUClassifier or `punce fit`, which learn from them"
        )


def _one_dimensional(y: Any) -> pd.Series[Any]:
    if hasattr(y, "detach"):  # a torch tensor, without importing torch
        y = y.detach().cpu().numpy()
    y = without_mask(y)
    if isinstance(y, pd.DataFrame):
        if y.shape[1] != 1:
            raise InputError(f"labels must be one column, got a frame with {y.shape[1]}: {list(y.columns)[:_SHOWN]}")
        y = y.iloc[:, 0]
    values = y if isinstance(y, pd.Series) else np.asarray(y)
    if values.ndim == 0:  # a set or a sparse matrix is one object to NumPy
        raise InputError(f"labels must be a list, an array or a column, one for each row, got {type(y).__name__}")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim != 1:
        raise InputError(f"labels must be one-dimensional, got shape {values.shape}")
    if len(values) == 0:
        raise InputError("labels are empty: there is no row to learn from")
    return pd.Series(values).reset_index(drop=True)


def _from_numbers(column: pd.Series[Any]) -> tuple[Labels, tuple[str, ...]]:
    if pd.api.types.is_bool_dtype(column) and column.isna().any():
        return _from_words(column)  # False beside an empty cell is an answer
    is_empty = column.isna().to_numpy()
    values = column.astype("Float64").fillna(UNLABELLED).to_numpy(dtype=np.float64, na_value=UNLABELLED)
    values = np.where(np.isnan(values), UNLABELLED, values)  # 1 against empty
    check_vocabulary(values, hint="; if another value means positive, name it (--positive VALUE; in Python y == VALUE)")
    is_mixed = is_empty.any() and (values[~is_empty] == UNLABELLED).any()
    return values.astype(np.int8), (_EMPTY_AND_ZERO.format("empty cells"),) if is_mixed else ()


def _from_words(column: pd.Series[Any]) -> tuple[Labels, tuple[str, ...]]:
    words = column.astype("string").fillna("").str.strip().str.lower()
    meaning = words.map(_WORDS)
    unknown = meaning.isna().to_numpy()
    if unknown.any():
        seen = column[unknown].astype("string").unique()[:_SHOWN].tolist()
        raise InputError(
            f"labels hold values without a known meaning: {seen}, first at {_rows(np.flatnonzero(unknown))}; "
            "use 1/0, true/false or 1/empty, or name the positive value "
            "(--positive VALUE; in Python positive= of read, or y == VALUE)"
        )
    labels, is_no = meaning.to_numpy().astype(np.int8), words.isin(_NO).to_numpy()
    nothing = words[words.isin(_NOTHING_SAID)]
    if nothing.empty or not is_no.any():
        if nothing.empty or not words.isin(_ZEROS).any():
            return labels, ()
        cells = "empty cells" if (nothing == "").any() else repr(nothing.iloc[0])
        return labels, (_EMPTY_AND_ZERO.format(cells),)
    return np.where(is_no, NEGATIVE, labels).astype(np.int8), (_NO_IS_NEGATIVE.format(str(column[is_no].iloc[0])),)


def _named(column: pd.Series[Any], positive: Any, negative: Any) -> tuple[Labels, tuple[str, ...]]:
    positives, negatives = _values(positive), _values(negative)
    if not positives:
        raise InputError("name the positive value too (positive=..., --positive VALUE)")
    if both := {str(value).strip() for value in positives} & {str(value).strip() for value in negatives}:
        raise InputError(f"the positive and the negative value are the same: {min(both)!r}")
    labels = np.zeros(len(column), dtype=np.int8)
    for value in positives:
        labels[_equal(column, value, "positive")] = POSITIVE
    for value in negatives:
        labels[_equal(column, value, "negative")] = NEGATIVE
    rest = column[labels == UNLABELLED].astype("string").str.strip()
    nearly = tuple(_NEARLY.format(*found) for v in (*positives, *negatives) if (found := _nearly(rest, v)))
    return labels, nearly if negatives or nearly else _about_others(rest)


def _values(named: Any) -> tuple[Any, ...]:
    """One value or several, as a tuple; empty where none is named."""
    if isinstance(named, list | tuple | set | frozenset):
        return tuple(named)
    return () if named is None else (named,)


def _equal(column: pd.Series[Any], value: Any, name: str) -> npt.NDArray[np.bool_]:
    """Rows that hold the value; refused where there is none."""
    # As text, too: "1" on the command line against the number 1 in the file; "fraud " beside "fraud".
    as_text = column.astype("string").str.strip() == str(value).strip()
    found: npt.NDArray[np.bool_] = ((column == value) | as_text).fillna(False).to_numpy(dtype=bool)
    if not found.any():  # empty cells make 1 into 1.0
        number = pd.to_numeric(str(value), errors="coerce")
        found = (pd.to_numeric(column.astype("string"), errors="coerce") == number).fillna(False).to_numpy(dtype=bool)
    if not found.any():
        seen = column.astype("string").dropna().unique()[:_SHOWN].tolist()
        raise InputError(f"no row equals the {name} value {value!r}; the label column holds {seen}")
    return found


def _nearly(rest: pd.Series[Any], value: Any) -> tuple[str, list[str], str] | None:
    """How many unlabelled rows hold the value in other letters (Fraud for fraud), and these spellings."""
    alike = rest[rest.str.lower() == str(value).strip().lower()]
    rows = number_of(len(alike), "row of the label column holds", "rows of the label column hold")
    return (rows, alike.unique().tolist()[:_SHOWN], str(value)) if len(alike) else None


def _about_others(rest: pd.Series[Any]) -> tuple[str, ...]:
    """Said of words that nobody named: where other cells say nothing, a word may be an answer, as "no" is one."""
    is_silent = rest.fillna("").str.lower().isin(_NOTHING_SAID)
    words = [repr(word) for word in rest[~is_silent].unique()]
    return (_OTHERS.format(first_of(words)),) if words and is_silent.any() else ()


def _rows(rows: npt.NDArray[Any]) -> str:
    shown = ", ".join(str(row) for row in rows[:_SHOWN])
    return f"row{'s' if len(rows) > 1 else ''} {shown}{', …' if len(rows) > _SHOWN else ''}"

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from punce.errors import InputError
from punce.labels import (
    RowLabels,
    about_scorers,
    as_labels,
    check_vocabulary,
    labels_of_rows,
    prior_of_rest,
    read_labels,
    refuse_negatives,
    require_positive_and_unlabelled,
    row_weights,
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([True, False, True], [1, 0, 1]),
        ([1, 0, 0], [1, 0, 0]),
        ([1.0, 0.0, 1.0], [1, 0, 1]),
        ([1, -1, -1], [1, 0, 0]),
        ([1, None, None], [1, 0, 0]),
        ([1.0, float("nan")], [1, 0]),
        (["1", "", "1"], [1, 0, 1]),
        (["yes", "no"], [1, 0]),
        (["TRUE", "False "], [1, 0]),
        (pd.Series([True, None], dtype="boolean"), [1, 0]),
        (pd.Series([1, pd.NA], dtype="Int64"), [1, 0]),
        (pd.DataFrame({"y": [1, 0]}), [1, 0]),
        (np.array([[1], [0]]), [1, 0]),
        (torch.tensor([1, 0]), [1, 0]),
        (pd.Series(["positive", "unlabelled"], dtype="category"), [1, 0]),
    ],
    ids=str,
)
def test_other_conventions_are_translated(given: Any, expected: list[int]) -> None:
    labels = as_labels(given)
    assert labels.dtype == np.int8
    assert labels.tolist() == expected


def test_minus_one_is_negative_in_the_pnu_setting_and_unlabelled_otherwise() -> None:
    assert as_labels([1, -1, -1], setting="pnu").tolist() == [1, -1, -1]
    assert as_labels([1, 0, -1], setting="pnu").tolist() == [1, 0, -1]
    assert as_labels([1, -1, -1]).tolist() == [1, 0, 0]
    assert as_labels([1, 0, -1]).tolist() == [1, 0, -1]


def test_what_a_fit_knows_about_its_rows() -> None:
    codes = np.array([1, 0, -1, 1, -1, 0], dtype=np.int8)
    judged = np.array([False, False, False, True, True, True])
    rows = RowLabels.of(codes, judged)
    assert rows.codes.tolist() == [1, 0, -1, 0, 0, 0]  # a judged row is no random sample of its class
    assert rows.truths.tolist() == [0, 0, -1, 1, -1, 0]
    assert rows.labels.tolist() == [1, 0, 0, 0, 0, 0]
    assert (rows.setting, rows.counts) == ("pnu", {"labelled negatives": 1, "judged rows": 2})
    assert rows.diluted(0.5) == pytest.approx(0.4)  # two of four unlabelled rows, and one negative beside them
    assert RowLabels.of(codes[:2]).known is None


def test_without_a_zero_minus_one_means_unlabelled_and_a_judged_row_keeps_its_truth() -> None:
    rows = RowLabels.of(np.array([1, -1, -1], dtype=np.int8), np.array([False, False, True]))
    assert (rows.codes.tolist(), rows.truths.tolist(), rows.setting) == ([1, 0, 0], [0, 0, -1], "pu")
    assert "-1 was read as unlabelled" in rows.note
    with pytest.raises(InputError, match="judged must be True or False for each of 2 rows"):
        RowLabels.of(np.array([1, 0], dtype=np.int8), [0, 1])


def test_the_share_of_positives_among_rows_nobody_knows() -> None:
    labels = np.array([1, 0, 0, 0, 0, 0], dtype=np.int8)
    assert prior_of_rest(0.4, labels, None) == 0.4
    assert prior_of_rest(0.4, labels, np.array([0, 1, -1, 0, 0, 0], dtype=np.int8)) == pytest.approx(1 / 3)
    assert prior_of_rest(0.2, labels, np.array([0, 1, 1, 1, 0, 0], dtype=np.int8)) == pytest.approx(0.01)


def test_a_named_positive_value() -> None:
    assert as_labels(["fraud", "ok", None], positive="fraud").tolist() == [1, 0, 0]
    assert as_labels([3, 1, 3], positive="3").tolist() == [1, 0, 1]
    assert as_labels([1.0, None, 2.0], positive="1").tolist() == [1, 0, 0]  # a gap makes the file's 1 into 1.0
    assert as_labels([1.5, None], positive="1.50").tolist() == [1, 0]
    assert as_labels(["fraud", "ok", None], positive="fraud", negative="ok").tolist() == [1, -1, 0]
    assert as_labels(["fraud", "fraud ", " ok"], positive="fraud", negative="ok ").tolist() == [1, 1, -1]
    with pytest.raises(InputError, match="no row equals the negative value 'okay'"):
        as_labels(["fraud", "ok", None], positive="fraud", negative="okay")
    with pytest.raises(InputError, match="name the positive value too"):
        as_labels(["fraud", "ok", None], negative="ok")
    with pytest.raises(InputError, match="are the same"):
        as_labels(["fraud", None], positive="fraud", negative="fraud")
    with pytest.raises(InputError, match="no row equals the positive value 'nan'"):
        as_labels([1.0, None], positive="nan")
    with pytest.raises(InputError, match=r"no row equals the positive value 'spam'.*\['fraud', 'ok'\]"):
        as_labels(["fraud", "ok"], positive="spam")


def test_several_named_values() -> None:
    column = ["fraud", "confirmed fraud", "ok", None, "fine"]
    assert as_labels(column, positive=["fraud", "confirmed fraud"]).tolist() == [1, 1, 0, 0, 0]
    named = {"positive": ("fraud", "confirmed fraud"), "negative": ["ok", "fine"]}
    assert as_labels(column, **named).tolist() == [1, 1, -1, 0, -1]
    assert as_labels([3, 7, None], positive=[3, "7"]).tolist() == [1, 1, 0]
    with pytest.raises(InputError, match="no row equals the positive value 'spam'"):
        as_labels(column, positive=["fraud", "spam"])
    with pytest.raises(InputError, match="are the same: 'ok'"):
        as_labels(column, positive=["fraud", "ok"], negative="ok ")
    with pytest.raises(InputError, match="name the positive value too"):
        as_labels(column, positive=[])


def test_a_named_value_in_other_letters_stays_unlabelled_and_is_said() -> None:
    labels, notes = read_labels(["fraud", "Fraud", "FRAUD ", "Fraud", "ok"], positive="fraud", negative="ok")
    assert labels.tolist() == [1, 0, 0, 0, -1]
    assert notes == (
        "3 rows of the label column hold ['Fraud', 'FRAUD'], which differs from 'fraud' in capital letters only "
        "and was read as unlabelled",
    )
    assert read_labels(["fraud", "ok"], positive="fraud")[1] == ()


def test_a_word_that_nobody_named_stays_unlabelled_and_is_said_beside_empty_cells() -> None:
    column = ["fraud", "cleared", None, "unknown", "cleared "]
    labels, notes = read_labels(column, positive="fraud")
    assert labels.tolist() == [1, 0, 0, 0, 0]
    assert notes == (
        "beside empty cells the label column holds 'cleared', read as unlabelled, too; --negative (negative= of read) "
        "names values that mean known to be negative",
    )
    assert read_labels(column, positive="fraud", negative="cleared")[1] == ()
    assert read_labels(["fraud", None, "unknown"], positive="fraud")[1] == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 0, 2, 2], r"2 of 4 are not: values \[2\], first at rows 2, 3"),
        ([1, 0, 2, 0.5], r"values \[0.5, 2\]"),
        (["a", "b"], r"values without a known meaning: \['a', 'b'\].*--positive VALUE"),
        ([[1, 0], [0, 1]], "one-dimensional"),
        ([], "empty"),
        ({1, 0}, "one for each row, got set"),
        ([1 + 0j, 0j], "complex numbers; give 1"),
        (pd.DataFrame({"a": [1], "b": [0]}), "one column"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_labels(given)


def test_infinite_labels_of_an_estimator_are_refused_in_our_words() -> None:
    with pytest.raises(InputError, match=r"2 of 3 are not: values \[inf\], first at rows 1, 2"):
        labels_of_rows(np.array([1.0, np.inf, np.inf]), np.zeros((3, 1)))


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(InputError, match="no labelled positive among 3 rows"):
        require_positive_and_unlabelled(np.zeros(3, np.int8))
    with pytest.raises(InputError, match="no unlabelled row among 2"):
        require_positive_and_unlabelled(np.ones(2, np.int8))
    require_positive_and_unlabelled(np.array([1, 0], np.int8))


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_the_checks_take_arrays_and_tensors(make: Any) -> None:
    check_vocabulary(make([1, 0, -1]))
    with pytest.raises(InputError, match=r"values \[3, 5\], first at rows 1, 2"):
        check_vocabulary(make([1, 3, 5]))
    refuse_negatives(make([1, 0]), "nnPU")
    with pytest.raises(InputError, match=r"nnPU is defined for positives .* first at row 1"):
        refuse_negatives(make([1, -1]), "nnPU")


@pytest.mark.parametrize(
    ("given", "expected", "note"),
    [
        (["yes", "no", ""], [1, -1, 0], "'no' in the label column was read as a labelled negative"),
        (["yes", "No", "unknown"], [1, -1, 0], "'No' in the label column was read as a labelled negative"),
        (["yes", "no", "no"], [1, 0, 0], ""),
        (["positive", "negative", ""], [1, -1, 0], ""),
        (["positive", "negative", "negative"], [1, 0, 0], "-1 was read as unlabelled"),
        ([1, 0, np.nan], [1, 0, 0], "both 0 and empty cells of the label column were read as unlabelled"),
        (["1", "0", None], [1, 0, 0], "both 0 and empty cells of the label column were read as unlabelled"),
        (["1", "0", "unknown"], [1, 0, 0], "both 0 and 'unknown' of the label column were read as unlabelled"),
        (["1", "0", "no"], [1, 0, 0], ""),
        (pd.array([True, False, None], dtype="boolean"), [1, -1, 0], "'False' in the label column"),
        ([1, 0, -1], [1, 0, -1], ""),
    ],
)
def test_what_is_ambiguous_is_decided_and_said(given: Any, expected: list[int], note: str) -> None:
    labels, notes = read_labels(given)
    assert labels.tolist() == expected
    assert note in " ".join(notes)
    assert bool(notes) == bool(note)


@pytest.mark.parametrize("weights", [["heavy", "light"], pd.Series(["heavy", "light"]), [{}, {}]])
def test_weights_that_are_no_numbers_are_refused_by_name(weights: Any) -> None:
    with pytest.raises(InputError, match="sample_weight must hold numbers"):
        row_weights(weights, np.array([1, 0], dtype=np.int8))


def test_weights_with_a_gap_are_refused_however_pandas_writes_it() -> None:
    with pytest.raises(InputError, match="sample_weight must hold finite numbers"):
        row_weights(pd.Series([1.0, pd.NA], dtype=object), np.array([1, 0], dtype=np.int8))
    with pytest.raises(InputError, match="sample_weight must hold finite numbers"):
        row_weights(np.ma.MaskedArray([1.0, 2.0], [False, True]), np.array([1, 0], dtype=np.int8))


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (["positive", "unlabelled", "unlabelled"], "y holds 'positive' and 'unlabelled': scorers"),
        ([1, -1, -1], "y holds 1 and -1: scorers"),
        ([1, 0, -1], "y holds -1 for known negatives: scorers"),
        ([True, False, False], ""),
        ([1.0, np.nan, np.nan], ""),
    ],
)
def test_labels_that_scorers_of_scikit_learn_misread_are_told(y: list[Any], said: str) -> None:
    """With words roc_auc was 0.1 where it is 0.9, and with 1 and -1 accuracy counted every unlabelled row as wrong.

    Beside 0, it counts every known negative as wrong, whatever is said of it.
    """
    told = about_scorers(y, RowLabels.of(read_labels(y, setting="pnu")[0]))
    assert said in told
    assert bool(said) == bool(told)

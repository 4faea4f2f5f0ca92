"""Numbers as people write them, one value and one column at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from punce.columns.written import NumberForm, is_number, written_column, written_numbers


def read(value: Any, decimal: Any, unit: str = "") -> float | None:
    number = float(written_numbers(pd.Series([value], dtype=object), NumberForm(decimal, unit))[0])
    return None if math.isnan(number) else number


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("7", 7, 7),
        ("3.5", 3.5, None),
        ("3,5", None, 3.5),
        ("1,234", 1234, 1.234),
        ("1.234", 1.234, 1234),
        ("1 234", 1234, 1234),
        ("1'234.5", 1234.5, None),
        ("1,234.50", 1234.5, None),
        ("1.234,50", None, 1234.5),
        ("1,234,567", 1234567, None),
        ("12,34,567.5", 1234567.5, None),
        ("1\u202f234,5", None, 1234.5),
        (" 3.5\u00a0", 3.5, None),
        ("0,234", None, 0.234),
        (".5", 0.5, None),
        ("1,5E+03", None, 1500),
        ("-3", -3, -3),
        ("−3", -3, -3),
        ("3-", -3, -3),
        ("(1,200.50)", -1200.5, None),
        (3.5, 3.5, 3.5),
    ],
)
def test_a_value_under_each_decimal_mark(text: Any, point: float | None, comma: float | None) -> None:
    assert (read(text, "."), read(text, ",")) == (point, comma)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("€3.50", "€", 3.5),
        ("3.50 €", "€", 3.5),
        ("EUR 3.50", "EUR", 3.5),
        ("$1,200", "$", 1200),
        ("-$3", "$", -3),
        ("$-3", "$", -3),
        ("($3)", "$", -3),
        ("12 %", "%", 12),
        ("12%", "%", 12),
        ("0", "%", 0),
        ("0.12", "%", None),  # 12 % or 0.12 %?
        ("12", "€", 12),
    ],
)
def test_currencies_and_per_cent(text: str, unit: str, value: float | None) -> None:
    assert read(text, ".", unit) == value


@pytest.mark.parametrize(
    "text",
    ["12.03.2024", "2024-03-12", "12/03/2024", "1.2.3", "030 123 456", "12:30", "--3", "(-3)", "(3", "3)", "€3€", "",
     " ", "A1", "1-2", "n/a", "12 kg", "1,23,45", "1.2,3.4", ",", ".", "nan", "inf", "1e", "192.168.1.1", "½"],
)  # fmt: skip
def test_what_is_no_number(text: str) -> None:
    assert not is_number(text)


@given(st.floats(min_value=-1e12, max_value=1e12, allow_nan=False).map(lambda x: round(x, 2)))
def test_both_customs_give_back_the_number(value: float) -> None:
    english = f"{value:,.2f}"
    german = english.translate(str.maketrans(",.", ".,"))
    assert read(english, ".") == read(german, ",") == value


def column(*values: Any) -> Any:
    return written_column(pd.Series(list(values), dtype=object))


def test_a_column_says_which_mark_is_meant_where_it_can() -> None:
    assert column("1,234", "1,5").evident == ","
    assert column("1,234", "1,234.5").evident == "."
    assert column("1,234", "999").evident is None
    assert column("1,234", "999").is_ambiguous
    assert column("1,234", "999").form(",") == NumberForm(",")
    assert column("1,234", "999").form(".") == NumberForm(".")
    assert not column("1 234", "999").is_ambiguous  # the same under both


def test_columns_of_plain_numbers_codes_and_words_need_no_form() -> None:
    assert column("1.5", "2").form(".") is None
    assert column("01", "02", "03").form(",") is None
    assert column("a", "b", "1,5") is None
    assert written_column(pd.Series([1.5, 2.0])) is None
    assert column([1], {"a": 2}) is None


def test_some_odd_words_do_not_make_a_column_text() -> None:
    odd = column(*["3,50 €"] * 38, "n/a", "?")
    assert odd.form(".") == NumberForm(",", "€")
    assert column(*["3,50 €"] * 8, "n/a", "?").form(".") is None
    mixed = column("3,5", "2,5", "1,5", [1], *["4,5"] * 60)
    assert mixed.form(".") == NumberForm(",")
    assert np.isnan(written_numbers(pd.Series(["3,5", [1]]), NumberForm(","))).tolist() == [False, True]


def test_two_currencies_or_two_marks_are_no_numbers() -> None:
    for values in (("€3", "$4", "€5"), ("1,5", "2.5")):
        assert column(*values).form(".") is None
        assert column(*values).is_mixed


def test_cells_that_are_numbers_already_stay_so() -> None:
    series = pd.Series([1.5, "2,5", 3, None], dtype=object)
    looked = written_column(series)
    assert looked is None or looked.form(".") == NumberForm(",")
    numbers = written_numbers(series, NumberForm(","))
    np.testing.assert_array_equal(numbers, [1.5, 2.5, 3.0, np.nan])

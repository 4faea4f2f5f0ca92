from __future__ import annotations

import dataclasses
import datetime
import decimal
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from punce.columns.fitted import FIRST_CATEGORY, CategoryColumn
from punce.columns.kinds import category_names, column_kind, date_format
from punce.data import TableEncoder
from punce.errors import InputError
from tests.serving import real

_IS_PANDAS_2 = pd.__version__.startswith("2.")


def _frame(n: int = 120) -> pd.DataFrame:
    random = np.random.RandomState(0)
    frame = pd.DataFrame(
        {
            "amount": random.lognormal(size=n),
            "count": random.randint(0, 5, n),
            "country": random.choice(["DE", "FR", "UK"], n, p=[0.5, 0.3, 0.2]),
            "joined": pd.date_range("2024-01-01 08:00", periods=n, freq="31h"),
            "vip": random.random_sample(n) < 0.3,
        }
    )
    frame.loc[::7, "amount"] = np.nan
    frame.loc[::11, "country"] = None
    frame.loc[5, "joined"] = pd.NaT
    return frame


def test_every_kind_of_column_becomes_finite_numbers() -> None:
    frame = _frame()
    encoder = TableEncoder.fit(frame)
    table = encoder.transform(frame)
    assert encoder.names == (
        "amount",
        "amount:missing",
        "count",
        "country",
        "joined:days",
        "joined:days:missing",
        "joined:weekday",
        "joined:month",
        "joined:hour",
        "vip",
    )
    assert table.values.dtype == np.float32
    assert table.values.shape == (120, 10)
    assert np.isfinite(table.values).all()
    assert np.flatnonzero(table.categorical).tolist() == [3]
    assert table.notes == ()


def test_numbers_are_centred_at_the_median_and_missing_ones_marked() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, np.nan, np.inf], "y": range(5)})
    values = TableEncoder.fit(frame).transform(frame).values
    scale = np.std([1, 2, 3])  # the tails of three values are the values themselves, nearly
    assert values[:3, 0] == pytest.approx(np.array([-1, 0, 1]) / scale, rel=0.02)
    assert values[3:, 0].tolist() == [0, 0]
    assert values[:, 1].tolist() == [0, 0, 0, 1, 1]


def test_a_stray_value_is_bounded() -> None:
    frame = pd.DataFrame({"x": [*np.linspace(0, 1, 999), 1e12]})
    values = TableEncoder.fit(frame).transform(frame).values
    assert values.max() == 10
    assert 0.9 < values[:999].std() < 1.1


def test_the_largest_numbers_do_not_overflow() -> None:
    frame = pd.DataFrame({"x": [1.7e308, -1.7e308, 0.0, 1.0]})
    values = TableEncoder.fit(frame).transform(frame).values
    assert np.isfinite(values).all()
    assert values[0] > values[2] > values[1]


def test_numbers_beyond_single_precision_are_told() -> None:
    frame = pd.DataFrame({"a": [1e39, -2e50, *np.arange(40.0)], "b": np.arange(42.0)})
    encoder = TableEncoder.fit(frame)
    for table in (encoder.transform(frame), encoder.unscaled(frame), encoder.unscaled(frame, is_resolved=True)):
        (note,) = table.notes
        assert note.startswith("column 'a': 2 values are beyond ±1e+38, where single precision ends")
    assert encoder.transform(frame[5:]).notes == ()


def test_numbers_close_together_and_far_from_zero_are_told_apart() -> None:
    """A prior that is estimated without them would be that of another table than the one the model learns from."""
    seconds = np.arange(60) % 20
    frame = pd.DataFrame({"time": 1_700_000_000 + seconds, "year": 1990 + seconds, "x": 0.1 * seconds})
    encoder = TableEncoder.fit(frame)
    own = encoder.unscaled(frame).values
    assert len(np.unique(own[:, 0])) == 1  # in its own unit there is no other float32
    resolved = encoder.unscaled(frame, is_resolved=True).values
    np.testing.assert_array_equal(resolved[:, 0], seconds - np.median(seconds))
    np.testing.assert_array_equal(resolved[:, 1:], own[:, 1:])  # nothing is gained by a change


def test_codes_do_not_depend_on_the_order_of_rows() -> None:
    frame = _frame()
    assert TableEncoder.fit(frame).columns[2] == TableEncoder.fit(frame.iloc[::-1]).columns[2]
    country = TableEncoder.fit(frame).columns[2]
    assert country.categories == ("DE", "FR", "UK")  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")
@pytest.mark.parametrize("column", [["x ", None], [3.0, np.nan], pd.array(["x", None], dtype="string")])
def test_a_missing_value_has_no_name_with_the_text_of_pandas_2(column: Any) -> None:
    with pd.option_context("future.infer_string", False):
        assert category_names(pd.Series(column)).isna().tolist() == [False, True]


def test_json_round_trip_is_exact() -> None:
    frame = _frame()
    encoder = TableEncoder.fit(frame.assign(nothing=np.nan))
    again = TableEncoder.from_json(encoder.to_json())
    assert again == encoder
    assert (again.transform(frame).values == encoder.transform(frame).values).all()
    assert json.loads(encoder.to_json())["left_out"] == {"nothing": "every value is missing"}


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1}', '{"format": 1, "columns": [{}], "left_out": {}}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a stored table encoder"):
        TableEncoder.from_json(text)


def test_another_format_is_refused() -> None:
    with pytest.raises(InputError, match="format 2, this version reads 1"):
        TableEncoder.from_json('{"format": 2}')


def test_rows_are_encoded_alone_as_they_are_together() -> None:
    frame = _frame()
    encoder = TableEncoder.fit(frame)
    together = encoder.transform(frame).values
    alone = np.concatenate([encoder.transform(frame.iloc[[k]]).values for k in range(len(frame))])
    assert (together == alone).all()


def test_next_week_unknown_categories_extra_columns_and_text_among_numbers_are_noted() -> None:
    encoder = TableEncoder.fit(_frame())
    frame = _frame().assign(region="north")
    frame["country"] = frame["country"].where(frame.index != 1, "XX")
    frame["amount"] = frame["amount"].astype(object).where(frame.index != 2, "n.a.")
    table = encoder.transform(frame)
    assert table.values[1, 3] == 1
    assert table.values[2, :2].tolist() == [0, 1]
    assert table.notes == (
        "column 'amount': 1 value is no number and counts as missing, e.g. ['n.a.']",
        "column 'country': 1 value is of unknown categories such as ['XX']",
        "1 column is new and ignored: 'region'",
    )


def test_a_list_of_new_columns_says_how_many_more_there_are() -> None:
    new = {f"new_{k}": 1.0 for k in range(7)}
    notes = TableEncoder.fit(_frame()).transform(_frame().assign(**new)).notes
    assert notes == ("7 columns are new and ignored: 'new_0', 'new_1', 'new_2', 'new_3', 'new_4' and 2 more",)


def test_columns_left_out_in_fitting_are_not_called_new() -> None:
    frame = _frame().assign(constant=1, customer_id=range(1000, 1120))
    encoder = TableEncoder.fit(frame)
    assert dict(encoder.left_out) == {"constant": "it is constant (1)", "customer_id": "it names its rows"}
    assert encoder.transform(frame).notes == ()
    assert encoder.transform(_frame()).notes == ()  # and need not be there


def test_columns_that_could_say_something_are_not_left_out_without_a_word() -> None:
    remark = "a long remark of many words that nobody would call a category"
    frame = _frame().assign(tags=[["a", "b"]] * 120, remark=remark, constant=1, customer_id=range(1000, 1120))
    frame["binary"] = [b"a", b"b"] * 60
    assert TableEncoder.fit(frame).notes == (
        "column 'tags' is not learned from: it holds lists or other nested values, bytes or complex numbers",
        "column 'remark' is not learned from: it holds text (--text, or in Python a list of its texts, learns "
        "from it and from no other column)",
        "column 'binary' is not learned from: it holds lists or other nested values, bytes or complex numbers",
    )


def test_titles_are_texts_and_names_are_not() -> None:
    frame = _frame().assign(
        title=[f"blue cotton shirt {k}" for k in range(120)], owner=[f"Ann Smith{k}" for k in range(120)]
    )
    encoder = TableEncoder.fit(frame)
    assert [note.split(":")[0] for note in encoder.notes] == ["column 'title' is not learned from"]
    assert encoder.left_out["owner"] == "it names its rows"


def test_a_missing_column_is_refused_with_near_names() -> None:
    encoder = TableEncoder.fit(_frame())
    with pytest.raises(InputError, match="no column 'country'; did you mean 'Country'"):
        encoder.transform(_frame().rename(columns={"country": "Country"}))


def test_a_name_that_only_looks_the_same_is_told() -> None:
    encoder = TableEncoder.fit(_frame().rename(columns={"country": "Gr\u00f6\u00dfe"}))
    with pytest.raises(InputError, match="the same letters in another Unicode form"):
        encoder.transform(_frame().rename(columns={"country": "Gro\u0308\u00dfe"}))


def test_timestamps_are_no_numbers() -> None:
    encoder = TableEncoder.fit(_frame())
    later = _frame().assign(amount=pd.date_range("2024-01-01", periods=len(_frame()), tz="UTC"))
    with pytest.raises(InputError, match=r"'amount' held numbers .* now holds none, e.g. .*2024-01-01"):
        encoder.transform(later)


def test_a_column_that_changed_its_meaning_is_refused() -> None:
    encoder = TableEncoder.fit(_frame())
    with pytest.raises(InputError, match=r"'amount' held numbers .* now holds none, e.g. .*'high'"):
        encoder.transform(_frame().assign(amount="high"))
    with pytest.raises(InputError, match="'joined' held dates"):
        encoder.transform(_frame().assign(joined="later"))


def test_numbers_as_categories_keep_their_names_as_floats() -> None:
    frame = pd.DataFrame({"code": pd.Categorical([1, 2, 2, 3] * 10), "x": range(40)})
    encoder = TableEncoder.fit(frame)
    as_float = frame.assign(code=frame["code"].astype(float))
    assert (encoder.transform(frame).values == encoder.transform(as_float).values).all()


@pytest.mark.parametrize("first", [[True, None, False, True], ["yes", None, "no", "yes"], ["Y", None, "N", "Y"]])
@pytest.mark.parametrize(
    "later",
    [
        [1.0, np.nan, 0.0, 1.0],
        pd.array([1, None, 0, 1], dtype="Int64"),
        ["1", None, "0", "1.0"],
        [True, None, False, True],
        ["TRUE", None, "false", "t"],
        ["Yes", None, "no", "y"],
    ],
)
def test_truth_values_with_a_gap_are_the_same_in_every_spelling(first: list[object], later: list[object]) -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"vip": first * 10}))
    table = encoder.transform(pd.DataFrame({"vip": later}))
    assert np.array_equal(table.values, encoder.transform(pd.DataFrame({"vip": first})).values)
    assert table.notes == ()


@pytest.mark.parametrize("later", [["yes", "no"], ["Y ", "n"], ["t", "F"], ["1", "no"], [1, 0], ["True", "false"]])
def test_truth_values_without_a_gap_are_the_same_in_every_spelling(later: list[object]) -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"vip": [True, False, False] * 10, "n": np.arange(30)}))
    expected = encoder.transform(pd.DataFrame({"vip": [True, False] * 15, "n": np.arange(30)}))
    table = encoder.transform(pd.DataFrame({"vip": later * 15, "n": np.arange(30)}))
    np.testing.assert_array_equal(table.values, expected.values)
    assert table.notes == ()
    with pytest.raises(InputError, match="'n' held numbers"):  # a column of other numbers has no yes and no
        encoder.transform(pd.DataFrame({"vip": later * 15, "n": ["yes", "no"] * 15}))
    some = encoder.transform(pd.DataFrame({"vip": ["yes", "perhaps", "True"], "n": [1, 2, 3]}))
    assert "2 values are no number and count as missing, e.g. ['yes', 'perhaps']" in some.notes[0]


def test_a_word_is_no_truth_value_among_other_categories() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"axis": ["x", "y", "z", None] * 10}))
    assert "unknown categories such as ['1']" in encoder.transform(pd.DataFrame({"axis": ["x", 1]})).notes[0]


@pytest.mark.parametrize("later", [[True, None, False], ["True", None, "FALSE"], ["true", "?", "false"]])
def test_truth_values_with_a_gap_are_still_truth_values(later: list[object]) -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"vip": [True, False] * 20}))
    values = encoder.transform(pd.DataFrame({"vip": pd.Series(later, dtype=object)})).values[:, 0]
    expected = encoder.transform(pd.DataFrame({"vip": [True, False]})).values[:, 0]
    assert values[[0, 2]].tolist() == expected.tolist()
    assert values[1] == 0.0


def test_categories_read_as_text_are_those_read_as_numbers_or_truth_values() -> None:
    frame = pd.DataFrame({"code": pd.Categorical([1, 2, 2, 3] * 10), "vip": [True, None, False, True] * 10})
    encoder = TableEncoder.fit(frame)
    as_text = pd.DataFrame({"code": ["1.0", "2.0", "2", "3.00"] * 10, "vip": ["TRUE", None, "false", "True"] * 10})
    assert (encoder.transform(as_text).values == encoder.transform(frame).values).all()
    assert encoder.transform(as_text).notes == ()
    other = encoder.transform(as_text.assign(code="01"))  # a code with a zero is another code
    assert (other.values[:, 0] == 1).all()


def test_dates_in_text_of_several_spellings() -> None:
    days = pd.date_range("2023-11-28", periods=60)
    reference = TableEncoder.fit(pd.DataFrame({"d": days})).transform(pd.DataFrame({"d": days})).values
    for pattern in ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y-%m-%dT%H:%M:%S"):
        frame = pd.DataFrame({"d": days.strftime(pattern)})
        encoder = TableEncoder.fit(frame)
        assert encoder.transform(frame).values == pytest.approx(reference), pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "%d-%m-%Y",
        "%m-%d-%Y",
        "%-m/%-d/%y",
        "%d.%m.%y",
        "%d-%b-%y",
        "%d %b %Y",
        "%m/%d/%Y %I:%M %p",
        "%d-%b-%Y %H:%M:%S",
        "%b %d, %Y",
        "%B %-d, %Y %-I:%M %p",
        "%-d %B %Y",
    ],
)
def test_dates_as_spreadsheets_and_databases_export_them(pattern: str) -> None:
    days = pd.Series(pd.date_range("2023-11-28 00:00", periods=60, freq="31h" if "M" in pattern else "D"))
    reference = TableEncoder.fit(pd.DataFrame({"d": days})).transform(pd.DataFrame({"d": days})).values
    frame = pd.DataFrame({"d": days.dt.strftime(pattern)})
    encoder = TableEncoder.fit(frame)
    assert encoder.transform(frame).values == pytest.approx(reference)
    assert encoder.transform(pd.DataFrame({"d": ["?"]})).notes[0].startswith("column 'd': 1 value is no date like ")


@pytest.mark.parametrize(
    "pattern", ["%H:%M", "%H:%M:%S", "%-H:%M", "%I:%M %p", "%-I:%M:%S %p", "%-I:%M%p", pytest.param("", id="objects")]
)
def test_times_of_day_are_hours_since_midnight(pattern: str) -> None:
    hours = np.arange(60) * 0.35
    moments = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(hours, unit="h").round("s"))
    times = moments.dt.strftime(pattern) if pattern else moments.dt.time
    encoder = TableEncoder.fit(pd.DataFrame({"t": times}))
    assert encoder.names == ("t:time",)
    again = TableEncoder.from_json(encoder.to_json())
    assert again == dataclasses.replace(encoder, notes=())
    later = again.unscaled(pd.DataFrame({"t": ["00:00", "13:45", "1:45 PM", " 13:45:36", None]}))
    assert later.values[:, 0] == pytest.approx([0.0, 13.75, 13.75, 13.76, np.nan], nan_ok=True)
    assert again.unscaled(pd.DataFrame({"t": times})).values[:, 0] == pytest.approx(hours, abs=1e-5)
    told = again.transform(pd.DataFrame({"t": ["25:00", "12:00"]})).notes
    assert told == ("column 't': 1 value is no time like 13:45 and counts as missing, e.g. ['25:00']",)


def test_durations_are_hours_with_minutes_and_seconds_first() -> None:
    """As categories, the lengths of calls would be hundreds of names of which next week has others."""
    seconds = np.arange(60) * 67 + 5  # up to 1:05:58
    texts = [f"{s // 3600}:{s // 60 % 60:02}:{s % 60:02}" if s >= 3600 else f"{s // 60}:{s % 60:02}" for s in seconds]
    frame = pd.DataFrame({"length": texts})
    encoder = TableEncoder.fit(frame)
    again = TableEncoder.from_json(encoder.to_json())
    assert again.names == ("length:time",)
    assert again.unscaled(frame).values[:, 0] == pytest.approx(seconds / 3600)
    later = again.unscaled(pd.DataFrame({"length": ["0:30", "100:30:00", "1:62:00", "1:62", None]}))
    assert later.values[:, 0] == pytest.approx([30 / 3600, 100.5, np.nan, np.nan, np.nan], nan_ok=True)
    assert later.notes[0].startswith("column 'length': 2 values are no duration like 45:10 or 1:02:45 and count as")
    (told,) = encoder.notes
    assert told.startswith("column 'length': 0:05 and the others are read as durations: minutes and seconds, or")
    assert column_kind(frame["length"].astype("category")) == "categorical"  # as --category says


def test_numbers_with_a_colon_that_are_no_times_stay_categories() -> None:
    assert column_kind(pd.Series(["16:90", "40:30", "99:99"] * 10)) == "categorical"
    assert column_kind(pd.Series(["3:2", "2:0", "1:1"] * 10)) == "categorical"


def test_dates_of_either_order_are_read_day_first_with_a_note() -> None:
    frame = pd.DataFrame({"seen": [f"{k % 12 + 1:02}/{k % 7 + 1:02}/2024" for k in range(60)]})
    encoder = TableEncoder.fit(frame)
    assert encoder.columns[0].format == "%d/%m/%Y"
    assert encoder.notes == (
        "column 'seen': 01/01/2024 and the other dates are read day first; where the month is first, write 2024-12-31",
    )
    told = pd.concat([frame, pd.DataFrame({"seen": ["12/31/2024"]})])  # one date tells, though most read either way
    assert TableEncoder.fit(told).columns[0].format == "%m/%d/%Y"
    assert TableEncoder.fit(told).notes == ()


@pytest.mark.parametrize(
    ("first", "pattern", "told"),
    [(0, "%d.%m.%Y", ()), (1, "%d.%m.%Y", ()), (1, "%d/%m/%Y", ("column 'd': some dates",))],
)
def test_dates_of_which_a_sheet_left_some_as_text_are_all_read(first: int, pattern: str, told: tuple[str, ...]) -> None:
    days = pd.Series(pd.date_range("2023-11-28", periods=60))
    is_text = (np.arange(60) + first) % 3 == 0  # also the first value, or not: it does not decide alone
    mixed = pd.DataFrame({"d": days.astype(object).where(~is_text, days.dt.strftime(pattern))})
    encoder = TableEncoder.fit(mixed)
    expected = TableEncoder.fit(pd.DataFrame({"d": days})).transform(pd.DataFrame({"d": days})).values
    assert encoder.transform(mixed).values == pytest.approx(expected)
    assert tuple(note[: len("column 'd': some dates")] for note in encoder.notes) == told
    in_a_file = mixed.astype("str")
    assert TableEncoder.fit(in_a_file).transform(in_a_file).values == pytest.approx(expected)


def test_the_form_of_dates_is_found_where_the_first_rows_have_none() -> None:
    odd = pd.Series(["soon"] * 40 + [f"{k % 28 + 1:02}.03.2024" for k in range(960)])
    assert date_format(odd) == "%d.%m.%Y"


@pytest.mark.parametrize("value", ["1.2.10", "10-11-12 High Street", "030-12-3456", "3-4"])
def test_codes_with_marks_are_no_dates(value: str) -> None:
    frame = pd.DataFrame({"code": [value, "1.17.3"] * 30, "n": range(60)})
    assert TableEncoder.fit(frame).names == ("code", "n")


def test_days_of_another_form_are_read_where_they_can_only_be_iso_and_otherwise_the_form_is_said() -> None:
    days = pd.Series(pd.date_range("2023-11-28", periods=60))
    frame = pd.DataFrame({"d": days.dt.strftime("%d.%m.%Y")}).set_axis([0] * 60)
    encoder = TableEncoder.fit(frame)
    expected = encoder.transform(frame).values
    iso = pd.DataFrame({"d": days.dt.strftime(" %Y-%m-%d")})
    assert (encoder.transform(iso).values == expected).all()
    assert (encoder.transform(iso.iloc[[3]]).values == expected[3]).all()
    mixed = pd.DataFrame({"d": frame["d"].where(np.arange(60) % 2 == 0, iso["d"].to_numpy())})
    assert (encoder.transform(mixed).values == expected).all()
    with pytest.raises(InputError, match=r"held dates like 31\.12\.2024 in the rows .* e\.g\. \['28/11/2023'"):
        encoder.transform(pd.DataFrame({"d": days.dt.strftime("%d/%m/%Y")}))
    with pytest.raises(InputError, match="held dates like 2024-12-31 in the rows"):
        TableEncoder.fit(pd.DataFrame({"d": days})).transform(frame)


@pytest.mark.skipif(_IS_PANDAS_2, reason="pandas 2 does not say that Arrow's days are dates: they are read as text")
def test_days_and_durations_of_arrow_are_read_as_those_of_numpy() -> None:
    days = pd.Series(pd.date_range("2024-01-01", periods=60)).where(pd.Series(range(60)) != 3)
    own = pd.DataFrame({"day": days, "moment": days.dt.tz_localize("UTC"), "wait": days - days[0]})
    kinds = {"day": "date32[day][pyarrow]", "moment": "timestamp[us, tz=UTC][pyarrow]", "wait": "duration[s][pyarrow]"}
    of_arrow = own.astype(kinds)
    encoder = TableEncoder.fit(of_arrow)
    assert encoder.columns == TableEncoder.fit(own).columns
    np.testing.assert_array_equal(encoder.transform(of_arrow).values, encoder.transform(own).values)


_NO_SUCH_TEXT = pytest.mark.skipif(_IS_PANDAS_2, reason="pandas 2 reads no text as a date beyond 2262: it is missing")


@pytest.mark.parametrize("as_text", [pytest.param(True, marks=_NO_SUCH_TEXT), False])
def test_dates_beyond_2262_are_dates(as_text: bool) -> None:
    last = pd.Timestamp("9999-12-31").as_unit("s")  # what databases write for "never"
    days = pd.Series(pd.date_range("2024-01-01", periods=60).as_unit("s")).where(pd.Series(range(60)) != 7, last)
    frame = pd.DataFrame({"until": days.dt.strftime("%Y-%m-%d") if as_text else days})
    values = TableEncoder.fit(frame).transform(frame).values
    assert values[7, 0] == 10.0  # the farthest a number can be
    assert np.isfinite(values).all()


def test_time_zones_are_brought_to_one() -> None:
    utc = pd.date_range("2024-03-01", periods=30, freq="5h", tz="UTC")
    frame, moved = pd.DataFrame({"d": utc}), pd.DataFrame({"d": utc.tz_convert("Asia/Tokyo")})
    encoder = TableEncoder.fit(frame)
    assert (encoder.transform(frame).values == encoder.transform(moved).values).all()


def test_a_table_without_a_usable_column_is_refused() -> None:
    with pytest.raises(InputError, match=r"no column of the table can be used .*'a': every value is missing"):
        TableEncoder.fit(pd.DataFrame({"a": [None, None], "b": [1, 1]}))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": []}), "no rows"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "occur twice"),
        (np.zeros((3, 2)), "expected a DataFrame, got ndarray"),
    ],
)
def test_what_is_no_table_is_refused(frame: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TableEncoder.fit(frame)  # type: ignore[arg-type]


def test_unnamed_columns_get_their_number_as_a_name() -> None:
    frame = pd.DataFrame(np.random.RandomState(0).standard_normal((30, 3)))
    assert TableEncoder.from_json(TableEncoder.fit(frame).to_json()).transform(frame).names == ("0", "1", "2")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.5, None], "numeric"),
        ([True, False], "numeric"),
        (["1", "2.5", "3e4"], "numeric"),
        ([decimal.Decimal("1.5")], "numeric"),
        ([pd.Timedelta(days=1)], "numeric"),
        (["red", "blue", None], "categorical"),
        (["2024-01-01", "2024-02-03"], "date"),
        ([datetime.date(2024, 1, 1)], "date"),
        ([None, None], "empty"),
        ([[1, 2], [3]], "unsupported"),
        ([b"x"], "unsupported"),
        ([1j], "unsupported"),
        ([f"user-{k}@example.org" for k in range(30)], "identifier"),
        ([f"the order of customer {k} came late and the box was open" for k in range(30)], "text"),
    ],
)
def test_kinds_of_columns(values: list[object], kind: str) -> None:
    assert column_kind(pd.Series(values)) == kind


@pytest.mark.parametrize("name", ["id", "customer_id", "userId", "Unnamed: 0", "row index", "__index_level_0__"])
def test_numbered_columns_are_known_by_name_and_content(name: str) -> None:
    assert column_kind(pd.Series(range(50)), name) == "identifier"
    assert column_kind(pd.Series([1, 2] * 25), name) == "numeric"
    assert column_kind(pd.Series(range(50)), "paid") == "numeric"
    padded = [f"{k:06d}" for k in range(50)]  # as a workbook or a Parquet file holds them, as text
    assert column_kind(pd.Series(padded), name) == "identifier"
    assert column_kind(pd.Series(padded[:25] * 2), name) == "numeric"
    assert column_kind(pd.Series(padded), "paid") == "numeric"


_CELLS = st.one_of(st.none(), st.floats(), st.text(max_size=8), st.booleans(), st.integers(-(10**9), 10**9))


@settings(max_examples=60, deadline=None)
@given(st.lists(_CELLS, min_size=3, max_size=25), st.lists(_CELLS, min_size=1, max_size=25))
def test_whatever_a_column_holds_the_matrix_is_finite(fitted: list[object], later: list[object]) -> None:
    first = pd.DataFrame({"x": pd.Series(fitted, dtype=object), "y": np.arange(len(fitted), dtype=float)})
    second = pd.DataFrame({"x": pd.Series(later, dtype=object), "y": np.arange(len(later), dtype=float)})
    encoder = TableEncoder.from_json(TableEncoder.fit(first).to_json())
    for frame in (first, second):
        try:
            table = encoder.transform(frame)
        except InputError as error:
            assert "now holds none" in str(error)  # noqa: PT017
            continue
        assert np.isfinite(table.values).all()
        known = [len(c.categories) for c in encoder.columns if isinstance(c, CategoryColumn)]
        assert (table.values[:, table.categorical] < np.array(known) + FIRST_CATEGORY).all()


def test_real_mushrooms_and_spam_encode() -> None:
    mushroom = real("mushroom").train.X
    encoder = TableEncoder.fit(mushroom)
    assert dict(encoder.left_out) == {"veil-type": "it is constant ('p')"}
    table = encoder.transform(mushroom)
    assert table.categorical.all()
    assert (table.values == 0).sum() == mushroom.isna().to_numpy().sum()  # stalk-root alone has missing values
    spam = real("spambase").train.X
    assert TableEncoder.fit(spam).transform(spam).values.shape == (3_680, 57)


# --- numbers as people write them -------------------------------------------------------------------------------------


def test_a_frame_of_text_numbers_is_read_as_the_numbers() -> None:
    plain = pd.DataFrame(
        {"a": [1.5, 2.25, 1234.5, -3.0], "n": [1000.0, 2000.0, 999.0, 5.0], "c": ["x", "y", "x", "1,5"]}
    )
    written = plain.assign(a=["1,5 €", "2,25 €", "1.234,50 €", "(3 €)"], n=["1.000", "2.000", "999", "5"])
    encoder = TableEncoder.from_json(TableEncoder.fit(written).to_json())
    np.testing.assert_array_equal(encoder.transform(written).values, TableEncoder.fit(plain).transform(plain).values)
    np.testing.assert_array_equal(encoder.transform(plain).values, encoder.transform(written).values)
    few = encoder.transform(written.iloc[:1])  # 1.000 alone says nothing
    np.testing.assert_array_equal(few.values, encoder.transform(written).values[:1])
    assert encoder.transform(written).notes == ()
    assert "2 columns are numbers as people write them" in TableEncoder.fit(written).notes[0]


def test_numbers_that_come_as_written_text_next_week() -> None:
    plain = pd.DataFrame({"a": [1.5, 2.25, 3.5, -3.0]})
    encoder = TableEncoder.fit(plain)
    assert "numbers" not in encoder.to_json().split('"columns"')[0]
    written = pd.DataFrame({"a": ["1,5", "2,25", "3,5", "-3"]})
    np.testing.assert_array_equal(encoder.transform(written).values, encoder.transform(plain).values)
    odd = encoder.transform(pd.DataFrame({"a": ["1,5"] * 30 + ["?"]}))
    assert odd.notes == ("column 'a': 1 value is no number and counts as missing, e.g. ['?']",)


def test_amounts_that_are_no_numbers_next_week_are_refused_like_plain_numbers() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"a": [f"{k},50 €" for k in range(30)]}))
    with pytest.raises(InputError, match="'a' held numbers in the rows that were learned from and now holds none"):
        encoder.transform(pd.DataFrame({"a": ["high"] * 30}))
    few = encoder.transform(pd.DataFrame({"a": ["high"] * 3}))
    assert few.notes == ("column 'a': 3 values are no number and count as missing, e.g. ['high']",)


def test_an_empty_text_is_a_gap_unless_the_fit_knew_it_as_a_category() -> None:
    """A CSV file has no empty texts: the same rows from another kind of file must have the same codes."""
    towns = ["Bonn", "Köln", None, "Bonn"] * 3
    empty = [town or "" for town in towns]
    encoder = TableEncoder.fit(pd.DataFrame({"town": towns}))
    expected = encoder.transform(pd.DataFrame({"town": towns}))
    for gap in ("", "  "):
        table = encoder.transform(pd.DataFrame({"town": [town or gap for town in towns]}))
        np.testing.assert_array_equal(table.values, expected.values)
        assert table.notes == ()
        np.testing.assert_array_equal(table.empty, [town is None for town in towns])
    known = TableEncoder.fit(pd.DataFrame({"town": empty}))
    assert set(known.transform(pd.DataFrame({"town": empty})).values[:, 0]) == {2.0, 3.0, 4.0}


def test_rare_categories_of_the_fit_are_not_called_unknown() -> None:
    frame = pd.DataFrame({"place": [f"p{i}" for i in range(1_003)] + ["home"] * 400})
    encoder = TableEncoder.fit(frame)
    assert "4 values are of categories beyond the 1,000 commonest" in encoder.transform(frame).notes[0]


def test_a_lone_column_of_texts_without_spaces_is_refused_with_what_to_do() -> None:
    texts = ["".join(np.random.default_rng(i).choice(list("免费领奖现在点击链接"), 9)) for i in range(100)]
    with pytest.raises(
        InputError, match=r"'body': it names its rows.* name it .* \(text=, --text\), or fit a list of its texts"
    ):
        TableEncoder.fit(pd.DataFrame({"body": texts}))


@pytest.mark.parametrize(
    ("before", "now", "first"), [("%d/%m/%Y", "%m/%d/%Y", "month"), ("%m-%d-%y", "%d-%m-%y", "day")]
)
def test_dates_in_the_other_order_than_in_the_fit_are_told(before: str, now: str, first: str) -> None:
    """Those with a day up to 12 are read, with day and month swapped."""
    days = pd.Series(pd.date_range("2023-01-01", periods=200))
    encoder = TableEncoder.fit(pd.DataFrame({"day": days.dt.strftime(before)}))
    notes = encoder.transform(pd.DataFrame({"day": days.dt.strftime(now)})).notes
    told = f"column 'day': the {first} comes first in these dates, so the others may be read with day and month swapped"
    assert notes[1:] == (f"{told}; write 2024-12-31",)
    odd = days.dt.strftime(before).where(days.index > 2, "soon")
    assert len(encoder.transform(pd.DataFrame({"day": odd})).notes) == 1

"""What a column of a user's table holds: numbers, categories, dates, free text, or something to set aside."""

from __future__ import annotations

import datetime
import decimal
import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce.errors import InputError

Floats = npt.NDArray[np.float64]

ColumnKind = Literal["numeric", "categorical", "date", "text", "identifier", "empty", "unsupported"]

# Day first where both orders read all values, as 3/4/2024 may be either.
_NUMBERED = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
_DAYS = (*_NUMBERED, "%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_SHORT_DAYS = tuple(day.replace("%Y", "%y") for day in _DAYS)
_DATE_FORMATS = tuple(day + time for day in (*_DAYS, *_SHORT_DAYS) for time in _TIMES)

_EITHER_ORDER = re.compile("%[dm][/-]%[dm]")

TIME_OF_DAY = "time of day"
"""The format of a column of times without a day, in whichever of their forms."""
DURATION = "duration"
"""The format of a column such as 45:10 and 1:02:45, in which the first are minutes where there are no hours."""
_TIME_FORMATS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%I:%M:%S%p")

_TRUTH = {"true": 1.0, "false": 0.0}
TRUTH_WORDS = {**_TRUTH, "1": 1.0, "0": 0.0, "yes": 1.0, "no": 0.0, "y": 1.0, "n": 0.0, "t": 1.0, "f": 0.0}
_SAMPLE = 10_000  # values that decide the kind of a column of text
_GLANCE = 50  # values, from all over a column, of which a form of dates reads at least one
LARGEST_WHOLE = 2**53  # up to here float64 has every whole number
HUGE = 1e100  # its square is still a float64
_MOSTLY = 0.95  # some odd words ("n/a", "?") do not make a column of numbers one of categories
_DISTINCT = 0.98  # names of rows may repeat a little, as files joined by hand do
_FEWEST_FOR_IDENTIFIER = 20  # in a handful of rows any column may have distinct values
_LONG_TEXT, _MANY_WORDS = 40, 5  # characters and words, on average
_SOME_WORDS = 3  # of values that are all different: a title says something about its row, a name or a code does not
_ISO_DAY = r"\d{4}-\d\d-\d\d"
# what all of _DATE_FORMATS begin with
_ANY_DAY = r"(?:\d\d?([./ -])(?:\d\d?|[A-Za-z]{3,9})\1|[A-Za-z]{3,9} \d\d?, )\d\d(?:\d\d)?(?: |$)"
_ANY_TIME = r"\d+:\d\d(?:\D|$)"
_DURATION = r"^(?:(\d{1,4}):(?=[0-5]\d:))?(\d{1,4}):([0-5]\d)$"  # hours, minutes, seconds
_SOME_MIDNIGHT = pd.Timestamp(1900, 1, 1)  # where pandas puts times without a day
_DIGITS = r"[0-9]+"
_IDENTIFIER_NAME = re.compile(
    r"(?i:(^|[_\-\s.])(id|ids|uuid|guid|key|index|rowid)$|^unnamed: \d+$|^__index_level_\d+__$)|[a-z](Id|ID)$"
)
_ID_NAME = re.compile(r"(?i:(^|[_\-\s.])(id|ids|uuid|guid)$)|[a-z](Id|ID)$")


def column_kind(series: pd.Series[Any], name: str = "") -> ColumnKind:
    """The kind of a column, judged by its type and, for text, by its first 10,000 values that are present."""
    if (values := plain_numbers(series)) is not None and not (values.dtype.kind in "iu" and looks_numbered(name)):
        return "empty" if missing_values(series).all() else "numeric"
    present = series.dropna().iloc[:_SAMPLE]
    if len(present) == 0:
        return "empty"
    if pd.api.types.is_complex_dtype(series):
        return "unsupported"
    if pd.api.types.is_bool_dtype(series):  # before numbers: pandas counts truth values among them
        return "numeric"
    if pd.api.types.is_numeric_dtype(series) or series.dtype.kind == "m":
        numbered = looks_numbered(name) and pd.api.types.is_integer_dtype(present) and present.is_unique
        return "identifier" if numbered and len(present) >= _FEWEST_FOR_IDENTIFIER else "numeric"
    if pd.api.types.is_datetime64_any_dtype(series):
        return "date"
    if isinstance(series.dtype, pd.CategoricalDtype):
        return "categorical"
    kind = _kind_of_objects(present)
    # 000123 in a column called customer_id: the same number as in a file that tells numbers from text
    return "identifier" if kind == "numeric" and looks_numbered(name) and _number_rows(present) else kind


def _number_rows(present: pd.Series[Any]) -> bool:
    """Whether text consists of whole numbers that are all different."""
    return len(present) >= _FEWEST_FOR_IDENTIFIER and present.is_unique and are_whole(present)


def are_whole(present: pd.Series[Any]) -> bool:
    """Whether all values are text of digits only."""
    return bool(present.astype("string").str.strip().str.fullmatch(_DIGITS).all())


def plain_numbers(series: pd.Series[Any]) -> npt.NDArray[Any] | None:
    """The values of a column that NumPy itself holds as floats, integers or truth values; None for any other.

    Such a column needs nothing of pandas, whose overhead of some 0.1 ms a call and column is what reading a table of
    10,000 columns would mostly consist of.
    """
    dtype = series.dtype
    return series.to_numpy() if isinstance(dtype, np.dtype) and dtype.kind in "fiub" else None


def beyond_floats(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where whole numbers are so large that a float64 rounds them. Shape: (n,)."""
    found: npt.NDArray[np.bool_] = (values > LARGEST_WHOLE) | (values < -LARGEST_WHOLE)
    return found


def missing_values(series: pd.Series[Any]) -> npt.NDArray[np.bool_]:
    """Where a column has no value. Shape: (n,)."""
    if (values := plain_numbers(series)) is None:
        return series.isna().to_numpy()
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=np.bool_)


def looks_like_id(name: str) -> bool:
    """Whether a column's name says that it names things: a customer, a device. A key or an index may be a feature."""
    return bool(_ID_NAME.search(name))


def looks_numbered(name: str) -> bool:
    """Whether a column's name says that it numbers or names its rows."""
    return bool(_IDENTIFIER_NAME.search(name))


def numbers(series: pd.Series[Any]) -> Floats:
    """The column as float64, true as 1 and false as 0, with NaN where a value is missing, infinite or not a number."""
    if (values := plain_numbers(series)) is not None:
        return _finite(values)
    if series.dtype.kind == "m":
        return _finite(_without_arrow(series).dt.total_seconds() / 86_400.0)
    if pd.api.types.is_datetime64_any_dtype(series):  # pandas would count nanoseconds; a CSV file's dates are refused
        return np.full(len(series), np.nan)
    if isinstance(series.dtype, pd.CategoricalDtype) or series.dtype == object:
        series = series.astype("string")
    found = _finite(pd.to_numeric(series, errors="coerce").astype("float64"))
    if pd.api.types.is_string_dtype(series) and (unread := np.isnan(found) & ~missing_values(series)).any():
        # one gap or one odd word turns a column of True and False into objects or text
        found[unread] = series[unread].str.strip().str.lower().map(_TRUTH).astype("float64")
    return found


def truth_values(series: pd.Series[Any]) -> Floats | None:
    """1 and 0 for a column of text that holds nothing but words for true and false; None for any other."""
    if plain_numbers(series) is not None or not (series.dtype == object or pd.api.types.is_string_dtype(series)):
        return None
    found = series.astype("string").str.strip().str.lower().map(TRUTH_WORDS).astype("float64")
    return None if (found.isna() & series.notna()).any() else np.asarray(found, dtype=np.float64)


def _finite(values: npt.ArrayLike) -> Floats:
    """A copy, bounded so that squares of what is left cannot overflow."""
    found = np.array(values, dtype=np.float64)
    found[~np.isfinite(found)] = np.nan
    return np.clip(found, -HUGE, HUGE, out=found)


def dates(series: pd.Series[Any], date_format: str | None) -> pd.Series[Any]:
    """The column as naive UTC timestamps, NaT where a value is missing or no date of this format.

    Times of day are on some day, the same for all, and durations begin with it.
    """
    if not pd.api.types.is_datetime64_any_dtype(series):
        text = series.astype("string").str.strip()
        if date_format == DURATION:
            return _SOME_MIDNIGHT + _durations(text)
        form, *others = _TIME_FORMATS if date_format == TIME_OF_DAY else (date_format or "ISO8601",)
        series = pd.to_datetime(text, format=form, errors="coerce", utc=True)
        for form in others:  # 13:45 in one program is 13:45:00 or 1:45 PM in another, and cannot be mistaken
            series = series.fillna(pd.to_datetime(text, format=form, errors="coerce", utc=True))
    series = _without_arrow(series)
    if series.dt.tz is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    return series


def _without_arrow(series: pd.Series[Any]) -> pd.Series[Any]:
    """Arrow's days and durations as NumPy's: pandas has not all operations for them."""
    if not isinstance(series.dtype, pd.ArrowDtype):
        return series
    if series.dtype.kind == "m":
        return series.astype("timedelta64[us]")
    return series.astype("datetime64[us]") if series.dtype.name.startswith("date") else series


def _durations(text: pd.Series[Any]) -> pd.Series[Any]:
    """45:10 is 45 minutes and 10 seconds, 1:02:45 an hour and the rest; NaT where a value is neither."""
    parts = text.str.extract(_DURATION).apply(pd.to_numeric).astype("float64")
    seconds: pd.Series[Any] = 3600.0 * parts[0].fillna(0.0) + 60.0 * parts[1] + parts[2]
    lengths: pd.Series[Any] = pd.to_timedelta(seconds, unit="s")
    return lengths


def hours_of(stamps: pd.Series[Any]) -> Floats:
    """Times of day as hours since midnight, durations as hours; NaN for NaT."""
    days = np.asarray((stamps.dt.normalize() - _SOME_MIDNIGHT).dt.days, dtype=np.float64)
    clock = stamps.dt.hour + stamps.dt.minute / 60.0 + stamps.dt.second / 3600.0
    return np.asarray(24.0 * days + clock, dtype=np.float64)


def dates_also_iso(series: pd.Series[Any], date_format: str | None) -> pd.Series[Any]:
    """As :func:`dates`, and values such as 2024-03-01 too, which no other form can be mistaken for.

    A column of 01.03.2024 comes so from another program, and the same days must not count as missing.
    """
    stamps = dates(series, date_format)
    lost = stamps.isna() & ~missing_values(series)
    if not lost.any() or date_format in (None, "ISO8601", TIME_OF_DAY, DURATION):
        return stamps
    text = series.astype("string").str.strip()
    return stamps.where(~lost, dates(text.where(lost & text.str.match(_ISO_DAY)), "ISO8601"))


def days_since_epoch(stamps: pd.Series[Any]) -> Floats:
    """Naive timestamps as days since 1970, NaN for NaT."""
    # An origin in nanoseconds would make pandas hold the dates so too, and those end in 2262: 9999-12-31 is common.
    # NumPy divides: pandas 2 would count a day in nanoseconds.
    since = (stamps - pd.Timestamp(0).as_unit("s")).to_numpy()
    return np.asarray(since / np.timedelta64(1, "D"), dtype=np.float64)


def date_format(series: pd.Series[Any]) -> str | None:
    """The known format that reads most values, nearly all; None for a column of timestamps or of no dates."""
    present = series.dropna().iloc[:_SAMPLE]
    if len(present) == 0 or pd.api.types.is_datetime64_any_dtype(series):
        return None
    if dates(present, "ISO8601").notna().mean() >= _MOSTLY:
        return "ISO8601"
    # to try all forms on each column of categories would take most of the time of reading a table
    text = present.astype("string").str.strip()
    if text.str.match(_ANY_TIME).mean() >= _MOSTLY:
        return next((form for form in (TIME_OF_DAY, DURATION) if _share_read(present, form) >= _MOSTLY), None)
    # ISO dates beside others, as sheets have them of which some days stayed text: dates_also_iso reads both
    is_iso = text.str.match(_ISO_DAY)
    if (is_iso | text.str.match(_ANY_DAY)).mean() < _MOSTLY:
        return None
    others = present[~is_iso]
    few = others.iloc[:: max(1, len(others) // _GLANCE)]  # all forms on all values would take more than a second
    read = {form: _share_read(others, form) for form in _DATE_FORMATS if _share_read(few, form)}
    best = max(read, key=lambda form: read[form], default=None)
    return best if best and dates_also_iso(present, best).notna().mean() >= _MOSTLY else None


def about_dates(series: pd.Series[Any], name: str, date_format: str | None) -> tuple[str, ...]:
    """Notes on how a column of dates was read, where it may be meant otherwise."""
    present = series.dropna().iloc[:_SAMPLE]
    if date_format == DURATION:
        read = f"{present.iloc[0]} and the others are read as durations: minutes and seconds, or hours, minutes and"
        return (f"column {name!r}: {read} seconds; --category reads them as names",)
    if date_format is None or not _EITHER_ORDER.match(date_format):  # with dots the day comes first
        return ()
    is_iso = present.astype("string").str.strip().str.match(_ISO_DAY)
    others = present[~is_iso]
    like = f"some dates are like {others.iloc[0]} and the others like 2024-12-31"
    mixed = f"column {name!r}: {like}; a spreadsheet that read only some of them may have swapped day and month there"
    return ((mixed,) if is_iso.any() else ()) + _about_order(others, name, date_format)


def _about_order(present: pd.Series[Any], name: str, date_format: str) -> tuple[str, ...]:
    """A note where day and month could change places in every date, as in 3/4/2024."""
    month_first = f"%m{date_format[2]}%d{date_format[5:]}"
    if date_format.startswith("%m") or _share_read(present, month_first) < _share_read(present, date_format):
        return ()
    read = f"{present.iloc[0]} and the other dates are read day first"
    return (f"column {name!r}: {read}; where the month is first, write 2024-12-31",)


def about_swapped(series: pd.Series[Any], stamps: pd.Series[Any], name: str, date_format: str | None) -> list[str]:
    """A note where what is no date of this form is one with day and month in the other order: 12/31/2024.

    `stamps` is how the column was read. Then 03/04/2024 was read, and probably wrongly.
    """
    lost = series[stamps.isna().to_numpy() & ~missing_values(series)]
    if len(lost) == 0 or date_format is None or not _EITHER_ORDER.match(date_format):
        return []
    swapped = f"%{date_format[4]}{date_format[2]}%{date_format[1]}{date_format[5:]}"
    if _share_read(lost, swapped) < _MOSTLY:
        return []
    order = "month" if swapped.startswith("%m") else "day"
    read = f"the {order} comes first in these dates, so the others may be read with day and month swapped"
    return [f"column {name!r}: {read}; write 2024-12-31"]


def _share_read(present: pd.Series[Any], date_format: str) -> float:
    return float(dates(present, date_format).notna().mean()) if len(present) else 0.0


def category_names(series: pd.Series[Any]) -> pd.Series[Any]:
    """Values as text, the same for 3, 3.0 and "3", so that a category keeps its name from file to file."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        names = [_category_name(value) for value in series.cat.categories]
        lookup = pd.Series([*names, None], dtype=object)  # a missing value has the code -1: the last entry
        return pd.Series(lookup.to_numpy()[series.cat.codes], index=series.index, dtype="str")
    present = series.notna()  # pandas 2 writes a missing value as "nan"
    if pd.api.types.is_string_dtype(series) and series.dtype != object:
        return series.astype("str").str.strip().where(present)
    return series.map(_category_name, na_action="ignore").astype("str").where(present)


def respelled(names: pd.Series[Any], categories: Sequence[str]) -> pd.Series[Any]:
    """Categories read as text, as :func:`category_names` gives the number or truth value: 3.0 is 3, TRUE is True.

    Where all `categories` are truth values, any other spelling of them, too: one gap makes True and False into 1.0
    and 0.0 in one program, and leaves them as they are in another.
    """
    whole = names.str.replace(r"^(-?\d+)\.0+$", r"\1", regex=True)
    if len(width := {len(category) for category in categories}) == 1 and all(map(str.isdecimal, categories)):
        whole = whole.where(~whole.str.fullmatch(_DIGITS), whole.str.zfill(*width))  # a workbook makes 1234 of 01234
    truths = [TRUTH_WORDS.get(category.lower()) for category in categories]
    if None in truths:
        return whole.str.replace(r"(?i)^(true|false)$", lambda found: found[0].capitalize(), regex=True)
    own = dict(zip(reversed(truths), reversed(categories), strict=True))  # the commonest spelling, which is the first
    return whole.str.lower().map(TRUTH_WORDS).map(own)


def _category_name(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value).strip()


def refuse_duplicates(names: list[str], where: str) -> None:
    """Two columns of one name cannot be told apart next week."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{where}: column names occur twice: {sorted(twice)[:5]}; rename or remove one of each")


def _kind_of_objects(present: pd.Series[Any]) -> ColumnKind:
    first = present.iloc[0]
    if isinstance(first, datetime.date | datetime.datetime):
        return "date"
    if isinstance(first, decimal.Decimal):
        return "numeric"
    if isinstance(first, list | tuple | set | dict | bytes | np.ndarray):
        return "unsupported"
    return _kind_of_text(present.astype("string").str.strip())


def _kind_of_text(text: pd.Series[Any]) -> ColumnKind:
    if np.isfinite(pd.to_numeric(text, errors="coerce").astype("float64")).mean() >= _MOSTLY:
        return "numeric"
    if date_format(text) is not None:
        return "date"
    words = (text.str.count(r"\s+") + 1).mean()
    if text.str.len().mean() >= _LONG_TEXT and words >= _MANY_WORDS:
        return "text"
    if len(text) >= _FEWEST_FOR_IDENTIFIER and text.nunique() >= _DISTINCT * len(text):
        return "text" if words >= _SOME_WORDS else "identifier"
    return "categorical"


def missing_column(wanted: str, names: Sequence[str], where: str) -> InputError:
    """The error with the nearest names."""
    shown = ", ".join(list(names)[:12]) + (", …" if len(names) > 12 else "")
    return InputError(f"{where} has no column {wanted!r}{did_you_mean(wanted, names)} (it has: {shown})")


def did_you_mean(wanted: str, names: Sequence[str]) -> str:
    """The nearest names, for the end of an error; empty where none is near."""
    if len(several := [name.strip() for name in wanted.split(",")]) > 1 and set(several) <= set(names):
        return f"; these are {len(several)} columns, and an option takes one at a time (--drop A --drop B)"
    plain = unicodedata.normalize("NFC", wanted)
    if same := [name for name in names if unicodedata.normalize("NFC", name) == plain]:  # they look the same on paper
        return f"; {same[0]!r} has the same letters in another Unicode form (NFC, NFD): rename one of them"
    lowered = {name.lower(): name for name in names}
    near = [lowered[name] for name in difflib.get_close_matches(wanted.lower(), lowered, n=3, cutoff=0.6)]
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""

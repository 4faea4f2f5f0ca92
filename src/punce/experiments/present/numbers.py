"""How numbers are written: two decimals, a real minus sign, a dash for what is not there."""

from __future__ import annotations

from punce.errors import number_of
from punce.experiments.present.statistics import Summary

MISSING = "–"
FAILED = "failed"
BEHIND = "†"
SOME_FAILED = "‡"


def plain(value: float | None, decimals: int = 2) -> str:
    """94.7 -> 94.70."""
    return MISSING if value is None else _minus(f"{value:.{decimals}f}")


def signed(value: float | None, decimals: int = 2) -> str:
    """0.4 -> +0.40; a difference that rounds to zero has no sign."""
    if value is None:
        return MISSING
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0 else _minus(text)


def with_deviation(summary: Summary | None) -> str:
    """94.70 ± 0.19 (standard deviation over seeds); the mean alone with one seed."""
    if summary is None:
        return MISSING
    return plain(summary.mean) + ("" if summary.deviation is None else f" ± {summary.deviation:.2f}")


def interval(low: float | None, high: float | None, *, sign: bool = False) -> str:
    """94.23 to 95.17."""
    if low is None or high is None:
        return MISSING
    write = signed if sign else plain
    return f"{write(low)} to {write(high)}"


def with_interval(summary: Summary, *, sign: bool = False) -> str:
    """+0.46 [+0.12 to +0.80], 5 seeds: a mean and its 95 % interval, if there is one."""
    mean = signed(summary.mean) if sign else plain(summary.mean)
    spread = "" if summary.low is None else f" [{interval(summary.low, summary.high, sign=sign)}]"
    return f"{mean}{spread}, {seeds(summary.n)}"


def seeds(number: int) -> str:
    """1 seed, 3 seeds."""
    return number_of(number, "seed", "seeds")


def _minus(text: str) -> str:
    return text.replace("-", "−")

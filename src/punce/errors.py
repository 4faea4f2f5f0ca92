"""The errors a person can meet. Each message says what was wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TypeGuard


class PunceError(Exception):
    """Base of every error punce raises on purpose; the command line prints it as one line."""


class InputError(PunceError, ValueError):
    """The data, labels or arguments a person gave cannot be used as they are."""


class WriteError(PunceError):
    """A file could not be written (full disk, no permission); the previous file is intact."""


def first_line(error: BaseException) -> str:
    """What an error of another library says, in one line; its kind if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def number_of(n: int, one: str, many: str) -> str:
    """A number of things in a message. Both forms are written out, because verbs change too: "row is", "rows are"."""
    return f"{n:,} {one if n == 1 else many}"


def first_of(names: Sequence[str], shown: int = 5) -> str:
    """The first few of a list in words, and how many more there are."""
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")


def is_number(value: object) -> TypeGuard[float]:
    """Whether an argument is a real number, NumPy's among them. (A type checker holds float to be no Real.)"""
    return isinstance(value, Real) and not isinstance(value, bool)

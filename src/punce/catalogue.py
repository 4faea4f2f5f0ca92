"""One way to get an entry of a catalogue (losses, risks, encoders, views): by its name and options, or ready-made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, TypeVar, cast

from punce.errors import InputError

Entry = TypeVar("Entry")


def build_entry(
    word: str,
    catalogue: Mapping[str, Callable[..., Entry]],
    kind: Any,
    entry: str | Entry,
    options: Mapping[str, Any],
    prior: float | None = None,
) -> Entry:
    """`entry` itself if it is a `kind`, else the entry of that name with these options.

    `prior` is for those that take one and is ignored by the others, so that a caller need not know which do.
    `word` is what the errors call it.
    """
    if isinstance(entry, kind):
        if options:
            raise InputError(f"{word}: the options {sorted(options)} go with a name, not with a ready {entry!r}")
        return cast(Entry, entry)
    if not isinstance(entry, str) or entry not in catalogue:
        raise InputError(f"{word} must be one of {sorted(catalogue)} or a ready {kind.__name__}, got {entry!r}")
    parameters = signature(catalogue[entry]).parameters
    if unknown := sorted(set(options) - set(parameters)):
        raise InputError(f"{word} {entry!r} has no option {unknown}; it takes {sorted(parameters)}")
    if "prior" not in parameters:  # InfoNCE, SCL, PN, encoders, views
        return catalogue[entry](**options)
    if prior is None and parameters["prior"].default is not None:  # PvU's may be None
        raise InputError(f"{word} {entry!r} needs prior=, the share of positives among the unlabelled rows")
    return catalogue[entry](**{"prior": prior, **options})

"""What a fit ran, in words, from ``ran_`` of the classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from punce.errors import number_of

_LEAST_SHOWN = 0.005  # weight of a member below which a line about what ran leaves it out
KNOWN_UNUSED = "known_unused"
"""Key of ``ran_`` for the rows of known class that what ran does not learn from; "known" is for those it does."""


def ran_in_words(ran: Mapping[str, Any]) -> str:
    """What ran, in one line, from ``ran_``."""
    weights = sorted(ran.get("members", {}).items(), key=lambda pair: -pair[1])
    members = "; ".join(f"{name} {weight:.2f}" for name, weight in weights if weight >= _LEAST_SHOWN)
    encoder = f", encoder {ran['encoder']}" if "encoder" in ran else ""
    texts = f", texts read by {ran['texts']}" if "texts" in ran else ""
    known = known_in_words(ran)
    return f"{ran['way']}{encoder}{texts}" + (f" ({members})" if members else "") + (f", with {known}" if known else "")


def known_in_words(ran: Mapping[str, Any], key: str = "known") -> str:
    """Rows of known class that were learned from: "80 labelled negatives and 20 judged rows", or nothing."""
    return " and ".join(number_of(n, name.removesuffix("s"), name) for name, n in ran.get(key, {}).items())

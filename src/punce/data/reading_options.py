"""Which options of reading apply to which form of input; one without effect is refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from punce.errors import InputError

_TABLE = ("id", "text", "drop", "keep", "category", "decimal")
READING: dict[str, tuple[str, ...]] = {
    "a CSV file": (*_TABLE, "sep", "encoding", "header"),
    "a zip archive": (*_TABLE, "sep", "encoding", "header", "table"),
    "a JSON file": (*_TABLE, "encoding"),
    "an Excel file": (*_TABLE, "header", "table"),
    "an SQLite file": (*_TABLE, "table"),
    "a Parquet file": _TABLE,
    "an Arrow file": _TABLE,
    "a .npz file": ("id", "labels"),
    "a .npy file": ("labels",),
    "a folder of images": ("labels", "image_size", "skip_unreadable"),
}
"""Which options of reading apply to which form of input, beside label, positive and negative."""
_ALWAYS = ("label", "positive", "negative")


def check_reading(form: str, asked: Mapping[str, Any], offered: Collection[str] | None = None) -> None:
    """Refuse options of reading that would have no effect on this form of input.

    `offered` are those that the command has, if it has not all: it must not be advised to take others.
    """
    some = dict.fromkeys(name for names in READING.values() for name in names)
    idle = [name for name in some if was_asked(asked.get(name)) and name not in READING[form]]
    if idle:
        have = "has" if len(idle) == 1 else "have"
        every = (*_ALWAYS, *({"kind"} & asked.keys()), *READING[form])  # punce prior has no --kind
        apply = [name for name in every if offered is None or name in offered]
        others = f", to which {_flags(apply)} apply" if apply else ""
        raise InputError(f"{_flags(idle)} {have} no effect on {form}{others}")
    if asked.get("text") is not None and asked.get("kind") in ("table", "embedding"):
        raise InputError(f"--text has no effect with --kind {asked['kind']}; leave out one of the two")
    if was_asked(asked.get("category")) and asked.get("kind") in ("text", "embedding"):
        raise InputError(f"--category has no effect with --kind {asked['kind']}; leave out one of the two")
    for other in ("drop", "text"):
        if was_asked(asked.get("keep")) and was_asked(asked.get(other)):
            raise InputError(
                f"--keep names the only columns to learn from, so --{other} has no effect; give one of them"
            )


def applying_reading(form: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a run's options of reading that mean something for a new file of this form."""
    some = {name for names in READING.values() for name in names}
    return {name: value for name, value in known.items() if name in READING[form] or name not in some}


def was_asked(value: Any) -> bool:
    """Whether an option of reading says something, rather than being left to find out."""
    return value is not None and value is not False and value != "auto" and value not in ((), [])


def _flags(names: list[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)

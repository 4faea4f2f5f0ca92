"""The numbers of docs/when-to-use.md on when puNCE's pull helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rows import rows_of

_DATA = {"mnist": "MNIST, 10,000 rows", "frozen": "CIFAR-10 frozen, 20,000 rows"}
_LOSSES = ("infonce", "scl", "paper")
_WORDS = {"views": "{} views", "width": "width {:g}", "labels": "{:,} labels", "share": "{:.0%} positives"}


def when_punce_page(result: Mapping[str, Any]) -> str:
    """One table a set: the base first, then what is changed from it."""
    parts = []
    for name, base in result["bases"].items():
        own = [setting for setting in result["settings"] if setting["data"] == name]
        rows = [[_changed(base, setting), *_numbers(setting)] for setting in own]
        header = [_DATA[name], "InfoNCE", "SCL", "puNCE", "puNCE ahead of the better of the two, points"]
        parts.append(rows_of(header, rows))
    parts.append(f"AUC of a self-consistent head on test rows, per cent, {_seeds(result['settings'])}.")
    return "\n\n".join(parts)


def _seeds(settings: Sequence[Mapping[str, Any]]) -> str:
    counts = sorted({len(setting["lead"]) for setting in settings})
    if counts == [1]:
        return "one seed"
    words = " to ".join(dict.fromkeys(str(count) for count in (counts[0], counts[-1])))
    return f"mean over {words} seeds; the last column has each seed's lead"


def _changed(base: Mapping[str, Any], setting: Mapping[str, Any]) -> str:
    words = {name: word.format(setting[name]) for name, word in _WORDS.items()}
    changes = [word for name, word in words.items() if setting[name] != base[name]]
    return ", ".join(changes) if changes else "base: " + ", ".join(words.values())


def _numbers(setting: Mapping[str, Any]) -> list[str]:
    aucs = [f"{setting['auc'][loss]:.1f}" for loss in _LOSSES]
    return [*aucs, ", ".join(f"{lead:+.1f}" for lead in setting["lead"])]

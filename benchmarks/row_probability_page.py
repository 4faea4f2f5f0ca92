"""The numbers of docs/training.md: where the row probabilities of posterior puNCE may come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rows import rows_of

from punce.errors import number_of

_DATA = {"mnist": "MNIST, 10,000 rows", "frozen": "CIFAR-10 frozen, 20,000 rows"}
_LOSSES = {"infonce": "InfoNCE", "scl": "SCL", "paper": "puNCE as printed"}


def row_probabilities_page(result: Mapping[str, Any]) -> str:
    """One column per set, number of labels and setting; one row per way to weigh."""
    cells = {(_way(choice), _place(choice)): choice for choice in result["choices"]}
    places, ways = (list(dict.fromkeys(key[i] for key in cells)) for i in (1, 0))
    table = [[way, *(_shown(cells.get((way, place))) for place in places)] for way in ways]
    return rows_of(["pretraining loss", *places], table) + "\n\n" + _seeds(result["choices"])


def _way(choice: Mapping[str, Any]) -> str:
    if choice["loss"] != "posterior":
        return _LOSSES[choice["loss"]]
    if choice["own_view"] is not None:
        return f"class means, own view {choice['own_view']}"
    if choice["start"]:
        return f"class means, after {number_of(choice['start'], 'epoch', 'epochs')} of InfoNCE"
    names = {"means": "class means (the default)", "online": "online head", "true": "true labels (oracle)"}
    return f"row probabilities: {names.get(choice['source'], choice['source'])}"


def _place(choice: Mapping[str, Any]) -> str:
    return f"{_DATA[choice['data']]}, {choice['n_labelled']:,} labels, {choice['setting'].upper()}"


def _shown(choice: Mapping[str, Any] | None) -> str:
    return "" if choice is None else f"{choice['accuracy']:.1f} ({choice['oracle_linear']:.1f})"


def _seeds(choices: Sequence[Mapping[str, Any]]) -> str:
    counts = sorted({choice["seeds"] for choice in choices})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return (
        f"Test accuracy in per cent, mean of {seeds} seeds; in brackets a linear layer on all true labels, on the same "
        "features."
    )

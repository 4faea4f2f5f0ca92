"""The tables of docs/reliability.md, from results/faults.json (tests/faults) and results/fuzz.json (tests/attacks)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rows import rows_of

_GOAL = 200  # kills
_COUNTS = {
    "kills": "kill -9",
    "terminated": "SIGTERM",
    "interrupted": "Ctrl-C",
    "full_disks": "full disk",
    "file_limits": "file limit",
    "finished": "runs finished afterwards",
}


def kills_page(found: dict[str, Any]) -> str:
    """What was done to each command, and how often a promise was broken."""
    scenes, total = found["scenes"], found["total"]
    rows = [[f"`{name}`", *_counts(one), str(len(one["broken"]))] for name, one in scenes.items()]
    rows.append(["all", *_counts(total), str(total["broken"])])
    fewest = min(scenes, key=lambda name: scenes[name]["kills"])
    table = rows_of(["command", *_COUNTS.values(), "broken promises"], rows)
    return (
        f"{table}\n\n{total['kills']:,} kills in all, where the goal is {_GOAL}; the command with the fewest is "
        f"`{fewest}`, with {scenes[fewest]['kills']}."
    )


def _counts(one: dict[str, Any]) -> list[str]:
    return [f"{one.get(key, 0):,}" for key in _COUNTS]


def fuzz_page(found: dict[str, Any]) -> str:
    """The inputs by the engine that made them; how slow and how large the reading became; earlier runs."""
    targets = found["targets"]
    engines = sorted({engine for tallies in targets.values() for engine in tallies})
    made = {engine: [tallies[engine] for tallies in targets.values() if engine in tallies] for engine in engines}
    rows = [_line(engine, len(tallies), tallies) for engine, tallies in made.items()]
    rows.append(_line("all", len(targets), [tally for tallies in made.values() for tally in tallies]))
    header = ["inputs by", "forms", "inputs", "read", "refused", "defects", "slowest", "memory grew by"]
    parts = [rows_of(header, rows), _by_form(targets)]
    if "earlier" in found:
        before = found["earlier"]["total"]
        parts.append(
            f"An earlier run of {before['inputs']:,} inputs to {before['forms']} forms had {before['defects']} inputs "
            "that showed a defect. The defects were fixed, and its counts are not in the table."
        )
    return "\n\n".join(parts)


def _line(name: str, forms: int, tallies: Sequence[dict[str, Any]]) -> list[str]:
    """Sums over the tallies, but the slowest input and the largest growth of a process."""
    inputs, read, refused = (sum(tally[key] for tally in tallies) for key in ("inputs", "read", "refused"))
    defects = sum(sum(tally["defects"].values()) for tally in tallies)
    slowest, grown = (max(tally[key] for tally in tallies) for key in ("slowest_seconds", "grown_mb"))
    counts = [f"{number:,}" for number in (forms, inputs, read, refused, defects)]
    return [name, *counts, f"{slowest:.1f} s", f"{grown:,} MB"]


def _by_form(targets: dict[str, dict[str, Any]]) -> str:
    """How unevenly the inputs are spread over the forms."""
    inputs = {name: sum(tally["inputs"] for tally in tallies.values()) for name, tallies in targets.items()}
    first, second, *_ = sorted(inputs, key=inputs.__getitem__, reverse=True)
    fewest = min(inputs, key=inputs.__getitem__)
    return (
        f"The forms with the most inputs are `{first}` ({inputs[first]:,}) and `{second}` ({inputs[second]:,}), the "
        f"one with the fewest is `{fewest}` ({inputs[fewest]:,})."
    )

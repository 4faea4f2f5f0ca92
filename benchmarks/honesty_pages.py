"""The tables of docs/numbers.md (how honest the reported numbers are) and of docs/labels.md (biased labels)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import rows_of

GROUPS = {
    "normal and gumbel scores, prior given": "simulated scores, prior given",
    "normal and gumbel scores, prior estimated": "simulated scores, prior estimated",
    "tables": "six UCI tables, prior estimated",
    "useless scores, prior given": "scores without signal, prior given",
}
FIVE = ("accuracy", "precision", "recall", "f1", "auc")
LABELLED = (30, 100, 500)


def honesty_page(found: Mapping[str, Any]) -> str:
    """Reported less true, coverage and how often a number is stated, for each group and number of labels."""
    rows = [
        [f"{words}, {n} labelled", *(_entry(found[group].get(f"{n} labelled, {metric}")) for metric in FIVE)]
        for group, words in GROUPS.items()
        for n in LABELLED
        if group in found
    ]
    useless = found["useless scores, prior estimated: share of numbers stated"]
    stated = ", ".join(f"{name} in {share:.0%}" for name, share in useless.items() if share) or "none"
    return "\n".join(
        [
            f"{found['runs']} runs, `python benchmarks/honesty.py`, `benchmarks/results/honesty.json`.",
            "",
            rows_of(["", "accuracy", "precision", "recall", "F1", "AUC"], rows),
            "",
            f"Numbers stated for scores without any signal, where the prior is estimated: {stated}.",
        ]
    )


def _entry(figures: Mapping[str, float] | None) -> str:
    if figures is None or figures["stated"] == 0:
        return "–"
    return f"{figures['bias, points']:+.1f} / {100 * figures['coverage']:.0f} / {100 * figures['stated']:.0f}"


def biased_page(found: Mapping[str, Any]) -> str:
    """False alarms, what is noticed, and whether the widened intervals hold the truth."""
    quick = found["quick"]
    seeds = quick["seeds"]
    alarms, noticed = quick["false_alarms"], quick["strong_noticed"]
    rows = [
        ["false alarms with random labels", *_both(alarms), "at most 5 %"],
        ["strong bias (accuracy said over 3 points too high) noticed, 500 labels", *_both(noticed["500"]), "90 %"],
        ["the same, 100 labels", *_both(noticed["100"]), "60 %"],
        [
            "noticed: the widened interval holds the true accuracy",
            _share(quick["noticed"]["accuracy_held"]),
            "",
            "85 %",
        ],
    ]
    by = {
        word: ", ".join(f"{name} {_share(own)}" for name, own in quick[f"strong_noticed_by_{word}"].items())
        for word in ("mechanism", "set")
    }
    return "\n".join(
        [
            f"{quick['runs']} runs, seeds {seeds[0]} to {seeds[-1]}; `python benchmarks/biased.py`, "
            "`benchmarks/results/biased.json`.",
            "",
            rows_of(["", "all sets", "sets not designed on", "goal"], rows),
            "",
            f"- Strong bias noticed, by mechanism: {by['mechanism']}. By set: {by['set']}.",
            f"- The widened intervals of accuracy are {quick['noticed']['accuracy_width']:.2f} wide on average.",
        ]
    )


def _both(figures: Mapping[str, Any]) -> tuple[str, str]:
    return _share(figures["all"]), _share(figures["not designed on"])


def _share(figures: list[float]) -> str:
    return f"{100 * figures[0]:.0f} % of {figures[1]:.0f}" if figures[1] else "–"

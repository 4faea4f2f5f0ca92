"""The tables of docs/numbers.md (how honest the reported numbers are) and of docs/labels.md (biased labels)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import rows_of

GROUPS = {
    "normal and gumbel scores, prior given": "simulated scores, prior given",
    "normal 0.97 scores, prior estimated": "normal scores of AUC 0.97, prior estimated",
    "normal 0.8 scores, prior estimated": "normal scores of AUC 0.8, prior estimated",
    "gumbel 0.9 scores, prior estimated": "skewed scores of AUC 0.9, prior estimated",
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
    rows += [
        [
            f"false alarms with random labels on {own['tables']} other open tables, {n} labels{who}",
            "",
            _share(alarms),
            "at most 5 %",
        ]
        for model, who in (("quick", ""), ("default", ", scores of the default itself, one seed"))
        for own in (found["open"][model],)
        for n, alarms in sorted(own["alarms"].items(), key=lambda pair: int(pair[0]))
    ]
    opened = found["open"]["quick"]
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
            f"- False alarms on the other open tables (seeds {opened['seeds'][0]} to {opened['seeds'][-1]}): "
            + ", ".join(f"{name} {_share(own)}" for name, own in opened["by_set"].items())
            + ".",
            f"- Strong bias noticed, by mechanism: {by['mechanism']}. By set: {by['set']}.",
            f"- The widened intervals of accuracy are {quick['noticed']['accuracy_width']:.2f} wide on average.",
            "",
            _limits(found["by_limit"]),
        ]
    )


def _limits(found: list[Mapping[str, Any]]) -> str:
    """What another limit of the evidence would bring, with 100 and 500 labels."""

    def both(figures: Mapping[str, Any]) -> str:
        return ", ".join(f"{100 * figures[n][0]:.0f} %" for n in ("100", "500"))

    heads = [
        "evidence from which it fires; each figure for 100, 500 labels",
        "strong bias noticed",
        "false alarms",
        "false alarms on the other open tables",
    ]
    rows = [[f"{own['limit']:g}", *(both(own[name]) for name in ("noticed", "alarms", "open_alarms"))] for own in found]
    return rows_of(heads, rows)


SETS = {
    "all": "all",
    "cifar": "CIFAR-10, vehicles, frozen features",
    "cifar:classes": "CIFAR-10, classes drawn",
    "digits": "digits, pixels",
    "mnist": "MNIST, odd, pixels",
    "mnist:classes": "MNIST, classes drawn",
    "sms_spam": "SMS spam, static vectors",
    "sst2_sentence": "SST-2, static vectors",
}


def biased_features_page(found: Mapping[str, Any]) -> str:
    """The same for rows without columns, by set, and what labelling="biased" does to the true accuracy."""
    rows = [
        [
            words,
            _share(found[name]["false_alarms"]),
            *(_share(found[name]["strong_noticed"][n]) for n in ("500", "100")),
            _share(found[name]["noticed_held"]),
            *(_change(found[name]["true_accuracy"][kind]) for kind in ("strong", "random")),
        ]
        for name, words in SETS.items()
    ]
    head = [
        "",
        "false alarms",
        "strong bias noticed, 500 labels",
        "100 labels",
        "noticed: interval holds",
        '`labelling="biased"`, strong bias: true accuracy',
        "random labels",
    ]
    seeds = found["seeds"]
    return "\n".join(
        [
            f"{found['runs']} runs, seeds {seeds[0]} to {seeds[-1]}; `python benchmarks/biased_features.py`, "
            "`benchmarks/results/biased_features.json`.",
            "",
            rows_of(head, rows),
        ]
    )


def _change(figures: list[float] | None) -> str:
    return f"{100 * figures[0]:.1f} → {100 * figures[1]:.1f}" if figures else "–"


def _both(figures: Mapping[str, Any]) -> tuple[str, str]:
    return _share(figures["all"]), _share(figures["not designed on"])


def _share(figures: list[float]) -> str:
    return f"{100 * figures[0]:.0f} % of {figures[1]:.0f}" if figures[1] else "–"

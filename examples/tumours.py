"""The files of the tutorial (docs/tutorial.md), from data that scikit-learn carries.

    python examples/tumours.py rows FOLDER            # tumours.csv, next_month.csv
    python examples/tumours.py verdicts REVIEW.csv    # plays the doctor: fills in the column verdict from the truth

569 tumours were measured. The clinic confirmed 60 malignant ones, large ones first, and looked at no other. The true
diagnoses are known here, which is why this file can play the doctor; punce never sees them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

N_CONFIRMED = 60
N_NEXT_MONTH = 100


def tumours() -> tuple[pd.DataFrame, pd.Series]:
    """The measurements, with a name for every patient, and whether each tumour is malignant."""
    rows, benign = load_breast_cancer(return_X_y=True, as_frame=True)
    rows.columns = [name.replace(" ", "_") for name in rows.columns]
    rows.insert(0, "patient", [f"patient-{number:03d}" for number in range(len(rows))])
    return rows, (benign == 0).set_axis(rows["patient"])


def write_rows(folder: Path) -> None:
    """tumours.csv with the confirmed ones marked, and the last hundred patients as next_month.csv."""
    rows, malignant = tumours()
    rows, later = rows.iloc[:-N_NEXT_MONTH], rows.iloc[-N_NEXT_MONTH:]
    is_malignant = malignant[rows["patient"]].to_numpy()
    # A tumour's chance of being confirmed grows with its size: the labels are no random sample.
    chance = np.where(is_malignant, np.exp(0.5 * rows["mean_radius"]), 0.0)
    confirmed = np.random.default_rng(0).choice(len(rows), N_CONFIRMED, replace=False, p=chance / chance.sum())
    rows = rows.assign(confirmed=np.isin(np.arange(len(rows)), confirmed).astype(int))
    rows.to_csv(folder / "tumours.csv", index=False)
    later.to_csv(folder / "next_month.csv", index=False)


def write_verdicts(path: Path) -> None:
    """What the doctor finds, row by row."""
    review = pd.read_csv(path)
    malignant = tumours()[1]
    review["verdict"] = ["yes" if malignant[patient] else "no" for patient in review["id"]]
    review.to_csv(path, index=False)


if __name__ == "__main__":
    {"rows": write_rows, "verdicts": write_verdicts}[sys.argv[1]](Path(sys.argv[2]))

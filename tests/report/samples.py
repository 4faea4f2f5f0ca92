"""Report contents to test with: a full one of any size, and one in which every text is hostile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from punce.report import ReportContent
from punce.report.content import (
    ColumnImportance,
    DataFacts,
    Importances,
    Interval,
    OtherEstimate,
    PriorFacts,
    Quality,
    RowReason,
    Threshold,
)
from punce.report.pieces import prior_sensitivity, review_curve, score_histogram
from punce.report.rows import row_map, top_rows

PRIOR = 0.25
HOSTILE = (
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=1</script>",
    '"onerror="window.hacked=1" x="',
    "'><img src=x onerror=window.hacked=1>",
    "<!--<script>window.hacked=1//",
    "]]></style><svg onload=window.hacked=1>",
    "javascript:window.hacked=1",
    "line\u2028separator\u2029end",
    "{{ 7 * 7 }}{% raw %}",
    "right\u202eto left",
    "nul\x00bell\x07surrogate\ud800end",
    "loooong" * 700,
)


def scores(n_p: int = 80, n_u: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Held-out probabilities of P and of U with share PRIOR of positives."""
    rng = np.random.default_rng(seed)
    is_positive = rng.random(n_u) < PRIOR
    p = rng.normal(1.5, 1, n_p)
    u = np.where(is_positive, rng.normal(1.5, 1, n_u), rng.normal(-1.5, 1, n_u))
    return 1 / (1 + np.exp(-2 * p)), 1 / (1 + np.exp(-2 * u))


def table(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    columns = {"amount": rng.gamma(2, 40, n).round(2), "country": rng.choice(["DE", "FR", "日本"], n)}
    return pd.DataFrame({**columns, "visits": rng.integers(0, 90, n)})


def content(
    n_points: int = 300, n_top: int = 40, *, images: bool = False, texts: bool = False, size: int = 28
) -> ReportContent:
    p, u = scores()
    rng = np.random.default_rng(2)
    group = rng.integers(0, 5, n_points)
    xy = rng.normal(size=(n_points, 2)) + 6 * np.stack([np.cos(group), np.sin(group)], axis=1)
    probability = np.clip(rng.beta(0.6, 0.9, n_points), 0, 1)
    pictures = rng.integers(0, 256, (max(n_points, n_top), size, size, 3), dtype=np.uint8) if images else None
    words = [f"message number {i} about nothing in particular" for i in range(n_points)] if texts else None
    rows = None if images or texts else table(n_points)
    names = [f"row {i}" for i in range(n_points)]
    return ReportContent(
        title="customers.csv",
        data=DataFacts("customers.csv", "table", 1417, 80, 1337, findings=(("warning", "column id is a row number"),)),
        prior=PriorFacts(0.2334, 0.2094, 0.2618, "bbe", others=(OtherEstimate("dedpul", 0.24, 0.21, 0.27),)),
        quality=Quality(
            {"recall": Interval(0.87, 0.8, 0.92), "precision": Interval(0.91, 0.85, 0.97), "auc": Interval(0.96)},
            {"recall": 0.85, "precision": 0.9},
            n_positive=80,
            n_unlabelled=600,
        ),
        threshold=Threshold(0.5, "best estimated accuracy", 300),
        histogram=score_histogram(p, u),
        review=review_curve(p, u, PRIOR, n_rows=1337),
        map=row_map(
            xy,
            probability,
            (rng.random(n_points) < 0.1).astype(int),
            names,
            method="t-SNE",
            table=rows,
            texts=words,
            images=None if pictures is None else pictures[:n_points],
        ),
        top=top_rows(
            probability,
            names,
            limit=n_top,
            table=rows,
            texts=words,
            images=pictures,
            reasons=None if images else [(RowReason("amount = 12", 1.5), RowReason("visits = 3", -0.25))] * n_points,
        ),
        importances=Importances(
            (ColumnImportance("amount", 0.12, 0.08, 0.16), ColumnImportance("country", 0.001, -0.002, 0.004)), of=3
        ),
        sensitivity=prior_sensitivity(p, u, PRIOR, 0.5),
        training={"probe": tuple({"epoch": float(e), "risk": 1.0 / e} for e in range(1, 21))},
        comparison={"puNCE": {"accuracy": 0.93, "seconds": 12}, "SCL": {"accuracy": 0.9, "seconds": 11}},
        configuration={"loss": "punce", "encoder": {"width": 256}},
        warnings=("the two priors differ by 0.08",),
        created="2026-11-15",
    )


def hostile(bad: tuple[str, ...] = HOSTILE) -> ReportContent:
    """Every text of a report taken from `bad`, in every place a user's text can reach."""
    n = 2 * len(bad)
    pick = [bad[i % len(bad)] for i in range(n)]
    columns = [f"{text}{i}" for i, text in enumerate(bad[:6])]
    frame = pd.DataFrame([[text] * len(columns) for text in pick], columns=columns, dtype=object)
    base = content(20, 5)
    rng = np.random.default_rng(3)
    xy, probability, labels = rng.normal(size=(n, 2)), rng.random(n), rng.integers(0, 2, n)
    assert base.data is not None
    assert base.prior is not None
    assert base.quality is not None
    assert base.threshold is not None
    assert base.histogram is not None
    every = " ".join(bad)
    return replace(
        base,
        title=every,
        data=replace(base.data, name=every, kind=bad[0], notes=bad, findings=tuple((b, b) for b in bad)),
        prior=replace(base.prior, method=every, others=(OtherEstimate(every, None, note=every),), warnings=bad),
        quality=replace(base.quality, estimates={b: Interval(0.5) for b in bad}, over=every, notes=bad),
        threshold=replace(base.threshold, rule=every),
        histogram=replace(base.histogram, axis=every),
        map=row_map(xy, probability, labels, pick, method=every, table=frame, texts=pick),
        top=top_rows(probability, pick, table=frame, texts=pick, reasons=[tuple(RowReason(b, -1.0) for b in bad)] * n),
        importances=Importances(tuple(ColumnImportance(b, 0.1, 0.05, 0.2) for b in bad), of=n),
        training={b: ({"epoch": 1.0, b: 0.5}, {"epoch": 2.0, b: 0.4}) for b in bad},
        comparison={b: {c: c for c in bad} for b in bad},
        configuration={b: {b: b, "list": list(bad)} for b in bad},
        warnings=bad,
        created=every,
        software=every,
    )

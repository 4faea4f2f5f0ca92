"""Pictures of a page at desk and phone width, light and dark: ``python -m tests.report.screenshots [PAGE.html]``.

Without a page one is made from scikit-learn's digits: odd digits are positive, 200 of them labelled, a support vector
machine trained on labelled against unlabelled rows, 35 % of the rows held out. Every number on it is computed.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from punce.metrics import Estimate, pu_metrics, true_metrics
from punce.priors import estimate_prior
from punce.report import (
    DataFacts,
    Interval,
    OtherEstimate,
    PriorFacts,
    Quality,
    ReportContent,
    Threshold,
    lay_out,
    map_rows,
    prior_sensitivity,
    review_curve,
    row_map,
    score_histogram,
    top_rows,
    write_report,
)

from .test_browser import NAMES, QUIET

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DESK, PHONE = {"width": 1000, "height": 1500}, {"width": 390, "height": 1300}
SHOTS = {  # name: viewport, colour scheme, the section at the top of the picture
    "report_desktop_light": (DESK, "light", None),
    "report_desktop_dark": (DESK, "dark", "#map"),
    "report_phone_light": (PHONE, "light", None),
    "report_phone_dark": (PHONE, "dark", "#scores"),
}


def digits_report() -> ReportContent:
    X, digit = load_digits(return_X_y=True)
    is_positive = digit % 2 == 1
    rng = np.random.default_rng(0)
    labels = np.zeros(len(X), int)
    labels[rng.choice(np.flatnonzero(is_positive), 200, replace=False)] = 1
    held_out = rng.random(len(X)) < 0.35
    model = make_pipeline(StandardScaler(), SVC(C=0.5, gamma=0.02, class_weight="balanced"))
    scores = model.fit(X[~held_out], labels[~held_out]).decision_function(X)
    p, u, unlabelled = held_out & (labels == 1), held_out & (labels == 0), labels == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are in the estimate too
        estimates = [estimate_prior(X, labels, method) for method in ("bbe", "dedpul", "elkan_noto")]
    prior = estimates[0]
    both = prior.low, prior.high
    probability = calibrated(scores, p, u, prior.value)
    measured = pu_metrics(
        probability[p], probability[u], prior.value, threshold=0.5, prior_interval=both, confidence=0.9
    )
    truth = true_metrics(is_positive[unlabelled], probability[unlabelled], 0.5)
    mix = measured.unlabelled
    parts = {"recall": measured.recall, "precision": mix.precision, "accuracy": mix.accuracy, "f1": mix.f1}
    rows = map_rows(labels)
    images = np.round(X.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    names = np.array([f"digit {i}" for i in range(len(X))])
    xy, method = lay_out(X[rows])
    return ReportContent(
        title="Odd digits among unlabelled ones",
        data=DataFacts("scikit-learn's digits", "images", len(X), 200, int(unlabelled.sum())),
        prior=PriorFacts(
            prior.value,
            *both,
            prior.method,
            others=tuple(OtherEstimate(e.method, e.value, e.low, e.high, "; ".join(e.warnings)) for e in estimates),
            warnings=prior.warnings,
        ),
        quality=Quality(
            {name: interval(part) for name, part in {**parts, "auc": measured.auc}.items()},
            {name: getattr(truth, name) for name in (*parts, "auc")},
            confidence=0.9,
            n_positive=int(p.sum()),
            n_unlabelled=int(u.sum()),
            notes=measured.notes,
        ),
        threshold=Threshold(0.5, "the likelier of the two", int((probability[unlabelled] > 0.5).sum())),
        histogram=score_histogram(probability[p], probability[u]),
        review=review_curve(
            probability[p], probability[u], prior.value, n_rows=int(unlabelled.sum()), prior_interval=both
        ),
        map=row_map(
            xy, probability[rows], labels[rows], names[rows].tolist(), method=method, images=list(images[rows])
        ),
        top=top_rows(probability[unlabelled], names[unlabelled].tolist(), images=list(images[unlabelled])),
        sensitivity=prior_sensitivity(
            probability[p], probability[u], prior.value, 0.5, unlabelled=probability[unlabelled]
        ),
    )


def calibrated(scores: np.ndarray, p: np.ndarray, u: np.ndarray, prior: float) -> np.ndarray:
    """Isotonic P-vs-U odds on held-out rows times the prior; the score breaks ties by a thousandth."""
    x, y = np.concatenate([scores[p], scores[u]]), np.repeat([1.0, 0.0], [p.sum(), u.sum()])
    weight = np.where(y == 1, prior / p.sum(), 1.0 / u.sum())
    share = IsotonicRegression(out_of_bounds="clip").fit(x, y, sample_weight=weight).predict(scores)
    odds = np.clip(share / np.maximum(1 - share, 1e-9), 0, 1)
    return np.asarray(0.998 * odds + 0.002 / (1 + np.exp(-scores)))


def interval(estimate: Estimate) -> Interval:
    return Interval(estimate.value, estimate.low, estimate.high)


def shoot(page_path: Path, images: Path = IMAGES) -> None:
    executable = os.environ.get("PUNCE_BROWSER") or next(filter(None, map(shutil.which, NAMES)))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=[*QUIET, "--no-sandbox"])
        for name, (viewport, scheme, section) in SHOTS.items():
            page = browser.new_page(viewport=viewport, color_scheme=scheme)
            page.goto(page_path.absolute().as_uri())
            if section:
                page.evaluate("at => document.querySelector(at).scrollIntoView({behavior: 'instant'})", section)
            if section == "#map":
                page.focus("#map-canvas")
                for key in ("Home", *["PageDown"] * 3):
                    page.keyboard.press(key)
            page.screenshot(path=images / f"{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        shoot(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            shoot(write_report(digits_report(), Path(folder) / "report.html"))

"""Fills the report from a fitted classifier and the rows it learned from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from punce import __version__
from punce.classifier import PUClassifier
from punce.data import DataCheck, UserData
from punce.data.image_files import ImageFiles
from punce.judging.calibration import with_share
from punce.judging.thresholds import Rule
from punce.judging.used_prior import is_given, usable_interval, usable_prior
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels
from punce.priors import PriorEstimate
from punce.product.insight import quickly_explained, reasons_of, shown_importances
from punce.report import ReportContent
from punce.report.content import (
    DataFacts,
    Histogram,
    Interval,
    OtherEstimate,
    PriorFacts,
    Quality,
    ReviewCurve,
    RowMap,
    SensitivityRow,
    Threshold,
    TopRows,
)
from punce.report.pieces import prior_sensitivity, review_curve, score_histogram
from punce.report.rows import lay_out, map_rows, row_map, top_rows
from punce.storage.json_tree import encode
from punce.training.parallel import beside

_UNSURE = 24  # images on the page


def report_content(
    classifier: PUClassifier,
    data: UserData,
    checked: DataCheck,
    X: Any,
    noted: tuple[str, ...],
    configuration: dict[str, Any],
    map_of_rows: Callable[[], RowMap],
) -> ReportContent:
    """Everything the page shows; `map_of_rows` is what :func:`started_map` gave."""
    assert data.labels is not None
    unknown = classifier.metrics_.unknown
    listed = data.labels if data.drawn is None else data.drawn.labels  # the ranked list has every row of the file
    on_u = classifier.scores_[data.labels == UNLABELLED]
    return ReportContent(
        title=f"Positives in {PurePath(data.source).name}",
        data=_data_facts(data, checked),
        prior=_prior_facts(classifier),
        quality=_quality(classifier, data.labels),
        threshold=Threshold(
            classifier.threshold_, _rule_in_words(classifier.threshold), int((on_u >= classifier.threshold_).sum())
        ),
        histogram=_histogram(classifier) if are_held_out(classifier, data.labels) else None,  # it says that they are
        review=_review(classifier, int((listed == UNLABELLED).sum())),
        importances=shown_importances(classifier),
        top=_top(classifier, data, X),
        unsure=_unsure(classifier, data, X) if data.kind == "image" else None,
        sensitivity=() if unknown else _sensitivity(classifier, on_u),
        map=map_of_rows(),  # late: it may still be at work
        training=_training(classifier.history_),
        configuration=configuration,
        warnings=noted,
        labelling=classifier.labelling_.sentence if classifier.labelling == "random" else "",
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        software=f"punce {__version__}",
    )


def _review(classifier: PUClassifier, n_rows: int) -> ReviewCurve | None:
    """What reviewing the ranked list brings; None where the share of positives is not known, or does not fit."""
    metrics, prior = classifier.metrics_, classifier.prior_
    if metrics.unknown or metrics.contradicts:
        return None
    p, u = classifier.held_out_["positive"], classifier.held_out_["unlabelled"]
    return review_curve(p, u, usable_prior(prior), n_rows=n_rows, prior_interval=usable_interval(prior))


def _histogram(classifier: PUClassifier) -> Histogram:
    drawn = score_histogram(classifier.held_out_["positive"], classifier.held_out_["unlabelled"])
    return replace(drawn, positives="rows grouped with labelled ones") if classifier.labelling == "biased" else drawn


def _rule_in_words(rule: Rule) -> str:
    if not isinstance(rule, str):
        return "as given"
    name, _, wanted = rule.partition("=")
    if name == "precision":  # a warning says so where none has it
        return f"the lowest with an estimated precision of {wanted}, or the most precise one if none has it"
    if wanted:
        return f"the highest with an estimated {name} of {wanted}"
    return {"accuracy": "the likelier of the two, which is best for accuracy", "f1": "best for F1"}.get(rule, rule)


def _data_facts(data: UserData, checked: DataCheck) -> DataFacts:
    assert data.labels is not None
    found = {finding.message for finding in checked.findings}
    return DataFacts(
        name=PurePath(data.source).name,
        kind=data.kind,
        rows=len(data),
        labelled=int((data.labels == POSITIVE).sum()),
        unlabelled=int((data.labels == UNLABELLED).sum()),
        negatives=int((data.labels == NEGATIVE).sum()),
        notes=tuple(note for note in data.notes if note not in found),  # the check repeats some
        findings=tuple((finding.severity, finding.message) for finding in checked.findings),
        drawn_from=0 if data.drawn is None else len(data.drawn.labels),
    )


def _prior_facts(classifier: PUClassifier) -> PriorFacts:
    prior, first, second = classifier.prior_, classifier.first_prior_, classifier.second_prior_
    named = [] if second is None else [(f"{first.method} before training", first)]
    named += [] if second is None else [(f"{second.method} on learned scores", second)]
    named += [] if (both := classifier.both_prior_) is None else [("with the labelled negatives", both)]
    # a share that cannot be known has a placeholder, which is no estimate to compare with
    others = tuple(OtherEstimate(name, each.value, each.low, each.high) for name, each in named if not each.reason)
    low, high = (None, None) if is_given(prior) and prior.low == prior.high else (prior.low, prior.high)
    how = method_in_words(prior)
    return PriorFacts(prior.value, low, high, how, others=others, warnings=prior.warnings, unknown=prior.reason)


def method_in_words(prior: PriorEstimate) -> str:
    """How the share came about. The command line takes one without an interval; with one, it is that of a review."""
    is_of_review = is_given(prior) and prior.low < prior.high
    return "verdicts of a review, with the labels if they agree" if is_of_review else prior.method


def _sensitivity(classifier: PUClassifier, unlabelled: np.ndarray) -> tuple[SensitivityRow, ...]:
    """The table is about the unlabelled rows: probabilities and threshold of another target are brought to theirs."""
    prior, metrics = usable_prior(classifier.prior_), classifier.metrics_
    mix = metrics.unlabelled
    share = prior if metrics.target == "unlabelled" else metrics.population.prior
    held_out = classifier.held_out_
    given = (held_out["positive"], held_out["unlabelled"], unlabelled, np.array([classifier.threshold_]))
    p, u, everyone, threshold = (with_share(probabilities, share, prior) for probabilities in given)
    rows = prior_sensitivity(p, u, prior, float(threshold[0]), unlabelled=everyone)
    # The line of the prior that is used repeats the numbers of the page, which are cross-fitted.
    told = {name: encode(getattr(mix, name).value) for name in ("precision", "accuracy", "f1")}
    told["recall"] = encode(metrics.recall.value)
    return tuple(replace(row, **told) if abs(row.prior - prior) < 1e-9 else row for row in rows)


def are_held_out(classifier: PUClassifier, labels: Labels) -> bool:
    """Whether some labelled row was scored by a model that did not learn from it; a single one cannot be left out."""
    return not classifier.seen_in_training_[labels == POSITIVE].all()


def _quality(classifier: PUClassifier, labels: Labels) -> Quality:
    metrics = classifier.metrics_
    return Quality(
        {name: Interval(**encode(estimate)) for name, estimate in metrics.five.items()},  # NaN becomes None
        confidence=metrics.confidence,
        n_positive=metrics.n_positive if are_held_out(classifier, labels) else 0,  # the page then names none
        n_unlabelled=metrics.n_unlabelled,
        n_negative=metrics.n_negative if metrics.basis == "pnu" else 0,
        over="the unlabelled rows" if metrics.target == "unlabelled" else "rows of the population",
        notes=metrics.notes,
        by_groups=classifier.labelling == "biased",
    )


def _shown(data: UserData, X: Any, rows: np.ndarray) -> dict[str, Any]:
    """What a person sees of the rows: columns, text or image."""
    if data.kind == "table":
        return {"table": pd.DataFrame(X).iloc[rows]}
    if data.kind == "text":
        return {"texts": [X[int(i)] for i in rows]}
    if data.kind == "image":
        some = _some(X, rows)
        images = some.load() if isinstance(some, ImageFiles) else some
        return {"images": [np.moveaxis(image, 0, -1) for image in images]}  # 3 or 4 pixels wide, it is ambiguous
    return {}


def _some(X: Any, rows: np.ndarray) -> Any:
    """Some rows by number: image files stay files, with what is known of them."""
    return X[rows] if isinstance(X, ImageFiles) else [X[int(i)] for i in rows]


def started_map(classifier: PUClassifier, data: UserData, X: Any) -> Callable[[], RowMap]:
    """The map of the rows, once it is called. Its layout takes longest of all that is on the page, and begins now."""
    assert data.labels is not None
    rows = map_rows(data.labels)
    some = X.iloc[rows] if isinstance(X, pd.DataFrame) else _some(X, rows)
    is_array = data.kind in ("image", "embedding") and isinstance(some, list)
    features = classifier.embed(np.asarray(some) if is_array else some)
    layout = partial(lay_out, features)
    laid_out = beside(layout) if data.kind == "table" else layout  # what trains a network takes longer, on all CPUs
    return lambda: _map(classifier, data, X, rows, *laid_out())


def _map(
    classifier: PUClassifier, data: UserData, X: Any, rows: np.ndarray, xy: npt.NDArray[np.float64], method: str
) -> RowMap:
    assert data.labels is not None
    return row_map(
        xy,
        classifier.scores_[rows],
        data.labels[rows],
        [str(data.ids[int(i)]) for i in rows],
        method=f"{method} of the {'columns' if data.kind == 'table' else 'learned features'}",
        of=len(data),
        **_shown(data, X, rows),
    )


def ranked_rows(labels: Labels, probability: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Unlabelled rows, the most probable first; the score, then the place in the file, orders equal probabilities."""
    rows = np.flatnonzero(labels == UNLABELLED)
    return rows[np.lexsort((rows, -scores[rows], -probability[rows]))]


def _top(classifier: PUClassifier, data: UserData, X: Any) -> TopRows:
    assert data.labels is not None
    best = ranked_rows(data.labels, classifier.scores_, classifier.decision_scores_)[:100]
    names = [str(data.ids[int(i)]) for i in best]
    why = reasons_of(classifier, X, quickly_explained(classifier, X, best))
    why += [()] * (len(best) - len(why))
    return top_rows(classifier.scores_[best], names, reasons=why, **_shown(data, X, best))


def _unsure(classifier: PUClassifier, data: UserData, X: Any) -> TopRows:
    """The unlabelled rows nearest to the threshold, the most probable first."""
    assert data.labels is not None
    rows = np.flatnonzero(data.labels == UNLABELLED)
    # Of few rows, the nearest two dozen would be rows it is sure about.
    most = min(_UNSURE, max(1, len(rows) // 8))
    near = rows[np.argsort(np.abs(classifier.decision_scores_[rows]), kind="stable")[:most]]
    return top_rows(classifier.scores_[near], [str(data.ids[int(i)]) for i in near], **_shown(data, X, near))


def _training(history: list[dict[str, Any]]) -> dict[str, tuple[dict[str, float | None], ...]]:
    """The numbers of every training; a stage that begins anew, as for another loss, is a training of its own."""
    trainings: dict[str, list[dict[str, float | None]]] = {}
    begun: dict[str, int] = {}  # how often a stage has begun
    last_step: dict[str, float] = {}
    for row in history:
        numbers: dict[str, float | None] = {
            key: float(value) for key, value in row.items() if isinstance(value, int | float) and key != "step"
        }
        stage = str(row.get("stage", "training"))
        step = row.get("step", last_step.get(stage, 0) + 1)
        if stage not in begun or step <= last_step[stage]:  # equal: each was a training of one epoch
            begun[stage] = begun.get(stage, 0) + 1
        last_step[stage] = step
        name = stage if begun[stage] == 1 else f"{stage}, training {begun[stage]}"
        trainings.setdefault(name, []).append(numbers)
    return {name: tuple(rows) for name, rows in trainings.items()}

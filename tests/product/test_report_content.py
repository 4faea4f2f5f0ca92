"""What the page of a run says in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from punce.columns.encoder import TableEncoder
from punce.data import UserData, check
from punce.judging.metrics import pu_metrics
from punce.judging.used_prior import assumed_prior, given_prior
from punce.labels import POSITIVE
from punce.product.fit import FitOutcome, run_fit
from punce.product.page import _histogram, _prior_facts, _review, _rule_in_words, _training
from punce.product.plan import DataOptions, ModelOptions
from punce.report import ReportContent
from punce.report.page import render_report


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("accuracy", "the likelier of the two, which is best for accuracy"),
        ("f1", "best for F1"),
        ("precision=0.9", "the lowest with an estimated precision of 0.9, or the most precise one if none has it"),
        ("recall=0.95", "the highest with an estimated recall of 0.95"),
        (0.3, "as given"),
    ],
)
def test_every_threshold_rule_has_words(rule: str | float, words: str) -> None:
    assert _rule_in_words(rule) == words


def test_the_share_on_the_page_is_unknown_only_where_it_is_not_given_and_placeholders_are_left_out() -> None:
    labels = np.array([1, 0, 0, 0], dtype=np.int8)
    given = replace(given_prior(0.3, labels, "single_set"), low=0.2, high=0.4)
    assumed, learned = assumed_prior(labels, "single_set"), replace(given, method="combined")
    fitted: Any = SimpleNamespace(prior_=given, first_prior_=given, second_prior_=None, both_prior_=None)
    fitted.metrics_ = SimpleNamespace(unknown="labelled rows do not score higher")
    assert _prior_facts(fitted).unknown == ""
    fitted.prior_, fitted.first_prior_, fitted.second_prior_ = assumed, assumed, learned
    assert _prior_facts(fitted).unknown == assumed.reason
    assert [other.method for other in _prior_facts(fitted).others] == ["combined on learned scores"]


@pytest.mark.parametrize(("n_negative", "basis"), [(0, "pu"), (60, "pnu")])
def test_no_review_curve_is_drawn_where_the_numbers_contradict_each_other(n_negative: int, basis: str) -> None:
    """With labelled negatives one was drawn: 600 rows were all positive, also those of probability 0.04."""
    rng = np.random.default_rng(0)
    p, u, n = rng.uniform(0.7, 1.0, 60), rng.uniform(0.0, 0.8, 400), rng.uniform(0.0, 0.5, n_negative)
    fitted: Any = SimpleNamespace(prior_=given_prior(0.6, np.array([1, 0], dtype=np.int8), "single_set"))
    fitted.held_out_ = {"positive": p, "unlabelled": u}
    fitted.metrics_ = pu_metrics(p, u, 0.6, threshold=0.6, negative_scores=n if n_negative else None)
    assert (fitted.metrics_.basis, fitted.metrics_.contradicts) == (basis, True)
    assert _review(fitted, 400) is None
    fitted.metrics_ = pu_metrics(p, u, 0.1, threshold=0.6, negative_scores=n if n_negative else None)
    fitted.prior_ = given_prior(0.1, np.array([1, 0], dtype=np.int8), "single_set")
    assert _review(fitted, 400) is not None


def test_no_histogram_says_that_rows_were_held_out_where_the_only_labelled_one_was_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "label": np.arange(60) == 7})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    source = DataOptions(path=str(tmp_path / "rows.csv"), label="label")
    outcome = run_fit(source, ModelOptions(), tmp_path / "run", say=lambda _: None)
    assert outcome.classifier.seen_in_training_[outcome.ranking.labels == POSITIVE].all()
    assert "all held out" not in (tmp_path / "run" / "report.html").read_text()


def test_a_column_that_is_left_out_is_told_once() -> None:
    remarks = [f"a person wrote the long remark number {i} about this row" for i in range(40)]
    frame = pd.DataFrame({"x": np.arange(40) % 7, "remark": remarks, "tags": [["a"]] * 40})
    data = UserData("table", frame, (np.arange(40) % 4 == 0).astype(np.int8), pd.RangeIndex(40), "rows.csv")
    noted = (*TableEncoder.fit(frame).notes, "something else")
    assert len(noted) == 3
    nothing: Any = None
    outcome = FitOutcome(nothing, nothing, data, noted, nothing, checked=check(data))
    assert outcome.beyond_check == ("something else",)
    assert outcome.warnings == noted  # for the card, which has no data check


def test_rows_that_stand_for_labelled_ones_are_not_called_labelled() -> None:
    held_out = {"positive": np.array([0.8, 0.9]), "unlabelled": np.array([0.1, 0.2, 0.9])}
    fitted: Any = SimpleNamespace(held_out_=held_out, labelling="biased")
    page = render_report(ReportContent("t", histogram=_histogram(fitted)))
    assert "2 rows grouped with labelled ones, all held out" in page
    assert "abelled positives" not in page
    fitted.labelling = "random"
    assert "2 labelled positives, all held out" in render_report(ReportContent("t", histogram=_histogram(fitted)))


def test_a_stage_that_begins_anew_has_curves_of_its_own() -> None:
    steps = ((8, 5.0), (16, 4.5), (8, 6.0), (16, 5.5))
    history = [{"stage": "pretrain", "step": step, "epoch": step // 8, "loss": loss} for step, loss in steps]
    shown = _training([*history, {"stage": "labelled rows", "seen": 0.8}])
    assert [row["loss"] for row in shown["pretrain"]] == [5.0, 4.5]
    assert [row["loss"] for row in shown["pretrain, training 2"]] == [6.0, 5.5]
    assert shown["labelled rows"] == ({"seen": 0.8},)
    of_one_epoch = _training([history[0], history[2]])
    assert [rows[0]["loss"] for rows in of_one_epoch.values()] == [5.0, 6.0]

"""The section "Judged by people" of a run's page."""

from __future__ import annotations

import json
from dataclasses import replace

from punce.errors import number_of
from punce.judging.estimates import Estimate
from punce.judging.sampling import QUANTITIES
from punce.product.review.job import State, finding, gain
from punce.product.review.store import Before
from punce.report import ReportContent, write_report
from punce.report.content import Interval, JudgedByPeople, JudgedNumber
from punce.storage.files import write_text
from punce.storage.json_tree import encode

IN_WORDS = {
    "share": "that are positive (share)",
    "precision": "called positive, right (precision)",
    "recall": "positive, found (recall)",
    "accuracy": "all, right (accuracy)",
}


def as_interval(estimate: Estimate) -> Interval:
    """For the page and for JSON: NaN becomes None."""
    return Interval(**encode(estimate))


def judged_by_people(state: State) -> JudgedByPeople | None:
    """What the page says of the verdicts; None while they are too few."""
    if state.audit is None:
        return None
    numbers = tuple(
        JudgedNumber(
            name,
            as_interval(state.run.claims[name]),
            as_interval(state.audit.of(name)),
            tuple(one.audited.get(name, Interval(None)) for one in state.plan.before),
        )
        for name in QUANTITIES
    )
    return JudgedByPeople(
        verdicts=state.audit.verdicts,
        positives=state.audit.positives,
        unsure=len(state.settled.unsure),
        disputed=len(state.settled.disputed),
        open=len(state.open),
        numbers=numbers,
        before=tuple(_reviewed(one) for one in state.plan.before),
        finding=" ".join(filter(None, (finding(state), gain(state)))),
        contradicts=bool(state.disagreements),
    )


def show_on_page(state: State) -> None:
    """Put the section on the page of the run, whose other sections stay as they are."""
    folder = state.run.folder
    content = replace(ReportContent.read(folder / "report.json"), judged=judged_by_people(state))
    write_text(folder / "report.json", json.dumps(content.to_json()) + "\n")
    write_report(content, folder / "report.html")


def gained(state: State) -> dict[str, dict[str, str]]:
    """For every earlier run, named with its number of verdicts, the figures that were audited then."""
    return {
        f"before ({_reviewed(one)})": {name: _in_words(one, name) for name in QUANTITIES} for one in state.plan.before
    }


def _reviewed(one: Before) -> str:
    return f"{one.run}, {number_of(one.verdicts, 'verdict', 'verdicts')}"


def _in_words(one: Before, name: str) -> str:
    number = one.audited.get(name)
    if number is None or number.value is None or number.low is None or number.high is None:
        return "cannot be estimated"
    return Estimate(number.value, number.low, number.high).in_words()

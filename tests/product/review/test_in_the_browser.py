"""The whole loop through the real command and a real browser: fit, judge, kill, go on, audit, refit, page."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from punce.product.review.store import ReviewFolder
from punce.report import ReportContent
from tests.browser import Watched, browser  # noqa: F401
from tests.copies import punce_command

from .runs import truth_of, write_table

PHONE, DESK = {"width": 360, "height": 740}, {"width": 1100, "height": 850}


class Visit(Watched):
    def judge(self, n: int) -> None:
        """Type the true verdict of the next `n` rows."""
        for _ in range(n):
            name = self.page.inner_text("#card h1")
            self.page.keyboard.press("y" if truth_of()[int(name.split()[1])] else "n")
            self.page.wait_for_function("name => document.querySelector('#card h1').textContent !== name", arg=name)


@contextmanager
def serving(run: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``punce review RUN --serve`` in a process of its own, and its link."""
    line = [sys.executable, "-m", "punce", "review", str(run), "--serve", *options]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "200"}) as process:
        assert process.stdout is not None
        for text in process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+/#\S+", text):
                yield process, found[0]
                break
        if process.poll() is None:
            process.kill()


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:  # noqa: F811
    contexts = []

    def go(url: str, **options: Any) -> Visit:
        contexts.append(browser.new_context(**options))
        seen = Visit(contexts[-1].new_page())
        seen.page.goto(url)
        seen.page.wait_for_selector("#desk[aria-busy=false]")
        return seen

    yield go
    for context in contexts:
        context.close()


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_a_card_is_judged_by_keyboard_and_nothing_in_it_runs(
    run: Path, visit: Any, viewport: dict[str, int], scheme: str
) -> None:
    with serving(run, "--rows", "12") as (_, link):
        seen = visit(link, viewport=viewport, color_scheme=scheme)
        page = seen.page
        assert page.inner_text("#count") == "0 of 12 judged"
        seen.judge(2)
        first = page.inner_text("#card h1")
        page.keyboard.press("b")
        page.wait_for_function("name => document.querySelector('#card h1').textContent !== name", arg=first)
        assert page.inner_text(".said") in ("yes", "no")
        page.keyboard.press("u")
        page.wait_for_function("name => document.querySelector('#card h1').textContent === name", arg=first)
        seen.judge(9)
        page.wait_for_selector("#numbers tr")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("window.hacked") is None
        assert seen.messages == []
        origin = link.partition("/#")[0]
        assert all(url.startswith((origin, "blob:", "data:")) for url in seen.requests)
        assert "#" not in page.url
        said = [one.verdict for one in ReviewFolder(run).verdicts()]
        assert len(said) == 12
        assert said[2] == "unsure"


@pytest.mark.slow
def test_a_killed_server_loses_nothing_and_its_page_says_so(run: Path, visit: Any) -> None:
    with serving(run, "--rows", "20") as (process, link):
        seen = visit(link)
        seen.judge(5)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        seen.page.keyboard.press("y")
        seen.page.wait_for_selector("#problem:not([hidden])")
        assert "Nothing is lost" in seen.page.inner_text("#problem")
    with serving(run) as (_, link):
        seen = visit(link)
        assert seen.page.inner_text("#count") == "5 of 20 judged"
        other = visit(link)
        assert "used already" in other.page.inner_text("#problem")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_whole_loop(tmp_path: Path, visit: Any) -> None:
    table, first, second = write_table(tmp_path / "table.csv"), tmp_path / "first", tmp_path / "second"
    asked = ("--label", "label", "--id", "name", "--drop", "note")
    assert punce_command("fit", table, *asked, "--out", first).returncode == 0
    with serving(first, "--rows", "40") as (process, link):
        visit(link).judge(15)
        os.kill(process.pid, signal.SIGKILL)
    with serving(first, "--stop-when", "share+-0.2") as (process, link):
        seen = visit(link)
        assert seen.page.inner_text("#count") == "15 of 40 judged"
        seen.judge(25)
        seen.page.wait_for_function("document.querySelector('#goal').textContent.includes('enough')")
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.5)
        assert process.stdout is not None
        said = process.stdout.read()
    assert "40 rows judged, 0 open" in said
    assert "enough rows are judged" in said
    again = punce_command("fit", table, *asked, "--review", first, "--out", second)
    assert again.returncode == 0, again.stderr
    assert "the model learned from 40 verdicts" in again.stdout
    prior = json.loads((second / "metrics.json").read_text())["prior"]
    agreed = json.loads((first / "review" / "audit.json").read_text())["share"]
    for name in ("value", "low", "high"):
        assert prior[name] == pytest.approx(agreed[name])
    page = ReportContent.read(second / "report.json")
    assert page.judged is not None
    assert (page.judged.verdicts, page.judged.before) == (40, ("first, 40 verdicts",))
    shown = punce_command("review", second, "--rows", 10)
    assert "before (first" in " ".join(shown.stdout.split())
    plan = ReviewFolder(second).plan()
    assert plan is not None
    assert len(plan.drawn) == 50

"""The whole loop through the real command and a real browser: fit, judge, kill, go on, audit, refit, page."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
            self.press("y" if truth_of()[int(name.split()[1])] else "n")

    def press(self, key: str) -> None:
        """Press a key that leads to another card, and wait for that card."""
        name = self.page.inner_text("#card h1")
        self.page.keyboard.press(key)
        self.page.wait_for_function("name => document.querySelector('#card h1').textContent !== name", arg=name)
        self.page.wait_for_timeout(50)  # a key that comes before the page is done with the last one is ignored


@contextmanager
def serving(run: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``punce review RUN --serve`` in a process of its own, and its link."""
    line = [sys.executable, "-m", "punce", "review", str(run), "--serve", *options]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "200"}) as process:
        assert process.stdout is not None
        try:
            for text in process.stdout:
                if found := re.search(r"http://127\.0\.0\.1:\d+/#\S+", text):
                    yield process, found[0]
                    break
        finally:  # also where the test failed, which would else wait for the server for ever
            if process.poll() is None:
                process.kill()


def press_until(page: Any, key: str, selector: str) -> None:
    """Again, where the page was busy and did not hear it."""
    for _ in range(8):
        page.keyboard.press(key)
        with suppress(Exception):  # playwright's own time-out
            page.wait_for_selector(selector, timeout=3000)
            return
    page.wait_for_selector(selector)


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


@pytest.mark.parametrize("kind", ["", "pairs"])
def test_a_question_as_the_name_of_a_column_leaves_room_for_the_answer(run: Path, visit: Any, kind: str) -> None:
    with serving(run, "--rows", "3") as (_, link):
        page = visit(link, viewport=DESK).page
        question = "How satisfied are you with the time it took until somebody answered your letter? " * 2
        width = page.evaluate(
            """([question, kind]) => {
                const list = document.querySelector("#card dl");
                list.className = kind;
                list.querySelector("dt").textContent = question;
                return list.querySelector("dd").clientWidth;
            }""",
            [question, kind],
        )
        assert width > 150  # and not one letter


def test_a_row_that_cannot_be_shown_is_not_judged(run: Path, visit: Any) -> None:
    with serving(run, "--rows", "12") as (_, link):
        page = visit(link).page
        page.route("**/row?*", lambda route: route.abort())
        for _ in range(2):
            page.keyboard.press("y")
            page.wait_for_selector("#problem:not([hidden])")
            page.wait_for_function("() => document.querySelector('#card').childElementCount === 0")
            page.wait_for_timeout(200)  # a key is ignored while the page is busy with the one before
        page.unroute("**/row?*")
        page.keyboard.press("y")
        page.wait_for_selector("#card h1")
        assert page.inner_text("#count") == "1 of 12 judged"
        assert len(ReviewFolder(run).verdicts()) == 1


def test_the_last_card_counts_skipped_rows_and_leads_back(run: Path, visit: Any) -> None:
    with serving(run, "--rows", "3") as (_, link):
        seen = visit(link)
        seen.press("ArrowRight")
        seen.judge(2)
        assert seen.page.inner_text("#card h1") == "No more rows; 1 of 3 are not judged yet."
        assert seen.page.locator("button:visible").count() == 1
        seen.page.click("button:visible")
        seen.page.wait_for_selector("#card .said")
        seen.page.reload()
        seen.page.wait_for_selector("#desk[aria-busy=false]")
        seen.judge(1)
        for _ in range(2):
            seen.press("ArrowRight")
        assert seen.page.inner_text("#card h1") == "All rows are judged."


def test_the_new_link_of_a_server_that_was_started_again_opens_in_the_same_tab(run: Path, visit: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with serving(run, "--rows", "3", "--port", port) as (_, link):
        seen = visit(link)
        seen.judge(1)
    with serving(run, "--port", port) as (_, link):
        seen.page.keyboard.press("y")
        seen.page.wait_for_selector("#problem:not([hidden])")
        seen.page.goto(link)
        seen.page.wait_for_selector("#problem", state="hidden")
        seen.judge(2)
        assert seen.page.inner_text("#count") == "3 of 3 judged"


def test_the_arrow_that_scrolls_a_long_text_is_no_verdict(run: Path, visit: Any) -> None:
    shown = {"name": "long", "image": False, "text": "word\n" * 500}
    with serving(run, "--rows", "12") as (_, link):
        page = visit(link).page
        page.route("**/row?*", lambda route: route.fulfill(json={**shown, "key": route.request.url.partition("=")[2]}))
        press_until(page, "ArrowRight", "#card h1:text-is('long')")
        page.keyboard.press("ArrowDown")
        page.wait_for_function("() => document.querySelector('#card').scrollTop > 0")
        assert ReviewFolder(run).verdicts() == []
        page.keyboard.press("n")
        page.wait_for_function("() => document.querySelector('#count').textContent === '1 of 12 judged'")


def test_a_picture_that_is_missing_is_said_on_its_own_card(run: Path, visit: Any) -> None:
    shown = {"name": "a.png", "image": True, "text": None}
    with serving(run, "--rows", "12") as (_, link):
        page = visit(link).page
        page.route("**/row?*", lambda route: route.fulfill(json={**shown, "key": route.request.url.partition("=")[2]}))
        press_until(page, "ArrowRight", "#card .problem")
        assert page.inner_text("#card h1") == "a.png"
        assert page.inner_text("#card .problem") == "this row has no image"


@pytest.mark.slow
@pytest.mark.faults
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
        seen.page.wait_for_function("() => document.querySelector('#goal').textContent.includes('enough')")
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

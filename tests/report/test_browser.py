"""The page in a real browser: nothing requested, logged or executed that is not ours; hover and sort work.

Skipped, saying so, where there is no Chromium or no playwright (see tests/browser.py).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from punce.report import ReportContent, write_report
from punce.report.content import TopRow, TopRows
from punce.report.rows import thumbnail_sheet
from tests.browser import Watched

from .samples import HOSTILE, content, hostile

DESK, PHONE = {"width": 1200, "height": 900}, {"width": 360, "height": 740}
PAD = 16  # of the map, in report.js


class Visit(Watched):
    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))

    def column(self, header: str) -> list[str]:
        """The top table's cells under a heading, as shown."""
        names = [name.rstrip(" \u00a0↕↑↓") for name in self.page.locator("#top-table thead th").all_inner_texts()]
        cells = f"#top-table tbody tr:not([hidden]) > :nth-child({names.index(header) + 1})"
        return [text.strip() for text in self.page.locator(cells).all_inner_texts()]

    def calm(self) -> None:
        """Only the file itself was asked for, and the console is empty."""
        assert self.messages == []
        assert [url for url in self.requests if not url.startswith("data:")] == [self.page.url.partition("#")[0]]
        assert self.page.evaluate("window.hacked") is None


@pytest.fixture
def visit_file(browser: Any) -> Iterator[Any]:
    contexts = []

    def go(path: Path, viewport: dict[str, int] = DESK, **options: Any) -> Visit:
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        seen = Visit(context.new_page())
        seen.page.on("dialog", lambda dialog: seen.messages.append(dialog.message))
        seen.page.goto(path.as_uri())
        seen.page.wait_for_selector("footer")
        return seen

    yield go
    for context in contexts:
        context.close()


@pytest.fixture
def visit(visit_file: Any, tmp_path: Path) -> Any:
    def go(report: ReportContent, viewport: dict[str, int] = DESK, **options: Any) -> Visit:
        return visit_file(write_report(report, tmp_path / "a page & <b>.html"), viewport, **options)

    return go


def lonely_point(report: ReportContent) -> int:
    """A point far from all others, so that the pointer cannot mean another."""
    assert report.map is not None
    xy = np.stack([report.map.x, report.map.y], axis=1)
    distance = np.linalg.norm(xy[:, None] - xy[None], axis=2) + 9 * np.eye(len(xy))
    return int(distance.min(axis=1).argmax())


def pixel(seen: Visit, report: ReportContent, i: int) -> tuple[float, float]:
    assert report.map is not None
    seen.page.locator("#map-canvas").scroll_into_view_if_needed()
    box = seen.page.locator("#map-canvas").bounding_box()
    x = PAD + report.map.x[i] * (box["width"] - 2 * PAD)
    y = PAD + (1 - report.map.y[i]) * (box["height"] - 2 * PAD)
    return box["x"] + x, box["y"] + y


@pytest.mark.parametrize("kind", ["table", "images", "texts"])
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_opens_quietly_and_fits(visit: Any, kind: str, viewport: dict[str, int]) -> None:
    seen = visit(content(60, 10, images=kind == "images", texts=kind == "texts"), viewport)
    seen.calm()
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown = seen.page.locator("#scores svg:visible, #review svg:visible").count()
    assert shown == 2  # one of the two widths each


@pytest.mark.parametrize(("viewport", "shown"), [(DESK, True), (PHONE, False)], ids=["desk", "phone"])
def test_a_mark_is_explained_where_it_is_shown(visit: Any, viewport: dict[str, int], shown: bool) -> None:
    quality = visit(content(60, 10), viewport).page.locator("#quality")
    assert quality.locator("td.picture").first.is_visible() is shown
    assert ("The dot is" in quality.inner_text()) is shown
    assert "What it cannot tell." in quality.inner_text()


def test_an_empty_report_opens(visit: Any) -> None:
    visit(ReportContent("nothing yet")).calm()


def test_hover_shows_the_row(visit: Any) -> None:
    report = content(60, 10)
    seen = visit(report)
    assert report.map is not None
    i = lonely_point(report)
    assert seen.page.locator("#map-card").is_hidden()
    seen.page.mouse.move(*pixel(seen, report, i))
    card = seen.text("#map-card")
    assert report.map.names[i] in card
    assert f"{100 * report.map.probability[i]:.1f} %" in card
    assert "country" in card
    assert str(report.map.cells[i][1]) in card
    seen.page.mouse.move(2, 2)
    assert seen.page.locator("#map-card").is_hidden()
    seen.calm()


def test_hover_shows_the_picture_of_that_row(visit: Any) -> None:
    tones = np.arange(60) * 4
    report = content(60, 5)
    assert report.map is not None
    sheet = thumbnail_sheet([np.full((8, 8), tone, np.uint8) for tone in tones])
    report = replace(report, map=replace(report.map, sheet=sheet, thumbnails=tuple(range(60))))
    seen = visit(report)
    i = lonely_point(report)
    seen.page.mouse.move(*pixel(seen, report, i))
    seen.page.wait_for_selector("#map-card canvas")
    read = "document.querySelector('#map-card canvas').getContext('2d').getImageData(4, 4, 1, 1).data[0]"
    assert abs(seen.page.evaluate(read) - tones[i]) < 10
    seen.calm()


def test_tap_and_keyboard_show_rows(visit: Any) -> None:
    report = content(60, 10, texts=True)
    assert report.map is not None
    seen = visit(report, PHONE, has_touch=True, is_mobile=True)
    i = lonely_point(report)
    seen.page.touchscreen.tap(*pixel(seen, report, i))
    assert report.map.texts[i] in seen.text("#map-card")
    seen.page.focus("#map-canvas")
    seen.page.keyboard.press("Home")
    best = int(np.argmax(report.map.probability))
    assert report.map.names[best] in seen.text("#map-card")
    assert report.map.names[best] in (seen.page.text_content("#map-live") or "")
    seen.page.keyboard.press("Escape")
    assert seen.page.locator("#map-card").is_hidden()
    seen.calm()


def test_map_filters_and_zoom(visit: Any) -> None:
    report = content(60, 10)
    seen = visit(report)
    i = lonely_point(report)
    at = pixel(seen, report, i)
    for box in ("#map-labelled", "#map-unlabelled"):
        seen.page.uncheck(box)
    seen.page.mouse.move(*at)
    assert seen.page.locator("#map-card").is_hidden()
    for box in ("#map-labelled", "#map-unlabelled"):
        seen.page.check(box)
    for _ in range(8):
        seen.page.click("#map-in")
    seen.page.mouse.move(*at)
    assert report.map is not None
    zoomed_elsewhere = seen.page.locator("#map-card").is_hidden() or report.map.names[i] not in seen.text("#map-card")
    assert zoomed_elsewhere
    seen.page.click("#map-reset")
    seen.page.mouse.move(*at)
    assert report.map.names[i] in seen.text("#map-card")
    seen.calm()


def test_sort_by_mouse_and_keyboard(visit: Any) -> None:
    seen = visit(content(60, 20))
    ranks = seen.column("Rank")
    assert ranks == [str(i) for i in range(1, 21)]
    seen.page.get_by_role("button", name="amount").click()
    amounts = [float(value) for value in seen.column("amount")]
    assert amounts == sorted(amounts, reverse=True)
    assert seen.column("Rank") != ranks
    seen.page.get_by_role("button", name="country").focus()
    seen.page.keyboard.press("Enter")
    countries = seen.column("country")
    assert countries == sorted(countries)
    assert len(set(countries)) > 1
    seen.page.keyboard.press("Enter")
    assert seen.column("country")[0] == countries[-1]
    states = seen.page.eval_on_selector_all("#top-table th[aria-sort]", "all => all.map(th => th.ariaSort)")
    assert sorted(set(states)) == ["descending", "none"]
    assert states.count("descending") == 1
    seen.calm()


def test_missing_values_sort_last_both_ways(visit: Any) -> None:
    rows = tuple(TopRow(i + 1, f"r{i}", 0.5, (value,)) for i, value in enumerate((3.0, None, 10.0, -1.0)))
    seen = visit(ReportContent("t", top=TopRows(rows, ("x",))))
    for expected in (["10.0", "3.0", "-1.0", "–"], ["-1.0", "3.0", "10.0", "–"]):
        seen.page.get_by_role("button", name="x", exact=False).last.click()
        assert [float(v) if v != "–" else v for v in seen.column("x")] == [
            float(v) if v != "–" else v for v in expected
        ]


def test_filter_counts_rows(visit: Any) -> None:
    seen = visit(content(60, 20))
    seen.page.fill("#top-filter", "日本")
    assert set(seen.column("country")) == {"日本"}
    assert seen.text("#top-shown") == f"{len(seen.column('country'))} of 20 rows"


@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_hostile_texts_do_nothing(visit: Any, viewport: dict[str, int]) -> None:
    report = hostile()
    seen = visit(report, viewport)
    assert report.map is not None
    seen.page.focus("#map-canvas")
    for _ in range(len(report.map.x)):
        seen.page.keyboard.press("ArrowRight")
        assert seen.page.locator("#map-card :is(script, img, svg, style)").count() == 0
    for button in seen.page.locator("#top-table button.sort").all():
        button.click()
    for summary in seen.page.locator("summary").all():
        summary.click()
    assert HOSTILE[0] in seen.text("#warnings")
    assert HOSTILE[3] in seen.text("#top-table")
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    seen.calm()


def test_the_policy_stops_what_would_slip_through(visit: Any) -> None:
    seen = visit(content(20, 5))
    run = """async () => {
      const broken = [];
      document.addEventListener('securitypolicyviolation', (event) => broken.push(event.effectiveDirective));
      const attempt = (act) => { try { act(); } catch (error) { broken.push(error.name); } };
      const script = document.createElement('script');
      attempt(() => { script.textContent = 'window.hacked = 1'; document.body.append(script); });
      attempt(() => { document.body.innerHTML += '<b>x</b>'; });
      attempt(() => { const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i); });
      await fetch('http://127.0.0.1:9/').catch((error) => broken.push(error.name));
      await new Promise((done) => setTimeout(done, 50));
      return broken;
    }"""
    broken = seen.page.evaluate(run)
    assert {"img-src", "connect-src", "TypeError"} <= set(broken)
    assert seen.page.evaluate("window.hacked") is None


def test_dark_mode_and_print_change_the_colours(visit: Any) -> None:
    seen = visit(content(60, 5), color_scheme="light")
    ink = "getComputedStyle(document.body).color"
    drawn = "document.querySelector('#map-canvas').toDataURL()"
    light, map_in_light = seen.page.evaluate(f"[{ink}, {drawn}]")
    seen.page.emulate_media(color_scheme="dark")
    seen.page.wait_for_function(f"before => {drawn} !== before", arg=map_in_light, timeout=10_000)
    assert seen.page.evaluate(ink) != light
    seen.page.emulate_media(media="print", color_scheme="dark")
    assert seen.page.evaluate(ink) == "rgb(0, 0, 0)"
    seen.calm()


@pytest.mark.slow
def test_the_page_of_a_real_fit_with_a_hostile_column(visit_file: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    positive = random.random(400) < 0.4
    frame = pd.DataFrame(
        random.normal(1.5 * (2 * positive[:, None] - 1), 1.0, (400, 3)), columns=["a", HOSTILE[0], "c"]
    )
    names = [bad for bad in HOSTILE if "\x00" not in bad]  # which no CSV can hold
    frame["name"] = [names[i % len(names)] + str(i) for i in range(400)]
    frame["known"] = np.where(np.cumsum(positive) <= 50, positive, False).astype(int)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["fit", tmp_path / "rows.csv", "--label", "known", "--id", "name", "--out", tmp_path / "run"]
    subprocess.run([sys.executable, "-m", "punce", *map(str, arguments)], check=True, timeout=240)
    for viewport in (DESK, PHONE):
        seen = visit_file(tmp_path / "run" / "report.html", viewport)
        seen.calm()
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    first = pd.read_parquet(tmp_path / "run" / "scores.parquet")["id"].iloc[0]
    assert " ".join(first.split()) in " ".join(seen.text("#top-table tbody tr:first-child").split())

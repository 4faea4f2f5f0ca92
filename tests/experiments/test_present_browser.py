"""The results page in a real browser: quiet, as wide as the window, its figures drawn, in light and in dark.

Skipped, saying so, where there is no Chromium or no playwright (see tests/browser.py).
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from punce.experiments.present import write_all

from .synthetic import fill


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results & <b>")
    fill(results, ["table1", "table3", "tsne", "biased_labels"])
    (path,) = write_all(results, "laptop1", ["table1"])
    return path


@pytest.mark.parametrize("width", [1200, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_quietly_and_fits(browser: Any, page_path: Path, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    noise: list[str] = []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("request", lambda request: noise.append(request.url) if request.url.startswith("http") else None)
    page.goto(page_path.as_uri())
    assert noise == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    drawn = page.evaluate("[...document.images].map(i => i.complete && i.naturalWidth > 0)")
    assert len(drawn) >= 3
    assert all(drawn)
    seen = Image.open(io.BytesIO(page.locator("img").first.screenshot())).convert("L")
    assert (seen.getpixel((2, 2)) < 64) == (scheme == "dark"), "a figure's ground follows the scheme"
    context.close()

"""Pictures of a page at desk and phone width: ``make demo``, then ``python -m tests.report.screenshots [PAGE.html]``.

They go to docs/images, with a palette of 128 colours: a page has few, and the files stay small.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from tests.browser import NAMES, QUIET

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DESK, PHONE = {"width": 1000, "height": 1400}, {"width": 390, "height": 1300}
SHOTS = {  # name: viewport, colour scheme, the section at the top of the picture
    "report_desktop_light": (DESK, "light", None),
    "report_desktop_dark": (DESK, "dark", "#map"),
    "report_phone_light": (PHONE, "light", None),
    "report_phone_dark": (PHONE, "dark", "#scores"),
}


@contextmanager
def launched() -> Iterator[Browser]:
    executable = os.environ.get("PUNCE_BROWSER") or next(filter(None, map(shutil.which, NAMES)))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=[*QUIET, "--no-sandbox"])
        yield browser
        browser.close()


def shoot_part(address: str, path: Path, first: str, last: str, width: int = 900) -> None:
    """The page at full width, from the top of the element `first` to the bottom of `last`."""
    with launched() as browser:
        page = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme="light")
        page.goto(address)
        page.wait_for_selector(last)
        page.wait_for_timeout(300)  # the map is drawn when the page is idle
        top, bottom = (page.locator(at).first.bounding_box() for at in (first, last))
        assert top is not None
        assert bottom is not None
        y = max(top["y"] - 12, 0)
        area = {"x": 0, "y": y, "width": width, "height": bottom["y"] + bottom["height"] + 12 - y}
        save(page.screenshot(clip=area, full_page=True), path)


def shoot(page_path: Path, images: Path = IMAGES) -> None:
    with launched() as browser:
        for name, (viewport, scheme, section) in SHOTS.items():
            page = browser.new_page(viewport=viewport, color_scheme=scheme)
            page.goto(page_path.absolute().as_uri())
            if section:
                page.evaluate("at => document.querySelector(at).scrollIntoView({behavior: 'instant'})", section)
            if section == "#map":
                page.focus("#map-canvas")
                for key in ("Home", *["PageDown"] * 3):
                    page.keyboard.press(key)
            save(page.screenshot(), images / f"{name}.png")
            page.close()


def save(png: bytes, path: Path) -> None:
    picture = Image.open(BytesIO(png)).convert("RGB")
    # This method keeps the colours of small things, such as the mark of a legend.
    picture.quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    shoot(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-out/report.html"))

"""Pictures of a page at desk and phone width: ``make demo``, then ``python -m tests.report.screenshots [PAGE.html]``.

They go to docs/images, with a palette of 128 colours: a page has few, and the files stay small.
"""

from __future__ import annotations

import os
import shutil
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.browser import NAMES, QUIET

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DESK, PHONE = {"width": 1000, "height": 1400}, {"width": 390, "height": 1300}
SHOTS = {  # name: viewport, colour scheme, the section at the top of the picture
    "report_desktop_light": (DESK, "light", None),
    "report_desktop_dark": (DESK, "dark", "#map"),
    "report_phone_light": (PHONE, "light", None),
    "report_phone_dark": (PHONE, "dark", "#scores"),
}


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
            save(page.screenshot(), images / f"{name}.png")
            page.close()
        browser.close()


def save(png: bytes, path: Path) -> None:
    picture = Image.open(BytesIO(png)).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    shoot(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-out/report.html"))

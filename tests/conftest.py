"""Fixtures that several folders use."""

import os

from tests.browser import browser
from tests.quick import quick_tables

# Empty: "auto" learns images from scratch here, whatever encoder is installed. Its own tests say otherwise.
os.environ["PUNCE_IMAGE_ENCODER"] = ""

__all__ = ["browser", "quick_tables"]

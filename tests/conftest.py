"""Fixtures that several folders use."""

from tests.browser import browser
from tests.quick import quick_tables

__all__ = ["browser", "quick_tables"]

"""Fixtures that several folders use."""

from tests.browser import browser

__all__ = ["browser"]

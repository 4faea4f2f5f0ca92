"""Routes: how one kind of input becomes scores. The classifier picks one by what it is given.

Add a route: one file with a class that has what :class:`~punce.models.route.Route` asks for, and one line here.
"""

from __future__ import annotations

from punce.datasets.dataset import Kind
from punce.models.auto import AutoRoute
from punce.models.image import ImageRoute
from punce.models.kinds import kind_of
from punce.models.network import NetworkRoute
from punce.models.route import FitSettings, Fitted, Route
from punce.models.table import TableRoute
from punce.models.text import TextRoute

ROUTES: dict[Kind, type[Route]] = {
    "table": TableRoute,
    "image": ImageRoute,
    "embedding": AutoRoute,
    "text": TextRoute,
}

__all__ = [
    "ROUTES",
    "AutoRoute",
    "FitSettings",
    "Fitted",
    "ImageRoute",
    "Kind",
    "NetworkRoute",
    "Route",
    "TableRoute",
    "TextRoute",
    "kind_of",
]

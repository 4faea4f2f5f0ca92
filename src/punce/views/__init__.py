"""A batch of rows to two augmented views of each: images, digits, table rows, embeddings, texts.

    view = build_view("digit", degrees=10.0)            # a frozen dataclass of hyper-parameters
    plan = view.plan(n_rows=len(X), seed=0, epoch=3)    # the table view also takes the training rows: X=X
    two = plan.apply(X[rows], rows)                     # (2, b, ...) float32, or token numbers
    one = view.clean(X[rows])                           # (b, ...), for evaluation

The views of a row are a function of (seed, epoch, row) alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from punce.catalogue import build_entry
from punce.views.embedding import Embedding
from punce.views.image import Image, cifar, crop_flip_colour, digit
from punce.views.plan import Plan, View
from punce.views.table import Table
from punce.views.text import Text

VIEWS: dict[str, Callable[..., View]] = {
    "crop_flip_colour": crop_flip_colour,
    "cifar": cifar,  # the name it has in stored models and results
    "digit": digit,
    "table": Table,
    "embedding": Embedding,
    "text": Text,
}


def build_view(view: str | View, **options: Any) -> View:
    """The view of that name, or `view` itself if it is one."""
    return build_entry("view", VIEWS, View, view, options)


__all__ = ["VIEWS", "Embedding", "Image", "Plan", "Table", "Text", "View", "build_view", "cifar", "crop_flip_colour"]
__all__ += ["digit"]

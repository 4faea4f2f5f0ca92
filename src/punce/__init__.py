"""punce: positive-unlabelled contrastive learning.

``import punce`` is cheap: nothing here imports torch until a name that needs it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from punce.classifier import PUClassifier
    from punce.training.splits import PUStratifiedKFold

__version__ = "0.1.0"
__all__ = ["PUClassifier", "PUStratifiedKFold", "__version__"]

_HOMES = {"PUClassifier": "punce.classifier", "PUStratifiedKFold": "punce.training.splits"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'punce' has no attribute {name!r}")

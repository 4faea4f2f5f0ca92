"""punce: positive-unlabelled contrastive learning.

``import punce`` is cheap: nothing here imports torch until a name that needs it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from punce.classifier import PUClassifier

__version__ = "0.1.0"
__all__ = ["PUClassifier", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "PUClassifier":
        from punce.classifier import PUClassifier

        return PUClassifier
    raise AttributeError(f"module 'punce' has no attribute {name!r}")

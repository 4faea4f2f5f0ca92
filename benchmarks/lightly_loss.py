"""lightly's NTXentLoss, also where no torchvision fits the installed torch.

``import lightly.loss`` needs torchvision for other losses. Where it is missing or broken, empty modules stand in for
it: NTXentLoss does not use it.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, ClassVar

_PARTS = ("torchvision", "torchvision.ops", "torchvision.transforms", "torchvision.models", "torchvision.datasets")


class _Empty(ModuleType):
    """Any name is there, and means nothing."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def ntxent(temperature: float, **options: Any) -> Any:
    """The loss of two tensors of projections (b, d)."""
    try:
        from lightly.loss import NTXentLoss
    except (ImportError, RuntimeError):
        for name in [name for name in sys.modules if name.partition(".")[0] in ("lightly", "torchvision")]:
            del sys.modules[name]
        sys.modules.update({name: _Empty(name) for name in _PARTS})
        from lightly.loss import NTXentLoss
    return NTXentLoss(temperature=temperature, **options)

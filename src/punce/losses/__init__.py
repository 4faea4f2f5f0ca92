"""Contrastive losses on two views: each gives every anchor a target; the log-partition is the same for all.

CONTRIBUTING.md says how to add a loss.
"""

from __future__ import annotations

from typing import Any

from punce.catalogue import build_entry
from punce.losses.contrastive import Anchors, ContrastiveLoss
from punce.losses.dcl import DCL
from punce.losses.infonce import InfoNCE
from punce.losses.log_partition import log_partition
from punce.losses.punce import PuNCE
from punce.losses.scl import SCL

LOSSES: dict[str, type[ContrastiveLoss]] = {"infonce": InfoNCE, "scl": SCL, "punce": PuNCE, "dcl": DCL}


def build_loss(loss: str | ContrastiveLoss, prior: float | None = None, **options: Any) -> ContrastiveLoss:
    """The loss of that name, or `loss` itself if it is one; `prior` is for puNCE and ignored by the others."""
    return build_entry("loss", LOSSES, ContrastiveLoss, loss, options, prior)


__all__ = ["DCL", "LOSSES", "SCL", "Anchors", "ContrastiveLoss", "InfoNCE", "PuNCE", "build_loss", "log_partition"]

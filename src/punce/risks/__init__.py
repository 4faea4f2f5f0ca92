"""PU risks on raw scores: ``risk(scores, labels)`` is a scalar to call ``backward()`` on.

All that take a `prior` take the share of positives among the *unlabelled* rows and optimise the error under the
unlabelled mix. In ``single_set`` data the population holds the labelled rows as well; to decide there, shift the cut:

>>> from punce.scenario import logit_shift, population_prior
>>> prior, n_labelled, n_unlabelled = 0.4, 1000, 9000
>>> round(logit_shift(prior, population_prior(prior, n_labelled, n_unlabelled, "single_set")), 3)
0.245

and call a row positive where ``scores + shift > risk.decision_score``.

CONTRIBUTING.md says how to add a risk.
"""

from __future__ import annotations

from typing import Any

from punce.catalogue import build_entry
from punce.risks.base import Risk, RiskWarning, checked_batch, group_means
from punce.risks.nnpu import NNPU
from punce.risks.pn import PN
from punce.risks.pvu import PvU
from punce.risks.upu import UPU
from punce.risks.vpu import VPU

RISKS: dict[str, type[Risk]] = {"pn": PN, "pvu": PvU, "upu": UPU, "nnpu": NNPU, "vpu": VPU}


def build_risk(risk: str | Risk, prior: float | None = None, **options: Any) -> Risk:
    """The risk of that name, or `risk` itself if it is one; `prior` is ignored by those that take none."""
    return build_entry("risk", RISKS, Risk, risk, options, prior)


__all__ = ["NNPU", "PN", "RISKS", "UPU", "VPU", "PvU", "Risk", "RiskWarning"]
__all__ += ["build_risk", "checked_batch", "group_means"]

"""The settings every contract test runs over: a risk, its extra inputs, and its formula in plain loops."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from punce.risks import NNPU, PN, UPU, VPU, PvU, Risk, RiskWarning
from tests.risks import reference

PRIOR = 0.4
Formula = Callable[[Sequence[float], Sequence[int]], float]


@dataclass(frozen=True)
class Case:
    name: str
    build: Callable[[], Risk]
    formula: Callable[..., float]
    weighted: bool = False

    def risk(self) -> Risk:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RiskWarning)  # the unbounded surrogates warn; tested on its own
            return self.build()

    def __call__(self, scores: Tensor, labels: Tensor) -> Tensor:
        if self.weighted:
            return self.risk()(scores, labels, weights_for(scores))
        return self.risk()(scores, labels)

    def expected(self, scores: Tensor, labels: Tensor) -> float:
        extra = (weights_for(scores).tolist(),) if self.weighted else ()
        return self.formula(scores.tolist(), labels.tolist(), *extra)


def weights_for(scores: Tensor) -> Tensor:
    """Some weights in [0, 1] that travel with their rows through a permutation or a split over ranks."""
    return 0.5 + 0.5 * torch.sin(7.0 * scores.detach().double())


CASES = [
    Case("pn", PN, reference.pn),
    Case("pn-sigmoid", lambda: PN("sigmoid"), partial(reference.pn, surrogate="sigmoid")),
    Case("upu", lambda: UPU(PRIOR), partial(reference.upu, prior=PRIOR)),
    Case(
        "upu-logistic",
        lambda: UPU(PRIOR, "logistic"),
        partial(reference.upu, prior=PRIOR, surrogate="logistic"),
    ),
    Case(
        "upu-double-hinge",
        lambda: UPU(PRIOR, "double-hinge"),
        partial(reference.upu, prior=PRIOR, surrogate="double_hinge"),
    ),
    Case("nnpu", lambda: NNPU(PRIOR), partial(reference.nnpu, prior=PRIOR)),
    Case("nnpu-corrects", lambda: NNPU(0.9), partial(reference.nnpu, prior=0.9)),
    Case(
        "nnpu-beta-gamma",
        lambda: NNPU(0.9, "logistic", beta=0.05, gamma=0.3),
        partial(reference.nnpu, prior=0.9, surrogate="logistic", beta=0.05, gamma=0.3),
    ),
    Case("pvu-none", lambda: PvU(correction="none"), reference.pn),
    Case("pvu-threshold", lambda: PvU(PRIOR, "threshold"), reference.pvu_balanced),
    Case("pvu-weighted", PvU, reference.pvu_weighted, weighted=True),
    Case(
        "pvu-weighted-prior",
        lambda: PvU(PRIOR),
        partial(reference.pvu_weighted, prior=PRIOR),
        weighted=True,
    ),
    Case("vpu", VPU, reference.vpu),
]


def batch(n_p: int, n_u: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Scores in which labelled rows lie higher, in mixed order; r of nnPU is negative at prior 0.9, not at 0.4."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.cat([torch.ones(n_p), torch.zeros(n_u)]).to(torch.int64)
    scores = torch.randn(n_p + n_u, generator=generator, dtype=torch.float64) + 1.5 * labels
    order = torch.randperm(n_p + n_u, generator=generator)
    return scores[order].to(dtype), labels[order]

"""What the losses of punce, pytorch-metric-learning and lightly do with batches that cannot be meant.

Part of peers.py (``--only bad_batch``). An answer is an error, a loss or gradient that is not finite, a gradient that
would ruin the weights, or a number, compared with the definition in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

SUPERVISED = ("punce SCL", "pytorch-metric-learning SupConLoss")
ONE_CLASS = "every row of one class"
CASES = (
    "a NaN in a vector",
    "an infinite number",
    "a vector of zeros",
    "a vector of length 1e30",
    "a vector of length 1e-30",
    "no row",
    "one row",
    "one label less than rows (lightly: views of two sizes)",
    ONE_CLASS,
    "temperature 0",
)
ENORMOUS = 1e6  # a gradient by which one step would throw the weights away; those of good batches here are below 0.1
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def bad_batch(question: dict[str, Any]) -> dict[str, str]:
    """One answer for each case; rows of one class are asked only of losses that use the class."""
    name = question["of"]
    return {case: answer(name, case) for case in CASES if case != ONE_CLASS or name in SUPERVISED}


def answer(name: str, case: str) -> str:
    first, second, classes = batch(case, name in SUPERVISED)
    first.requires_grad_()
    try:
        loss = loss_of(name, 0.0 if case == "temperature 0" else 0.5)(first, second, classes)
        loss.backward()
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    value, gradient = float(loss.detach()), 0.0 if first.grad is None else float(first.grad.abs().sum())
    if not math.isfinite(value) or math.isnan(gradient):
        return f"the loss is {value}, the gradient {gradient:.3g}"
    if case.startswith(("one label", "temperature")) or not len(first):
        return f"accepted: {value:.3f}"
    exact = definition(torch.cat([first, second]).detach().double(), classes.repeat(2))
    if abs(value - exact) > 1e-4 * max(1.0, exact):
        return f"wrong: {value:.3f}, by the definition {exact:.3f}"
    # The direction of a short vector depends strongly on its numbers: its true gradient is long.
    return f"gradient of {gradient:.0e}" if gradient > ENORMOUS and "1e-30" not in case else "right"


def batch(case: str, supervised: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Two views (b, d) and a class for each row: 0 for half of the rows if classes are used, else one of its own."""
    generator = torch.Generator().manual_seed(0)
    rows = {"no row": 0, "one row": 1}.get(case, 16)
    first, second = torch.randn(2, rows, 32, generator=generator)
    classes = torch.arange(rows) + 1
    if supervised:
        classes[: rows if case == ONE_CLASS else rows // 2] = 0
    if case.startswith("one label"):
        classes = classes[:-1]
    elif case.startswith("a vector of length"):
        first[3] *= float(case.split()[-1]) / first[3].norm()
    elif case == "a vector of zeros":
        first[3] = 0.0
    elif case in ("a NaN in a vector", "an infinite number"):
        first[3, 1] = math.nan if "NaN" in case else math.inf
    return first, second, classes


def loss_of(name: str, temperature: float) -> Loss:
    if name.startswith("lightly"):
        from lightly_loss import ntxent

        theirs = ntxent(temperature)
        return lambda first, second, classes: theirs(first, second[: len(classes)])
    if name.startswith("punce"):
        from punce.losses import SCL, InfoNCE

        ours = (InfoNCE if "InfoNCE" in name else SCL)(temperature)
        return lambda first, second, classes: ours(torch.stack([first, second]), (classes == 0).long())
    from pytorch_metric_learning import losses

    metric = getattr(losses, name.split()[1])(temperature=temperature)
    return lambda first, second, classes: metric(torch.cat([first, second]), classes.repeat(2))


def definition(z: Tensor, classes: Tensor, temperature: float = 0.5) -> float:
    """SupCon, which is InfoNCE where every row has a class of its own. A vector of zeros has no direction: it is 0."""
    others = ~torch.eye(len(z), dtype=torch.bool)
    lengths = z.norm(dim=1, keepdim=True)
    unit = z / torch.where(lengths > 0, lengths, 1.0)
    log_p = (unit @ unit.T / temperature).masked_fill(~others, -math.inf).log_softmax(1)
    same = (classes[:, None] == classes) & others
    return float(-(torch.where(same, log_p, 0.0).sum(1) / same.sum(1)).mean())

"""Every loss as the paper prints it: explicit sums over anchors and partners, no shortcut shared with the code.

z: (2, b, d) raw projections; labels: list of {1, 0, -1}. Slow on purpose. Differentiable through autograd.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def _setup(z: Tensor, labels: Sequence[int]) -> tuple[list[Tensor], list[int], Callable[[int], int]]:
    b = z.shape[1]
    rows = [z[v, i] / z[v, i].square().sum().sqrt() for v in (0, 1) for i in range(b)]
    return rows, list(labels) * 2, lambda i: (i + b) % (2 * b)


def _log_ratio(rows: list[Tensor], i: int, j: int, temperature: float) -> Tensor:
    """log [ exp(z_i·z_j/τ) / Σ_{k≠i} exp(z_i·z_k/τ) ]."""
    others = [rows[i].dot(rows[k]) / temperature for k in range(len(rows)) if k != i]
    return rows[i].dot(rows[j]) / temperature - torch.logsumexp(torch.stack(others), 0)


def _mean_log_ratio(rows: list[Tensor], i: int, partners: list[int], temperature: float) -> Tensor:
    return sum(_log_ratio(rows, i, j, temperature) for j in partners) / len(partners)  # type: ignore[return-value]


def infonce(z: Tensor, labels: Sequence[int], temperature: float) -> Tensor:
    rows, _, a = _setup(z, labels)
    return sum(-_log_ratio(rows, i, a(i), temperature) for i in range(len(rows))) / len(rows)


def scl(z: Tensor, labels: Sequence[int], temperature: float) -> Tensor:
    rows, s, a = _setup(z, labels)
    total = torch.zeros((), dtype=z.dtype)
    for i in range(len(rows)):
        if s[i] == 0:
            total = total - _log_ratio(rows, i, a(i), temperature)
        else:
            same = [j for j in range(len(rows)) if s[j] == s[i] and j != i]
            total = total - _mean_log_ratio(rows, i, same, temperature)
    return total / len(rows)


def punce_pu(z: Tensor, labels: Sequence[int], temperature: float, prior: float) -> Tensor:
    """Eqs. puNCE.P_risk and puNCE.U_risk, term by term; labels of {1, 0}."""
    rows, s, a = _setup(z, labels)
    P = [k for k in range(len(rows)) if s[k] == 1]
    total = torch.zeros((), dtype=z.dtype)
    for i in range(len(rows)):
        if i in P:
            total = total - _mean_log_ratio(rows, i, [j for j in P if j != i], temperature)
        else:
            positive = sum(_log_ratio(rows, i, j, temperature) for j in [*P, a(i)]) / (len(P) + 1)
            total = total - prior * positive - (1 - prior) * _log_ratio(rows, i, a(i), temperature)
    return total / len(rows)


def punce_pnu(z: Tensor, labels: Sequence[int], temperature: float, prior: float) -> Tensor:
    """The PNU equation of §3: Q(i), P(i) = {P, a(i)}, N(i) = {N, a(i)}."""

    def unlabelled(rows: list[Tensor], i: int, own: int, P: list[int], N: list[int]) -> Tensor:
        positive = _mean_log_ratio(rows, i, [*P, own], temperature)
        return prior * positive + (1 - prior) * _mean_log_ratio(rows, i, [*N, own], temperature)

    return _with_both_classes(z, labels, temperature, unlabelled)


def _with_both_classes(
    z: Tensor, labels: Sequence[int], temperature: float, unlabelled: Callable[..., Tensor]
) -> Tensor:
    """A labelled row's partners are the others of its class; `unlabelled` has the term of any other row."""
    rows, s, a = _setup(z, labels)
    P, N = ([k for k in range(len(rows)) if s[k] == label] for label in (1, -1))
    total = torch.zeros((), dtype=z.dtype)
    for i in range(len(rows)):
        if s[i] == 0:
            total = total - unlabelled(rows, i, a(i), P, N)
        else:
            Q = [t for t in (P if s[i] == 1 else N) if t != i]
            total = total - _mean_log_ratio(rows, i, Q, temperature)
    return total / len(rows)


def punce_released(z: Tensor, labels: Sequence[int], temperature: float, prior: float) -> Tensor:
    rows, s, a = _setup(z, labels)
    P = [k for k in range(len(rows)) if s[k] == 1]
    w = prior / (1 + prior) if P else 0.0
    total = torch.zeros((), dtype=z.dtype)
    for i in range(len(rows)):
        if i in P:
            total = total - _mean_log_ratio(rows, i, [j for j in P if j != i], temperature)
            continue
        total = total - (1 - w) * _log_ratio(rows, i, a(i), temperature)
        if P:
            total = total - w * _mean_log_ratio(rows, i, P, temperature)
    return total / len(rows)


def shifted_probabilities(probabilities: Sequence[float], labels: Sequence[int], prior: float) -> list[float]:
    """The shift c of the log-odds by scanning ever finer grids; every row's σ(log-odds + c)."""
    log_odds = [math.log(p / (1 - p)) for p in probabilities]
    unlabelled = [value for value, label in zip(log_odds, labels, strict=True) if label == 0]

    def error(c: float) -> float:
        return abs(sum(1 / (1 + math.exp(-value - c)) for value in unlabelled) - prior * len(unlabelled))

    c, step = 0.0, 1.0
    while step > 1e-14:
        c = min((c + step * k for k in range(-10, 11)), key=error)
        step /= 5
    return [1 / (1 + math.exp(-value - c)) for value in log_odds]


def punce_posterior(
    z: Tensor,
    labels: Sequence[int],
    temperature: float,
    prior: float,
    probabilities: Sequence[float],
    own_view: float | None,
) -> Tensor:
    """α to the own view, 1 − α to both classes by p_i; the part of a class without labels goes to the own view.

    Without `own_view` a row's own α is 1 − (1 − α)·(2p − 1)², with α one half if both classes have labels and else 0.
    """
    p = shifted_probabilities(probabilities, labels, prior) * 2

    def unlabelled(rows: list[Tensor], i: int, own: int, P: list[int], N: list[int]) -> Tensor:
        positive = p[i] * _mean_log_ratio(rows, i, P or [own], temperature)
        negative = (1 - p[i]) * _mean_log_ratio(rows, i, N or [own], temperature)
        alpha = 1 - (0.5 if P and N else 1.0) * (2 * p[i] - 1) ** 2 if own_view is None else own_view
        return alpha * _log_ratio(rows, i, own, temperature) + (1 - alpha) * (positive + negative)

    return _with_both_classes(z, labels, temperature, unlabelled)


def dcl(z: Tensor, labels: Sequence[int], temperature: float, tau_plus: float) -> Tensor:
    rows, _, a = _setup(z, labels)
    n_others = len(rows) - 2
    total = torch.zeros((), dtype=z.dtype)
    for i in range(len(rows)):
        pos = (rows[i].dot(rows[a(i)]) / temperature).exp()
        neg = torch.zeros((), dtype=z.dtype)
        for k in range(len(rows)):
            if k not in (i, a(i)):
                neg = neg + (rows[i].dot(rows[k]) / temperature).exp()
        corrected = (neg - tau_plus * n_others * pos) / (1 - tau_plus)
        floor = n_others * math.exp(-1 / temperature)
        Ng = corrected if float(corrected.detach()) > floor else torch.tensor(floor, dtype=z.dtype)
        total = total - (pos / (pos + Ng)).log()
    return total / len(rows)

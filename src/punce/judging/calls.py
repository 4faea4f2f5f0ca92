"""Which held-out rows are called positive, and how sure the shares of them are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Most = tuple[float, float]
"""A bound of a number: at the estimates themselves, and its own upper end."""


@dataclass(frozen=True)
class Calls:
    """Which held-out rows are called positive, and each unlabelled row's chance of being it, if there is one.

    `chances` are those under the prior of U. `by_rule` are the shares of P, of U and of N, if there is one, that each
    of K rules, made without one fold, calls positive. Shape: p (n_P,), u (n_U,), n (n_N,), chances (n_U,), by_rule
    (2 or 3, K).
    """

    p: Flags
    u: Flags
    chances: Floats | None = None
    by_rule: Floats | None = None
    n: Flags | None = None
    at_hand: Flags | None = None
    """Rows of U that the rule at hand, made from all folds, calls positive: what a person is shown. Shape: (n_U,)."""
    are_all: bool = False
    """Whether U are all unlabelled rows there are, and no sample of them."""

    def most_found(self, priors: Floats, confidence: float, rng: np.random.Generator, lowest: float | None) -> Most:
        """The largest recall that the calls at hand allow: q/π, at most 1, if all of them are right; and its upper end.

        `lowest` is the low end of π's interval if π is the share among these very rows. If U are all unlabelled rows, q
        is known exactly and the upper end is q/`lowest`; otherwise q is an estimate, too: draws of q/π give the end.
        """
        if self.at_hand is None:
            return 1.0, 1.0
        called = _share_draws(self.at_hand, len(priors) - 1, rng)
        if lowest is not None and self.are_all:
            end = float(called[0]) / max(lowest, 1e-9)
        else:
            end = float(np.quantile((called / priors)[1:], (1 + confidence) / 2))
        value = min(1.0, float(called[0] / priors[0]))
        return value, max(value, min(1.0, end))

    def shares(self, n_draws: int, rng: np.random.Generator) -> tuple[Floats, ...]:
        """The shares of P, of U and of N called, then draws of them. Shape: (1 + B,) each.

        From their Jeffreys posteriors, because the bootstrap of 20 out of 20 would claim certainty. The rule that will
        be used is itself a random one: the spread of its fellows (delete-a-group jackknife) is added.
        """
        groups = (self.p, self.u) if self.n is None else (self.p, self.u, self.n)
        shares = np.stack([_share_draws(flags, n_draws, rng) for flags in groups])
        if self.by_rule is not None and (k := self.by_rule.shape[1]) > 1:
            spread = (self.by_rule - self.by_rule.mean(axis=1, keepdims=True)) * np.sqrt((k - 1) / k)
            shares[:, 1:] = np.clip(shares[:, 1:] + spread @ rng.standard_normal((k, n_draws)), 0.0, 1.0)
        return tuple(shares)


@dataclass(frozen=True)
class Shares:
    """t, q, π and f, each as the estimate followed by its draws. Shape: (1 + B,)."""

    recall: Floats
    called: Floats
    prior: Floats
    false: Floats | None = None
    """f, the share of labelled negatives called positive."""
    most: Most = field(default=(1.0, 1.0), kw_only=True)
    """The recall that the calls at hand allow at most (:meth:`Calls.most_found`)."""

    @property
    def false_by_u(self) -> Floats:
        """What U says of f: (q − π·t)/(1 − π)."""
        found: Floats = (self.called - self.prior * self.recall) / (1.0 - self.prior)
        return found

    @property
    def excess(self) -> float:
        """The share of draws in which the positives called, π·t, exceed all rows called, q, which is impossible."""
        return float(np.mean(self.prior[1:] * self.recall[1:] > self.called[1:]))

    @property
    def contradict(self) -> bool:
        """Whether that is beyond chance."""
        return self.excess > 0.95

    @property
    def are_too_many(self) -> bool:
        """Whether the estimates themselves have π·t > q, be it by chance."""
        return bool(self.prior[0] * self.recall[0] > self.called[0])

    def recall_within_called(self) -> Floats:
        """t; if by the estimates more positives than rows are called, π·t > q, then t and its draws are at most q/π.

        Otherwise no draw is bounded: the smaller of two numbers that differ by chance alone is too small on average.
        """
        return np.minimum(self.recall, self.called / self.prior) if self.are_too_many else self.recall


def _share_draws(above: Flags, n_draws: int, rng: np.random.Generator) -> Floats:
    return np.concatenate([[above.mean()], rng.beta(above.sum() + 0.5, (~above).sum() + 0.5, n_draws)])

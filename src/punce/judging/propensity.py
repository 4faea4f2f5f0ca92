"""Labelled rows whose chance to be labelled is known: a random sample of the positives among them.

Kept are labelled rows with a probability inverse to their chance to be labelled: chance to be labelled times chance to
be kept is the same for all of them. Which rows they are a sample *of* depends on the scenario (:class:`Thinned`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from punce.errors import InputError, number_of
from punce.judging.used_prior import FEWEST_LABELLED, GivenPrior
from punce.labels import NEGATIVE, POSITIVE, UNLABELLED, Labels
from punce.priors import PriorEstimate
from punce.row_numbers import floats_of
from punce.scenario import Scenario, Target, label_frequency

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Thinned:
    """Labels to estimate and judge by, of which some positive ones are not `kept`. Shape: labelled and kept (n,).

    In ``single_set`` a row that is thinned out counts as an unlabelled one. Kept rows are a random sample of *all*
    positives, and only with the rows that are thinned out do the others hold the rest of them: among the unlabelled
    rows alone, positives that are likely to be labelled are scarce, and the share would be taken for that of these. In
    ``case_control`` the unlabelled rows are a sample of their own, and rows that are thinned out are left out.
    """

    labelled: Labels
    kept: Flags
    scenario: Scenario

    @property
    def codes(self) -> Labels:
        """The labels as they count. Shape: (n,) of {1, 0, -1}."""
        if self.scenario == "case_control":
            return self.labelled
        return np.where(self.kept, self.labelled, np.int8(UNLABELLED)).astype(np.int8)

    @property
    def rows(self) -> Flags:
        """The rows that count. Shape: (n,)."""
        return self.kept if self.scenario == "case_control" else np.ones_like(self.kept)

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of labelled positives and of labelled negatives among all rows, as they count."""
        codes = self.codes
        return float((codes == POSITIVE).mean()), float((codes == NEGATIVE).mean())

    @property
    def _n_unlabelled(self) -> int:
        return int((self.labelled == UNLABELLED).sum())

    @property
    def _n_returned(self) -> int:
        """How many labelled rows count as unlabelled ones."""
        return int((self.codes == UNLABELLED).sum()) - self._n_unlabelled

    def given(self, prior: GivenPrior) -> GivenPrior:
        """What a person says of the unlabelled rows, for all rows that count as unlabelled."""
        if isinstance(prior, str) or not self._n_returned:
            return prior
        n_u, returned = self._n_unlabelled, self._n_returned

        def of_all(share: float) -> float:
            return (float(share) * n_u + returned) / (n_u + returned)

        if isinstance(prior, tuple | list):
            value, low, high = map(of_all, prior)
            return value, low, high
        return of_all(prior)

    def about_target(self, target: Target, share: float, own: float) -> str:
        """What to tell a person for whose target there are no numbers; empty where there are.

        Of the positives that were left unlabelled, how many there are of each kind follows from the propensity of every
        row, which is not known: `share` is that of positives in the rows that count as unlabelled, `own` that in U.
        """
        if target != "unlabelled" or not self._n_returned:
            return ""
        returned = number_of(self._n_returned, "labelled row that was", "labelled rows that were")
        return (
            f"target='unlabelled' with propensity=: probabilities, calls and quality are for the unlabelled rows and "
            f"the {returned} thinned out, of which together {share:.0%} are positive; among the unlabelled rows alone "
            f"it is {own:.0%}, so that fewer calls are right there; target='population' is free of this"
        )

    def among_unlabelled(self, estimate: PriorEstimate) -> PriorEstimate:
        """An estimate for all rows that count as unlabelled, for the unlabelled rows themselves."""
        if self.kept.all():
            return estimate
        n_p, n_u, returned = int((self.labelled == POSITIVE).sum()), self._n_unlabelled, self._n_returned

        def of_u(share: float) -> float:
            return min(max((share * (n_u + returned) - returned) / n_u, 0.0), 1.0)

        value, low, high = of_u(estimate.value), of_u(estimate.low), of_u(estimate.high)
        # The population is the same one, and so is its share.
        return replace(
            estimate,
            value=value,
            low=low,
            high=high,
            label_frequency=label_frequency(value, n_p, n_u),
            diagnostics={**estimate.diagnostics, "n_labelled": n_p, "n_unlabelled": n_u},
        )


def by_propensity(
    labels: Labels, propensity: npt.ArrayLike | None, weights: Floats | None, seed: int
) -> tuple[Flags, Floats | None]:
    """Rows to estimate and judge by, and weights to train with, where the chance to be labelled is known.

    `propensity` is the chance of each labelled row to be labelled, up to a factor. Kept are every unlabelled row, and
    labelled rows with a probability inverse to theirs: chance to be labelled times chance to be kept is the same for
    all, which makes them a random sample of the positives. Training uses all of them, with inverse weights.
    """
    if propensity is None:
        return np.ones(len(labels), dtype=bool), weights
    chance, is_p = floats_of(propensity, "propensity"), labels == POSITIVE
    if chance.shape != labels.shape:
        raise InputError(f"propensity must be one number for each of {len(labels)} rows, got shape {chance.shape}")
    if not (np.isfinite(chance[is_p]).all() and (chance[is_p] > 0.0).all()):
        raise InputError("propensity must be above 0 for every labelled row: each was labelled")
    inverse = np.where(is_p, chance[is_p].min() / np.where(is_p, chance, 1.0), 1.0)
    # A stream of its own: a simulation may have drawn the labels from that of the same seed.
    keep = np.random.default_rng((seed, 1)).random(len(labels)) < inverse
    if (n_left := int((keep & is_p).sum())) < FEWEST_LABELLED:
        raise InputError(
            f"{number_of(n_left, 'labelled row is', 'labelled rows are')} left when the likely ones are thinned out: "
            "the smallest propensities are far below the others; raise them, at the price of some bias"
        )
    training = np.where(is_p, inverse / inverse[is_p].mean(), 1.0)
    return keep, training if weights is None else training * weights

"""PvU: positives against unlabelled rows, with the three corrections the literature calls by that name."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.errors import InputError
from punce.labels import POSITIVE, UNLABELLED, Labels, refuse_negatives
from punce.risks.base import Risk, RiskWarning, checked_batch, checked_scores, find_surrogate, group_means
from punce.risks.elkan_noto import decision_threshold, weighted_duplicates
from punce.scenario import check_prior
from punce.training import collectives

Correction = Literal["weighted", "none", "threshold"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)
RowWeights = Tensor | npt.NDArray[Any]
"""w(x) of all rows of a stage. Shape: (n,)."""


class PvU(Risk):
    """Train labelled against unlabelled rows; `correction` says how the bias of that is removed.

    ``"weighted"`` (Elkan & Noto 2008, weighted duplicates): each unlabelled row counts as positive with w(x) and as
    negative with 1 − w(x). Hand in the weights of the batch's rows, made once for the data by
    :func:`punce.risks.elkan_noto.weighted_duplicates`.
    Without `prior` the risk is their mean over all rows, which targets P ∪ U (the population in ``single_set``).
    With `prior` it is π E_+ ℓ(g) + E_U (1−w) ℓ(−g), E_+ over labelled rows and w-weighted unlabelled ones: the
    error under the unlabelled mix, the same target as UPU and NNPU (the population in ``case_control``).

    ``"none"``: unlabelled rows are negatives (= PN, the biased baseline).

    ``"threshold"``: ½ E_P ℓ(g) + ½ E_U ℓ(−g) with cross-entropy; :attr:`decision_score` then moves the cut from 0 to
    where P(y=1 | x) is one half among rows of which `target_share` are labelled ones: 0, the unlabelled rows, by
    default; n_P/n for the population in ``single_set``; see :func:`~punce.risks.elkan_noto.decision_threshold`. Needs
    `prior`, and a model that does not over-fit: memorised unlabelled rows pull new positives below the cut.

    Shape: as every risk, and weights (b,) in [0, 1], a tensor or an array; entries of labelled rows are ignored.
    """

    def __init__(
        self,
        prior: float | None = None,
        correction: Correction = "weighted",
        surrogate: str = "logistic",
        target_share: float = 0.0,
    ) -> None:
        super().__init__()
        if correction not in CORRECTIONS:
            raise InputError(f"correction must be one of {list(CORRECTIONS)}, got {correction!r}")
        self.prior = None if prior is None else check_prior(prior, open_interval=True)
        self.correction: Correction = correction
        self.surrogate = find_surrogate(surrogate)
        self.target_share = check_prior(target_share, "target_share")
        if self.target_share and correction != "threshold":
            raise InputError(f"target_share moves the cut of correction='threshold'; {correction!r} has no use for it")
        if correction == "threshold" and prior is None:
            raise InputError("PvU(correction='threshold') needs prior= to know where to cut")
        if correction == "threshold" and self.surrogate.name != "logistic":
            raise InputError(
                "PvU(correction='threshold') cuts a probability, which only surrogate='logistic' estimates; "
                f"got {self.surrogate.name!r}"
            )

    @property
    def decision_score(self) -> float:
        """Where to cut: 0, or with ``correction="threshold"`` the logit of the shifted probability threshold."""
        if self.correction != "threshold" or self.prior is None:
            return 0.0
        # P and U have equal weight in this risk, so β' = ½ (the default of decision_threshold).
        threshold = decision_threshold(self.prior, target_share=self.target_share)
        return math.log(threshold / (1.0 - threshold))

    def forward(self, scores: Tensor, labels: Tensor, weights: RowWeights | None = None) -> Tensor:
        """The risk over the rows of all ranks."""
        scores, labels = checked_batch(scores, labels)
        refuse_negatives(labels, "PvU")
        as_positive, as_negative = self.surrogate(scores), self.surrogate(-scores)
        is_p, is_u = (labels == POSITIVE).to(scores), (labels == UNLABELLED).to(scores)
        if self.correction == "weighted":
            # Every unlabelled row appears twice: as a positive with weight w, as a negative with weight 1 − w.
            w = is_u * self._weights(scores, weights)
            return self._weighted(as_positive, as_negative, is_p + w, is_u - w, is_u)
        if weights is not None:
            raise InputError(f"weights belong to correction='weighted', not to correction={self.correction!r}")
        if self.correction == "none":
            return self._weighted_mean(as_positive, as_negative, is_p, is_u)
        p_plus, u_minus = group_means([(as_positive, is_p), (as_negative, is_u)]).means
        # Balanced, whatever the numbers of rows: the threshold assumes it.
        return 0.5 * p_plus + 0.5 * u_minus

    def value(self, scores: Tensor, labels: Tensor, weights: RowWeights | None = None) -> Tensor:
        """The risk for a log, without gradient."""
        with torch.no_grad():
            return self.forward(scores, labels, weights)

    def extra_repr(self) -> str:
        """For ``repr``."""
        text = f"prior={self.prior}, correction={self.correction!r}, surrogate={self.surrogate.name!r}"
        # Only this correction uses target_share. A resumed run compares the repr, so the others leave it out.
        return f"{text}, target_share={self.target_share:g}" if self.correction == "threshold" else text

    def _weighted(
        self, as_positive: Tensor, as_negative: Tensor, positive: Tensor, negative: Tensor, is_u: Tensor
    ) -> Tensor:
        if self.prior is None:
            return self._weighted_mean(as_positive, as_negative, positive, negative)
        # E_+ is a weighted mean over labelled rows and w-weighted unlabelled ones; the other mean is over U alone.
        plus, minus = group_means([(as_positive, positive), (as_negative * negative, is_u)]).means
        return self.prior * plus + minus

    @staticmethod
    def _weighted_mean(as_positive: Tensor, as_negative: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        row_loss = positive * as_positive + negative * as_negative
        return group_means([(row_loss, torch.ones_like(row_loss))]).means[0]

    def _weights(self, scores: Tensor, weights: RowWeights | None) -> Tensor:
        if weights is None:
            return self._constant_weights(scores)
        # weighted_duplicates makes an array.
        weights = checked_scores(torch.as_tensor(weights).to(scores), "weights").detach()
        if weights.shape != scores.shape:
            raise InputError(f"weights must have the shape of scores {tuple(scores.shape)}, got {tuple(weights.shape)}")
        if bool(((weights < 0) | (weights > 1)).any()):
            low, high = float(weights.min()), float(weights.max())
            raise InputError(f"weights must lie in [0, 1], got values from {low:g} to {high:g}")
        return weights

    def _constant_weights(self, scores: Tensor) -> Tensor:
        how = "make them with punce.risks.elkan_noto.weighted_duplicates and pass the batch's rows as weights="
        if self.prior is None:
            raise InputError(f"PvU(correction='weighted') needs the weight w(x) of each row or at least a prior; {how}")
        warnings.warn(
            f"PvU(correction='weighted') without weights counts every unlabelled row positive with {self.prior:g}, "
            f"which ranks rows like P against U but misplaces the cut; {how}",
            RiskWarning,
            stacklevel=6,
        )
        return torch.full_like(scores.detach(), self.prior)


# The weights w(x) in a training stage: given or computed once, and kept in checkpoints -----------------------------


class Duplicates:
    """The weights w(x) of ``PvU(correction="weighted")`` as a stage carries them; other risks take none.

    They are kept in the checkpoint: a resumed run must not depend on computing them again to the same bits.

    Shape: given (n,), one weight for each row.
    """

    def __init__(self, risk: Risk, given: RowWeights | None, n: int, device: torch.device) -> None:
        self.are_wanted = isinstance(risk, PvU) and risk.correction == "weighted"
        if given is not None and not self.are_wanted:
            raise InputError(f"weights belong to PvU(correction='weighted'), not to {risk!r}")
        self._device = device
        self.given = None if given is None else _checked_weights(given, n)
        self._values = None if self.given is None else self.given.to(device)

    def ensure(self, make: Callable[[], Tensor]) -> None:
        """Make the weights if this risk wants them and neither the caller nor a checkpoint brought them."""
        if self.are_wanted and self._values is None:
            self._values = make().to(self._device)

    def of(self, rows: Tensor) -> dict[str, Tensor]:
        """The risk's extra arguments for a batch. Shape: rows (b,) on the device of the data."""
        return {} if self._values is None else {"weights": self._values[rows]}

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"values": self._values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""
        if self._values is None and state["values"] is not None:
            self._values = state["values"].to(self._device)


def _checked_weights(given: RowWeights, n: int) -> Tensor:
    """As a tensor; refused here, because a risk that refuses them sees one batch and cannot name the row."""
    # weighted_duplicates makes an array, so that is what a person has at hand.
    weights = torch.as_tensor(given).detach()
    if weights.shape != (n,):
        raise InputError(f"weights must hold one w(x) for each of {n} rows, got shape {tuple(weights.shape)}")
    if bool((bad := ~((weights >= 0) & (weights <= 1))).any()):  # also NaN
        row = int(bad.nonzero()[0])
        raise InputError(f"weights must lie in [0, 1], got {float(weights[row]):g} in row {row}")
    return weights


def weights_of_training_rows(
    features: Callable[[], npt.NDArray[np.float32]],
    labels: Labels,
    train: Tensor,
    prior: float,
    seed: int,
    device: torch.device,
) -> Tensor:
    """w(x) of the training rows by Elkan & Noto, out of fold and rescaled to the prior; 0 elsewhere.

    Shape: features() (m, D) of the training rows; labels (n,); train (m,) row numbers; result (n,) on the device.
    """
    values = torch.zeros(len(labels), device=device)
    if collectives.rank() == 0:  # one rank makes them, so that all hold the same bits
        made = weighted_duplicates(features(), labels[train.numpy()], prior, random_state=seed)
        values[train] = torch.from_numpy(made).to(values)
    return collectives.global_sum(values)

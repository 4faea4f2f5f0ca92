"""The weights w(x) of ``PvU(correction="weighted")`` as a stage carries them: given, made once, kept in checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from punce.errors import InputError
from punce.labels import Labels
from punce.risks.base import Risk
from punce.risks.pvu import PvU
from punce.training import collectives


class Duplicates:
    """The weights w(x) that ``PvU(correction="weighted")`` takes beside scores and labels; other risks take none.

    Kept in the checkpoint: they take seconds to make, and a resumed run must not depend on making them again.

    Shape: given (n,), one weight for each row.
    """

    def __init__(self, risk: Risk, given: Tensor | None, n: int, device: torch.device) -> None:
        self.are_wanted = isinstance(risk, PvU) and risk.correction == "weighted"
        if given is not None and not self.are_wanted:
            raise InputError(f"weights belong to PvU(correction='weighted'), not to {risk!r}")
        if given is not None and given.shape != (n,):
            raise InputError(f"weights must hold one w(x) for each of {n} rows, got shape {tuple(given.shape)}")
        self._device = device
        self._values = None if given is None else given.to(device)

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
        from punce.risks.elkan_noto import weighted_duplicates

        made = weighted_duplicates(features(), labels[train.numpy()], prior, random_state=seed)
        values[train] = torch.from_numpy(made.weights).to(values)
    return collectives.global_sum(values)

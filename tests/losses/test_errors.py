"""What a loss refuses, and whether the message helps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from punce.errors import InputError
from punce.losses import DCL, SCL, Anchors, ContrastiveLoss, InfoNCE, PuNCE, log_partition


@pytest.fixture
def z() -> Tensor:
    return torch.randn(2, 4, 3)


def test_non_finite_projections_are_named_by_view_and_row(z: Tensor) -> None:
    z[1, 2, 0] = float("nan")
    z[0, 3, 1] = float("inf")
    with pytest.raises(InputError, match=r"2 projections are non-finite: view 0 row 3, view 1 row 2"):
        InfoNCE()(z, torch.zeros(4))


def test_projections_too_large_for_their_format_are_not_silently_zero(z: Tensor) -> None:
    z[0, 1] = 1e30
    with pytest.raises(InputError, match=r"too large for torch.float32: view 0 row 1"):
        InfoNCE()(z, torch.zeros(4))


@pytest.mark.parametrize(
    ("shape", "labels", "message"),
    [
        ((4, 3), torch.zeros(4), r"two views, shape \(2, b, d\), got \(4, 3\)"),
        ((3, 4, 3), torch.zeros(4), "two views"),
        ((2, 0, 3), torch.zeros(0), "the batch is empty"),
        ((2, 4, 3), torch.zeros(8), r"shape \(4,\), got \(8,\); give one label per row, not one per view"),
        ((2, 4, 3), torch.zeros(4, 1), r"labels must be one per row"),
        ((2, 4, 3), torch.tensor([0, 1, 2, 0]), r"values \[2\], first at row 2"),
        ((2, 4, 3), torch.tensor([0.0, float("nan"), 0.0, 0.0]), "first at row 1"),
        ((2, 4, 3), torch.tensor([0, 1, 255, 0], dtype=torch.uint8), r"values \[255\], first at row 2"),
        ((2, 4, 3), torch.zeros(4).numpy(), r"labels must be a tensor, got ndarray; torch\.as_tensor makes one"),
        ((2, 4, 3), [0, 0, 1, 0], "labels must be a tensor, got list"),
    ],
)
def test_wrong_shapes_and_labels(shape: tuple[int, ...], labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SCL()(torch.randn(shape), labels)


def test_an_array_is_no_batch(z: Tensor) -> None:
    with pytest.raises(InputError, match="z must be a tensor, got ndarray"):
        SCL()(z.numpy(), torch.zeros(4))


def test_a_pair_of_views_is_to_be_stacked(z: Tensor) -> None:
    """torch.as_tensor makes no tensor of two."""
    for views in ((z[0], z[1]), [z[0], z[1]]):
        with pytest.raises(InputError, match=r"got (tuple|list); torch\.stack\(\[z_first, z_second\]\)"):
            SCL()(views, torch.zeros(4))  # type: ignore[arg-type]


def test_integers_are_not_projections() -> None:
    with pytest.raises(InputError, match="floating point"):
        InfoNCE()(torch.zeros(2, 4, 3, dtype=torch.long))


def test_numbers_of_numpy_are_numbers() -> None:
    z, own = torch.randn(2, 6, 4), np.float32(0.5)
    assert InfoNCE(own)(z) == InfoNCE(0.5)(z)
    assert DCL(own, own)(z) == DCL(0.5, 0.5)(z)
    posterior = [PuNCE(0.3, weighting="posterior", own_view=each) for each in (own, 0.5)]
    labels = torch.tensor([1, 1, 0, 0, -1, -1])
    assert posterior[0](z, labels) == posterior[1](z, labels)
    assert repr(posterior[0]) == repr(posterior[1])


@pytest.mark.parametrize("temperature", [0, -1.0, float("nan"), float("inf"), "0.5", None])
def test_temperature(temperature: Any) -> None:
    with pytest.raises(InputError, match="temperature must be a positive number"):
        InfoNCE(temperature)
    with pytest.raises(InputError, match="temperature must be a positive number"):
        log_partition(torch.eye(3), temperature)


@pytest.mark.parametrize("prior", [-0.01, 1.01, float("nan"), "auto"])
def test_prior(prior: Any) -> None:
    with pytest.raises(InputError, match="prior must"):
        PuNCE(prior)


def test_other_arguments() -> None:
    with pytest.raises(InputError, match="weighting must be one of"):
        PuNCE(0.3, weighting="mine")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="tau_plus must lie in"):
        DCL(tau_plus=1.0)


@pytest.mark.parametrize("weighting", ["paper", "released", "posterior"])
def test_every_form_wants_labels_in_a_tensor(z: Tensor, weighting: Any) -> None:
    with pytest.raises(InputError, match="labels must be a tensor, got list"):
        PuNCE(0.3, weighting=weighting)(z, [1, 0, 0, 0])  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [InfoNCE, SCL, DCL, lambda temperature: PuNCE(0.3, temperature)])
def test_the_lowest_temperature_gives_numbers_and_a_lower_one_is_refused(loss: Any, z: Tensor) -> None:
    z.requires_grad_()
    value = loss(1e-30)(z, torch.tensor([1, 0, 1, 0]))
    value.backward()
    assert value.isfinite()
    assert z.grad is not None
    assert z.grad.isfinite().all()
    with pytest.raises(InputError, match=r"temperature must be at least 1e-30, got 1e-31"):
        loss(1e-31)


def test_pnu_labels_given_to_the_pu_only_form(z: Tensor) -> None:
    with pytest.raises(InputError, match=r"weighting='released'\).* first at rows 1, 3"):
        PuNCE(0.3, weighting="released")(z, torch.tensor([1, -1, 0, -1]))


@pytest.mark.parametrize("tile", [0, -1, 1.5, "8"])
def test_a_tile_without_rows_is_refused(tile: Any) -> None:
    with pytest.raises(InputError, match="tile must be a whole number of rows"):
        log_partition(torch.eye(3), 0.5, tile)


def test_an_array_is_no_tensor_of_rows() -> None:
    with pytest.raises(InputError, match=r"needs a tensor, got ndarray; torch\.as_tensor makes one"):
        log_partition(np.eye(3), 0.5)  # type: ignore[arg-type]


def test_log_partition_refuses_rows_that_are_not_unit() -> None:
    with pytest.raises(InputError, match=r"row 1 has length 2; normalise"):
        log_partition(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), 0.5)
    with pytest.raises(InputError, match=r"row 0 has length nan"):
        log_partition(torch.full((2, 2), float("nan")), 0.5)
    with pytest.raises(InputError, match=r"\(n, d\)"):
        log_partition(torch.zeros(3), 0.5)


@pytest.mark.parametrize(
    ("loss", "probabilities", "message"),
    [
        (PuNCE(0.3), torch.full((4,), 0.5), "probabilities are for weighting='posterior'"),
        (PuNCE(0.3, weighting="posterior"), [0.5] * 4, "probabilities must be a tensor, got list"),
        (PuNCE(0.3, weighting="posterior"), torch.full((8,), 0.5), "average those of the two views"),
        (PuNCE(0.3, weighting="posterior"), torch.tensor([0.5, 0.1, 2.0, 0.1]), "got 2.0 in row 2; take the sigmoid"),
        (PuNCE(0.3, weighting="posterior"), torch.tensor([0.5, torch.nan, 0.2, 0.1]), "got nan in row 1"),
    ],
)
def test_probabilities_that_cannot_be_used(z: Tensor, loss: PuNCE, probabilities: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        loss(z, torch.tensor([1, 0, 0, -1]), probabilities)


def test_own_view_is_a_share_and_only_for_the_posterior_form() -> None:
    with pytest.raises(InputError, match="weighting='paper' has its own weights"):
        PuNCE(0.3, own_view=0.5)
    for wrong in (-0.1, 1.1, "all"):
        with pytest.raises(InputError, match=r"own_view must lie in \[0, 1\] or be 'confidence' or 'paper'"):
            PuNCE(0.3, weighting="posterior", own_view=wrong)  # type: ignore[arg-type]
    assert "own_view=0.5" in repr(PuNCE(0.3, weighting="posterior", own_view=0.5))
    assert "own_view" not in repr(PuNCE(0.3))


def test_a_loss_without_a_target_says_so(z: Tensor) -> None:
    class Unfinished(ContrastiveLoss):
        pass

    with pytest.raises(NotImplementedError, match=r"Unfinished does not define target\(anchors\)"):
        Unfinished()(z)


def test_a_loss_of_ones_own_needs_public_names_only(z: Tensor) -> None:
    class Plain(ContrastiveLoss):
        def target(self, anchors: Anchors) -> Tensor:
            return anchors.pair

    assert float(Plain(0.3)(z)) == float(InfoNCE(0.3)(z))

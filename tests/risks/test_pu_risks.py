"""uPU and nnPU: unbiasedness, both branches of the step, and the wrong variants the tests must tell apart."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from punce.errors import InputError
from punce.risks import NNPU, UPU, RiskWarning
from punce.risks.base import SURROGATES, find_surrogate
from tests.risks import reference
from tests.risks.cases import batch


def sigmoid_slope(g: float) -> float:
    """dσ(g)/dg = dℓ(−g)/dg for the sigmoid loss."""
    return reference.sigmoid(g) * reference.sigmoid(-g)


def step_gradient(risk: NNPU, scores: Tensor, labels: Tensor) -> list[float]:
    scores = scores.detach().clone().requires_grad_()
    risk(scores, labels).backward()
    assert scores.grad is not None
    return scores.grad.tolist()


def gradient_by_hand(scores: Tensor, labels: Tensor, prior: float, *, positive: float, negative: float) -> list[float]:
    """Gradient of positive·π E_P ℓ(g) + negative·r, row by row."""
    n_p, n_u = int((labels == 1).sum()), int((labels == 0).sum())
    expected = []
    for g, label in zip(scores.tolist(), labels.tolist(), strict=True):
        slope = sigmoid_slope(g)
        if label == 1:
            expected.append(-positive * prior * slope / n_p - negative * prior * slope / n_p)
        else:
            expected.append(negative * slope / n_u)
    return expected


def close(a: list[float], b: list[float]) -> bool:
    return all(math.isclose(x, y, rel_tol=1e-12, abs_tol=1e-15) for x, y in zip(a, b, strict=True))


def test_nnpu_steps_on_the_whole_risk_while_r_is_not_negative() -> None:
    scores, labels = batch(10, 30)
    assert reference.nnpu_parts(scores.tolist(), labels.tolist(), 0.4)[1] > 0
    by_hand = gradient_by_hand(scores, labels, 0.4, positive=1.0, negative=1.0)
    assert close(step_gradient(NNPU(0.4), scores, labels), by_hand)


@pytest.mark.parametrize("gamma", [1.0, 0.25, 0.0])
def test_nnpu_steps_on_minus_gamma_r_alone_when_r_is_negative(gamma: float) -> None:
    scores, labels = batch(10, 30)
    positive_part, r = reference.nnpu_parts(scores.tolist(), labels.tolist(), 0.9)
    assert r < 0
    risk = NNPU(0.9, gamma=gamma)
    got = step_gradient(risk, scores, labels)
    assert close(got, gradient_by_hand(scores, labels, 0.9, positive=0.0, negative=-gamma))
    assert risk.value(scores, labels).item() == pytest.approx(positive_part, abs=1e-12)


WRONG_VARIANTS = {
    "clamping r at 0": {"positive": 1.0, "negative": 0.0},
    "adding the positive part to the correction": {"positive": 1.0, "negative": -1.0},
    "flipping the whole gradient": {"positive": -1.0, "negative": -1.0},
    "no correction (uPU)": {"positive": 1.0, "negative": 1.0},
}


@pytest.mark.parametrize("variant", WRONG_VARIANTS)
def test_known_wrong_variants_have_another_gradient(variant: str) -> None:
    scores, labels = batch(10, 30)
    wrong = gradient_by_hand(scores, labels, 0.9, **WRONG_VARIANTS[variant])
    right = step_gradient(NNPU(0.9), scores, labels)
    assert not close(right, wrong)
    assert max(abs(a - b) for a, b in zip(right, wrong, strict=True)) > 1e-3


def test_beta_moves_the_branch_point() -> None:
    scores, labels = batch(10, 30)
    _, r = reference.nnpu_parts(scores.tolist(), labels.tolist(), 0.9)
    whole = gradient_by_hand(scores, labels, 0.9, positive=1.0, negative=1.0)
    correction = gradient_by_hand(scores, labels, 0.9, positive=0.0, negative=-1.0)
    assert close(step_gradient(NNPU(0.9, beta=-r + 1e-9), scores, labels), whole)
    assert close(step_gradient(NNPU(0.9, beta=-r - 1e-9), scores, labels), correction)


def test_one_correction_step_raises_r() -> None:
    scores, labels = batch(10, 30)
    before = reference.nnpu_parts(scores.tolist(), labels.tolist(), 0.9)[1]
    moved = scores - 0.5 * torch.tensor(step_gradient(NNPU(0.9), scores, labels))
    assert before < 0
    assert reference.nnpu_parts(moved.tolist(), labels.tolist(), 0.9)[1] > before


def test_without_unlabelled_rows_nnpu_does_not_push_positives_down() -> None:
    scores, labels = batch(10, 0)
    assert max(step_gradient(NNPU(0.4), scores, labels)) < 0  # the negative gradient raises every score


@pytest.mark.parametrize("surrogate", sorted(SURROGATES))
@pytest.mark.filterwarnings("ignore::punce.risks.RiskWarning")
def test_upu_is_unbiased_for_the_pn_risk(surrogate: str) -> None:
    prior, n_p, n_u, repeats = 0.35, 40, 80, 1500
    ell = find_surrogate(surrogate)
    g = torch.Generator().manual_seed(11)
    risk = UPU(prior, surrogate)

    def draw(positive: Tensor) -> Tensor:
        return torch.randn(positive.shape, generator=g, dtype=torch.float64) + torch.where(positive, 1.0, -0.7)

    labels = torch.cat([torch.ones(n_p), torch.zeros(n_u)])
    estimates = []
    for _ in range(repeats):
        hidden = torch.rand(n_u, generator=g) < prior
        scores = torch.cat([draw(torch.ones(n_p, dtype=torch.bool)), draw(hidden)])
        estimates.append(risk(scores, labels).item())
    many = torch.ones(1_000_000, dtype=torch.bool)
    truth = prior * ell(draw(many)).mean() + (1 - prior) * ell(-draw(~many)).mean()
    sample = torch.tensor(estimates, dtype=torch.float64)
    standard_error = float(sample.std() / math.sqrt(repeats))
    assert abs(float(sample.mean() - truth)) < 4 * standard_error + 1e-3
    naive = prior * ell(draw(many)).mean() + ell(-draw(~many)).mean()  # the test can tell bias from noise
    assert abs(float(naive - truth)) > 20 * standard_error


def test_upu_goes_below_zero_where_nnpu_does_not() -> None:
    scores, labels = batch(10, 30)
    assert UPU(0.95)(scores, labels) - NNPU(0.95).value(scores, labels) < 0
    certain = torch.where(labels == 1, 20.0, -20.0)
    assert UPU(0.95)(certain, labels).item() == pytest.approx(-0.95, abs=1e-6)
    assert NNPU(0.95).value(certain, labels).item() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("surrogate", ["logistic", "double_hinge"])
def test_upu_warns_of_unbounded_surrogates_and_is_unbounded(surrogate: str) -> None:
    with pytest.warns(RiskWarning, match=f"uPU with the {surrogate} surrogate is unbounded below"):
        risk = UPU(0.4, surrogate)
    scores, labels = batch(10, 30)
    split = torch.where(labels == 1, 1e4, -1e4)
    assert risk(split, labels).item() < -1e3


def test_sigmoid_upu_and_any_nnpu_do_not_warn() -> None:
    UPU(0.4)
    NNPU(0.4, "logistic")


@pytest.mark.parametrize(
    "options", [{"beta": -0.1}, {"beta": math.nan}, {"beta": "0"}, {"gamma": 1.5}, {"gamma": math.nan}, {"gamma": None}]
)
def test_nnpu_refuses_impossible_settings(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must"):
        NNPU(0.4, **options)


def test_unknown_surrogate_is_named() -> None:
    with pytest.raises(InputError, match=r"one of \['double_hinge', 'logistic', 'sigmoid'\], got 'hinge'"):
        NNPU(0.4, "hinge")


def test_nnpu_with_known_negatives_mixes_what_they_and_the_unlabelled_rows_say() -> None:
    scores = torch.tensor([1.0, 0.5, -0.5, 0.3, -2.0, -1.0], dtype=torch.float64)
    labels = torch.tensor([1, 1, 0, 0, 0, -1])
    prior, share = 0.2, 0.3
    loss = [reference.sigmoid(g) for g in scores.tolist()]  # ℓ(−g), and ℓ(g) = 1 − it
    p_minus, u_minus, n_minus = sum(loss[:2]) / 2, sum(loss[2:5]) / 3, loss[5]
    r = u_minus - prior * p_minus
    expected = prior * (1 - p_minus) + (1 - share) * r + share * (1 - prior) * n_minus
    assert NNPU(prior, known_share=share)(scores, labels).item() == pytest.approx(expected, abs=1e-12)
    without = NNPU(prior, known_share=share)(scores[:5], labels[:5])
    assert without.item() == pytest.approx(NNPU(prior)(scores[:5], labels[:5]).item(), abs=1e-12)
    with pytest.raises(InputError, match=r"NNPU without known_share is defined for .* labelled negative"):
        NNPU(prior)(scores, labels)

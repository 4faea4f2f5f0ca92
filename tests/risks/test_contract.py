"""What every risk in the catalogue promises, whatever its formula."""

from __future__ import annotations

import doctest
import inspect

import pytest
import torch
from torch import Tensor

import punce.risks
from punce.errors import InputError
from punce.risks import RISKS, Risk, build_risk, checked_batch, group_means
from tests.risks.cases import CASES, Case, batch, weights_for

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def gradient(case: Case, scores: Tensor, labels: Tensor) -> Tensor:
    scores = scores.detach().clone().requires_grad_()
    case(scores, labels).backward()
    assert scores.grad is not None
    return scores.grad


def test_every_risk_of_the_catalogue_has_a_case() -> None:
    assert {type(case.risk()) for case in CASES} == set(RISKS.values())


@every_case
@pytest.mark.parametrize(("n_p", "n_u"), [(7, 12), (1, 30), (9, 1), (64, 192)])
def test_equals_its_formula_in_plain_loops(case: Case, n_p: int, n_u: int) -> None:
    scores, labels = batch(n_p, n_u, seed=n_p)
    assert abs(case(scores, labels).item() - case.expected(scores, labels)) < 1e-12


@every_case
@pytest.mark.parametrize(("n_p", "n_u"), [(0, 9), (9, 0)], ids=["no-P", "no-U"])
def test_a_batch_without_p_or_u_contributes_its_other_part(case: Case, n_p: int, n_u: int) -> None:
    scores, labels = batch(n_p, n_u, seed=3)
    assert abs(case(scores, labels).item() - case.expected(scores, labels)) < 1e-12
    grad = gradient(case, scores, labels)
    assert torch.isfinite(grad).all()
    assert grad.abs().max() > 0


@every_case
def test_a_batch_of_no_rows_is_zero_with_a_gradient(case: Case) -> None:
    scores = torch.zeros(0, dtype=torch.float64, requires_grad=True)
    value = case(scores, torch.zeros(0, dtype=torch.int64))
    value.backward()
    assert value.item() == 0.0
    assert scores.grad is not None
    assert scores.grad.shape == (0,)


@every_case
def test_gradient_is_that_of_the_value(case: Case) -> None:
    scores, labels = batch(6, 11, seed=5)
    risk = case.risk()
    # Weights carry no gradient, so the numerical derivative must hold them still too.
    extra = (weights_for(scores),) if case.weighted else ()
    assert torch.autograd.gradcheck(lambda s: risk(s, labels, *extra), scores.requires_grad_())


@every_case
def test_order_of_rows_does_not_matter(case: Case) -> None:
    scores, labels = batch(20, 45, seed=2)
    order = torch.randperm(len(scores), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(case(scores[order], labels[order]), case(scores, labels), rtol=1e-13, atol=1e-13)
    moved = gradient(case, scores[order], labels[order])
    torch.testing.assert_close(moved, gradient(case, scores, labels)[order], rtol=1e-12, atol=1e-14)


@every_case
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_is_computed_in_float32(case: Case, dtype: torch.dtype) -> None:
    scores, labels = batch(200, 800, seed=4, dtype=dtype)
    value = case(scores, labels)
    assert value.dtype == torch.float32
    assert abs(value.item() - case.expected(scores.double(), labels)) < 1e-5
    grad = gradient(case, scores, labels)
    assert grad.dtype == dtype
    assert torch.isfinite(grad).all()


@every_case
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["right", "wrong"])
def test_extreme_scores_stay_finite(case: Case, dtype: torch.dtype, sign: float) -> None:
    labels = torch.tensor([1, 1, 0, 0, 1, 0])
    scores = sign * torch.tensor([1e4, 1e4, -1e4, -1e4, -1e4, 1e4], dtype=dtype)
    for rows in (slice(None), slice(0, 4)):
        assert torch.isfinite(case(scores[rows], labels[rows]))
        assert torch.isfinite(gradient(case, scores[rows], labels[rows])).all()


@every_case
def test_value_is_for_logs_and_carries_no_gradient(case: Case) -> None:
    scores, labels = batch(8, 20)
    extra = (weights_for(scores),) if case.weighted else ()
    estimate = case.risk().value(scores.requires_grad_(), labels, *extra)
    assert not estimate.requires_grad
    assert torch.isfinite(estimate)


@every_case
def test_labels_of_any_number_type_give_the_same(case: Case) -> None:
    scores, labels = batch(8, 20)
    for dtype in (torch.int8, torch.bool, torch.float32):
        assert torch.equal(case(scores, labels.to(dtype)), case(scores, labels))


@every_case
def test_nan_scores_are_refused_with_their_rows(case: Case) -> None:
    scores, labels = batch(3, 5)
    scores[4], scores[6] = float("nan"), float("inf")
    scores.requires_grad_()  # as the scores of a network do
    with pytest.raises(InputError, match=r"2 of 8 are not finite, at row 4 \(nan\), 6 \(inf\)"):
        case(scores, labels)


@every_case
def test_wrong_shapes_are_refused(case: Case) -> None:
    scores, labels = batch(3, 5)
    with pytest.raises(InputError, match=r"scores must have shape \(b,\), got \(8, 1\); squeeze"):
        case.risk()(scores[:, None], labels)
    with pytest.raises(InputError, match=r"labels must have the shape of scores \(8,\), got \(7,\)"):
        case.risk()(scores, labels[:-1])
    with pytest.raises(InputError, match=r"floating-point tensor of raw scores, got torch\.int64"):
        case.risk()(labels, labels)
    with pytest.raises(InputError, match="labels must be a tensor"):
        case.risk()(scores, labels.tolist())


@every_case
def test_labels_outside_the_vocabulary_are_refused(case: Case) -> None:
    scores, labels = batch(3, 5)
    labels[2] = 2
    with pytest.raises(InputError, match=r"values \[2\], first at row 2"):
        case(scores, labels)


@every_case
def test_negatives_are_refused_where_only_pu_is_defined(case: Case) -> None:
    scores, labels = batch(3, 5)
    labels[labels == 0] = -1
    if case.name.startswith("pn"):
        zeros = torch.where(labels == -1, 0, labels)
        assert torch.equal(case(scores, labels), case(scores, zeros))
    else:
        with pytest.raises(InputError, match=r"positives \(1\) and unlabelled rows \(0\) only"):
            case(scores, labels)


@pytest.mark.parametrize("name", ["upu", "nnpu", "pvu"])
@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, 1.5, 40, float("nan"), "many"])
def test_a_prior_outside_the_open_interval_is_refused(name: str, prior: float) -> None:
    with pytest.raises(InputError, match="prior must"):
        RISKS[name](prior=prior)


def test_build_risk_hands_the_prior_to_those_that_take_one() -> None:
    built = {name: build_risk(name, prior=0.3) for name in RISKS}
    assert all(isinstance(risk, Risk) for risk in built.values())
    takers = {name for name, kind in RISKS.items() if "prior" in inspect.signature(kind).parameters}
    assert takers >= {"upu", "nnpu", "pvu"}
    assert {name for name, risk in built.items() if getattr(risk, "prior", None) == 0.3} == takers
    assert build_risk("nnpu", prior=0.3, gamma=0.5).gamma == 0.5


def test_build_risk_explains_what_is_missing() -> None:
    with pytest.raises(InputError, match=r"risk must be one of .*'nnpu'.* got 'nope'"):
        build_risk("nope")
    with pytest.raises(InputError, match="risk 'nnpu' needs prior="):
        build_risk("nnpu")
    with pytest.raises(InputError, match=r"no option \['gama'\]"):
        build_risk("nnpu", prior=0.3, gama=1.0)


@every_case
def test_repr_names_the_settings(case: Case) -> None:
    assert type(case.risk()).__name__ in repr(case.risk())
    assert "=" in repr(case.risk())


def test_the_example_in_the_docs_is_right() -> None:
    result = doctest.testmod(punce.risks)
    assert result.attempted > 0
    assert result.failed == 0


def test_a_risk_without_a_formula_says_so() -> None:
    class Unfinished(Risk):
        pass

    with pytest.raises(NotImplementedError, match=r"Unfinished does not define forward\(scores, labels\)"):
        Unfinished()(torch.zeros(2), torch.tensor([1, 0]))


def test_a_risk_of_ones_own_needs_public_names_only() -> None:
    class Absolute(Risk):
        """E_P |1 − g| + E_U |g|."""

        def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
            scores, labels = checked_batch(scores, labels)
            groups = [((1 - scores).abs(), labels == 1), (scores.abs(), labels == 0)]
            return sum(group_means(groups).means, torch.zeros(()))

    assert float(Absolute()(torch.tensor([1.0, 0.5, 2.0]), torch.tensor([1, 1, 0]))) == 2.25

"""The contract every loss in LOSSES keeps: the paper's equation, its gradient, invariances, degenerate batches."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from punce.errors import InputError, PunceError
from punce.losses import DCL, LOSSES, SCL, ContrastiveLoss, InfoNCE, PuNCE
from punce.losses.contrastive import two_view_anchors
from punce.losses.posterior import anchor_probabilities
from punce.losses.punce import OwnView
from tests.losses import reference


@dataclass(frozen=True)
class Case:
    loss: Callable[[float], ContrastiveLoss]
    equation: Callable[[Tensor, Sequence[int], float], Tensor]
    pu_only: bool = False


def probabilities_of(z: Tensor) -> Tensor:
    """A probability for each row in steps of 0.1, the same for any scale and order of the views: it has no gradient."""
    z = z.detach().double()
    z = z / z.abs().amax(2, keepdim=True).clamp_min(torch.finfo(z.dtype).tiny)  # squares of tiny numbers are zero
    unit = z / z.norm(dim=2, keepdim=True).clamp_min(1e-12)
    return (unit.sum((0, 2)).sigmoid() * 8).round() / 10 + 0.1


class WithProbabilities(PuNCE):
    """The posterior form with probabilities of its own for every batch, so that the contract can call it."""

    def __init__(self, temperature: float, own_view: OwnView = 0.6) -> None:
        super().__init__(0.3, temperature, weighting="posterior", own_view=own_view)

    def forward(self, z: Tensor, labels: Tensor | None = None, probabilities: Tensor | None = None) -> Tensor:
        return super().forward(z, labels, probabilities_of(z) if probabilities is None else probabilities)


CASES = {
    "infonce": Case(InfoNCE, reference.infonce),
    "scl": Case(SCL, reference.scl),
    "punce": Case(lambda t: PuNCE(0.3, t), lambda z, s, t: reference.punce_pnu(z, s, t, 0.3)),
    "punce-pu": Case(lambda t: PuNCE(0.3, t), lambda z, s, t: reference.punce_pu(z, s, t, 0.3), pu_only=True),
    "punce-released": Case(
        lambda t: PuNCE(0.3, t, weighting="released"),
        lambda z, s, t: reference.punce_released(z, s, t, 0.3),
        pu_only=True,
    ),
    "punce-posterior": Case(
        WithProbabilities,
        lambda z, s, t: reference.punce_posterior(z, s, t, 0.3, probabilities_of(z).tolist(), 0.6),
    ),
    "punce-confidence": Case(
        lambda t: WithProbabilities(t, "confidence"),
        lambda z, s, t: reference.punce_posterior(z, s, t, 0.3, probabilities_of(z).tolist(), None),
    ),
    "dcl": Case(DCL, lambda z, s, t: reference.dcl(z, s, t, 0.1)),
    "dcl-strong": Case(lambda t: DCL(t, tau_plus=0.5), lambda z, s, t: reference.dcl(z, s, t, 0.5)),
}

LABELS = {
    "pu": [1, 0, 1, 0, 0, 1],
    "pnu": [1, -1, 0, 0, -1, 1],
    "no label": [0, 0, 0, 0],
    "one label": [0, 1, 0, 0],
    "one negative": [0, -1, 0, 1],
    "all labelled": [1, -1, 1, -1, 1],
    "all positive": [1, 1, 1],
    "one row": [0],
    "one labelled row": [1],
}

by_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
by_labels = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
by_temperature = pytest.mark.parametrize("temperature", [0.5, 0.05])


def projections(b: int, d: int = 5, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, b, d, dtype=torch.float64, generator=generator, requires_grad=True)


def skip_unless_defined(case: Case, labels: list[int]) -> None:
    if case.pu_only and -1 in labels:
        pytest.skip("this form of the loss is defined for PU labels only")


def test_every_loss_of_the_catalogue_has_its_equation() -> None:
    assert set(LOSSES) <= set(CASES)
    assert {type(case.loss(0.5)) for case in CASES.values()} - {WithProbabilities} == set(LOSSES.values())


@by_case
def test_repr_names_the_settings(case: Case) -> None:
    """A resumed run compares it."""
    loss = case.loss(0.5)
    hidden = set() if getattr(loss, "weighting", "posterior") == "posterior" else {"own_view"}  # which has no effect
    assert all(f"{name}=" in repr(loss) for name in set(inspect.signature(type(loss)).parameters) - hidden)


@by_temperature
@pytest.mark.parametrize("name", ["pu", "pnu", "one labelled row"])
@by_case
def test_torch_func_transforms_a_loss(case: Case, name: str, temperature: float) -> None:
    labels = LABELS[name]
    skip_unless_defined(case, labels)
    loss, known = case.loss(temperature), torch.tensor(labels)
    batches = torch.stack([projections(len(labels), seed=seed).detach() for seed in range(3)])
    values = [loss(z, known) for z in batches]
    gradients = [torch.autograd.grad(loss(z, known), z)[0] for z in batches.clone().requires_grad_().unbind()]
    found, found_values = torch.func.grad_and_value(loss)(batches[0], known)
    torch.testing.assert_close((found, found_values), (gradients[0], values[0]))
    if isinstance(loss, WithProbabilities):
        return  # its probabilities are looked at, which vmap does not allow
    torch.testing.assert_close(torch.func.vmap(loss, (0, None))(batches, known), torch.stack(values))
    at_once = torch.func.vmap(torch.func.grad(loss), (0, None))(batches, known)
    torch.testing.assert_close(at_once, torch.stack(gradients))


@by_case
def test_gradient_checkpointing_changes_no_bit(case: Case) -> None:
    """Who is short of memory computes network and loss a second time in the backward pass."""
    loss, labels = case.loss(0.5), torch.tensor(LABELS["pu"])
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).double()
    gradients = []
    for is_checkpointed in (False, True):
        network.zero_grad()
        z = projections(6)
        value = checkpoint(lambda x: loss(network(x), labels), z, use_reentrant=False) if is_checkpointed else None
        (loss(network(z), labels) if value is None else value).backward()
        gradients.append([z.grad, *(weight.grad.clone() for weight in network.parameters() if weight.grad is not None)])
    assert all(torch.equal(*pair) for pair in zip(*gradients, strict=True))


@by_case
def test_vmap_takes_labels_for_each_batch(case: Case) -> None:
    """One batch of rows and labels a task, as in ensembles and meta-learning."""
    loss = case.loss(0.5)
    z, labels = torch.stack([projections(6).detach(), projections(6).detach().flip(1)]), torch.tensor(LABELS["pu"])
    both = torch.stack([labels, labels.flip(0)])
    if isinstance(loss, PuNCE) and loss.weighting == "posterior":
        with pytest.raises(PunceError, match="looks at the labels, which vmap does not allow"):
            torch.func.vmap(lambda z, labels: PuNCE.forward(loss, z, labels))(z, both)
        return
    values = torch.stack([loss(*batch) for batch in zip(z, both, strict=True)])
    torch.testing.assert_close(torch.func.vmap(loss)(z, both), values)


@by_case
def test_torch_func_gives_the_second_derivative(case: Case) -> None:
    loss, labels = case.loss(0.5), torch.tensor(LABELS["pu"])
    z = projections(6, d=2).detach()
    found = torch.func.jacrev(torch.func.grad(loss))(z, labels)
    torch.testing.assert_close(found, torch.autograd.functional.hessian(lambda z: loss(z, labels), z))


def test_torch_func_still_refuses_a_row_that_is_not_finite() -> None:
    z = projections(3).detach()
    z[1, 2, 0] = math.nan
    with pytest.raises(InputError, match="view 1 row 2"):
        torch.func.grad(InfoNCE())(z, None)


@by_temperature
@by_labels
@by_case
def test_value_and_gradient_are_those_of_the_printed_equation(
    case: Case, labels: list[int], temperature: float
) -> None:
    skip_unless_defined(case, labels)
    z = projections(len(labels))
    ours, theirs = case.loss(temperature)(z, torch.tensor(labels)), case.equation(z, labels, temperature)
    (ours_grad,) = torch.autograd.grad(ours, z)
    (theirs_grad,) = torch.autograd.grad(theirs, z)
    assert abs(float((ours - theirs).detach())) < 1e-9
    assert float((ours_grad - theirs_grad).abs().max()) < 1e-9


@by_labels
@by_case
def test_gradcheck_first_and_second_order(case: Case, labels: list[int]) -> None:
    skip_unless_defined(case, labels)
    z, s = projections(len(labels), d=3), torch.tensor(labels)
    loss = case.loss(0.5)
    assert torch.autograd.gradcheck(lambda z: loss(z, s), (z,))
    assert torch.autograd.gradgradcheck(lambda z: loss(z, s), (z,), atol=1e-4)


@by_case
@settings(max_examples=25, deadline=None)
@given(labels=st.lists(st.sampled_from([1, 0, -1]), min_size=1, max_size=7), seed=st.integers(0, 2**16))
def test_any_mix_of_labels(case: Case, labels: list[int], seed: int) -> None:
    if case.pu_only:
        labels = [max(label, 0) for label in labels]
    z = projections(len(labels), seed=seed)
    ours = case.loss(0.2)(z, torch.tensor(labels))
    assert abs(float(ours.detach() - case.equation(z, labels, 0.2).detach())) < 1e-9


@by_case
def test_row_order_view_order_and_scale_do_not_matter(case: Case) -> None:
    labels = torch.tensor([1, 0, 0, 1, 0])
    z, loss = projections(5).detach(), case.loss(0.5)
    order = torch.tensor([3, 1, 4, 0, 2])
    value = loss(z, labels)
    torch.testing.assert_close(loss(z[:, order], labels[order]), value, rtol=0, atol=1e-13)
    torch.testing.assert_close(loss(z.flip(0), labels), value, rtol=0, atol=1e-13)
    torch.testing.assert_close(loss(z * 7.5, labels), value, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("dtype", "scales"), [(torch.float32, (1e-16, 1e-21, 1e-30)), (torch.float64, (1e-140, 1e-160, 1e-300))]
)
@by_case
def test_rows_of_hardly_any_length_keep_their_direction(
    case: Case, dtype: torch.dtype, scales: tuple[float, ...]
) -> None:
    labels, loss = torch.tensor([1, 0, 0, 1, 0]), case.loss(0.5)
    z = projections(5).detach().to(dtype)
    some = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0], dtype=torch.bool)[None, :, None]
    for scale in scales:
        value = loss(torch.where(some, z * scale, z), labels)
        torch.testing.assert_close(value, loss(z, labels), rtol=0, atol=10 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("temperature", [0.01, 0.03, 100.0])
@by_case
def test_finite_at_extreme_temperatures_with_duplicated_and_opposite_rows(case: Case, temperature: float) -> None:
    z = projections(4).detach().float()
    z[:, 1] = z[:, 0]
    z[1, 2] = -z[0, 2]
    z.requires_grad_()
    value = case.loss(temperature)(z, torch.tensor([1, 0, 0, 1]))
    value.backward()  # type: ignore[no-untyped-call]
    assert math.isfinite(float(value.detach()))
    assert z.grad is not None
    assert bool(z.grad.isfinite().all())


@pytest.mark.parametrize("temperature", [0.004, 0.002])
@by_case
def test_the_running_maximum_path_is_exact(case: Case, temperature: float) -> None:
    """float64 needs the running maximum below τ = 0.0031; 0.004 is just on the other side."""
    labels = [1, 0, 1, 0]
    z = projections(4)
    if isinstance(case.loss(0.5), DCL):
        pytest.skip("the plain DCL equation overflows here")
    ours, theirs = case.loss(temperature)(z, torch.tensor(labels)), case.equation(z, labels, temperature)
    (ours_grad,) = torch.autograd.grad(ours, z)
    (theirs_grad,) = torch.autograd.grad(theirs, z)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-9)
    torch.testing.assert_close(ours_grad, theirs_grad, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@by_case
def test_half_precision_is_computed_in_float32(case: Case, dtype: torch.dtype) -> None:
    z, labels = projections(6).detach().to(dtype), torch.tensor([1, 0, 0, 1, 0, 0])
    half = z.clone().requires_grad_()
    value = case.loss(0.1)(half, labels)
    exact = case.loss(0.1)(z.double(), labels)
    value.backward()  # type: ignore[no-untyped-call]
    assert value.dtype == torch.float32
    assert abs(float(value.detach()) - float(exact)) < 1e-5
    assert half.grad is not None
    assert half.grad.dtype == dtype


@by_case
def test_autocast_does_not_reach_the_similarities(case: Case) -> None:
    z, labels = torch.randn(2, 40, 16), torch.tensor([1, 0] * 20)
    plain = case.loss(0.05)(z, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = case.loss(0.05)(z, labels)
    assert float(plain) == float(mixed)


@by_case
def test_no_labels_given_means_all_unlabelled_and_bools_mean_labelled(case: Case) -> None:
    z, loss = projections(4).detach(), case.loss(0.5)
    assert float(loss(z)) == float(loss(z, torch.zeros(4)))
    mask = torch.tensor([True, False, False, True])
    assert float(loss(z, mask)) == float(loss(z, mask.long()))


@by_case
def test_a_zero_projection_gets_no_gradient_and_breaks_nothing(case: Case) -> None:
    z = projections(3).detach()
    z[0, 1] = 0.0
    z.requires_grad_()
    case.loss(0.5)(z, torch.tensor([1, 0, 0])).backward()  # type: ignore[no-untyped-call]
    assert z.grad is not None
    assert bool(z.grad.isfinite().all())
    assert bool((z.grad[0, 1] == 0).all())


# The four identities of the loss family ------------------------------


@pytest.mark.parametrize("prior", [0.0, 0.3, 1.0])
def test_punce_without_labels_is_infonce(prior: float) -> None:
    z = projections(6).detach()
    assert float(PuNCE(prior)(z, torch.zeros(6))) == float(InfoNCE()(z, torch.zeros(6)))


def test_punce_with_prior_zero_is_scl() -> None:
    z, labels = projections(6).detach(), torch.tensor([1, 0, 0, 1, 0, 0])
    assert float(PuNCE(0.0)(z, labels)) == float(SCL()(z, labels))


def test_pnu_punce_without_negatives_is_pu_punce() -> None:
    z, labels = projections(6).detach(), [1, 0, 0, 1, 0, 0]
    pnu = reference.punce_pnu(z, labels, 0.5, 0.4)
    pu = reference.punce_pu(z, labels, 0.5, 0.4)
    assert abs(float(pnu - pu)) < 1e-14
    assert abs(float(PuNCE(0.4)(z, torch.tensor(labels)) - pu)) < 1e-14


def test_pnu_punce_without_unlabelled_rows_is_scl() -> None:
    z, labels = projections(6).detach(), torch.tensor([1, -1, -1, 1, 1, -1])
    assert float(PuNCE(0.4)(z, labels)) == float(SCL()(z, labels))


def test_pu_punce_does_not_become_scl_when_everything_is_known_but_unlabelled() -> None:
    """The paper's sentence that PU puNCE reduces to SCL under full supervision holds for the PNU form only."""
    z = projections(6).detach()
    pu, truth = torch.tensor([1, 1, 1, 0, 0, 0]), torch.tensor([1, 1, 1, -1, -1, -1])
    assert abs(float(PuNCE(0.0)(z, pu)) - float(SCL()(z, truth))) > 1e-3


# Probabilities of the rows ------------------------------


@pytest.mark.parametrize("labels", [[1, 0, 0, 1, 0, 0], [1, -1, 0, 0, -1, 0], [0, 0, -1, 0, 0, 0]])
def test_with_the_prior_for_every_row_and_the_papers_weights_it_is_the_papers_loss(labels: list[int]) -> None:
    z, s = projections(6).detach(), torch.tensor(labels)
    paper, posterior = PuNCE(0.4), PuNCE(0.4, weighting="posterior", own_view="paper")
    for same in (0.4, 0.9):  # only the ranks of the rows count: any one number for all of them is the prior
        assert abs(float(posterior(z, s, torch.full((6,), same)) - paper(z, s))) < 1e-14


@pytest.mark.parametrize("labels", [[1, 0, 0, 1, 0, 0], [1, -1, 0, 0, -1, 0], [0, 0, 0, 0, 0, 0]])
def test_the_whole_weight_for_the_own_view_is_scl(labels: list[int]) -> None:
    z, s = projections(6).detach(), torch.tensor(labels)
    given = torch.linspace(0, 1, 6)
    assert float(PuNCE(0.4, weighting="posterior", own_view=1.0)(z, s, given)) == float(SCL()(z, s))


def test_the_own_view_has_one_half_with_both_classes_and_the_other_classs_part_with_one() -> None:
    z, given = projections(6).detach(), torch.linspace(0, 1, 6)
    for labels, own_view in (([1, -1, 0, 0, -1, 0], 0.5), ([1, 0, 0, 1, 0, 0], 0.0), ([-1, 0, 0, -1, 0, 0], 0.0)):
        s = torch.tensor(labels)
        automatic, told = (PuNCE(0.4, weighting="posterior", own_view=own) for own in (None, own_view))
        assert float(automatic(z, s, given)) == float(told(z, s, given))


def test_a_row_that_may_be_of_either_class_keeps_its_own_view() -> None:
    z, s = projections(6).detach(), torch.tensor([1, -1, 0, 0, -1, 0])
    unsure = PuNCE(0.5, weighting="posterior", own_view="confidence")(z, s, torch.full((6,), 0.5))
    assert abs(float(unsure) - float(SCL()(z, s))) < 1e-12
    sure = torch.tensor([0.5, 0.5, 1.0, 0.0, 0.5, 1.0])
    by_confidence, told = (PuNCE(2 / 3, weighting="posterior", own_view=own) for own in ("confidence", 0.5))
    assert abs(float(by_confidence(z, s, sure)) - float(told(z, s, sure))) < 1e-4


def test_a_row_with_a_higher_probability_is_pulled_to_the_positives() -> None:
    z, s = projections(4).detach(), torch.tensor([1, -1, 0, 0])
    pulls = []
    for p in ([0.5, 0.5, 0.9, 0.1], [0.5, 0.5, 0.1, 0.9]):
        moved = z.clone().requires_grad_()
        PuNCE(0.5, weighting="posterior")(moved, s, torch.tensor(p)).backward()  # type: ignore[no-untyped-call]
        assert moved.grad is not None
        pulls.append(-float((moved.grad[:, 2] * z[:, 0]).sum()))
    assert pulls[0] > pulls[1]


@pytest.mark.parametrize("prior", [0.0, 0.02, 0.5, 1.0])
def test_probabilities_of_the_unlabelled_rows_average_to_the_prior(prior: float) -> None:
    anchors = two_view_anchors(projections(9).detach(), torch.tensor([1, -1, 0, 0, 0, 0, 0, 0, 0]))
    p = anchor_probabilities(anchors, prior, torch.tensor([0.5, 0.5, 0.0, 1.0, 0.2, 0.3, 0.9, 0.99, 0.2]))
    assert p.shape == (18, 1)
    assert abs(float(p[2:9].mean()) - prior) < 1e-12
    assert bool((p[:9] == p[9:]).all())
    ranked = p[[2, 4, 5, 6, 7, 3], 0]
    assert bool((ranked.diff() >= 0).all())


def test_autocast_does_not_round_the_probabilities() -> None:
    z, labels = torch.randn(2, 40, 16), torch.tensor([1, 0, 0, -1] * 10)
    plain = anchor_probabilities(two_view_anchors(z, labels), 0.3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = anchor_probabilities(two_view_anchors(z, labels), 0.3)
    assert torch.equal(plain, mixed)


def test_no_gradient_reaches_what_the_probabilities_came_from() -> None:
    scores = torch.zeros(4, requires_grad=True)
    z = projections(4)
    loss = PuNCE(0.3, weighting="posterior")(z, torch.tensor([1, 0, 0, -1]), scores.sigmoid())
    loss.backward()  # type: ignore[no-untyped-call]
    assert scores.grad is None


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # of torch itself
def test_no_derivative_goes_forward_through_the_probabilities() -> None:
    """hessian goes forward, which no_grad does not stop."""
    z, loss, labels = projections(6).detach(), PuNCE(0.3, weighting="posterior"), torch.tensor(LABELS["pnu"])
    backward = torch.func.grad(loss)(z, labels)
    torch.testing.assert_close(torch.func.jacfwd(loss)(z, labels), backward)
    found = torch.func.hessian(loss)(z, labels)
    torch.testing.assert_close(found, torch.autograd.functional.hessian(lambda z: loss(z, labels), z))


@pytest.mark.parametrize("labels", [[1, 0, 0, 1, 0, 0], [1, -1, 0, 0, -1, 0], [0, 0, -1, 0, 0, 0], [0, 0, 0, 0, 0, 0]])
def test_without_probabilities_they_come_from_the_means_of_the_classes(labels: list[int]) -> None:
    z, s = projections(6), torch.tensor(labels)
    unit = (z / z.norm(dim=2, keepdim=True)).detach()
    means = {label: unit[:, s == label].mean((0, 1)) for label in set(labels)}
    difference = means.get(1, means[0]) - means.get(-1, means[0])
    loss = PuNCE(0.4, 0.3, weighting="posterior")
    theirs = (10 * unit.mean(0) @ difference).sigmoid()
    grads = [torch.autograd.grad(loss(z, s, *more), z)[0] for more in [(), (theirs,)]]
    torch.testing.assert_close(*grads, rtol=0, atol=1e-12)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_probabilities_from_means_keep_invariances_and_degenerate_batches_finite(labels: list[int]) -> None:
    z, s = projections(len(labels)).detach(), torch.tensor(labels)
    loss, order = PuNCE(0.3, weighting="posterior"), torch.arange(len(labels)).flip(0)
    value = loss(z, s)
    assert bool(value.isfinite())
    for other in (loss(z[:, order], s[order]), loss(z.flip(0), s), loss(z * 7.5, s)):
        torch.testing.assert_close(other, value, rtol=0, atol=1e-13)


class LargestTensor(TorchDispatchMode):
    """The number of elements of the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.found = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.found = max(self.found, *(one.numel() for one in tree_leaves(made) if isinstance(one, Tensor)), 0)
        return made


@by_case
def test_no_tensor_holds_all_pairs_of_views(case: Case) -> None:
    b = 2000
    z = torch.randn(2, b, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
    labels = torch.arange(b).remainder(3).clamp_max(1) if case.pu_only else torch.arange(b).remainder(3) - 1
    with LargestTensor() as largest:
        case.loss(0.5)(z, labels).backward()  # type: ignore[no-untyped-call]
    assert largest.found <= 1024 * 1024 < (2 * b) ** 2 / 10

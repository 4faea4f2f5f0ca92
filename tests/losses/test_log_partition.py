"""The kernel: every path gives the same numbers as the plain masked logsumexp."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from punce.losses import InfoNCE, log_partition


def unit(n: int, d: int = 7, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    rows = torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return normalize(rows, dim=1).to(dtype).requires_grad_()


def plain(z: Tensor, temperature: float) -> Tensor:
    return (z @ z.T / temperature).fill_diagonal_(-math.inf).logsumexp(1)


@pytest.mark.parametrize("temperature", [1.0, 0.05, 0.002])
@pytest.mark.parametrize("n", [2, 3, 16, 31, 48])
@pytest.mark.parametrize("tile", [None, 1, 5, 16, 64])
def test_tiles_of_any_size_agree_with_the_plain_form(n: int, tile: int | None, temperature: float) -> None:
    z, weights = unit(n), torch.linspace(-1, 2, n, dtype=torch.float64)
    ours, theirs = log_partition(z, temperature, tile), plain(z, temperature)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    (ours_grad,) = torch.autograd.grad(ours @ weights, z)
    (theirs_grad,) = torch.autograd.grad(theirs @ weights, z)
    torch.testing.assert_close(ours_grad, theirs_grad, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("temperature", [0.5, 0.05, 0.03, 0.02, 0.01])
def test_float32_error_stays_small_on_both_sides_of_the_switch_to_a_running_maximum(temperature: float) -> None:
    z = unit(300, 16)
    single = z.detach().float().requires_grad_()
    exact, ours = plain(z, temperature), log_partition(single, temperature)
    (exact_grad,) = torch.autograd.grad(exact.sum(), z)
    (ours_grad,) = torch.autograd.grad(ours.sum(), single)
    assert float((ours - exact).detach().abs().max()) < 2e-6 / temperature
    assert float((ours_grad - exact_grad).abs().max() / exact_grad.abs().max()) < 2e-6 / temperature


def test_a_lone_row_has_an_empty_sum_and_no_gradient() -> None:
    for temperature in (0.5, 0.001):
        z = unit(1)
        value = log_partition(z, temperature)
        assert float(value.detach()) == -math.inf
        (grad,) = torch.autograd.grad(value.sum(), z)
        assert bool((grad == 0).all())


def test_gradients_of_repeated_backward_passes_are_equal() -> None:
    z = unit(40)
    value = log_partition(z, 0.5).sum()
    (first,) = torch.autograd.grad(value, z, retain_graph=True)
    (second,) = torch.autograd.grad(value, z)
    assert torch.equal(first, second)


@pytest.mark.parametrize("tile", [None, 8])
def test_second_derivatives(tile: int | None) -> None:
    assert torch.autograd.gradgradcheck(lambda z: log_partition(normalize(z, dim=1), 0.5, tile), (unit(9, 3),))


def test_nothing_quadratic_is_saved_for_the_backward_pass() -> None:
    n, largest = 4096, 0

    def pack(tensor: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    z = unit(n, 8, torch.float32)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        value = log_partition(z, 0.5)
    assert largest == n * 8
    assert value.grad_fn is not None
    assert value.grad_fn.exp is None  # type: ignore[attr-defined]  # the one-buffer path is for small n only


def test_inside_a_compiled_model() -> None:
    model, loss = torch.nn.Linear(6, 4), InfoNCE(0.2)
    x = torch.randn(2, 10, 6)
    compiled = torch.compile(lambda x: loss(model(x)), backend="aot_eager")
    eager = loss(model(x))
    eager_grad = torch.autograd.grad(eager, list(model.parameters()))
    value = compiled(x)
    grad = torch.autograd.grad(value, list(model.parameters()))
    torch.testing.assert_close(value, eager)
    for ours, theirs in zip(grad, eager_grad, strict=True):
        torch.testing.assert_close(ours, theirs)

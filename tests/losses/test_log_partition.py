"""The kernel: every path gives the same numbers as the plain masked logsumexp."""

from __future__ import annotations

import importlib
import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from punce.losses import PuNCE, log_partition

module = importlib.import_module("punce.losses.log_partition")  # the package's name is the function


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


def test_products_in_bfloat16_move_loss_and_gradient_by_less_than_a_hundredth() -> None:
    """Only CPUs with AMX and accelerators round here; the setting is the user's, and holds for both passes."""
    z, reference = (unit(600, 64, dtype) for dtype in (torch.float32, torch.float64))
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        ours = log_partition(z, 0.1, tile=256)
        ours.sum().backward()  # type: ignore[no-untyped-call]
    finally:
        torch.set_float32_matmul_precision(precision)
    theirs = log_partition(reference, 0.1)
    theirs.sum().backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(ours, theirs.float(), rtol=1e-2, atol=0)
    assert z.grad is not None
    assert reference.grad is not None
    assert (z.grad - reference.grad).norm() < 1e-2 * reference.grad.norm()


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


@pytest.mark.parametrize("kept_bytes", [0, 8 * 8 * 8 * 3, 2**30])
def test_keeping_tiles_for_the_backward_pass_changes_nothing(kept_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module._KEPT_BYTES, "cpu", kept_bytes)  # none, three tiles of 8 × 8, all
    z = unit(45)
    ours, theirs = log_partition(z, 0.5, 8), plain(z, 0.5)
    (ours_grad,) = torch.autograd.grad(ours.square().sum(), z)
    (theirs_grad,) = torch.autograd.grad(theirs.square().sum(), z)
    torch.testing.assert_close(ours_grad, theirs_grad, rtol=1e-12, atol=1e-12)


def test_what_is_kept_for_the_backward_pass_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = 16 * 128 * 128 * 4
    monkeypatch.setitem(module._KEPT_BYTES, "cpu", budget)
    for n in (1000, 3000):
        lse = log_partition(unit(n, 8, torch.float32), 0.5, 128)
        kept = sum(tile.numel() * 4 for tile in tiles_kept_by(lse))
        assert 0.9 * budget < kept <= budget
    assert not log_partition(unit(50).detach(), 0.5).requires_grad


def tiles_kept_by(lse: Tensor) -> tuple[Tensor, ...]:
    """What autograd saved beside z, the sums and the rows of all ranks."""
    return lse.grad_fn.saved_tensors[3:]  # type: ignore[union-attr, no-any-return]


def test_what_was_kept_is_freed_by_the_backward_pass_unless_the_graph_is_retained() -> None:
    z = unit(60)
    lse = log_partition(z, 0.5, 16)
    n_tiles = len(tiles_kept_by(lse))
    assert n_tiles
    lse.sum().backward(retain_graph=True)
    assert len(tiles_kept_by(lse)) == n_tiles
    lse.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        tiles_kept_by(lse)


def test_memory_without_a_gradient_follows_the_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    new_empty = Tensor.new_empty

    def noting(self: Tensor, size: object, **options: object) -> Tensor:
        made = new_empty(self, size, **options)  # type: ignore[call-overload]
        sizes.append(made.numel())
        return made  # type: ignore[no-any-return]

    monkeypatch.setattr(Tensor, "new_empty", noting)
    log_partition(unit(50).detach(), 0.5, 1024)
    assert max(sizes) == 50 * 50


@pytest.mark.parametrize("temperature", [0.5, 0.01])
def test_autocast_does_not_round_the_second_derivative(temperature: float) -> None:
    z = unit(30, 5, torch.float32)

    def first_derivative() -> Tensor:
        (grad,) = torch.autograd.grad(log_partition(z, temperature).sum(), z, create_graph=True)
        return grad

    exact = first_derivative()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = first_derivative()
    assert torch.equal(ours, exact)


@pytest.mark.filterwarnings("default")  # dynamo warns about its own look at .grad
@pytest.mark.slow  # compiling takes long
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_inside_a_compiled_model(backend: str) -> None:
    model, loss, labels = torch.nn.Linear(6, 4), PuNCE(0.3, 0.2), torch.tensor([1, 0, 0, 0, 1, 0, 0, 0, 0, 0])
    x = torch.randn(2, 10, 6)
    compiled = torch.compile(lambda x: loss(model(x), labels), backend=backend)
    eager = loss(model(x), labels)
    eager_grad = torch.autograd.grad(eager, list(model.parameters()))
    for _ in range(2):  # the second call runs what the first one compiled
        value = compiled(x)
        grad = torch.autograd.grad(value, list(model.parameters()))
        torch.testing.assert_close(value, eager)
        for ours, theirs in zip(grad, eager_grad, strict=True):
            torch.testing.assert_close(ours, theirs)

"""LARS against its formula, which parameters are spared, the schedule, and bit-exact resumption of every optimiser."""

from __future__ import annotations

import copy
import json
import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from punce.errors import InputError
from punce.training.optim import LARS, OPTIMIZERS, build_optimizer, set_rate, split_parameters, warmup_cosine


def network(seed: int = 0, dtype: torch.dtype = torch.float64) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16, 5),
        nn.LayerNorm(5),
        nn.Linear(5, 1),
    ).to(dtype)


def gradients(model: nn.Module, step: int) -> None:
    """A fixed gradient for every step, so that two runs see the same."""
    generator = torch.Generator().manual_seed(step)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=torch.float64).to(parameter.dtype)


def lars_by_hand(
    w: list[float], g: list[float], m: list[float], *, lr: float, mu: float, decay: float, trust: float | None
) -> tuple[list[float], list[float]]:
    """One step on one flattened tensor; trust None means the plain momentum step."""
    d = [gi + decay * wi for gi, wi in zip(g, w, strict=True)]
    w_norm, d_norm = math.sqrt(math.fsum(x * x for x in w)), math.sqrt(math.fsum(x * x for x in d))
    ratio = trust * w_norm / d_norm if trust is not None and w_norm > 0 and d_norm > 0 else 1.0
    m = [mu * mi + ratio * di for mi, di in zip(m, d, strict=True)]
    return [wi - lr * mi for wi, mi in zip(w, m, strict=True)], m


@pytest.mark.parametrize("momentum", [0.9, 0.0])
@pytest.mark.parametrize("decay", [0.0, 1e-2, 0.5])
def test_lars_equals_its_formula_over_several_steps(momentum: float, decay: float) -> None:
    model = network()
    optimizer = build_optimizer(model, "lars", lr=0.7, weight_decay=decay, momentum=momentum)
    adapted = {id(p) for p in split_parameters(model)[0]}
    expected = [p.detach().flatten().tolist() for p in model.parameters()]
    buffers = [[0.0] * len(w) for w in expected]
    for step in range(4):
        gradients(model, step)
        for i, parameter in enumerate(model.parameters()):
            is_adapted = id(parameter) in adapted
            expected[i], buffers[i] = lars_by_hand(
                expected[i], parameter.grad.flatten().tolist(), buffers[i],
                lr=0.7, mu=momentum, decay=decay if is_adapted else 0.0, trust=0.001 if is_adapted else None,
            )  # fmt: skip
        optimizer.step()
    for parameter, by_hand in zip(model.parameters(), expected, strict=True):
        assert parameter.detach().flatten().tolist() == pytest.approx(by_hand, rel=1e-10, abs=1e-12)


def test_lars_takes_the_plain_step_for_zero_weights_and_leaves_zero_gradients_alone() -> None:
    zero, still = nn.Parameter(torch.zeros(3, 2)), nn.Parameter(torch.ones(3, 2))
    zero.grad, still.grad = torch.ones(3, 2), torch.zeros(3, 2)
    LARS([zero, still], lr=0.1).step()
    assert torch.allclose(zero, torch.full((3, 2), -0.1))
    assert torch.equal(still, torch.ones(3, 2))


def test_lars_does_not_touch_gradients_or_parameters_without_one() -> None:
    model = network()
    optimizer = build_optimizer(model, "lars", lr=0.1, weight_decay=0.1)
    gradients(model, 0)
    first = next(iter(model.parameters()))
    first.grad = None
    before, grads = first.detach().clone(), [p.grad.clone() for p in model.parameters() if p.grad is not None]
    optimizer.step()
    assert torch.equal(first, before)
    after = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(torch.equal(a, b) for a, b in zip(after, grads, strict=True))


def test_lars_runs_a_closure() -> None:
    weight = nn.Parameter(torch.tensor([[3.0]]))

    def closure() -> float:
        weight.grad = None
        loss = weight.square().sum()
        loss.backward()
        return loss.item()

    assert LARS([weight], lr=1.0).step(closure) == 9.0
    assert weight.item() < 3.0


def test_a_bad_gradient_does_not_hide() -> None:
    weight = nn.Parameter(torch.ones(2, 2))
    weight.grad = torch.tensor([[1.0, math.nan], [1.0, 1.0]])
    LARS([weight], lr=1.0).step()
    assert torch.isnan(weight).any()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_channels_last_weights_give_the_same(name: Any) -> None:
    # The gradients set here are contiguous, which torch's fused kernels alone would read in the wrong order.
    plain, last = network(), network().to(memory_format=torch.channels_last)
    for model in (plain, last):
        optimizer = build_optimizer(model, name, lr=0.1, weight_decay=0.1)
        for step in range(3):
            gradients(model, step)
            optimizer.step()
    for a, b in zip(plain.parameters(), last.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_contiguous_state_beside_channels_last_weights_is_laid_out_again(name: Any) -> None:
    straight, resumed = (network().to(memory_format=torch.channels_last) for _ in range(2))
    whole, rest = (build_optimizer(model, name, lr=0.1) for model in (straight, resumed))
    gradients(straight, 0)
    whole.step()
    resumed.load_state_dict(straight.state_dict())
    state = copy.deepcopy(whole.state_dict())  # the original holds references to the live buffers
    for entry in state["state"].values():  # as a file gives it back
        entry.update({key: value.contiguous() for key, value in entry.items() if isinstance(value, Tensor)})
    rest.load_state_dict(state)
    for model, optimizer in ((straight, whole), (resumed, rest)):
        gradients(model, 1)
        optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(straight.parameters(), resumed.parameters(), strict=True))


def test_biases_and_norm_layers_are_spared_once_each() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(4, 4)
            self.same = self.body
            self.norm = nn.LayerNorm((4, 4))  # two-dimensional, still a norm layer
            self.frozen = nn.Linear(4, 4).requires_grad_(False)

    model = Tied()
    weights, spared = split_parameters(model)
    assert [id(p) for p in weights] == [id(model.body.weight)]
    assert [id(p) for p in spared] == [id(model.body.bias), id(model.norm.weight), id(model.norm.bias)]
    optimizer = build_optimizer(model, "adamw", lr=0.1, weight_decay=0.3)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.3, 0.0]


def state_numbers(state: dict[str, Any]) -> set[type]:
    """The leaf types of an optimiser's state."""
    leaves: set[type] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for item in value.values():
                walk(item)
        elif isinstance(value, list | tuple):
            for item in value:
                walk(item)
        else:
            leaves.add(type(value))

    walk(state)
    return leaves


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_resumed_training_is_bit_identical(name: Any, dtype: torch.dtype) -> None:
    straight, first, second = (network(dtype=dtype) for _ in range(3))
    whole = build_optimizer(straight, name, lr=0.01, weight_decay=1e-3)
    for step in range(6):
        gradients(straight, step)
        set_rate(whole, warmup_cosine(step, 6, 2))
        whole.step()
    half = build_optimizer(first, name, lr=0.01, weight_decay=1e-3)
    for step in range(3):
        gradients(first, step)
        set_rate(half, warmup_cosine(step, 6, 2))
        half.step()
    second.load_state_dict(first.state_dict())
    rest = build_optimizer(second, name, lr=0.01, weight_decay=1e-3)
    state = half.state_dict()
    assert state_numbers(state) <= {Tensor, int, float, bool, type(None)}
    json.dumps(state["param_groups"])
    rest.load_state_dict(state)
    for step in range(3, 6):
        gradients(second, step)
        set_rate(rest, warmup_cosine(step, 6, 2))
        rest.step()
    assert all(torch.equal(a, b) for a, b in zip(straight.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_learns_a_linear_map(name: Any) -> None:
    torch.manual_seed(1)
    x = torch.randn(256, 8)
    y = x @ torch.linspace(-1, 1, 8)[:, None] + 0.3
    model = nn.Linear(8, 1)
    rate = {"lars": 2.0, "sgd": 0.05, "adam": 0.05, "adamw": 0.05}[name]
    optimizer = build_optimizer(model, name, lr=rate, **({"trust": 0.02} if name == "lars" else {}))
    first = (model(x) - y).square().mean().item()
    for step in range(200):
        set_rate(optimizer, warmup_cosine(step, 200, 10))
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    assert (model(x) - y).square().mean().item() < 0.02 * first


def test_schedule_shape() -> None:
    rates = [warmup_cosine(step, 100, 10) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == 1.0
    assert rates[10] == 1.0
    assert rates[55] == pytest.approx(0.5)
    assert all(a > b for a, b in pairwise(rates[10:]))
    assert 0.0 < rates[-1] < 0.001
    assert warmup_cosine(100, 100, 10) == 0.0
    assert warmup_cosine(1000, 100, 10) == 0.0
    assert warmup_cosine(0, 1) == 1.0
    assert warmup_cosine(2, 3, 3) == 1.0


@pytest.mark.parametrize("bad", [(-1, 10, 0), (0, 0, 0), (0, 10, 11), (0, 10, -1)])
def test_schedule_refuses_nonsense(bad: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="schedule needs"):
        warmup_cosine(*bad)


def test_nonsense_settings_are_refused() -> None:
    with pytest.raises(InputError, match=r"one of \['lars', 'adam', 'adamw', 'sgd'\], got 'rmsprop'"):
        build_optimizer(network(), "rmsprop", 0.1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="lr must be a number >= 0, got nan"):
        build_optimizer(network(), "adam", math.nan)
    with pytest.raises(InputError, match="weight_decay must be"):
        build_optimizer(network(), "adam", 0.1, weight_decay=-1.0)
    with pytest.raises(InputError, match="nothing to train"):
        build_optimizer(network().requires_grad_(False), "lars", 0.1)
    with pytest.raises(InputError, match="trust must be"):
        LARS(network().parameters(), lr=0.1, trust=-1.0)

"""What one rank does: every risk through DistributedDataParallel on this rank's own rows."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from punce.risks import VPU
from tests.risks.cases import CASES

FEATURES = 3
# (labelled, unlabelled) rows of each rank: uneven, one rank without P, with three ranks also one without U.
SHARDS = {2: [(5, 9), (0, 17)], 3: [(9, 4), (0, 13), (2, 0)]}


def shard(world: int, rank: int) -> tuple[Tensor, Tensor]:
    """This rank's features and labels: different data on every rank."""
    n_p, n_u = SHARDS[world][rank]
    generator = torch.Generator().manual_seed(100 * world + rank)
    labels = torch.cat([torch.ones(n_p), torch.zeros(n_u)]).to(torch.int64)
    x = torch.randn(n_p + n_u, FEATURES, generator=generator, dtype=torch.float64)
    return x + labels[:, None], labels


def model() -> nn.Linear:
    linear = nn.Linear(FEATURES, 1).double()
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[0.9, 0.4, 0.7]]))
        linear.bias.fill_(0.1)
    return linear


def mixed_rows(x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For vPU's second term: x̃, the x_u in it, and γ; none on a rank without unlabelled rows."""
    x_u = x[labels == 0]
    mix = torch.linspace(0.1, 0.9, len(x_u), dtype=torch.float64)
    return mix[:, None] * x_u + (1 - mix[:, None]) * 1.5, x_u, mix


def losses_and_gradients(network: nn.Module, x: Tensor, labels: Tensor) -> dict[str, list[float]]:
    """[loss, gradient of every parameter] by case name."""
    results = {}
    for case in CASES:
        results[case.name] = backward(network, lambda case=case: case(network(x).squeeze(1), labels))
    mixed, x_u, mix = mixed_rows(x, labels)

    def consistency() -> Tensor:
        scores = network(torch.cat([mixed, x_u])).squeeze(1)
        return VPU().consistency(scores[: len(mixed)], scores[len(mixed) :], mix)

    results["vpu-consistency"] = backward(network, consistency)
    return results


def backward(network: nn.Module, loss_of: Callable[[], Tensor]) -> list[float]:
    """[loss, gradient of every parameter]."""
    network.zero_grad()
    loss = loss_of()
    loss.backward()
    gradients = [parameter.grad.flatten() for parameter in network.parameters()]
    return [loss.item(), *torch.cat(gradients).tolist()]


def run(rank: int, world: int) -> dict[str, Tensor]:
    """What tests.ranks runs on every rank."""
    x, labels = shard(world, rank)
    results = losses_and_gradients(nn.parallel.DistributedDataParallel(model()), x, labels)
    return {name: torch.tensor(values, dtype=torch.float64) for name, values in results.items()}

"""Real processes with different rows: each holds the global risk, and DDP's gradient is the single-process one."""

from __future__ import annotations

import pytest
import torch

from punce.risks import VPU
from tests.ranks import run_ranks
from tests.risks import reference
from tests.risks.cases import CASES, Case
from tests.risks.rank_worker import SHARDS, backward, losses_and_gradients, mixed_rows, model, run, shard

Results = dict[int, list[dict[str, list[float]]]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return {
        world: [
            {name: values.tolist() for name, values in rank.items()}
            for rank in run_ranks(world, run, tmp_path_factory.mktemp("ranks"))
        ]
        for world in SHARDS
    }


@pytest.fixture(scope="module")
def single() -> dict[int, dict[str, list[float]]]:
    together = {}
    for world in SHARDS:
        parts = [shard(world, rank) for rank in range(world)]
        x, labels = torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])
        together[world] = losses_and_gradients(model(), x, labels)
    return together


@pytest.mark.parametrize("world", sorted(SHARDS))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gathered_equals_single(
    case: Case, world: int, results: Results, single: dict[int, dict[str, list[float]]]
) -> None:
    for rank in results[world]:
        assert rank[case.name] == pytest.approx(single[world][case.name], rel=1e-11, abs=1e-13)
        assert max(abs(value) for value in rank[case.name][1:]) > 1e-4  # an all-zero gradient would prove nothing


@pytest.mark.parametrize("world", sorted(SHARDS))
def test_gathered_consistency_equals_single(world: int, results: Results) -> None:
    parts = [mixed_rows(*shard(world, rank)) for rank in range(world)]
    mixed, x_u, mix = (torch.cat(columns) for columns in zip(*parts, strict=True))
    network = model()
    expected = backward(network, lambda: VPU().consistency(network(mixed).squeeze(1), network(x_u).squeeze(1), mix))
    for rank in results[world]:
        assert rank["vpu-consistency"] == pytest.approx(expected, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("world", sorted(SHARDS))
def test_a_risk_per_rank_would_take_different_branches(world: int) -> None:
    """The data above is a real test only if ranks left alone would disagree about nnPU's branch."""
    network, branches = model(), set()
    for rank in range(world):
        x, labels = shard(world, rank)
        if (labels == 0).any():
            scores = network(x).squeeze(1).tolist()
            branches.add(reference.nnpu_parts(scores, labels.tolist(), 0.9)[1] >= 0)
    assert branches == {True, False}

"""Several ranks with different, uneven rows give the loss and the parameter gradients of one process."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from punce.errors import InputError
from punce.losses import ContrastiveLoss, InfoNCE, PuNCE
from tests.losses.test_contract import CASES
from tests.ranks import run_ranks

LOSSES: dict[str, ContrastiveLoss] = {
    **{name: case.loss(0.2) for name, case in CASES.items()},  # so that a new loss is tried, too
    "punce-posterior, class means": PuNCE(0.3, 0.2, weighting="posterior"),
    "punce-posterior, given": PuNCE(0.3, 0.2, weighting="posterior"),
    "punce, running maximum": PuNCE(0.3, 0.002),
}
ROWS_OF_RANK = [5, 2, 7]  # uneven
LABELS = [1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0]  # rank 1 holds no labelled row
PROBABILITIES = torch.linspace(0.05, 0.9, len(LABELS), dtype=torch.float64)  # of every rank on another level
PNU_LABELS = [1, 0, -1, 0, 0, 0, 0, 1, 0, -1, 0, 1, 0, 0]


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4)).double()


def _views() -> Tensor:
    return torch.randn(2, sum(ROWS_OF_RANK), 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _results(model: nn.Module, x: Tensor, which: slice, world: int) -> dict[str, Tensor]:
    results: dict[str, Tensor] = {}
    for labels_name, labels in (("pu", LABELS), ("pnu", PNU_LABELS)):
        for name, loss in LOSSES.items():
            if labels_name == "pnu" and name in CASES and CASES[name].pu_only:
                continue
            model.zero_grad()
            rows = range(sum(ROWS_OF_RANK[:world]))[which]
            more = (PROBABILITIES[list(rows)],) if name.endswith("given") else ()
            value = loss(model(x[:, list(rows)]), torch.tensor(labels)[list(rows)], *more)
            value.backward()  # type: ignore[no-untyped-call]
            results[f"{labels_name} {name} loss"] = value
            for i, parameter in enumerate(model.parameters()):
                assert parameter.grad is not None
                results[f"{labels_name} {name} grad {i}"] = parameter.grad.clone()
    return results


def on_rank(rank: int, world: int) -> dict[str, Tensor]:
    start = sum(ROWS_OF_RANK[:rank])
    model = DistributedDataParallel(_network())
    return _results(model, _views(), slice(start, start + ROWS_OF_RANK[rank]), world)


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_agree_with_one_process_under_ddp(world: int, tmp_path: Path) -> None:
    single = _results(_network(), _views(), slice(None), world)
    for result in run_ranks(world, on_rank, tmp_path):
        assert result.keys() == single.keys()
        for key, value in single.items():
            scale = float(value.detach().abs().max()) if "maximum" in key else 1.0  # τ = 0.002 makes gradients of 10³
            assert float((result[key] - value.detach()).abs().max()) < 1e-12 * max(1.0, scale), key


def both_forms(z: Tensor, labels: Tensor) -> Tensor:
    paper, posterior = PuNCE(0.3)(z, labels), PuNCE(0.3, weighting="posterior")(z, labels)
    both: Tensor = paper + posterior
    return both


def empty_on_last_rank(rank: int, world: int) -> dict[str, Tensor]:
    rows = [slice(0, 9), slice(9, 14), slice(14, 14)][rank]
    z = _views()[:, rows, :4].clone().requires_grad_()
    value = both_forms(z, torch.tensor(LABELS)[rows])
    value.backward()  # type: ignore[no-untyped-call]
    assert z.grad is not None
    return {"loss": value, "grad": z.grad}


def test_a_rank_without_rows_takes_part(tmp_path: Path) -> None:
    z = _views()[:, :, :4].clone().requires_grad_()
    value = both_forms(z, torch.tensor(LABELS))
    value.backward()  # type: ignore[no-untyped-call]
    assert z.grad is not None
    results = run_ranks(3, empty_on_last_rank, tmp_path)
    grad = torch.cat([result["grad"] for result in results], 1) / 3  # what DDP's average makes of it
    torch.testing.assert_close(grad, z.grad, rtol=0, atol=1e-12)
    for result in results:
        torch.testing.assert_close(result["loss"], value.detach(), rtol=0, atol=1e-12)


def empty_everywhere(rank: int, world: int) -> dict[str, Tensor]:
    try:
        InfoNCE()(torch.zeros(2, 0, 4))
    except InputError as error:
        return {"refused": torch.tensor("no rank holds a row" in str(error))}
    return {"refused": torch.tensor(False)}


def test_a_batch_without_rows_on_any_rank_is_refused_by_all(tmp_path: Path) -> None:
    assert all(bool(result["refused"]) for result in run_ranks(2, empty_everywhere, tmp_path))


def second_derivative(rank: int, world: int) -> dict[str, Tensor]:
    z = _views()[:, :3, :4].clone().requires_grad_()
    try:
        torch.autograd.grad(InfoNCE()(z), z, create_graph=True)
    except Exception as error:
        return {"refused": torch.tensor("no second derivative across ranks" in str(error))}
    return {"refused": torch.tensor(False)}


def test_a_second_derivative_across_ranks_is_refused(tmp_path: Path) -> None:
    assert all(bool(result["refused"]) for result in run_ranks(2, second_derivative, tmp_path))

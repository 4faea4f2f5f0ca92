"""BatchNorm over ranks equals BatchNorm over all rows: values, gradients, running statistics."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from punce.training import collectives
from punce.training.sync_norm import synchronise_batch_norm
from tests.ranks import run_ranks

SHAPES = {"rows": (11, 3), "images": (7, 3, 4, 5), "one row": (1, 3, 2, 2)}  # uneven shares; an empty one at the end
OPTIONS: dict[str, dict[str, object]] = {
    "default": {},
    "plain": {"affine": False},
    "average": {"momentum": None},
    "stateless": {"track_running_stats": False},
}


def make(name: str, shape: tuple[int, ...]) -> nn.Module:
    torch.manual_seed(0)
    kind = nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d
    norm = kind(3, **OPTIONS[name]).double()  # type: ignore[arg-type]
    if norm.affine:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    return nn.Sequential(nn.Flatten(0, 0), norm)  # inside a model, beside a module without parameters


def steps(rank: int, world: int) -> dict[str, Tensor]:
    """Two training steps and an evaluation on this rank's rows, for every shape and option."""
    result = {}
    for shape_name, shape in SHAPES.items():
        for option in OPTIONS:
            model = synchronise_batch_norm(make(option, shape))
            for step in range(2):
                x = torch.randn(shape, generator=torch.Generator().manual_seed(step), dtype=torch.float64) + 5
                mine = x[rank::world].requires_grad_()
                y = model(mine)
                (y.square() * (mine.detach() + 1)).sum().backward()  # a sum over ranks, so gradients add up
            key = f"{shape_name}/{option}"
            result[f"{key}/grad"] = mine.grad if mine.grad is not None else torch.zeros_like(mine)
            result |= {f"{key}/{name}": value for name, value in model.state_dict().items()}
            for name, parameter in model.named_parameters():
                result[f"{key}/grad of {name}"] = collectives.global_sum(parameter.grad)  # type: ignore[arg-type]
            result[f"{key}/evaluated"] = model.eval()(mine.detach())
    return result


def test_two_ranks_normalise_as_one(tmp_path: Path) -> None:
    one, two = steps(0, 1), run_ranks(2, steps, tmp_path)
    assert len(one) > 40
    for key, value in one.items():
        if key.endswith(("/grad", "/evaluated")):
            found = torch.empty_like(value)
            for rank in range(2):
                found[rank::2] = two[rank][key]
            torch.testing.assert_close(found, value, rtol=1e-9, atol=1e-10)
        else:
            for rank in range(2):
                torch.testing.assert_close(two[rank][key], value, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_normalised_as_torch_does(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Convolutions of a training step run in bfloat16 on some CPUs (punce.encoders.precision)."""
    x = (torch.randn(70, 3, 9, 9) * 3 + 5).to(dtype)
    plain, own = nn.BatchNorm2d(3), nn.BatchNorm2d(3)
    with monkeypatch.context() as patch:
        patch.setattr(collectives, "world_size", lambda: 2)
        synchronised = synchronise_batch_norm(own)
    torch.testing.assert_close(synchronised(x), plain(x))
    torch.testing.assert_close(dict(own.named_buffers()), dict(plain.named_buffers()))


def test_one_process_keeps_its_layers() -> None:
    model = make("default", (4, 3))
    assert synchronise_batch_norm(model) is model
    assert type(model[1]) is nn.BatchNorm1d  # type: ignore[index]


def test_a_norm_layer_by_itself_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "world_size", lambda: 2)
    norm = nn.BatchNorm1d(3)
    replaced = synchronise_batch_norm(norm)
    assert type(replaced) is not nn.BatchNorm1d
    assert replaced.state_dict().keys() == norm.state_dict().keys()
    assert replaced.weight is norm.weight

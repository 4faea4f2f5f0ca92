"""Which backend carries which tensors. What needs real ranks is in tests/runs, tests/losses and tests/risks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist

from punce.training import collectives

TORCHRUN = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "LOCAL_RANK": "1"}


@pytest.mark.parametrize(("has_gpus", "backend"), [(True, "cpu:gloo,cuda:nccl"), (False, "gloo")])
def test_tensors_on_the_cpu_can_travel_also_where_there_are_gpus(
    has_gpus: bool, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    devices: list[int] = []

    def init(name: str, **options: Any) -> None:
        made.append(name)

    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpus)
    monkeypatch.setattr(torch.cuda, "set_device", devices.append)
    monkeypatch.setattr(dist, "init_process_group", init)
    monkeypatch.setattr(collectives.atexit, "register", lambda function: None)  # type: ignore[attr-defined]
    collectives.init_from_environment()
    assert made == [backend]
    assert devices == ([1] if has_gpus else [])


@pytest.mark.parametrize(
    ("backends", "device"),
    [("cpu:gloo,cuda:nccl", "cpu"), ("cpu:gloo,cuda:gloo", "cpu"), ("cpu:gloo", "cpu"), ("cuda:nccl", "cuda:3")],
)
def test_small_tensors_travel_on_a_device_the_group_knows(
    backends: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dist, "get_backend_config", lambda: backends)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    assert collectives._device() == torch.device(device)


def test_a_group_with_a_backend_for_each_device_is_recognised() -> None:
    """A real group of one process: torch names its backends by device, whatever it was asked for."""
    for asked in ("gloo", "cpu:gloo", "cpu:gloo,cuda:gloo"):
        dist.init_process_group(asked, store=dist.HashStore(), rank=0, world_size=1)
        try:
            assert collectives._has_cpu_backend()
            collectives._wait_for_others()
        finally:
            collectives.leave()

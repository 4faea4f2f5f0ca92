"""The library that multiplies matrices: chosen by the CPU, exact, and without a trace afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from punce.training import products
from punce.training.products import fast_products, onednn_is_faster


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.fixture
def affected_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "onednn_is_faster", lambda: True)


@fast_products()
def setting() -> str:
    return torch.get_float32_matmul_precision()


def test_products_inside_are_those_of_float32() -> None:
    a, b = torch.randn(96, 512), torch.randn(80, 512)
    exact = a.double() @ b.double().T
    with fast_products():
        inside = a @ b.T
    assert (inside - exact).norm() < 1e-6 * exact.norm()


def test_the_setting_is_that_of_before_afterwards(affected_cpu: None) -> None:
    with fast_products():
        assert setting() == "medium"  # an inner context ends without ending the outer one
        assert torch.get_float32_matmul_precision() == "medium"
    assert torch.get_float32_matmul_precision() == "highest"
    with pytest.raises(ZeroDivisionError), fast_products():
        raise ZeroDivisionError
    assert torch.get_float32_matmul_precision() == "highest"


def test_a_precision_that_the_caller_chose_stays(affected_cpu: None) -> None:
    torch.set_float32_matmul_precision("high")
    assert setting() == "high"
    assert torch.get_float32_matmul_precision() == "high"


def test_a_precision_that_was_set_through_the_newer_interface_stays(affected_cpu: None) -> None:
    newer = torch.backends.mkldnn.matmul
    newer.fp32_precision = "bf16"  # type: ignore[assignment]
    try:
        with fast_products():
            assert newer.fp32_precision == "bf16"
        assert newer.fp32_precision == "bf16"
    finally:
        newer.fp32_precision = "none"  # type: ignore[assignment]


def test_a_precision_for_all_of_torch_that_the_caller_sets_afterwards_counts(affected_cpu: None) -> None:
    """The setting of the products alone would hide it."""
    products_of = torch.backends.mkldnn.matmul
    products_of.fp32_precision = "none"  # type: ignore[assignment]
    with fast_products():
        pass
    torch.backends.fp32_precision = "bf16"  # type: ignore[attr-defined]
    try:
        assert products_of.fp32_precision == "bf16"
        with fast_products():
            assert products_of.fp32_precision == "bf16"
        assert products_of.fp32_precision == "bf16"
    finally:
        torch.backends.fp32_precision = "none"  # type: ignore[attr-defined]


@pytest.mark.parametrize("reason", ["vendor", "vector units", "rounds", "GPU"])
def test_elsewhere_nothing_changes(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU of another maker, without AVX-512, that rounds, or beside a GPU."""
    monkeypatch.setattr(products, "_is_amd", lambda: reason != "vendor")
    capability = "AVX2" if reason == "vector units" else "AVX512"
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: reason == "GPU")
    if reason == "rounds":
        monkeypatch.setattr(products, "_LARGEST_ERROR", 0.0)
    onednn_is_faster.cache_clear()
    try:
        assert setting() == "highest"
    finally:
        onednn_is_faster.cache_clear()

"""The log-partition kernel: the only quadratic code of the loss family.

For unit rows z (M × K) and temperature τ:  lse_i = log Σ_{k≠i} exp(z_i·z_k / τ)  over the rows of every rank.

- **No maximum.** |z_i·z_k| ≤ 1, so E_ik = exp(z_i·z_k/τ) lies in [e^{−1/τ}, e^{1/τ}]: while both ends are far inside
  the range of the number format (τ ≥ 0.026 in float32) no shift and no pass for the maximum is needed, and E is
  symmetric. Below that, a running row maximum takes over.
- **Symmetric tiles.** One process computes tiles on and above the diagonal only and adds row sums to one block,
  column sums to the other. With several ranks each computes its own rows against all columns.
- **Closed-form backward** that recomputes the tiles: with upstream g and a_i = g_i / Σ_k E_ik,
  dz_i = (1/τ) Σ_{j≠i} E_ij (a_i + a_j) z_j. No M × M tensor is saved, memory is O(M·K + tile²).
- **Small M.** One M × M buffer kept from forward to backward is faster while it is cheap.

Shape legend: M rows of every rank, R rows of this rank, K embedding size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from punce import collectives
from punce.errors import InputError, PunceError

# Measured on two CPU cores at K = 128: 768–1024 rows keep a tile in the last-level cache, and up to 2048 rows the
# one-buffer path is ahead. A GPU wants fewer, larger launches.
_TILE = {"cpu": 1024}
_TILE_ACCELERATOR = 8192
_ONE_BUFFER_UP_TO = {"cpu": 2048}
_ONE_BUFFER_UP_TO_ACCELERATOR = 4096
_LONGEST_UNIT_ROW = 1.02  # bfloat16 rounding moves the length of a unit row by up to 1 %


def log_partition(z: Tensor, temperature: float, tile: int | None = None) -> Tensor:
    """lse_i = log Σ_{k≠i} exp(z_i·z_k/τ) for every row of this rank, over all other rows of every rank.

    Exact, linear in memory, differentiable (twice in a single process, where the second derivative is quadratic in
    memory). Half-precision rows are computed in float32. A lone row has an empty sum: its value is −inf.

    Args:
        z: (R, K) rows of unit length.
        temperature: τ > 0.
        tile: rows per tile; None picks by device and size (and lets small inputs use one buffer).

    Shape: (R, K) -> (R,), float32 for half-precision input, otherwise the dtype of `z`.
    """
    check_temperature(temperature)
    _check_unit_rows(z)
    if z.dtype in (torch.float16, torch.bfloat16):
        z = z.float()
    lse: Tensor = _LogPartition.apply(z, float(temperature), tile)  # type: ignore[no-untyped-call]
    return lse


def check_temperature(temperature: float) -> None:
    """Refuse a temperature that is not a positive finite number."""
    if not (isinstance(temperature, int | float) and 0 < temperature < math.inf):
        raise InputError(f"temperature must be a positive number, got {temperature!r} (the paper uses 0.5)")


def _check_unit_rows(z: Tensor) -> None:
    if z.dim() != 2 or not z.is_floating_point():
        raise InputError(f"log_partition needs floating-point rows (n, d), got {z.dtype} of shape {tuple(z.shape)}")
    lengths = z.detach().float().norm(dim=1)
    good = lengths <= _LONGEST_UNIT_ROW  # False for NaN too
    if not bool(good.all()):
        row = int((~good).nonzero()[0])
        raise InputError(
            f"log_partition needs rows of unit length, but row {row} has length {float(lengths[row]):g}; "
            "normalise with torch.nn.functional.normalize(z, dim=1)"
        )


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, temperature: float, tile: int | None) -> Tensor:
        ctx.temperature, ctx.exp = temperature, None
        ctx.world_size = collectives.world_size()
        with _full_precision(z):
            gathered = collectives.gather_rows(z)
            ctx.start = gathered.start
            ctx.tile = tile or _tile_size(z)
            if not _exp_is_safe(temperature, z.dtype):
                lse = _running_max_lse(z, gathered.rows, gathered.start, temperature, ctx.tile)
            elif tile is None and gathered.is_local and len(z) <= _one_buffer_limit(z):
                ctx.exp = _Tiles(len(z), z, temperature).exp(z, z, 0)
                lse = ctx.exp.sum(1).log_()
            elif gathered.is_local:
                lse = _symmetric_sums(z, temperature, ctx.tile).log_()
            else:
                lse = _row_sums(z, gathered.rows, gathered.start, temperature, ctx.tile).log_()
        ctx.save_for_backward(z, gathered.rows if ctx.world_size > 1 else None, lse)
        return lse

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None]:
        (grad,) = grads
        z, all_z, lse = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable_grad(z, grad, ctx), None, None
        with _full_precision(z):
            if not _exp_is_safe(ctx.temperature, z.dtype):
                dz = _running_max_grad(z, all_z, lse, grad, ctx)
            elif ctx.exp is not None:
                a = _grad_over_sums(lse, grad)
                dz = (ctx.exp * (a[:, None] + a)) @ z
            elif all_z is None:
                dz = _symmetric_grad(z, _grad_over_sums(lse, grad), ctx)
            else:
                dz = _row_grad(z, all_z, _grad_over_sums(lse, grad), ctx)
        return dz.div_(ctx.temperature), None, None


def _full_precision(z: Tensor) -> torch.autocast:
    """Keep autocast from turning the similarities into half precision."""
    return torch.autocast(z.device.type, enabled=False)


def _tile_size(z: Tensor) -> int:
    return _TILE.get(z.device.type, _TILE_ACCELERATOR)


def _one_buffer_limit(z: Tensor) -> int:
    return _ONE_BUFFER_UP_TO.get(z.device.type, _ONE_BUFFER_UP_TO_ACCELERATOR)


def _exp_is_safe(temperature: float, dtype: torch.dtype) -> bool:
    """Whether exp(±1/τ) leaves half the exponent range of the number format for sums and products."""
    return 1.0 / temperature < 0.45 * math.log(torch.finfo(dtype).max)


def _grad_over_sums(lse: Tensor, grad: Tensor) -> Tensor:
    """a_i = g_i / Σ_k E_ik. A lone row has an empty sum and gets no gradient."""
    return torch.where(lse == -math.inf, 0.0, grad * (-lse).exp())


class _Span(NamedTuple):
    rows: slice
    columns: slice


def _upper_spans(n: int, tile: int) -> Iterator[_Span]:
    for i in range(0, n, tile):
        for j in range(i, n, tile):
            yield _Span(slice(i, min(i + tile, n)), slice(j, min(j + tile, n)))


def _all_spans(n_rows: int, n_columns: int, tile: int) -> Iterator[_Span]:
    for i in range(0, n_rows, tile):
        for j in range(0, n_columns, tile):
            yield _Span(slice(i, min(i + tile, n_rows)), slice(j, min(j + tile, n_columns)))


class _Tiles:
    """Computes tiles into buffers that are reused: fresh memory for every tile would cost more than its GEMM."""

    def __init__(self, tile: int, like: Tensor, temperature: float) -> None:
        self._temperature = temperature
        self._exp = like.new_empty(tile * tile)
        self._weight: Tensor | None = None

    def exp(self, rows: Tensor, columns: Tensor, offset: int) -> Tensor:
        """E = exp(rows·columnsᵀ/τ), 0 where a point meets itself: row i is the same point as column i + offset."""
        exp = self._exp[: len(rows) * len(columns)].view(len(rows), len(columns))
        torch.mm(rows / self._temperature, columns.T, out=exp).exp_()
        return _fill_self(exp, offset, 0.0)

    def weights(self, rows: Tensor, columns: Tensor, offset: int, a_rows: Tensor, a_columns: Tensor) -> Tensor:
        """E_ij (a_i + a_j), what the backward multiplies with z_j."""
        exp = self.exp(rows, columns, offset)
        if self._weight is None:
            self._weight = torch.empty_like(self._exp)
        weight = self._weight[: exp.numel()].view_as(exp)
        return exp.mul_(torch.add(a_rows[:, None], a_columns, out=weight))


def _fill_self(tile: Tensor, offset: int, value: float) -> Tensor:
    if -tile.shape[0] < offset < tile.shape[1]:
        tile.diagonal(offset).fill_(value)
    return tile


# One process: symmetric tiles ------------------------------


def _symmetric_sums(z: Tensor, temperature: float, tile: int) -> Tensor:
    tiles, sums = _Tiles(min(tile, len(z)), z, temperature), z.new_zeros(len(z))
    for rows, columns in _upper_spans(len(z), tile):
        exp = tiles.exp(z[rows], z[columns], rows.start - columns.start)
        sums[rows] += exp.sum(1)
        if rows != columns:
            sums[columns] += exp.sum(0)
    return sums


def _symmetric_grad(z: Tensor, a: Tensor, ctx: Any) -> Tensor:
    tiles, dz = _Tiles(min(ctx.tile, len(z)), z, ctx.temperature), torch.zeros_like(z)
    for rows, columns in _upper_spans(len(z), ctx.tile):
        offset = rows.start - columns.start
        weights = tiles.weights(z[rows], z[columns], offset, a[rows], a[columns])
        dz[rows].addmm_(weights, z[columns])
        if rows != columns:
            dz[columns].addmm_(weights.T, z[rows])
    return dz


# Several ranks: own rows against the rows of every rank ------------------------------


def _row_sums(z: Tensor, all_z: Tensor, start: int, temperature: float, tile: int) -> Tensor:
    tiles, sums = _Tiles(min(tile, len(all_z)), z, temperature), z.new_zeros(len(z))
    for rows, columns in _all_spans(len(z), len(all_z), tile):
        sums[rows] += tiles.exp(z[rows], all_z[columns], start + rows.start - columns.start).sum(1)
    return sums


def _row_grad(z: Tensor, all_z: Tensor, a: Tensor, ctx: Any) -> Tensor:
    all_a = collectives.gather_rows(a).rows  # all the backward has to exchange: one number per row
    tiles, dz = _Tiles(min(ctx.tile, len(all_z)), z, ctx.temperature), torch.zeros_like(z)
    for rows, columns in _all_spans(len(z), len(all_z), ctx.tile):
        offset = ctx.start + rows.start - columns.start
        weights = tiles.weights(z[rows], all_z[columns], offset, a[rows], all_a[columns])
        dz[rows].addmm_(weights, all_z[columns])
    return dz


# Very small temperatures: a running maximum, no assumption on the range of E ------------------------------


def _scaled_similarity(rows: Tensor, columns: Tensor, offset: int, temperature: float) -> Tensor:
    return _fill_self((rows @ columns.T).div_(temperature), offset, -math.inf)


def _running_max_lse(z: Tensor, all_z: Tensor, start: int, temperature: float, tile: int) -> Tensor:
    lse = z.new_full((len(z),), -math.inf)
    for rows, columns in _all_spans(len(z), len(all_z), tile):
        offset = start + rows.start - columns.start
        similarity = _scaled_similarity(z[rows], all_z[columns], offset, temperature)
        lse[rows] = torch.logaddexp(lse[rows], similarity.logsumexp(1))
    return lse


def _running_max_grad(z: Tensor, gathered: Tensor | None, lse: Tensor, grad: Tensor, ctx: Any) -> Tensor:
    """dz_i = (1/τ) Σ_j (g_i p_ij + g_j p_ji) z_j with p_ij = exp(s_ij − lse_i) ≤ 1."""
    all_z = z if gathered is None else gathered
    all_lse, all_grad = collectives.gather_rows(lse).rows, collectives.gather_rows(grad).rows
    dz = torch.zeros_like(z)
    for rows, columns in _all_spans(len(z), len(all_z), ctx.tile):
        offset = ctx.start + rows.start - columns.start
        similarity = _scaled_similarity(z[rows], all_z[columns], offset, ctx.temperature)
        weights = _probability(similarity, lse[rows, None]) * grad[rows, None]
        weights += _probability(similarity, all_lse[columns]) * all_grad[columns]
        dz[rows].addmm_(weights, all_z[columns])
    return dz


def _probability(similarity: Tensor, lse: Tensor) -> Tensor:
    return torch.where(similarity == -math.inf, 0.0, (similarity - lse).exp())


# Second derivative ------------------------------


def _differentiable_grad(z: Tensor, grad: Tensor, ctx: Any) -> Tensor:
    """The gradient in plain differentiable operations, for create_graph=True. Quadratic in memory."""
    if ctx.world_size > 1:
        raise PunceError(
            "log_partition has no second derivative across ranks; compute it in one process, or call backward without "
            "create_graph=True"
        )
    similarity = (z @ z.T / ctx.temperature).fill_diagonal_(-math.inf)
    p = similarity.softmax(1) if len(z) > 1 else torch.zeros_like(similarity)
    weights = grad[:, None] * p
    dz: Tensor = (weights + weights.T) @ z / ctx.temperature
    return dz

"""The log-partition kernel: the only quadratic code of the loss family.

For unit rows z (M × K) and temperature τ:  lse_i = log Σ_{k≠i} exp(z_i·z_k / τ)  over the rows of every rank.

- **No maximum.** |z_i·z_k| ≤ 1, so E_ik = exp(z_i·z_k/τ) lies in [e^{−1/τ}, e^{1/τ}]: while both ends are far inside
  the range of the number format (τ ≥ 0.026 in float32) no shift and no pass for the maximum is needed, and E is
  symmetric. Below that, a running row maximum takes over.
- **Symmetric tiles.** One process computes tiles on and above the diagonal only and adds row sums to one block,
  column sums to the other. With several ranks each computes its own rows against all columns.
- **Closed-form backward**: with upstream g and a_i = g_i / Σ_k E_ik,
  dz_i = (1/τ) Σ_{j≠i} E_ij (a_i + a_j) z_j. The first tiles, up to a fixed number of bytes, are kept from the forward
  pass and the rest computed again, so memory is O(M·K) plus a constant and small inputs compute everything once.

Shape legend: M rows of every rank, R rows of this rank, K embedding size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C import _functorch as functorch

from punce.errors import InputError, PunceError, is_number
from punce.training import collectives
from punce.training.collectives import GatheredRows
from punce.training.products import fast_products

# A tile should stay in the last-level cache of a CPU; an accelerator wants fewer, larger launches.
_TILE = {"cpu": 1024}
_TILE_ACCELERATOR = 8192
_KEPT_BYTES = {"cpu": 32 * 2**20}
_KEPT_BYTES_ACCELERATOR = 512 * 2**20
_LOWEST_TEMPERATURE = 1e-30  # leaves room for a sum of 10⁸ losses of 1/τ each
_LONGEST_UNIT_ROW = 1.02  # bfloat16 rounding moves the length of a unit row by up to 1 %


def log_partition(z: Tensor, temperature: float, tile: int | None = None) -> Tensor:
    """lse_i = log Σ_{k≠i} exp(z_i·z_k/τ) for every row of this rank, over all other rows of every rank.

    Exact, linear in memory, differentiable (twice in a single process, where the second derivative is quadratic in
    memory). Under ``torch.func`` (grad, vmap, hessian …) it works in a single process and is quadratic in memory.
    Half-precision rows are computed in float32. A lone row has an empty sum: its value is −inf.
    ``torch.set_float32_matmul_precision`` is honoured: "medium" is faster on CPUs with AMX, in bfloat16 products.

    Args:
        z: (R, K) rows of unit length.
        temperature: τ > 0.
        tile: rows per tile; None picks by device.

    Shape: (R, K) -> (R,), float32 for half-precision input, otherwise the dtype of `z`.
    """
    check_temperature(temperature)
    if tile is not None and not (isinstance(tile, int) and tile >= 1):
        raise InputError(f"tile must be a whole number of rows, at least 1, or None, got {tile!r}")
    _check_unit_rows(z)
    if z.dtype in (torch.float16, torch.bfloat16):
        z = z.float()
    if torch._C._are_functorch_transforms_active():
        return _plain_lse(z, float(temperature))
    lse: Tensor = _LogPartition.apply(z, float(temperature), tile)  # type: ignore[no-untyped-call]
    return lse


def check_temperature(temperature: float) -> None:
    """Refuse a temperature that is not a positive finite number, or with which 1/τ leaves the range of float32."""
    if not (is_number(temperature) and 0 < temperature < math.inf):
        raise InputError(f"temperature must be a positive number, got {temperature!r} (the paper uses 0.5)")
    if temperature < _LOWEST_TEMPERATURE:
        raise InputError(f"temperature must be at least {_LOWEST_TEMPERATURE:g}, got {temperature!r}: losses overflow")


def _check_unit_rows(z: Tensor) -> None:
    if not isinstance(z, Tensor):
        raise InputError(f"log_partition needs a tensor, got {type(z).__name__}; torch.as_tensor makes one")
    if z.dim() != 2 or not z.is_floating_point():
        raise InputError(f"log_partition needs floating-point rows (n, d), got {z.dtype} of shape {tuple(z.shape)}")
    if is_batched(z):
        return
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
        ctx.temperature, ctx.world_size = temperature, collectives.world_size()
        with full_precision(z), fast_products():
            gathered = collectives.gather_rows(z)
            ctx.tile = tile or _TILE.get(z.device.type, _TILE_ACCELERATOR)
            tiles = _Tiles(gathered, temperature, ctx.tile, keep=ctx.needs_input_grad[0])
            if _exp_is_safe(temperature, z.dtype):
                lse = _row_sums(tiles, len(z)).log_()
            else:
                lse = _running_max_lse(gathered, temperature, ctx.tile)
        ctx.start, ctx.stop = gathered.start, gathered.stop
        # All that is large is saved this way, so that autograd frees it after backward() unless the graph is retained.
        ctx.save_for_backward(z, lse, gathered.rows, *tiles.kept)
        return lse

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None]:
        (grad,) = grads
        z, lse, rows, *kept = ctx.saved_tensors
        with full_precision(z), fast_products():
            # Only with create_graph=True: someone wants the second derivative.
            if torch.is_grad_enabled():
                return _differentiable_grad(z, grad, ctx), None, None
            gathered = GatheredRows(rows, ctx.start, ctx.stop)
            if _exp_is_safe(ctx.temperature, z.dtype):
                # a_i = g_i / Σ_k E_ik; a lone row has an empty sum and gets no gradient.
                a = torch.where(lse == -math.inf, 0.0, grad * (-lse).exp())
                dz = _grad_from_tiles(_Tiles(gathered, ctx.temperature, ctx.tile, kept=kept), a)
            else:
                dz = _running_max_grad(gathered, lse, grad, ctx)
        return dz.div_(ctx.temperature), None, None


def full_precision(z: Tensor) -> torch.autocast:
    """Keep autocast from turning the similarities into half precision."""
    return torch.autocast(z.device.type, enabled=False)


def _exp_is_safe(temperature: float, dtype: torch.dtype) -> bool:
    """Whether exp(±1/τ) leaves half the exponent range of the number format for sums and products."""
    return 1.0 / temperature < 0.45 * math.log(torch.finfo(dtype).max)


class _Span(NamedTuple):
    """Rows of this rank against columns of the global batch; row i is the same point as column i + offset."""

    rows: slice
    columns: slice
    offset: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.stop - self.rows.start, self.columns.stop - self.columns.start

    @property
    def is_diagonal(self) -> bool:
        return self.offset == 0 and self.rows == self.columns


def _spans(gathered: GatheredRows, tile: int, *, upper: bool) -> Iterator[_Span]:
    """All tiles of this rank's rows against all columns, or those on and above the diagonal."""
    n_rows, n_columns = gathered.stop - gathered.start, len(gathered.rows)
    for i in range(0, n_rows, tile):
        # The upper half suffices in one process: E is symmetric, and a tile serves its mirror image as well.
        for j in range(i if upper else 0, n_columns, tile):
            rows, columns = slice(i, min(i + tile, n_rows)), slice(j, min(j + tile, n_columns))
            yield _Span(rows, columns, gathered.start + i - j)


class _Tiles:
    """The tiles of E = exp(z·zᵀ/τ), 0 where a point meets itself; the first ones are kept for the next pass.

    One process holds every row, so E is symmetric and only tiles on and above the diagonal are needed. `keep` fills
    :attr:`kept` in the first pass; a later pass is given what is `kept`.
    """

    def __init__(
        self, gathered: GatheredRows, temperature: float, tile: int, *, keep: bool = False, kept: Sequence[Tensor] = ()
    ) -> None:
        self.gathered = gathered
        self.symmetric = gathered.is_local
        self.rows = gathered.rows[gathered.start : gathered.stop]
        self._temperature, self._tile = temperature, tile
        self.kept = list(kept)
        budget = _KEPT_BYTES.get(self.rows.device.type, _KEPT_BYTES_ACCELERATOR)
        self._n_kept = budget // (tile * tile * self.rows.element_size()) if keep else 0
        self._largest = min(tile, len(self.rows)) * min(tile, len(gathered.rows))

    def __iter__(self) -> Iterator[tuple[_Span, Tensor]]:
        # One scratch buffer for all tiles that are not kept: fresh memory for each would cost as much as its GEMM.
        scratch = self.rows.new_empty(0)
        for index, span in enumerate(_spans(self.gathered, self._tile, upper=self.symmetric)):
            if index < len(self.kept):
                yield span, self.kept[index]
            elif index < self._n_kept:
                self.kept.append(self._compute(span, self.rows.new_empty(span.shape)))
                yield span, self.kept[index]
            else:
                scratch = scratch if scratch.numel() else self.rows.new_empty(self._largest)
                yield span, self._compute(span, scratch[: math.prod(span.shape)].view(span.shape))

    def _compute(self, span: _Span, out: Tensor) -> Tensor:
        # Dividing the rows by τ costs K numbers a row; dividing the tile would cost M.
        torch.mm(self.rows[span.rows] / self._temperature, self.gathered.rows[span.columns].T, out=out)
        return _fill_self(out.exp_(), span.offset, 0.0)


def _fill_self(tile: Tensor, offset: int, value: float) -> Tensor:
    # k ≠ i: a point does not meet itself. Only tiles that the diagonal crosses need it.
    if -tile.shape[0] < offset < tile.shape[1]:
        tile.diagonal(offset).fill_(value)
    return tile


def _row_sums(tiles: _Tiles, n: int) -> Tensor:
    sums = tiles.rows.new_zeros(n)
    for span, exp in tiles:
        sums[span.rows] += exp.sum(1)
        if tiles.symmetric and not span.is_diagonal:
            sums[span.columns] += exp.sum(0)
    return sums


def _grad_from_tiles(tiles: _Tiles, a: Tensor) -> Tensor:
    """τ dz_i = Σ_{j≠i} E_ij (a_i + a_j) z_j; all that ranks exchange is one number per row."""
    z, all_z = tiles.rows, tiles.gathered.rows
    # a_j of other ranks: one number a row, where gathering gradients would send K.
    all_a = collectives.gather_rows(a).rows
    dz, scratch = torch.zeros_like(z), z.new_empty(0)
    for span, exp in tiles:
        scratch = scratch if scratch.numel() >= exp.numel() else torch.empty_like(exp).flatten()
        weights = scratch[: exp.numel()].view_as(exp)
        torch.add(a[span.rows, None], all_a[span.columns], out=weights).mul_(exp)
        dz[span.rows].addmm_(weights, all_z[span.columns])
        if tiles.symmetric and not span.is_diagonal:
            dz[span.columns].addmm_(weights.T, z[span.rows])
    return dz


# Very small temperatures: a running maximum, no assumption on the range of E ------------------------------


def _scaled_similarity(rows: Tensor, columns: Tensor, offset: int, temperature: float) -> Tensor:
    return _fill_self((rows @ columns.T).div_(temperature), offset, -math.inf)


def _running_max_lse(gathered: GatheredRows, temperature: float, tile: int) -> Tensor:
    z = gathered.rows[gathered.start : gathered.stop]
    lse = z.new_full((len(z),), -math.inf)
    for rows, columns, offset in _spans(gathered, tile, upper=False):
        similarity = _scaled_similarity(z[rows], gathered.rows[columns], offset, temperature)
        # logaddexp carries the running maximum from tile to tile.
        lse[rows] = torch.logaddexp(lse[rows], similarity.logsumexp(1))
    return lse


def _running_max_grad(gathered: GatheredRows, lse: Tensor, grad: Tensor, ctx: Any) -> Tensor:
    """τ dz_i = Σ_j (g_i p_ij + g_j p_ji) z_j with p_ij = exp(s_ij − lse_i) ≤ 1."""
    all_z, z = gathered.rows, gathered.rows[gathered.start : gathered.stop]
    all_lse, all_grad = collectives.gather_rows(lse).rows, collectives.gather_rows(grad).rows
    dz = torch.zeros_like(z)
    for rows, columns, offset in _spans(gathered, ctx.tile, upper=False):
        similarity = _scaled_similarity(z[rows], all_z[columns], offset, ctx.temperature)
        weights = _probability(similarity, lse[rows, None]) * grad[rows, None]
        weights += _probability(similarity, all_lse[columns]) * all_grad[columns]
        dz[rows].addmm_(weights, all_z[columns])
    return dz


def _probability(similarity: Tensor, lse: Tensor) -> Tensor:
    return torch.where(similarity == -math.inf, 0.0, (similarity - lse).exp())


# torch.func and the second derivative ------------------------------


def is_batched(x: Tensor) -> bool:
    """Whether this tensor stands for many under ``torch.func.vmap``: then no check can look at its numbers.

    torch has no public function that tells.
    """
    if not torch._C._are_functorch_transforms_active():  # torch.compile knows this question, not those below
        return False
    while functorch.is_functorch_wrapped_tensor(x) and not functorch.is_batchedtensor(x):
        x = functorch.get_unwrapped(x)
    return functorch.is_batchedtensor(x)


def _plain_lse(z: Tensor, temperature: float) -> Tensor:
    """The same in operations that torch.func can transform: tiles are written in place, which it does not allow."""
    if collectives.world_size() > 1:
        raise PunceError("log_partition works under torch.func in one process only; call backward() on several ranks")
    with full_precision(z):
        is_self = torch.eye(len(z), dtype=torch.bool, device=z.device)
        if len(z) == 1:  # the gradient of an empty sum would be NaN
            return z.new_full((1,), -math.inf)
        return (z @ z.T / temperature).masked_fill(is_self, -math.inf).logsumexp(1)


def _differentiable_grad(z: Tensor, grad: Tensor, ctx: Any) -> Tensor:
    """The gradient in plain differentiable operations, for create_graph=True. Quadratic in memory."""
    if ctx.world_size > 1:
        raise PunceError(
            "log_partition has no second derivative across ranks; compute it in one process, or call backward without "
            "create_graph=True"
        )
    similarity = (z @ z.T / ctx.temperature).fill_diagonal_(-math.inf)
    # Softmax over an empty set is NaN; a lone row has no partner.
    p = similarity.softmax(1) if len(z) > 1 else torch.zeros_like(similarity)
    weights = grad[:, None] * p
    dz: Tensor = (weights + weights.T) @ z / ctx.temperature
    return dz

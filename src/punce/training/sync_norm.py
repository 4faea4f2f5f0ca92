"""BatchNorm over the global batch, so that several ranks normalise as one process would.

On GPUs torch's own SyncBatchNorm does it. It refuses CPU tensors, so CPU ranks get the same arithmetic from a
differentiable all-reduce of three sums; slower, but it lets many ranks be tested, and used, without a GPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from punce.training import collectives

_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def synchronise_batch_norm(model: nn.Module) -> nn.Module:
    """Replace every BatchNorm of `model` by one over all ranks; with a single rank the model stays as it is."""
    if collectives.world_size() == 1:
        return model
    if any(parameter.is_cuda for parameter in model.parameters()):
        converted: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
        return converted
    return _with_all_reduce(model)


def _with_all_reduce(module: nn.Module) -> nn.Module:
    if isinstance(module, _BATCH_NORMS):
        return _AllReduceBatchNorm.like(module)
    for name, child in module.named_children():
        setattr(module, name, _with_all_reduce(child))
    return module


class _AllReduceBatchNorm(nn.modules.batchnorm._BatchNorm):
    """Normalises (B, C, ...) by mean and variance over every rank; parameters and buffers as in nn.BatchNorm."""

    @classmethod
    def like(cls, norm: nn.modules.batchnorm._BatchNorm) -> _AllReduceBatchNorm:
        """The same layer, sharing its parameters and buffers."""
        new = cls(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
        new.weight, new.bias = norm.weight, norm.bias
        new.running_mean, new.running_var = norm.running_mean, norm.running_var
        new.num_batches_tracked = norm.num_batches_tracked
        return new.train(norm.training)

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() < 2:
            raise ValueError(f"BatchNorm needs at least two dimensions, got {input.dim()}")

    def forward(self, input: Tensor) -> Tensor:
        """Global statistics in training (and always, if no running ones are kept), running ones in evaluation."""
        if not self.training and self.running_mean is not None:
            return super().forward(input)
        if input.dtype in (torch.float16, torch.bfloat16):  # from convolutions under autocast
            # As torch does: a count beyond 256 is no bfloat16, and the running statistics are float32.
            return self.forward(input.float()).to(input.dtype)
        dims = [0, *range(2, input.dim())]
        count = collectives.global_sum(input.new_tensor(input.numel() / max(1, input.shape[1])))
        mean = collectives.global_sum(input.sum(dims)) / count
        shape = [1, -1, *[1] * (input.dim() - 2)]
        centred = input - mean.view(shape)  # two passes: E[x²] − E[x]² loses digits where the mean is large
        variance = collectives.global_sum(centred.square().sum(dims)) / count
        if float(count) <= 1:
            raise ValueError(f"BatchNorm in training needs more than one value per channel, got {tuple(input.shape)}")
        # torch keeps the unbiased variance but normalises by the biased one
        self._update_running(mean.detach(), variance.detach() * (count / (count - 1.0)))
        normalised = centred * torch.rsqrt(variance.view(shape) + self.eps)
        if self.affine:
            normalised = normalised * self.weight.view(shape) + self.bias.view(shape)
        return normalised

    @torch.no_grad()
    def _update_running(self, mean: Tensor, unbiased_variance: Tensor) -> None:
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        share = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(unbiased_variance, share)

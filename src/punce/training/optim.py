"""Optimisers and the learning-rate schedule.

LARS is written here, in a few lines on top of torch's fused SGD kernel, rather than taken from a package such as
``pytorch-optimizer``: the state must be tensors and numbers that a safetensors checkpoint restores to the bit, and
what is excluded from decay and adaptation (biases, norm layers) must be the same list for every optimiser.
The schedule is a pure function of the step, so a resumed run needs no scheduler state.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.sgd import sgd

from punce.errors import InputError, is_number

OptimizerName = Literal["lars", "adam", "adamw", "sgd"]
OPTIMIZERS: tuple[OptimizerName, ...] = get_args(OptimizerName)

_FUSED_DEVICES = ("cpu", "cuda")  # for which torch has fused kernels
_NORM_LAYERS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


class LARS(Optimizer):
    """Layer-wise adaptive rate scaling (You, Gitman & Ginsburg 2017).

    For each tensor with d = ∇ + λw:  m ← μ·m + trust·(|w|/|d|)·d,  w ← w − lr·m.

    Groups with ``adapt=False`` (biases and norm layers) take the plain momentum step with ratio 1; so does a tensor
    whose weight or gradient is all zero. The rate multiplies the momentum buffer, as in torch's SGD. Because of the
    trust coefficient useful rates are near 1, not near 0.01.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = 0.001,
        adapt: bool = True,
    ) -> None:
        for name, value in (("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay), ("trust", trust)):
            require_non_negative(name, value)
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust, "adapt": adapt}
        super().__init__(params, defaults)
        _keep_layouts_matched(self)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update of every parameter that has a gradient; `closure` computes the loss anew, as torch has it."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            ratios = _trust_ratios(weights, group) if group["adapt"] else [1.0] * len(weights)
            for weight, ratio in zip(weights, ratios, strict=True):
                self._update(weight, ratio, group)
        return loss

    def _update(self, weight: Tensor, ratio: float, group: dict[str, Any]) -> None:
        """m ← μ·m + ratio·(∇ + λw), w ← w − lr·m in one pass over memory: SGD's kernel with dampening 1 − ratio."""
        has_momentum = group["momentum"] != 0.0
        sgd(
            [weight],
            [weight.grad],  # type: ignore[list-item]
            [self._buffer(weight) if has_momentum else None],
            fused=weight.device.type in _FUSED_DEVICES,
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            lr=group["lr"] if has_momentum else group["lr"] * ratio,  # without momentum SGD ignores dampening
            dampening=1.0 - ratio if has_momentum else 0.0,  # SGD adds (1 − dampening)·gradient to the momentum
            nesterov=False,
            maximize=False,
        )

    def _buffer(self, weight: Tensor) -> Tensor:
        state = self.state[weight]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
        buffer: Tensor = state["momentum_buffer"]
        return buffer


def build_optimizer(
    model: nn.Module,
    name: OptimizerName,
    lr: float,
    weight_decay: float = 0.0,
    *,
    parts: Sequence[tuple[nn.Module, float]] | None = None,
    **options: Any,
) -> Optimizer:
    """The optimiser of that name over the trainable parameters, with biases and norm layers spared from decay.

    `parts` gives parts of the model rates of their own. `options` go to the optimiser (``betas`` for vPU's Adam,
    ``trust`` for LARS, ``momentum`` …). Adam, AdamW and SGD run fused where torch has it, which is several times faster
    for wide layers.
    """
    if name not in OPTIMIZERS:
        raise InputError(f"optimizer must be one of {list(OPTIMIZERS)}, got {name!r}")
    require_non_negative("weight_decay", weight_decay)
    groups = [group for part, rate in parts or [(model, lr)] for group in _groups(part, name, rate, weight_decay)]
    parameters = [parameter for group in groups for parameter in group["params"]]
    if not parameters:
        raise InputError("the model has no parameter that requires a gradient: there is nothing to train")
    if name == "lars":
        return LARS(groups, lr=lr, **options)
    kinds: dict[str, Any] = {"sgd": partial(SGD, momentum=0.9), "adam": Adam, "adamw": AdamW}
    optimizer: Optimizer = kinds[name](groups, lr=lr, **{"fused": _fusible(parameters), **options})
    _keep_layouts_matched(optimizer)
    return optimizer


def _groups(module: nn.Module, name: OptimizerName, rate: float, weight_decay: float) -> list[dict[str, Any]]:
    require_non_negative("lr", rate)
    decayed, spared = split_parameters(module)
    own: dict[str, Any] = {"lr": rate, "base_lr": rate}  # base_lr is what set_rate multiplies
    spare = {"weight_decay": 0.0, **({"adapt": False} if name == "lars" else {})}
    return [{"params": decayed, "weight_decay": weight_decay, **own}, {"params": spared, **spare, **own}]


def split_parameters(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Trainable parameters as (weights, biases and norm layers), each once and in module order."""
    weights: list[nn.Parameter] = []
    spared: list[nn.Parameter] = []
    seen: set[int] = set()
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            if parameter.requires_grad and id(parameter) not in seen:
                seen.add(id(parameter))
                (spared if is_bias_or_norm(module, parameter) else weights).append(parameter)
    return weights, spared


def is_bias_or_norm(module: nn.Module, parameter: Tensor) -> bool:
    """Whether decay and adaptation spare this parameter of `module`: vectors and scalars, and norm layers whole."""
    return parameter.dim() <= 1 or isinstance(module, _NORM_LAYERS)


def warmup_cosine(step: int, total: int, warmup: int = 0) -> float:
    """Multiplier of the rate at `step` = 0 … total−1: linear to 1 over `warmup` steps, then half a cosine."""
    if total < 1 or not 0 <= warmup <= total or step < 0:
        raise InputError(
            f"schedule needs step >= 0, total >= 1 and 0 <= warmup <= total; got {step=}, {total=}, {warmup=}"
        )
    if step < warmup:
        return (step + 1) / warmup  # not step / warmup: at rate 0 the first step would change nothing
    progress = min(1.0, (step - warmup) / max(1, total - warmup))
    return 0.5 * (1.0 + math.cos(math.pi * progress))


def set_rate(optimizer: Optimizer, multiplier: float) -> None:
    """Set every group's rate to `multiplier` times the rate :func:`build_optimizer` was given."""
    for group in optimizer.param_groups:
        group["lr"] = group["base_lr"] * multiplier


def _trust_ratios(weights: list[Tensor], group: dict[str, Any]) -> list[float]:
    """trust·|w|/|∇ + λw| for each tensor, 1 where either norm is zero.

    |∇ + λw|² is expanded, so that no tensor of the size of the weights is allocated.
    """
    if not weights:
        return []
    products = torch.stack([_products(weight, group["weight_decay"]) for weight in weights]).tolist()
    return [
        _trust_ratio(w_norm, g_norm, dot, group["trust"], group["weight_decay"]) for w_norm, g_norm, dot in products
    ]


def _products(weight: Tensor, decay: float) -> Tensor:
    """(|w|, |∇|, ∇·w) on the device of the weight; one transfer then serves the whole group. Shape: (3,)."""
    w, g = weight.detach().reshape(-1), weight.grad.reshape(-1)  # type: ignore[union-attr]
    dot = torch.dot(g, w) if decay != 0.0 else torch.zeros((), dtype=w.dtype, device=w.device)
    return torch.stack([torch.linalg.vector_norm(w), torch.linalg.vector_norm(g), dot])


def _trust_ratio(w_norm: float, g_norm: float, dot: float, trust: float, decay: float) -> float:
    update_square = g_norm * g_norm + 2.0 * decay * dot + decay * decay * w_norm * w_norm
    usable = w_norm > 0.0 and update_square > 0.0  # not NaN either: a bad gradient must not hide behind ratio 1
    if usable or math.isnan(w_norm) or math.isnan(update_square):
        return trust * w_norm / math.sqrt(update_square)
    return 1.0


def _keep_layouts_matched(optimizer: Optimizer) -> None:
    """Give gradients, and state after loading, the memory layout of their weight.

    torch's fused CPU kernels walk them all in memory order and are silently wrong where layouts differ. Autograd makes
    gradients agree, but one that was assigned, or kept across a change to channels_last, need not; and momentum
    read from a file is contiguous.
    """
    optimizer.register_step_pre_hook(_match_gradients)
    optimizer.register_load_state_dict_post_hook(_match_state)


def _match_gradients(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for group in optimizer.param_groups:
        for weight in group["params"]:
            if weight.grad is not None and weight.grad.stride() != weight.stride():
                weight.grad = torch.empty_like(weight).copy_(weight.grad)


def _match_state(optimizer: Optimizer) -> None:
    for weight, state in optimizer.state.items():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.shape == weight.shape and value.stride() != weight.stride():
                state[name] = torch.empty_like(weight, dtype=value.dtype).copy_(value)


def _fusible(parameters: list[nn.Parameter]) -> bool:
    return all(p.is_floating_point() and p.device.type in _FUSED_DEVICES for p in parameters)


def require_non_negative(name: str, value: float) -> None:
    """A rate or a strength."""
    if not (is_number(value) and math.isfinite(value) and value >= 0.0):
        raise InputError(f"{name} must be a number >= 0, got {value!r}")

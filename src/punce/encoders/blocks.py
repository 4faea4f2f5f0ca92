"""The blocks of a network, to train the last of them alone: what comes before keeps its bits.

Blocks are the members of the list of layers that holds most weights: the layers of a ViT, the stages of a ConvNeXt or
ResNet, the inverted residuals of a MobileNet; of a network without such a list, its own parts. Modules are taken in the
order in which they were added to the network, which is the order in which they are used.
"""

from __future__ import annotations

from torch import nn

from punce.errors import InputError


def frozen_names(network: nn.Module, blocks: int, apart: tuple[str, ...] = ()) -> list[str]:
    """Names of all modules before the last `blocks` blocks. `apart` are parts that do not belong to the network."""
    found = _blocks(network, apart)
    if not isinstance(blocks, int) or not 1 <= blocks <= len(found):
        raise InputError(
            f"blocks must be between 1 and {len(found)}, the number of blocks of this encoder, got {blocks}"
        )
    names = [name for name, _ in network.named_modules()]
    return names[: names.index(found[-blocks])]


def _blocks(network: nn.Module, apart: tuple[str, ...]) -> list[str]:
    lists = {
        name: parts
        for name, module in network.named_modules()
        if isinstance(module, nn.ModuleList | nn.Sequential)
        and name.split(".")[0] not in apart
        and len(parts := _with_weights(module, name)) > 1
    }
    if not lists:
        return _own_parts(network, apart)
    return lists[max(lists, key=lambda name: _weights(network.get_submodule(name)))]  # of equals the outermost


def _own_parts(network: nn.Module, apart: tuple[str, ...]) -> list[str]:
    """Children with weights; where there is but one, its children."""
    name, parts = "", [part for part in _with_weights(network, "") if part not in apart]
    while len(parts) == 1:
        name = parts[0]
        parts = _with_weights(network.get_submodule(name), name)
    return parts or [name]


def _with_weights(module: nn.Module, name: str) -> list[str]:
    first = f"{name}." if name else ""
    return [f"{first}{child}" for child, part in module.named_children() if _weights(part)]


def _weights(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())

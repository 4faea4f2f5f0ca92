"""The one training loop. A stage says what a step computes; the loop does everything around it.

    class Regression(Stage):
        name = "regression"

        def inputs(self, batch):                 # (b, ...) what the model is given
            return self.X[batch.rows]

        def objective(self, model, x, batch):    # model is self.model, wrapped where there are several ranks
            loss = (model(x) - self.y[batch.rows]).square().mean()
            return Objective(loss, {"loss": loss})

    history = train(Regression(model, labels, config, device), folder=folder)

The loop owns batches, ranks, optimiser, schedule, finiteness, checkpoints, history, the best epoch, dropout's stream.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from punce.errors import InputError, is_number
from punce.labels import Labels
from punce.training import collectives
from punce.training.batches import StratifiedBatches, own_part
from punce.training.optim import OptimizerName, build_optimizer, require_non_negative, set_rate, warmup_cosine
from punce.training.products import fast_products
from punce.training.run import Outputs, Run, Stateful, own_dropout
from punce.training.splits import can_choose, holdout_split
from punce.training.sync_norm import synchronise_batch_norm

_LARGEST_SEED = 2**32 - 1
_LEAST = {"seed": 0, "epochs": 0, "steps": 0, "evaluate_every": 1, "batch_size": 2, "min_labelled": 0}


@dataclass(frozen=True)
class TrainingConfig:
    """What the Configs of the stages have in common; each states what differs from it."""

    epochs: int = 20
    batch_size: int = 1024
    optimizer: OptimizerName = "adam"
    lr: float = 1e-3
    weight_decay: float = 0.0
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the loop must be told. :meth:`of` takes it from a stage's Config, whose fields have the same names.

    `steps`, `warmup_steps` and `evaluate_every` are for stages that count steps; otherwise epochs decide all three.
    """

    batch_size: int
    seed: int
    lr: float
    weight_decay: float
    optimizer: OptimizerName = "adam"
    optimizer_options: Mapping[str, Any] = field(default_factory=dict)
    epochs: int = 0
    warmup_epochs: float = 0.0
    steps: int | None = None
    warmup_steps: int | None = None
    evaluate_every: int | None = None
    min_labelled: int = 1
    labelled_share: float | None = None
    validation_share: float = 0.0

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            is_count = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
            if value is None and name in ("steps", "evaluate_every"):
                continue
            if not is_count:
                raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
            object.__setattr__(self, name, int(value))  # NumPy's counts are no ints to the views
        require_non_negative("lr", self.lr)
        require_non_negative("weight_decay", self.weight_decay)
        if self.seed > _LARGEST_SEED:  # scikit-learn takes no more; dropout's seed is a million times it
            raise InputError(f"seed must be at most 2³² − 1, got {self.seed}")
        if not (is_number(self.warmup_epochs) and 0 <= self.warmup_epochs < math.inf):
            raise InputError(f"warmup_epochs must be a number of at least 0, got {self.warmup_epochs!r}")

    @classmethod
    def of(cls, config: Any, **changes: Any) -> Settings:
        """The fields that `config` has too, and `changes`."""
        own = {each.name for each in fields(cls)}
        return cls(**{**{name: value for name, value in asdict(config).items() if name in own}, **changes})


@dataclass(frozen=True)
class Batch:
    """This rank's rows of a step. `rows` are row numbers of X, `places` are their positions among the training rows.

    Shape: rows (b,), places (b,), on the device of the stage.
    """

    step: int
    epoch: int
    rows: Tensor
    places: Tensor


@dataclass(frozen=True)
class Objective:
    """The scalar to call ``backward()`` on, and the numbers of the step that history averages over the epoch."""

    loss: Tensor
    logged: Mapping[str, Tensor | float]


@dataclass(frozen=True)
class Judgement:
    """What held-out rows say of a module: `criterion` chooses the epoch (lower is better), `values` go into history."""

    criterion: float
    values: Mapping[str, float]
    module: nn.Module


class Stage(ABC):
    """What differs between stages. Override what the stage needs; the defaults do nothing.

    Args:
        model: what is trained and stored in checkpoints.
        labels: (n,) of {1, 0, −1}. `validation_share` of every label value is held out, the rest is trained on.
        config: the stage's frozen Config.
        device: where the rows are.
        settings: of the loop, where they differ from the Config's fields.
    """

    name: str
    is_split_over_ranks = True
    """Whether each rank takes its share of a batch. If not, every rank computes all of it, without DDP."""
    has_unused_parameters = True
    """Whether some parameter may get no gradient. DDP must be told, and searching for them takes time."""
    keeps_last_of_equals = False
    """Which of several epochs with the same criterion is kept."""

    def __init__(self, model: nn.Module, labels: Labels, config: Any, device: torch.device, **settings: Any) -> None:
        self.model, self.config, self.settings = model, config, Settings.of(config, **settings)
        use, self.device = self.settings, device
        train, held_out = holdout_split(labels, use.validation_share, use.seed)
        self.train_rows, self.held_out = train, held_out.to(device)  # batches are dealt on the CPU
        # With a single labelled row nothing can be held out that tells models apart: then the last epoch is kept.
        self.is_chosen = can_choose(labels, held_out)
        self.label_of = torch.from_numpy(labels.astype("int64")).to(device)
        self.batches = StratifiedBatches(
            labels[train.numpy()], use.batch_size, use.seed, use.min_labelled, use.labelled_share
        )

    @abstractmethod
    def inputs(self, batch: Batch) -> Tensor:
        """What the model is given, rows first: errors name the row with the largest value. Shape: (b, ...)."""

    @abstractmethod
    def objective(self, model: nn.Module, inputs: Tensor, batch: Batch) -> Objective:
        """The loss of a step. Call `model`, not ``self.model``: gradients are averaged over ranks through it."""

    def called(self) -> nn.Module:
        """The module that :meth:`objective` calls, if it is another one around ``self.model``."""
        return self.model

    def parts(self) -> Sequence[tuple[nn.Module, float]]:
        """The parts of the model and their learning rates."""
        return [(self.model, self.settings.lr)]

    def places(self, step: int) -> Tensor:
        """The global batch of a step, as positions among the training rows."""
        return self.batches.rows(step)

    def identity(self) -> dict[str, Any]:
        """What decides the numbers beside the Config: a checkpoint of another identity is refused.

        Asked for only if there is a folder, because fingerprints of rows and weights read all of them.
        """
        return {}

    def state(self) -> dict[str, Stateful]:
        """What a checkpoint must hold beside model, optimiser and best epoch."""
        return {}

    def begin(self) -> None:  # noqa: B027  most stages have nothing to do here
        """Called once before the first step, after a checkpoint has been read."""

    def before_epoch(self, epoch: int) -> None:  # noqa: B027
        """Called before the first step of an epoch."""

    def after_step(self, step: int) -> None:  # noqa: B027
        """Called after the optimiser step."""

    def shown(self) -> Any:
        """What an observer is called with."""
        raise NotImplementedError(f"{self.name} has nothing to show an observer")

    def epoch_values(self) -> Mapping[str, float]:
        """Numbers of an epoch for its row of history."""
        return {}

    def judge(self) -> Judgement:
        """What the held-out rows say at the end of an epoch; asked for if ``is_chosen``."""
        raise NotImplementedError(f"{self.name} has held-out rows but does not say how to judge them")

    def finish(self, best: dict[str, Tensor] | None) -> None:
        """Take the state of the best epoch; None where none was chosen, and the last one stays."""
        if best is not None:
            self.model.load_state_dict(best)
        self.model.eval()


Observe = Callable[[Any], Mapping[str, float] | None]


class Watched(Outputs, total=False):
    """:class:`~punce.training.run.Outputs` of a stage that can be observed."""

    observer: Observe | None
    """Called at the end of every epoch with :meth:`Stage.shown`; its numbers go into history and change nothing."""


@contextmanager
def _fresh_casts() -> Iterator[None]:
    """Inside a caller's autocast, weights are cast at every use.

    autocast keeps its copies of the weights until its block ends. Around a whole run they would stay those of the first
    step, and those that held-out rows were scored with have no gradient.
    """
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)
        torch.clear_autocast_cache()  # what the caller computes next must see the trained weights


@torch.enable_grad()  # a notebook may have switched gradients off to evaluate
@fast_products()
@_fresh_casts()
def train(stage: Stage, *, observer: Observe | None = None, **outputs: Unpack[Outputs]) -> list[dict[str, Any]]:
    """Run the stage to its end and return the history, one row per epoch."""
    use, per_epoch = stage.settings, stage.batches.per_epoch
    total = use.epochs * per_epoch if use.steps is None else use.steps
    warmup = round(use.warmup_epochs * per_epoch) if use.warmup_steps is None else use.warmup_steps
    synchronise_batch_norm(stage.model).train()
    model = _on_all_ranks(stage)
    optimizer = build_optimizer(
        stage.model, use.optimizer, use.lr, use.weight_decay, parts=stage.parts(), **use.optimizer_options
    )
    best = _Best()
    # The run is made within the stage's own stream, because resuming sets it to where the checkpoint left it.
    with own_dropout(use.seed, stage.device):
        run = Run(
            stage.name,
            total,
            {**asdict(stage.config), **stage.identity()} if outputs.get("folder") is not None else {},
            # The stage's own parts first: they may refuse a checkpoint, and the model must not be loaded then.
            {
                **stage.state(),
                "model": stage.model,
                "optimizer": optimizer,
                **({"best": best} if stage.is_chosen else {}),
            },
            steps_per_epoch=use.evaluate_every or per_epoch,
            rows_per_step=use.batch_size,
            **outputs,
        )
        stage.begin()
        for step in run.steps():
            if step % per_epoch == 0:
                stage.before_epoch(step // per_epoch)
            set_rate(optimizer, warmup_cosine(step, total, min(warmup, total)))  # a run may be all warm-up
            _step(stage, model, optimizer, run, step)
            if run.is_epoch_end(step):
                seen = observer(stage.shown()) if observer is not None else None  # one that only prints returns None
                run.record(**(seen or {}), **stage.epoch_values())
                if stage.is_chosen:
                    judgement = stage.judge()
                    best.offer(judgement.module, judgement.criterion, or_equal=stage.keeps_last_of_equals)
                    run.record(**judgement.values)
    stage.finish(best.state)
    return run.history


def _step(stage: Stage, model: nn.Module, optimizer: Optimizer, run: Run, step: int) -> None:
    batch = _batch(stage, step)
    inputs = stage.inputs(batch)
    # A bad batch must stop the run before the optimiser has taken it into the weights, and say which rows it held.
    with run.naming_rows(batch.rows, inputs):
        objective = stage.objective(model, inputs, batch)
    run.require_finite(objective.loss, batch.rows, inputs)
    optimizer.zero_grad()
    objective.loss.backward()  # type: ignore[no-untyped-call]
    run.require_finite_gradients(batch.rows, inputs)
    optimizer.step()
    stage.after_step(step)
    run.log(**objective.logged)


def _batch(stage: Stage, step: int) -> Batch:
    places = stage.places(step)
    if stage.is_split_over_ranks:
        places = own_part(places, collectives.rank(), collectives.world_size())
    rows = stage.train_rows[places]
    return Batch(step, step // stage.batches.per_epoch, rows.to(stage.device), places.to(stage.device))


def _on_all_ranks(stage: Stage) -> nn.Module:
    """The module that is called, under DistributedDataParallel where ranks share the batches."""
    if collectives.world_size() == 1 or not stage.is_split_over_ranks:
        return stage.called()
    with warnings.catch_warnings():  # torch 2.13 has a new name for broadcast_buffers, which 2.10 does not know
        warnings.simplefilter("ignore", FutureWarning)
        # BatchNorm is synchronised already, so that buffers need no broadcast before every step.
        return DistributedDataParallel(
            stage.called(), find_unused_parameters=stage.has_unused_parameters, broadcast_buffers=False
        )


class _Best:
    """The state of a module where a criterion was lowest so far; None before the first. Part of a checkpoint."""

    def __init__(self) -> None:
        self.criterion = float("inf")
        self.state: dict[str, Tensor] | None = None

    def offer(self, module: nn.Module, criterion: float, *, or_equal: bool) -> None:
        if criterion < self.criterion or (or_equal and criterion == self.criterion):
            self.criterion = criterion
            # Cloned, because the optimiser goes on writing into the same tensors.
            self.state = {name: value.detach().clone() for name, value in module.state_dict().items()}

    def state_dict(self) -> dict[str, Any]:
        return {"criterion": self.criterion, "state": self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.criterion, self.state = float(state["criterion"]), state["state"]

"""One resumable stage: where it stands, its checkpoints, its history, its progress, and how it is stopped.

Batches, views and pairs are functions of the seed and the step; dropout alone draws from torch's own streams, which
:func:`own_dropout` seeds for the stage and checkpoints keep. So the whole state of a stage is that of the model, the
optimiser, these streams and the step. :mod:`punce.training.loop` uses a run; few others need to.

Killed at any moment and called again with the same arguments, it resumes at the last checkpoint and ends in the same
bits (same machine, threads and ranks). SIGTERM saves and exits with 143.
"""

from __future__ import annotations

import hashlib
import json
import signal
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from punce.errors import InputError, PunceError, first_line
from punce.labels import Labels
from punce.storage.checkpoint import Checkpoint, CheckpointStore, flatten_state, plain_number, unflatten_state
from punce.storage.files import write_text
from punce.training import collectives
from punce.training.progress import StageProgress
from punce.training.random_stream import seeded
from punce.training.signals import handled

EXIT_TERMINATED = 128 + signal.SIGTERM  # what a shell reports of a process that SIGTERM ended


class TrainingError(PunceError):
    """Training cannot continue: a non-finite loss or gradient, a checkpoint of another run."""


class OtherRunError(InputError):
    """The checkpoints in the folder are of another run: other arguments, other rows, another version."""


class RunWarning(UserWarning):
    """Something about a resumed run that a person should know."""


class Stateful(Protocol):
    """What can be saved in a checkpoint: models and optimisers."""

    def state_dict(self) -> dict[str, Any]:
        """The state as nested dicts of tensors and numbers."""

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Take a state back."""


class Outputs(TypedDict, total=False):
    """What every stage function takes beside its data: where a run is written and shown."""

    folder: str | Path | None
    """Where checkpoints and ``history.jsonl`` go, from which a killed run is resumed; None writes neither."""
    save_every: float
    """Seconds between checkpoints; 60 if not given."""
    progress: bool
    """Whether to show progress."""
    writer: Any
    """A TensorBoard SummaryWriter, or anything with ``add_scalar(name, value, step)``."""


class Run:
    """A stage of `total_steps` steps that can be killed and repeated.

    Args:
        stage: its name, shown in progress and kept in checkpoints.
        total_steps: steps of the whole stage.
        config: everything that decides the numbers; a checkpoint of another configuration is refused.
        state: the objects whose state the stage changes.
        steps_per_epoch: how often history gets a row.
        rows_per_step: for the rate shown.
        outputs: see :class:`Outputs`.
    """

    def __init__(
        self,
        stage: str,
        total_steps: int,
        config: Mapping[str, Any],
        state: Mapping[str, Stateful],
        *,
        steps_per_epoch: int = 1,
        rows_per_step: int = 1,
        **outputs: Unpack[Outputs],
    ) -> None:
        self.stage, self.total_steps, self.step = stage, total_steps, 0
        self.history: list[dict[str, Any]] = []
        plain = json.dumps({"stage": stage, **config}, default=plain_number)
        self._config = json.loads(plain)  # as it will come back from a file
        self._state = dict(state)
        self._steps_per_epoch, self._rows_per_step = steps_per_epoch, rows_per_step
        self._save_every, self._writer = outputs.get("save_every", 60.0), outputs.get("writer")
        self._progress, folder = outputs.get("progress", False), outputs.get("folder")
        self._folder = None if folder is None else Path(folder)
        self._sums: dict[str, float] = {}
        modules = [module for module in state.values() if isinstance(module, nn.Module)]
        self._buffers = [buffer for module in modules for buffer in module.buffers()]
        self._parameters = [
            named for module in modules for named in module.named_parameters() if named[1].requires_grad
        ]
        # BatchNorm updates its statistics in the forward pass, before a bad loss is noticed: kept to undo that.
        self._buffers_before: list[Tensor] = [buffer.clone() for buffer in self._buffers]
        self._terminated = False
        self._is_first_rank = collectives.rank() == 0
        self._store = CheckpointStore(self._folder / "checkpoints") if self._folder is not None else None
        self._resume()

    # The loop --------------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[int]:
        """The steps still to do; a step counts as done when the loop asks for the next one."""
        if self.step >= self.total_steps:
            return  # resumed after its end: no progress bar, no new checkpoint
        last_save = time.monotonic()
        shown = self._progress and self._is_first_rank
        progress = StageProgress(self.stage, self.total_steps, self._rows_per_step, shown=shown, start=self.step)
        with progress, handled(self._note_sigterm, signal.SIGTERM):
            while self.step < self.total_steps:
                _copy(self._buffers, to=self._buffers_before)
                yield self.step
                self.step += 1
                if self.is_epoch_end(self.step - 1):
                    self._close_epoch()
                progress.advance(self._note())
                # Clocks and signals differ between ranks, so they agree on what to do after this step.
                due = time.monotonic() - last_save >= self._save_every or self.step == self.total_steps
                terminated, due = collectives.any_rank(self._terminated, due and self._is_first_rank)
                if terminated or due:
                    self.save()
                    last_save = time.monotonic()
                if terminated:
                    raise SystemExit(EXIT_TERMINATED)

    def log(self, **values: Tensor | float) -> None:
        """Numbers of this step; history keeps their mean over the epoch."""
        for name, value in values.items():
            number = float(value.detach()) if isinstance(value, Tensor) else float(value)  # no graph is kept alive
            self._sums[name] = self._sums.get(name, 0.0) + number
        self._sums["steps"] = self._sums.get("steps", 0.0) + 1.0

    def record(self, **values: float) -> None:
        """Numbers of an epoch as a whole; call it in the epoch's last step."""
        for name, value in values.items():
            self._sums[f"={name}"] = float(value)

    def require_finite(self, loss: Tensor, rows: Tensor, inputs: Tensor | None = None) -> None:
        """Stop before the optimiser step if the loss is not a number, naming step and rows.

        Shape: rows (b,) row numbers; inputs (b, ...) what the model was given for them, to find the culprit.
        """
        if not bool(loss.detach().isfinite()):
            raise self._unusable(f"the loss is {float(loss.detach())}", rows, inputs)

    def require_finite_gradients(self, rows: Tensor, inputs: Tensor | None = None) -> None:
        """Stop before the optimiser step if the gradient of a finite loss is not finite, naming step, weight and rows.

        Call it after ``backward``. With several ranks the gradients are those that all ranks hold, so all stop here,
        each naming its own rows of the batch. Shapes as in :meth:`require_finite`.
        """
        with_gradient = [(name, weight.grad) for name, weight in self._parameters if weight.grad is not None]
        if _surely_finite([gradient for _, gradient in with_gradient]):
            return  # the usual case costs one number from the device, not one for each weight
        if bad := [name for name, gradient in with_gradient if not bool(gradient.isfinite().all())]:
            others = f" (and of {len(bad) - 1} more)" if len(bad) > 1 else ""
            what = f"the loss is finite, but the gradient of {bad[0]}{others} is not"
            raise self._unusable(what, rows, inputs)

    @contextmanager
    def naming_rows(self, rows: Tensor, inputs: Tensor | None = None) -> Iterator[None]:
        """Around loss and risk, which refuse non-finite projections and scores: say at which step, in which rows."""
        try:
            yield
        except InputError as error:
            raise self._unusable(str(error), rows, inputs) from error

    def _unusable(self, what: str, rows: Tensor, inputs: Tensor | None) -> TrainingError:
        _copy(self._buffers_before, to=self._buffers)
        return TrainingError(
            f"{self.stage}: {what}; at step {self.step}, {_suspects(rows, inputs)}. The weights are those of the step "
            "before. Look for non-finite or huge values in these rows, or lower the learning rate"
        )

    def is_epoch_end(self, step: int) -> bool:
        """Whether `step` is the last of its epoch."""
        return (step + 1) % self._steps_per_epoch == 0 or step + 1 == self.total_steps

    # Checkpoints -----------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write a checkpoint. Every rank calls this; the first writes what all hold and every rank's generators."""
        if self._store is None:
            return
        # Dropout differs between ranks, so that each rank's stream is stored; everything else is the same on all.
        generators = {name: collectives.stack_over_ranks(state) for name, state in _generator_states().items()}
        if not self._is_first_rank:
            return
        states = {name: stateful.state_dict() for name, stateful in self._state.items()}
        own = {"states": states, "generators": generators, "sums": self._sums, "history": self.history}
        tensors, numbers = flatten_state(own)
        state = {
            "config": self._config,
            "numbers": numbers,
            "threads": torch.get_num_threads(),
            "world_size": collectives.world_size(),
        }
        self._store.save(self.step, tensors, state)

    def _resume(self) -> None:
        checkpoint = self._store.load_latest() if self._store is not None else None
        if checkpoint is not None:
            with _refusing_foreign(checkpoint.path):
                self._take_up(checkpoint)
        self._require_same_step()

    def _take_up(self, checkpoint: Checkpoint) -> None:
        # Compared before anything is loaded: a refused run leaves the caller's model as it was.
        self._require_same_config(checkpoint.state["config"])
        own = unflatten_state(checkpoint.tensors, checkpoint.state["numbers"])
        self._require_same_parts(own["states"])
        for name, stateful in self._state.items():
            stateful.load_state_dict(own["states"][name])
        _set_generators(own["generators"])
        self.step, self._sums = checkpoint.step, {name: float(value) for name, value in own["sums"].items()}
        self.history = [dict(row) for row in own["history"]]
        self._warn_of_other_bits(checkpoint.state)

    def _require_same_step(self) -> None:
        steps = collectives.stack_over_ranks(torch.tensor(self.step)).tolist()
        if len(set(steps)) > 1:
            raise TrainingError(
                f"{self.stage}: the ranks found checkpoints of different steps {steps} in {self._folder}; "
                "every rank must see the same folder, also on other machines"
            )

    def _require_same_config(self, saved: dict[str, Any]) -> None:
        different = sorted(key for key in saved.keys() | self._config.keys() if saved.get(key) != self._config.get(key))
        if different:
            what = "; ".join(
                f"{key}: {saved.get(key)!r} there, {self._config.get(key)!r} here" for key in different[:4]
            )
            raise InputError(
                f"{self._folder} holds a {saved.get('stage')} of another configuration ({what}); "
                "give the same arguments to resume it, or another folder"
            )

    def _require_same_parts(self, saved: dict[str, Any]) -> None:
        """Refuse a checkpoint whose state has other parts than this version keeps."""
        if saved.keys() != self._state.keys():
            raise InputError(
                f"{self._folder} holds a {self.stage} that another version of punce wrote (it keeps "
                f"{sorted(saved)}, this one {sorted(self._state)}); go on with that version, or give another folder"
            )

    def _warn_of_other_bits(self, saved: dict[str, Any]) -> None:
        here = {"threads": torch.get_num_threads(), "world_size": collectives.world_size()}
        if changed := {key: (saved[key], value) for key, value in here.items() if saved[key] != value}:
            what = ", ".join(f"{key} was {old} and is {new}" for key, (old, new) in changed.items())
            warnings.warn(
                f"{self.stage} resumed, but {what}: results will differ in the last bits", RunWarning, stacklevel=4
            )

    # History ---------------------------------------------------------------------------------------------------

    def _row(self) -> dict[str, Any]:
        """History's row of the epoch: means of what was logged, and what was recorded (marked by "=")."""
        steps = max(1.0, self._sums.get("steps", 1.0))
        row: dict[str, Any] = {"stage": self.stage, "step": self.step, "epoch": -(-self.step // self._steps_per_epoch)}
        for name, value in self._sums.items():
            if name != "steps":
                row[name.removeprefix("=")] = value if name.startswith("=") else value / steps
        return row

    def _close_epoch(self) -> None:
        row, self._sums = self._row(), {}
        self.history.append(row)
        if self._writer is not None and self._is_first_rank:
            for name, value in row.items():
                if isinstance(value, float):
                    self._writer.add_scalar(f"{self.stage}/{name}", value, self.step)
        if self._folder is not None and self._is_first_rank:
            write_text(self._folder / "history.jsonl", "".join(json.dumps(row) + "\n" for row in self.history))

    def _note(self) -> str:
        """The means of this epoch so far, or after its last step those of the whole epoch."""
        row = self._row() if self._sums else self.history[-1] if self.history else {}
        return "  ".join(f"{name} {value:.4g}" for name, value in row.items() if isinstance(value, float))

    def _note_sigterm(self, signum: int, frame: FrameType | None) -> None:
        self._terminated = True


@contextmanager
def _refusing_foreign(path: Path) -> Iterator[None]:
    """Refuse a checkpoint whose state does not have the form that this stage writes: its checksums only say that it is
    whole, not who made it."""
    try:
        yield
    except InputError as error:
        raise OtherRunError(str(error)) from error
    except (PunceError, torch.OutOfMemoryError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        why = first_line(error)
        raise OtherRunError(
            f"{path} cannot be resumed: its state is not one that this stage writes ({type(error).__name__}: {why}); "
            "give another folder, or remove this one to start again"
        ) from error


@torch.no_grad()
def _copy(tensors: list[Tensor], *, to: list[Tensor]) -> None:
    if tensors:
        torch._foreach_copy_(to, tensors)  # one launch for all on a GPU


@torch.no_grad()
def _surely_finite(gradients: list[Tensor]) -> bool:
    """One look at all gradients together: their norm is finite. False also where only the norm overflows."""
    if not gradients:
        return True
    return bool(torch.stack(torch._foreach_norm(gradients)).sum().isfinite())


def own_dropout(seed: int, device: torch.device) -> AbstractContextManager[None]:
    """Around a stage's run: dropout is a function of `seed` and differs between ranks; the caller's streams do not
    change.

    The :class:`Run` must be made inside, because resuming sets the streams to where the checkpoint left them.
    """
    return seeded(seed * 1_000_003 + collectives.rank(), device)  # apart from every other seed's ranks


def fingerprint(X: Tensor, labels: Labels) -> str:
    """Of the data themselves: a run must not be resumed with other rows or another labelled set of the same size."""
    digest = hashlib.sha256(labels.astype(np.int8).tobytes())  # the same labels in another type are no others
    for part in torch.split(X, 4096):
        digest.update(_raw(part))  # in parts: a copy of all rows in bytes would double the memory
    return digest.hexdigest()[:16]


def weights_fingerprint(module: nn.Module, without: tuple[str, ...] = ()) -> str:
    """Of the weights and buffers a run begins at: a run that began at others must not be resumed.

    Parts whose names begin with one of `without` take no part in the stage. Take it before the first step, and after
    DistributedDataParallel has given every rank the weights of the first.
    """
    digest = hashlib.sha256()
    for name, value in module.state_dict().items():
        if isinstance(value, Tensor) and not name.startswith(without):
            digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
            digest.update(_raw(value))
    return digest.hexdigest()[:16]


def _raw(x: Tensor) -> memoryview:
    return x.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data


def _generator_states() -> dict[str, Tensor]:
    """The state of torch's own generators on this rank: dropout draws from them."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def _set_generators(states: dict[str, Tensor]) -> None:
    """Take back this rank's row; another number of ranks, or another device, was warned of.

    Cloned, because torch crashes on a state that does not begin at the start of its memory.
    """
    rank = collectives.rank()
    if rank < len(states["cpu"]):
        torch.set_rng_state(states["cpu"][rank].clone())
    if "cuda" in states and torch.cuda.is_available() and rank < len(states["cuda"]):
        torch.cuda.set_rng_state(states["cuda"][rank].clone())


def _suspects(rows: Tensor, inputs: Tensor | None) -> str:
    """The rows whose inputs are not finite; failing that, all rows and the one with the largest input."""
    if inputs is None or inputs.numel() == 0 or not inputs.is_floating_point():  # the size of a token says nothing
        return f"rows {_shown(rows)}"
    largest = inputs.detach().flatten(1).abs().amax(1)
    bad = ~largest.isfinite()
    if bool(bad.any()):
        return f"non-finite inputs in rows {_shown(rows[bad])}"
    worst = int(largest.argmax())
    return f"rows {_shown(rows)} (largest input {float(largest[worst]):g} in row {int(rows[worst])})"


def _shown(rows: Tensor) -> str:
    return ", ".join(map(str, rows[:8].tolist())) + (", …" if len(rows) > 8 else "")

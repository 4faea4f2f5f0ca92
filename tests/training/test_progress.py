"""Progress: a bar on a terminal, lines elsewhere, the announcement of a long run, TensorBoard, history."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import nn

from punce.training import progress
from punce.training.progress import Estimator, StageProgress, duration, peak_resident_bytes
from punce.training.run import Run


class Clock:
    """time.monotonic that moves only when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def shown(clock: Clock, steps: int, seconds: float, *, terminal: bool, total: int | None = None, **options: Any) -> str:
    """What a person sees of `steps` steps of so many seconds each."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=200, color_system=None)
    stage = StageProgress("pretrain", total or steps, 64, console=console, **options)
    with stage:
        for _ in range(steps):
            clock.now += seconds
            stage.advance("loss 5.1")
    return text.getvalue()


def test_plain_lines_away_from_a_terminal(clock: Clock) -> None:
    lines = shown(clock, 40, 1.0, terminal=False).splitlines()
    assert lines[0].startswith("pretrain: about 36 s, ")
    assert lines[1] == "pretrain: 16/40 steps, 64 rows/s, 24 s left  loss 5.1"
    assert lines[-1] == "pretrain: 40/40 steps, 64 rows/s, 0 s left  done"
    assert len(lines) == 4
    assert not any("\x1b" in line for line in lines)


def test_a_bar_on_a_terminal(clock: Clock) -> None:
    text = shown(clock, 40, 1.0, terminal=True)
    assert "\x1b[" in text  # it moves the cursor
    assert "━" in text
    assert "40/40" in text
    assert "64 rows/s loss 5.1" in text
    assert "pretrain: about 36 s, " in text


def test_nothing_is_said_when_not_shown(clock: Clock) -> None:
    assert shown(clock, 40, 1.0, terminal=False, shown=False) == ""
    assert shown(clock, 40, 1.0, terminal=True, shown=False) == ""


def test_a_stopped_run_says_where(clock: Clock) -> None:
    assert shown(clock, 3, 0.1, terminal=False, total=40).splitlines()[-1].endswith("stopped")


def test_text_with_brackets_is_printed_as_it_is() -> None:
    text = io.StringIO()
    with StageProgress("fit [red]", 1, 1, console=Console(file=text, width=200)) as stage:
        stage.advance("")
    assert text.getvalue().startswith("fit [red]: 1/1 steps")


def test_the_real_terminal_gets_a_bar_and_a_pipe_gets_lines(tmp_path: Path) -> None:
    code = (
        "from punce.training.progress import StageProgress\n"
        "with StageProgress('stage', 2, 8) as stage:\n"
        "    stage.advance('loss 1')\n"
        "    stage.advance('loss 1')\n"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE")}
    environment["TERM"] = "xterm"
    command = [sys.executable, "-c", code]
    reading, writing = pty.openpty()
    subprocess.run(command, env=environment, stderr=writing, check=True, timeout=60)
    os.close(writing)
    on_terminal = os.read(reading, 100_000).decode()
    os.close(reading)
    piped = subprocess.run(command, env=environment, stderr=subprocess.PIPE, check=True, timeout=60).stderr.decode()
    assert "\x1b[" in on_terminal
    assert "2/2" in on_terminal
    assert piped.startswith("stage: 2/2 steps, ")
    assert "\x1b" not in piped


# The estimate


def announcements(
    clock: Clock, total: int, seconds: float, start: int = 0, first: float | None = None
) -> dict[int, str]:
    estimator, said = Estimator(total, start), {}
    for done in range(start + 1, total + 1):
        clock.now += seconds if first is None or done > start + 1 else first
        text = estimator.step_done(done)
        if text is not None:
            said[done] = text
    return said


def test_a_long_run_is_announced_once_without_its_first_step(clock: Clock) -> None:
    said = announcements(clock, 1004, 0.6, first=30.0)  # the first step takes longer and does not count
    assert list(said) == [4]
    assert said[4].startswith("about 10 min, ")
    assert said[4].endswith(" GB of memory")


def test_fast_steps_are_timed_for_longer(clock: Clock) -> None:
    said = announcements(clock, 100_000, 0.001)
    (done,) = said
    assert 500 <= done <= 510
    assert said[done].startswith("about 99 s") or said[done].startswith("about 2 min")


def test_a_resumed_run_announces_what_is_left(clock: Clock) -> None:
    said = announcements(clock, 1000, 1.0, start=900)
    assert said[904].startswith("about 2 min")


@pytest.mark.parametrize(("total", "seconds"), [(100, 0.05), (3, 100.0), (1, 100.0)])
def test_short_runs_are_not_announced(clock: Clock, total: int, seconds: float) -> None:
    assert announcements(clock, total, seconds) == {}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(42.4, "42 s"), (200, "3 min"), (5000, "83 min"), (9000, "2.5 h"), (86400 * 3.1, "3.1 days")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_memory_is_the_peak_of_this_process() -> None:
    before = peak_resident_bytes()
    held = torch.ones(before // 4 + 50_000_000)  # more than the peak so far, in float32
    assert peak_resident_bytes() >= max(before, held.nbytes)
    assert peak_resident_bytes() < 20 * (before + held.nbytes)


# TensorBoard


def run_with(writer: Any, tmp_path: Path) -> Run:
    run = Run("stage", 6, {}, {"model": nn.Linear(1, 1)}, folder=tmp_path, steps_per_epoch=3, writer=writer)
    for step in run.steps():
        run.log(loss=float(step))
        if run.is_epoch_end(step):
            run.record(held_out_risk=0.25)
    return run


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of tensorboard's own imports
def test_tensorboard_gets_one_scalar_per_epoch(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("torch.utils.tensorboard", reason="the extra punce[tensorboard] is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with tensorboard.SummaryWriter(str(tmp_path / "board")) as writer:
        run_with(writer, tmp_path)
    events = EventAccumulator(str(tmp_path / "board")).Reload()
    assert set(events.Tags()["scalars"]) == {"stage/loss", "stage/held_out_risk"}
    assert [(event.step, event.value) for event in events.Scalars("stage/loss")] == [(3, 1.0), (6, 4.0)]
    assert [event.value for event in events.Scalars("stage/held_out_risk")] == [0.25, 0.25]


def test_any_object_with_add_scalar_is_a_writer(tmp_path: Path) -> None:
    class Writer:
        def __init__(self) -> None:
            self.seen: list[tuple[str, float, int]] = []

        def add_scalar(self, name: str, value: float, step: int) -> None:
            self.seen.append((name, value, step))

    writer = Writer()
    run = run_with(writer, tmp_path)
    assert writer.seen[0] == ("stage/loss", 1.0, 3)
    assert run.history[1] == {"stage": "stage", "step": 6, "epoch": 2, "loss": 4.0, "held_out_risk": 0.25}

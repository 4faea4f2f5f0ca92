"""The command line: one file per command, each importing what it needs only when it runs."""

from __future__ import annotations

import inspect
import os
import signal
import sys
import threading
from typing import Annotated

import typer

from punce import __version__
from punce.cli.data import data
from punce.cli.fit import fit
from punce.cli.predict import predict
from punce.cli.prior import prior
from punce.cli.repeated import OnceEach
from punce.cli.report import report
from punce.cli.reproduce import reproduce
from punce.cli.review import review
from punce.errors import PunceError, WriteError

app = typer.Typer(
    name="punce",
    help="Positive-unlabelled learning: probabilities from a few labelled positives and many unlabelled rows.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# docs/using.md explains them; 130 and 143 are those of Ctrl-C and SIGTERM.
EXIT_FAULT = 1
EXIT_BAD_INPUT = 2
EXIT_SYSTEM = 3
EXIT_INTERRUPTED = 128 + signal.SIGINT


def _flowing(docstring: str) -> str:
    """Each paragraph in one line: the width of the terminal breaks it, not that of the source."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(docstring).split("\n\n"))


for command in (fit, predict, prior, report, review, reproduce, data):
    app.command(cls=OnceEach, help=_flowing(command.__doc__ or ""))(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"punce {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")] = False,
) -> None:
    """Options that stand before the command."""


def main() -> None:
    """Run the command line; whatever goes wrong is one line on stderr and an exit code, a traceback with --debug."""
    arguments = sys.argv[1:]
    # OpenMP reads it when torch is loaded: threads that spin while they wait work against every other job.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    stop = _Stop()
    stop.listen()
    try:
        code = _ended(arguments, stop)
    except KeyboardInterrupt:  # while typer still puts the commands together, or while an error is told
        code = EXIT_INTERRUPTED
    if code:
        raise SystemExit(code)


def _ended(arguments: list[str], stop: _Stop) -> int:
    """Run the command and tell its error, if any; the exit code."""
    try:
        # --debug may stand anywhere; without arguments the help is shown
        code = app(args=[a for a in arguments if a != "--debug"] or ["--help"], standalone_mode=False)
        return int(code or 0)
    except Exception as error:
        if "--debug" in arguments:
            raise
        code, message = _explained(error)
        if stop.code:
            return stop.code
        typer.secho(f"punce: {_one_line(message)}", err=True, fg=typer.colors.RED)
        return code


class _Stop:
    """SIGTERM and Ctrl-C end the command by an exception, so that temporary files are removed.

    The signal is remembered, because compiled code may replace that exception by one of its own: numpy turns it into a
    ValueError while it reads the format of a buffer.
    """

    code = 0
    """The exit code that the signal asks for; 0 while none has come."""

    def listen(self) -> None:
        """Take over the two signals, unless the caller of this process has set them to something else."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number, usual in ((signal.SIGTERM, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
            if signal.getsignal(number) is usual:
                signal.signal(number, self._leave)

    def _leave(self, number: int, _: object) -> None:
        self.code = 128 + number
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(self.code)


def _one_line(message: str) -> str:
    """Without line breaks, and without control characters that a file's name or header could send to the terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in message).split())


def _explained(error: Exception) -> tuple[int, str]:
    """Exit code and words: the input's fault, the machine's, or ours."""
    if hasattr(error, "format_message"):  # typer's own: an option it does not know, an argument that is missing
        return EXIT_BAD_INPUT, f"{error.format_message()} (punce COMMAND --help lists the options)"
    if isinstance(error, PunceError):
        return EXIT_SYSTEM if isinstance(error, WriteError) else EXIT_BAD_INPUT, str(error)
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        return EXIT_SYSTEM, "not enough memory; fewer rows, smaller images or a smaller encoder need less"
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return EXIT_SYSTEM, f"{place}{error.strerror or error}"
    what = f"{type(error).__name__}: {error}"
    return EXIT_FAULT, f"a bug in punce, not in your input ({what}); --debug shows where, please report it"

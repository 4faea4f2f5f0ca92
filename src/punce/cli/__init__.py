"""The command line: one file per command, each importing what it needs only when it runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from punce import __version__
from punce.cli.data import data
from punce.cli.fit import fit
from punce.cli.predict import predict
from punce.cli.prior import prior
from punce.cli.report import report
from punce.cli.reproduce import reproduce
from punce.errors import PunceError

app = typer.Typer(
    name="punce",
    help="From a few labelled positives and a pile of unlabelled rows to calibrated probabilities.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

EXIT_BAD_INPUT = 2

for command in (fit, predict, prior, report, reproduce, data):
    app.command()(command)


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
    """Run the command line; an error made by the input is one line on stderr and exit code 2."""
    try:
        app()
    except PunceError as error:
        if "--debug" in sys.argv:
            raise
        typer.secho(f"punce: {error}", err=True, fg=typer.colors.RED)
        raise SystemExit(EXIT_BAD_INPUT) from None

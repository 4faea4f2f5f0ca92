"""Options that ``punce fit`` and ``punce prior`` share: where the rows are and which column says what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[Path, typer.Argument(help="CSV, Parquet, .npy/.npz, or a folder of images.")]
Label = Annotated[str | None, typer.Option(help="Column that marks labelled positives.")]
Positive = Annotated[str | None, typer.Option(help="Value of the label column that means positive.")]
Id = Annotated[str | None, typer.Option("--id", help="Column with row names.")]
Text = Annotated[str | None, typer.Option(help="Column with the text to learn from.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")]
LabelsFile = Annotated[Path | None, typer.Option(help="Separate file with the labels (embeddings, images).")]
ScenarioName = Annotated[str, typer.Option(help="single_set or case_control.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]

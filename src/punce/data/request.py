"""What a caller asks of the readers, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from punce.columns.number_forms import NumberForms
from punce.columns.written import Decimal
from punce.data.image_files import ImageFiles
from punce.data.table_file import FileOptions
from punce.data.tables import Roles
from punce.errors import InputError
from punce.labels import Labels, Setting, read_labels

KindOption = Literal["auto", "image", "table", "text", "embedding"]


@dataclass(frozen=True)
class Request:
    """The arguments of ``read`` and ``stream``."""

    path: Path
    roles: Roles
    kind: KindOption
    positive: Any
    negative: Any
    setting: Setting
    labels: Path | None
    image_size: int | None
    image_channels: int | None
    skip_unreadable: bool
    look: Callable[[ImageFiles], None] | None
    """What goes over a folder of images before anything else does."""
    columns: tuple[str, ...] | None
    category: tuple[str, ...]
    """Columns whose numbers are names."""
    as_text: tuple[str, ...]
    """Columns of a CSV file that keep their spelling, the row names among them."""
    file: FileOptions
    decimal: Decimal | None
    number_forms: NumberForms | None

    @property
    def named_features(self) -> tuple[str, ...]:
        """The only columns to learn from, as far as the caller named them; none if the rows decide."""
        texts = (self.roles.text,) if self.roles.text is not None and self.kind in ("auto", "text") else ()
        return self.columns or self.roles.keep or texts

    @property
    def named(self) -> dict[str, Any]:
        """The values of the label column that the caller named."""
        return {"positive": self.positive, "negative": self.negative}

    def read_labels(self, column: Any) -> tuple[Labels, tuple[str, ...]]:
        """The labels of a column and notes on how they were read; refused with where it is."""
        try:
            return read_labels(column, setting=self.setting, **self.named)
        except InputError as error:
            where = f"{self.path}, label column {self.roles.label!r}" if self.roles.label else str(self.path)
            raise InputError(f"{where}: {error}") from error

"""The report of a data check: counts and findings, for a person (rich) and for a file (JSON)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from punce.datasets.dataset import Kind
from punce.errors import InputError

if TYPE_CHECKING:
    from rich.console import Group

Severity = Literal["error", "warning", "info"]
_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "yellow", "info": "dim"}  # worst first


@dataclass(frozen=True)
class DataFinding:
    """One thing worth knowing. `code` is stable for programs, `where` names columns, rows or files."""

    severity: Severity
    code: str
    message: str
    where: tuple[str, ...] = ()


def first_rows(rows: Sequence[str]) -> str:
    """Where something is, for a message: first row 7; first rows 1, 2."""
    return f"first {'row' if len(rows) == 1 else 'rows'} {', '.join(rows)}"


@dataclass(frozen=True)
class DataCheck:
    """What :func:`punce.data.check` found. Nothing should train while there is an error."""

    source: str
    kind: Kind
    rows: int
    labelled: int
    """Labelled positives."""
    negatives: int
    unlabelled: int
    missing: dict[str, int]
    """Column -> missing values, for columns that have any."""
    duplicates: int
    """Unlabelled rows that equal a labelled one."""
    findings: tuple[DataFinding, ...]

    @property
    def ok(self) -> bool:
        """No finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)

    @property
    def labelled_share(self) -> float:
        """Labelled positives among all rows."""
        return self.labelled / self.rows if self.rows else 0.0

    def raise_for_errors(self) -> None:
        """Refuse data with errors, all of them in one message."""
        errors = [finding.message for finding in self.findings if finding.severity == "error"]
        if errors:
            raise InputError(f"{self.source}: {'; '.join(errors)}")

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries and lists, ready for json.dumps."""
        return {**asdict(self), "ok": self.ok, "labelled_share": self.labelled_share}

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        counts = f"{self.rows:,} rows: {self.labelled:,} labelled positive ({self.labelled_share:.2%}), "
        counts += f"{self.unlabelled:,} unlabelled" + (f", {self.negatives:,} negative" if self.negatives else "")
        table = Table.grid(padding=(0, 2))
        for finding in sorted(self.findings, key=lambda finding: list(_STYLES).index(finding.severity)):
            table.add_row(Text(finding.severity, style=_STYLES[finding.severity]), Text(finding.message))
        return Group(Text(f"{self.source} ({self.kind})", style="bold"), Text(counts), table)

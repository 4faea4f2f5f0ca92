"""What a report shows, as plain frozen data: the page can be rebuilt from ``report.json`` without model or data.

Everything but the title is optional; a part that is missing leaves its section out. Numbers that are undefined
(precision when nothing is called positive) are None. `labels` follow :mod:`punce.labels`: 1, 0 and -1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from punce.errors import InputError
from punce.judging.estimates import WIDEST
from punce.storage.json_tree import decode, encode, load_json

FORMAT = 1
MAX_POINTS = 3000
"""Points a map may hold: more are neither legible nor quick to hover, and the page grows past what mail accepts."""

Cell = str | int | float | bool | None
_IMAGE_URI = re.compile(r"data:image/(png|webp|jpeg);base64,[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True)
class Interval:
    """A number with its interval; low and high are None when there is none. `reason`: why there is no value."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""

    @property
    def stated(self) -> Interval:
        """The same without its value where the interval leaves nearly everything open, as in the table of quality."""
        is_vague = self.low is not None and self.high is not None and self.high - self.low > WIDEST
        return replace(self, value=None) if is_vague else self


@dataclass(frozen=True)
class DataFacts:
    """Where the rows came from. `findings` are (severity, text) pairs: "error", "warning" or "info"."""

    name: str
    kind: str
    rows: int
    labelled: int
    unlabelled: int
    negatives: int = 0
    notes: tuple[str, ...] = ()
    findings: tuple[tuple[str, str], ...] = ()
    drawn_from: int = 0
    """Rows of the file, where only some of them were drawn to learn from: the other counts are of those."""

    def __post_init__(self) -> None:
        for name in ("rows", "labelled", "unlabelled", "negatives", "drawn_from"):
            _require(getattr(self, name) >= 0, f"data.{name} must not be negative, got {getattr(self, name)}")


@dataclass(frozen=True)
class OtherEstimate:
    """One line of the table of prior estimators; value is None where the estimator failed, and note says why."""

    method: str
    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class PriorFacts:
    """The share of positives among the unlabelled rows; without low and high it counts as given by the user.

    `unknown` says why it cannot be estimated; the value is then what had to be assumed.
    """

    value: float
    low: float | None = None
    high: float | None = None
    method: str = "given"
    confidence: float = 0.9
    others: tuple[OtherEstimate, ...] = ()
    warnings: tuple[str, ...] = ()
    unknown: str = ""

    def __post_init__(self) -> None:
        _require(0.0 <= self.value <= 1.0, f"prior.value must lie in [0, 1], got {self.value}")


@dataclass(frozen=True)
class Quality:
    """Quality, without negatives unless `n_negative` of them were counted on.

    Keys: recall, precision, accuracy, f1, auc; others are shown under their own name.
    `true` holds the same measures from true labels where those exist. `over` says which rows the numbers are about.
    `by_groups`: the `n_positive` rows are no labelled ones but those of the group around them (labelling "biased").
    """

    estimates: dict[str, Interval]
    true: dict[str, float | None] | None = None
    confidence: float = 0.95
    n_positive: int = 0
    n_unlabelled: int = 0
    n_negative: int = 0
    over: str = "the unlabelled rows"
    notes: tuple[str, ...] = ()
    by_groups: bool = False


@dataclass(frozen=True)
class Threshold:
    """Rows with a probability of at least `value` are called positive; `called` of the unlabelled rows are."""

    value: float
    rule: str = ""
    called: int | None = None


@dataclass(frozen=True)
class Histogram:
    """Counts of held-out labelled and unlabelled rows per bin. Shapes: edges (B + 1,), the counts (B,).

    `positives` says what `labelled` counts, where other rows take the place of labelled ones.
    """

    edges: tuple[float, ...]
    labelled: tuple[int, ...]
    unlabelled: tuple[int, ...]
    axis: str = "Estimated probability of being positive"
    positives: str = "labelled positives"

    def __post_init__(self) -> None:
        bins = len(self.edges) - 1
        fits = bins >= 1 and bins == len(self.labelled) == len(self.unlabelled)
        _require(fits, f"histogram: {len(self.edges)} edges need {bins} counts of each kind")
        # Charts divide by the width of a bin.
        _require(_rises(self.edges), "histogram.edges must rise")


GOALS = (0.5, 0.8, 0.9, 0.95)
"""Shares of the positives for which the page says how many rows to review."""


@dataclass(frozen=True)
class ReviewCurve:
    """What reviewing the `rows` highest-ranked of `of` unlabelled rows is expected to bring."""

    rows: tuple[int, ...]
    precision: tuple[Interval, ...]
    recall: tuple[Interval, ...]
    of: int
    confidence: float = 0.9

    def __post_init__(self) -> None:
        fits = len(self.rows) == len(self.precision) == len(self.recall) > 0
        _require(fits, "review: rows, precision and recall must be equally many, at least one")
        _require(_rises(self.rows) and self.rows[-1] <= self.of, "review.rows must rise and end at most at `of`")


@dataclass(frozen=True)
class ThumbnailSheet:
    """Many small square images in one: tile i stands in column i % columns, row i // columns."""

    uri: str
    tile: int
    columns: int
    count: int

    def __post_init__(self) -> None:
        _require_image(self.uri, "sheet.uri")
        _require(min(self.tile, self.columns) >= 1, "sheet: tile and columns must be at least 1")


@dataclass(frozen=True)
class RowMap:
    """Rows on a plane, at most MAX_POINTS. Each of texts, cells and thumbnails is empty or has one entry a point.

    `thumbnails` are tile numbers in `sheet`, -1 for none. `of` is the number of rows the points were drawn from.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    probability: tuple[float, ...]
    labels: tuple[int, ...]
    names: tuple[str, ...]
    method: str = "projection"
    of: int = 0
    columns: tuple[str, ...] = ()
    cells: tuple[tuple[Cell, ...], ...] = ()
    texts: tuple[str, ...] = ()
    thumbnails: tuple[int, ...] = ()
    sheet: ThumbnailSheet | None = None

    def __post_init__(self) -> None:
        n = len(self.x)
        # Checked here and not in the page, so that a damaged report.json is refused when it is read.
        _require(1 <= n <= MAX_POINTS, f"map: {n} points, but 1 to {MAX_POINTS} can be shown; choose with map_rows()")
        for name in ("y", "probability", "labels", "names"):
            _require(len(getattr(self, name)) == n, f"map.{name} needs {n} entries, got {len(getattr(self, name))}")
        for name in ("cells", "texts", "thumbnails"):
            size = len(getattr(self, name))
            _require(size in (0, n), f"map.{name} needs {n} entries or none, got {size}")


@dataclass(frozen=True)
class ColumnImportance:
    """How much the AUC of labelled against unlabelled rows drops when the column is shuffled."""

    name: str
    drop: float
    low: float | None = None
    high: float | None = None

    @property
    def is_known_to_matter(self) -> bool:
        """Whether the interval lies above 0, as it is shown: with one decimal of a point."""
        return self.low is not None and self.low >= 0.0005


@dataclass(frozen=True)
class Importances:
    """The most important of the `of` columns, most important first."""

    columns: tuple[ColumnImportance, ...]
    of: int
    confidence: float = 0.9

    def __post_init__(self) -> None:
        _require(0 < len(self.columns) <= self.of, "importances: columns must be 1 to `of`")


@dataclass(frozen=True)
class RowReason:
    """A column with its value, or a word, and how much it moved the row's score."""

    text: str
    effect: float


@dataclass(frozen=True)
class TopRow:
    """One of the highest-ranked unlabelled rows; `values` belong to TopRows.columns, `thumbnail` is a data URI."""

    rank: int
    name: str
    probability: float
    values: tuple[Cell, ...] = ()
    text: str | None = None
    thumbnail: str | None = None
    reasons: tuple[RowReason, ...] = ()

    def __post_init__(self) -> None:
        if self.thumbnail is not None:
            _require_image(self.thumbnail, f"top row {self.rank}: thumbnail")


@dataclass(frozen=True)
class TopRows:
    """The head of the ranking."""

    rows: tuple[TopRow, ...]
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            fits = len(row.values) == len(self.columns)
            _require(fits, f"top row {row.rank}: {len(row.values)} values for {len(self.columns)} columns")


@dataclass(frozen=True)
class SensitivityRow:
    """What would follow if the prior were this one."""

    prior: float
    hidden: float
    called: int
    recall: float | None = None
    precision: float | None = None
    accuracy: float | None = None
    f1: float | None = None


@dataclass(frozen=True)
class JudgedNumber:
    """One number as the fit said it and as judged rows show it; `before` is what earlier runs were found to be."""

    name: str
    claimed: Interval
    audited: Interval
    before: tuple[Interval, ...] = ()


@dataclass(frozen=True)
class JudgedByPeople:
    """What people found in rows that were drawn for them; `before` names the earlier runs."""

    verdicts: int
    positives: int
    unsure: int
    disputed: int
    open: int
    numbers: tuple[JudgedNumber, ...]
    before: tuple[str, ...] = ()
    finding: str = ""
    contradicts: bool = False
    """Whether the judged rows and the labels say different things beyond chance."""

    def __post_init__(self) -> None:
        _require(all(len(number.before) == len(self.before) for number in self.numbers), "judged: uneven before")


@dataclass(frozen=True)
class ReportContent:
    """The whole page. `training` maps a stage to its epochs, `comparison` a run's name to its numbers."""

    title: str
    data: DataFacts | None = None
    prior: PriorFacts | None = None
    quality: Quality | None = None
    threshold: Threshold | None = None
    histogram: Histogram | None = None
    review: ReviewCurve | None = None
    judged: JudgedByPeople | None = None
    map: RowMap | None = None
    importances: Importances | None = None
    top: TopRows | None = None
    unsure: TopRows | None = None
    """Images near the threshold."""
    sensitivity: tuple[SensitivityRow, ...] = ()
    training: dict[str, tuple[dict[str, float | None], ...]] = field(default_factory=dict)
    comparison: dict[str, dict[str, Cell]] = field(default_factory=dict)
    configuration: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    labelling: str = ""
    """What biased labels mean for the numbers, where they were noticed; the headline shows it."""
    created: str = ""
    software: str = "punce"

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries and lists for json.dumps; NaN and infinity become null."""
        return {"format": FORMAT, **encode(self)}

    @classmethod
    def from_json(cls, tree: Any) -> ReportContent:
        """The inverse of :meth:`to_json`; refuses what does not fit, naming the place."""
        if not isinstance(tree, dict):
            raise InputError(f"a report must be a JSON object, got {type(tree).__name__}")
        fields = dict(tree)
        # The version comes first: another format would otherwise fail with a puzzling field name.
        version = fields.pop("format", None)
        if version != FORMAT:
            raise InputError(f"a report of format {version!r} cannot be read, only {FORMAT}; fit again to rewrite it")
        content = decode(cls, fields, "report")
        assert isinstance(content, cls)
        return content

    @classmethod
    def read(cls, path: str | Path) -> ReportContent:
        """Read ``report.json``."""
        return cls.from_json(load_json(Path(path)))


def _rises(values: tuple[float, ...]) -> bool:
    return all(a < b for a, b in pairwise(values))


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise InputError(message)


def _require_image(uri: str, where: str) -> None:
    # Only raster images: an SVG data URI could carry script if someone opened the image on its own.
    if not _IMAGE_URI.fullmatch(uri):
        raise InputError(f"{where} must be a base64 PNG, WebP or JPEG data URI, got {uri[:40]!r}")

"""Are the labelled rows a random sample of the positives? And what the numbers are worth where they are not.

Labels alone cannot tell. Whatever was preferred, labelled and unlabelled rows look exactly as if the labelled ones were
a random sample of a smaller class. What can tell is where the *unlabelled* rows thin out: classes usually have a gap
between them, and the preference of whoever labelled usually has none. So the check looks for the gap itself
(:mod:`punce.judging.gap`), starting from the rows that the scores call positive. Where there is one, labelled rows and
guessed positives must be alike: neither the scores nor a new regression may tell them apart (Mann-Whitney; the idea of
Teisseyre et al. 2024), and the guess must not be far larger than an estimated prior, which rests on the labels.

Where the classes meet inside a group and not at its gap, labels at random look the same, and the check fires as well:
it names both explanations. Overlapping classes have no gap: there it stays silent. A whole group of positives that lies
apart and has no label looks like negatives, to any test.

Images, texts and embeddings are looked at along their leading directions. Their rows often fall into many groups (ten
digits, kinds of objects), and a gap between two of these says nothing about the classes: only a far clearer one counts.

The limits were set on normal classes and on Spambase, Landsat, Mushroom, digits and breast cancer, so that at most 5 %
of random labellings fire there; that of directions on frozen features of CIFAR-10, digits and MNIST. On other tables it
is more (benchmarks/biased.py --open). docs/labels.md has the figures, and what is missed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from punce.errors import InputError
from punce.judging.estimates import Estimate, stated
from punce.judging.gap import (
    Flags,
    Floats,
    Smoother,
    Split,
    split_near,
    split_without_gap,
    standard_columns,
    with_bumps,
)
from punce.judging.metrics import PUMetrics
from punce.judging.mixes import MixMetrics
from punce.judging.ranking import auc_between
from punce.judging.used_prior import given_prior, is_given, told_of_width
from punce.labels import POSITIVE, UNLABELLED, Labels
from punce.priors import PriorEstimate
from punce.scenario import Scenario

Rows = npt.NDArray[np.int64]
Features = Callable[[Rows], npt.NDArray[np.float32]]
Range = tuple[float, float]

FIRES_FROM = 1.54
"""Evidence from which the check fires. At 1.0 it fired on 6 of 30 random labellings of sets it was not designed on."""
_FEWEST = 30  # labelled rows, and unlabelled ones: from fewer the check says nothing
_MOST_ROWS = 3_000  # of each kind: a third of a second
_NORMAL = 3  # draws of normal rows to compare the gap with
_STARTS = (0.3, 0.5)  # shares to start from beside the prior, for how many positives there may be at most

# The limits, see above.
_CLEAR = 0.95
_CLEAR_OF_DIRECTIONS = 1.9
_SCORES_DIFFER = (0.03, 1.3)  # AUC above one half: what a split a little off explains, and so many standard errors
_COLUMNS_DIFFER = (0.04, 2.5)
_TOO_MANY = 1.9  # guessed positives for one that the prior allows
_SLACK = 0.05  # how far a measure under a split may be from the truth
_SLACK_SHARE = 1.1


@dataclass(frozen=True)
class LabellingCheck:
    """What the rows say about how the labels came about; `sentence` is empty where the check does not fire.

    `evidence` against random labels is no probability: at most 5 % of the random labellings of the sets of design reach
    1.0, and the check fires from :data:`FIRES_FROM`; 0.0 where nothing can be said. `gap` is above 0.95 (of directions:
    1.9) where the unlabelled rows clearly fall into two groups; `share` is the share of them in the group of the
    labelled rows, `most` the largest share that looks positive. `ranges` are the measures of the classifier if one or
    another split were the truth, for each mix of rows.
    """

    fires: bool
    evidence: float
    share: float
    most: float
    gap: float = float("nan")
    ranges: dict[str, dict[str, Range]] = field(default_factory=dict)
    sentence: str = ""


def check_labelling(
    scores: Floats,
    labels: Labels,
    prior: PriorEstimate,
    called: Flags,
    *,
    features: Features | None = None,
    are_directions: bool = False,
    labelled_share: float = 0.0,
    seed: int = 0,
) -> LabellingCheck:
    """Test that the labelled rows are a random sample of the positives.

    `features` gives rows by their numbers, on comparable scales; without it nothing can be said. `are_directions`: they
    are leading directions and not columns of a table. `called` are the rows that the classifier calls positive.
    Shape: scores (m,) out of fold, labels (m,) of {1, 0}, called (m,).
    """
    rng = np.random.default_rng(seed)
    groups = _groups(scores, labels, prior, features, rng)
    if groups is None:
        return LabellingCheck(fires=False, evidence=0.0, share=prior.value, most=prior.high)
    gap, evidence = _evidence(groups, prior, rng, are_directions)
    shares = groups.shares
    check = LabellingCheck(
        fires=evidence >= FIRES_FROM,
        evidence=evidence,
        share=shares[0],
        most=max(shares),
        gap=gap,
        ranges=_ranges(groups, called[groups.rows], labelled_share),
    )
    return replace(check, sentence=_sentence(check, prior)) if check.fires else check


@dataclass(frozen=True)
class _Groups:
    """Some rows, and the splits that starting from the prior and from other shares leads to."""

    rows: Rows
    is_p: Flags
    scores: Floats
    x: Floats
    smoother: Smoother
    start: float
    splits: list[Split]

    @property
    def shares(self) -> list[float]:
        """The share of the unlabelled rows that each split calls positive."""
        return [float(split.guess[~self.is_p].mean()) for split in self.splits]


def _groups(
    scores: Floats, labels: Labels, prior: PriorEstimate, features: Features | None, rng: np.random.Generator
) -> _Groups | None:
    rows = _some_rows(labels, rng)
    is_p = labels[rows] == POSITIVE
    if features is None or min(is_p.sum(), (~is_p).sum()) < _FEWEST:
        return None
    scores = scores[rows]
    x = standard_columns(features(rows).astype(np.float64), scores)
    if x.shape[1] == 0:
        return None
    smoother = Smoother.on(with_bumps(x, rng))
    start = min(max(prior.value, 0.02), 0.6)
    first, *others = (split_near(smoother, scores, is_p, share) for share in (start, *_STARTS))
    if first is None:
        return None
    return _Groups(rows, is_p, scores, x, smoother, start, [first, *filter(None, others)])


def _some_rows(labels: Labels, rng: np.random.Generator) -> Rows:
    kinds = (rng.permutation(np.flatnonzero(labels == kind))[:_MOST_ROWS] for kind in (POSITIVE, UNLABELLED))
    return np.sort(np.concatenate(list(kinds)))


def _evidence(
    groups: _Groups, prior: PriorEstimate, rng: np.random.Generator, are_directions: bool
) -> tuple[float, float]:
    """How clear the gap is, and what speaks against random labels, in units of its limit."""
    is_p, scores, split = groups.is_p, groups.scores, groups.splits[0]
    drawn = (split_without_gap(groups.x[~is_p], scores[~is_p], groups.start, rng) for _ in range(_NORMAL))
    normal = [one for one in drawn if one]
    if not normal:
        return float("nan"), 0.0
    real = split.at(~is_p)
    depth = 1.0 - real.valley / float(np.mean([one.valley for one in normal]))
    sharper = real.sharpness - float(np.mean([one.sharpness for one in normal]))
    gap = depth + 10.0 * sharper
    evidence = _difference(groups, ~is_p & (split.guess == 1.0)) if gap > _clear(are_directions) else 0.0
    # Of columns also a gap that is not clear, but no contradiction: only a large difference counts. A given share rests
    # on no label: a group far larger than that is not the positives, and says nothing about which of them are labelled.
    if not (are_directions or is_given(prior)) and depth > 0.05 and sharper > -0.03:
        ratio = float(real.guess.mean()) / max(prior.high, 0.003)
        evidence = max(evidence, np.log(ratio) / np.log(_TOO_MANY))
    return float(gap), max(float(evidence), 0.0)


def _clear(are_directions: bool) -> float:
    return _CLEAR_OF_DIRECTIONS if are_directions else _CLEAR


def _difference(groups: _Groups, guessed: Flags) -> float:
    """How far labelled rows are from the guessed positives, by scores and by columns, in units of its limit."""
    is_p, scores = groups.is_p, groups.scores
    aucs = (auc_between(scores[is_p], scores[guessed]), _auc_of_columns(groups.smoother, is_p, guessed))
    error = np.sqrt((is_p.sum() + guessed.sum() + 1) / (12.0 * is_p.sum() * guessed.sum()))
    limits = (base + errors * error for base, errors in (_SCORES_DIFFER, _COLUMNS_DIFFER))
    return float(max((auc - 0.5) / limit for auc, limit in zip(aucs, limits, strict=True)))


def _auc_of_columns(smoother: Smoother, is_p: Flags, guessed: Flags) -> float:
    """How well a regression learns to tell labelled rows from guessed positives, each row judged by the others."""
    rows = is_p | guessed
    predicted = Smoother.on(smoother.a[rows], ridge=1.0).left_out(is_p[rows].astype(np.float64))
    return auc_between(predicted[is_p[rows]], predicted[guessed[rows]])


def _ranges(groups: _Groups, called: Flags, labelled_share: float) -> dict[str, dict[str, Range]]:
    """The lowest and the highest of every measure over the splits, for U and for U with its labelled rows."""
    mixes, is_p, scores = {}, groups.is_p, groups.scores
    for mix, beta in (("unlabelled", 0.0), ("population", labelled_share)):
        weights = np.where(is_p, beta / is_p.sum(), (1.0 - beta) / (~is_p).sum())
        found = [_measures(split.guess == 1.0, called, scores, weights, is_p) for split in groups.splits]
        mixes[mix] = {name: (min(one[name] for one in found), max(one[name] for one in found)) for name in found[0]}
    return mixes


def _measures(positive: Flags, called: Flags, scores: Floats, weights: Floats, is_p: Flags) -> dict[str, float]:
    """Quality if `positive` were the truth."""
    hits, calls, total = (float(weights[rows].sum()) for rows in (positive & called, called, positive))
    return {
        "recall": hits / total,
        "precision": hits / max(calls, 1e-12),
        "accuracy": 1.0 - (calls - hits) - (total - hits),
        "f1": 2.0 * hits / (calls + total),
        "auc": auc_between(scores[positive & ~is_p], scores[~positive]),
    }


def _sentence(check: LabellingCheck, prior: PriorEstimate) -> str:
    low, _ = _wider((1.0, 0.0), check.ranges["unlabelled"]["accuracy"])
    most = min(1.0, _SLACK_SHARE * check.most)
    # A share that a person or judged rows gave rests on no label: it is not widened, and nothing here contradicts it.
    share = "" if is_given(prior) else f", and up to {most:.0%} of them may be positive"
    return (
        "the labelled rows may be no random sample of the positives: "
        f"{check.share:.0%} of the unlabelled rows form a group with them, but differ from them within it. Either the "
        "labels prefer some positives, or part of the group is negative; the rows cannot tell which. In the first case "
        f"accuracy over all unlabelled rows may be as low as {low:.2f}{share}. Judge some rows (punce review), or, if "
        "you know that some were preferred, set labelling='biased' (--labelling biased)"
    )


def _wider(interval: Range, seen: Range) -> Range:
    return max(0.0, min(interval[0], seen[0] - _SLACK)), min(1.0, max(interval[1], seen[1] + _SLACK))


def widened(metrics: PUMetrics, check: LabellingCheck, *, always: bool = False) -> PUMetrics:
    """The same values with intervals that hold what every split would make of them, where the check fires or always."""
    if not check.fires and not always:
        return metrics

    wide = partial(_wide, check)

    def wide_mix(mix: MixMetrics, which: str) -> MixMetrics:
        precision, accuracy, f1 = (wide(getattr(mix, name), which, name) for name in ("precision", "accuracy", "f1"))
        return replace(mix, precision=precision, accuracy=accuracy, f1=f1)

    return replace(
        metrics,
        recall=wide(metrics.recall, metrics.target, "recall"),
        auc=wide(metrics.auc, metrics.target, "auc"),
        unlabelled=wide_mix(metrics.unlabelled, "unlabelled"),
        population=wide_mix(metrics.population, "population"),
    )


def _wide(check: LabellingCheck, estimate: Estimate, mix: str, name: str) -> Estimate:
    if estimate.reason or np.isnan(estimate.low):
        return estimate
    low, high = _wider((estimate.low, estimate.high), check.ranges[mix][name])
    return stated(replace(estimate, low=low, high=high))


def widened_prior(prior: PriorEstimate, check: LabellingCheck) -> PriorEstimate:
    """An estimated prior may be as large as the share that looks positive at most, where the check fires."""
    if not check.fires or is_given(prior):
        return prior
    return told_of_width(replace(prior, high=max(prior.high, min(1.0, _SLACK_SHARE * check.most))), prior)


def by_groups(
    scores: Floats,
    labels: Labels,
    prior: PriorEstimate,
    scenario: Scenario,
    features: Features | None,
    seed: int,
) -> tuple[Floats, Labels, PriorEstimate]:
    """Scores, labels and a prior to judge by without the assumption that the labelled rows are a random sample.

    The group of unlabelled rows around the labelled ones takes their place: of the splits that several starts lead to,
    the one with the middle share of positives. The prior is that share, with the lowest and the highest around it.
    """
    groups = _groups(scores, labels, prior, features, np.random.default_rng(seed))
    if groups is None:
        raise InputError(
            f"labelling='biased' needs at least {_FEWEST} labelled and {_FEWEST} unlabelled rows that fall into two "
            "groups by their columns, and these do not; use labelling='random', or give propensity= to fit"
        )
    shares = groups.shares
    middle = int(np.argsort(shares)[len(shares) // 2])
    guessed = ~groups.is_p & (groups.splits[middle].guess == 1.0)
    u, p = scores[labels == UNLABELLED], groups.scores[guessed]
    own = np.repeat([UNLABELLED, POSITIVE], [len(u), len(p)]).astype(labels.dtype)
    low, high = min(shares) / _SLACK_SHARE, min(1.0, max(shares) * _SLACK_SHARE)
    estimate = replace(given_prior(shares[middle], labels, scenario), low=low, high=high, method="groups")
    return np.concatenate([u, p]), own, prior if is_given(prior) else estimate


def about_groups(check: LabellingCheck, are_directions: bool) -> str:
    """What to tell a person whose rows have no clear gap where :func:`by_groups` needs one; empty where they have.

    A split comes out of any rows. Of overlapping classes the positive group is too large and fits the scores too well:
    of two normal classes 1.7 standard deviations apart, an accuracy of 0.94 was said and 0.78 was true.
    """
    if check.gap > _clear(are_directions):  # not where it is NaN
        return ""
    return (
        "labelling='biased': no clear gap separates the group of rows around the labelled ones from the others; where "
        "the classes overlap, the share of positives and the quality are then said too high. Judge some rows (punce "
        "review) before you rely on them"
    )

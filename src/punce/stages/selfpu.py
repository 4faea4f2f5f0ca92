"""Self-PU (Chen, Chen, Chen, Yuan, Gong, Chen & Wang, ICML 2020), written from the idea.

Two networks learn from the same batches. Each picks the unlabelled rows it is surest of (its *trusted* set, growing as
training goes on); these leave the PU risk and are learned from the other network's soft labels, while nnPU learns from
the rest, with the prior of the rest. Each network is also kept close to its teacher, the running average of itself.

The paper's third part, weights for the trusted rows meta-learned on clean validation labels, is left out: it needs
labelled negatives, which a PU problem does not have.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from punce.encoders import Encoder
from punce.errors import InputError, is_number
from punce.labels import UNLABELLED, Labels
from punce.risks import NNPU, RiskWarning
from punce.risks.base import group_means
from punce.scenario import check_prior
from punce.stages.given import check_call, check_encoder, check_view
from punce.stages.probe import LinearHead
from punce.stages.scorer import RawRows, RowStage, Scorer, check_pu_rows, reinitialise, score_rows
from punce.training.loop import Batch, Judgement, Objective, TrainingConfig, Watched, train
from punce.training.run import Stateful
from punce.views import View

_SECOND_SEED = 1 << 20  # seed offset of the second network: far from the small seeds that people use


@dataclass(frozen=True)
class SelfPUConfig(TrainingConfig):
    """How to train Self-PU; epochs count from 0.

    Trusted sets are picked before epochs `select_from`, + `select_every`, … up to `select_until`, in equal steps up to
    `trusted_shares` of the unlabelled rows (one share for each network, so that the two do not become one).
    `ema_decay` is the teachers' decay per step, reached gradually so that a short run's teacher is not its first
    weights. `consistency_weight` multiplies the mean squared difference between the sigmoid outputs of a network and
    of its teacher.
    """

    epochs: int = 60
    labelled_share: float | None = 0.25
    trusted_shares: tuple[float, float] = (0.2, 0.3)
    select_from: int = 10
    select_until: int = 50
    select_every: int = 10
    ema_decay: float = 0.999
    consistency_weight: float = 1.0
    validation_share: float = 0.2

    def __post_init__(self) -> None:
        shares = self.trusted_shares
        is_pair = isinstance(shares, tuple | list) and len(shares) == 2
        if not (is_pair and all(is_number(share) and 0 <= share < 1 for share in shares)):
            raise InputError(f"trusted_shares must be two numbers in [0, 1), one for each network, got {shares!r}")
        if not (0 <= self.select_from <= self.select_until and self.select_every >= 1):
            raise InputError(
                "the trusted sets need 0 <= select_from <= select_until and select_every >= 1, got "
                f"{self.select_from}, {self.select_until}, {self.select_every}"
            )
        if not 0 <= self.ema_decay < 1 or self.consistency_weight < 0:
            raise InputError("ema_decay must lie in [0, 1) and consistency_weight must not be negative")

    @classmethod
    def in_proportion(cls, epochs: int, **changes: Any) -> SelfPUConfig:
        """So many epochs with trusted sets picked as 60 epochs have them: from 1/6 to 5/6 of the way, every sixth."""
        every = max(1, round(epochs / 6))
        last = max(0, min(5 * every, epochs - 1))
        schedule = {"select_from": min(every, last), "select_until": last, "select_every": every}
        return cls(epochs=epochs, **{**schedule, **changes})

    def trusted_share(self, network: int, epoch: int) -> float | None:
        """The share of U that a network trusts from this epoch on, or None where nothing is picked anew."""
        picks = range(self.select_from, self.select_until + 1, self.select_every)
        return self.trusted_shares[network] * (picks.index(epoch) + 1) / len(picks) if epoch in picks else None


def selfpu(
    encoder: Encoder,
    view: View,
    X: Tensor,
    labels: Labels,
    config: SelfPUConfig = SelfPUConfig(),  # noqa: B008  frozen
    *,
    prior: float,
    **outputs: Unpack[Watched],
) -> LinearHead:
    """Train two networks of `encoder`'s kind from scratch; leave the better teacher in `encoder` and return its head.

    Teacher and epoch are chosen by the held-out PU estimate of the error. The observer sees the first teacher.
    `prior` is the share of positives among the unlabelled rows.

    Shape: X (n, ...) raw rows as `view` takes them; labels (n,) of {1, 0}.
    """
    check_call("selfpu", config, SelfPUConfig, outputs)
    check_encoder(encoder, with_head=True)
    check_view(view, augments=False)
    check_pu_rows(X, labels, "Self-PU")
    check_prior(prior, open_interval=True)
    _warn_without_trusted_rows(config)
    stage = _SelfPU(encoder, RawRows(view, X, labels), config, prior)
    return stage.pair.first.linear_head(train(stage, **outputs))


class _SelfPU(RowStage):
    """Two networks in one module; held-out rows and observers see the teachers, which are what is kept."""

    name = "selfpu"

    def __init__(self, encoder: Encoder, rows: RawRows, config: SelfPUConfig, prior: float) -> None:
        self.pair = Pair(encoder, config.seed)
        super().__init__(self.pair, rows, config)
        # Teachers are copied after the networks were drawn, so that both start from the same weights.
        self._teachers, self._prior, self._selfpu = Teachers(self.pair), prior, config
        self.scorer = self._teachers.first
        self._trusted = [Trusted(len(self.X), prior, self.device) for _ in self.pair.students]
        is_u = torch.from_numpy(self.labels[self.train_rows.numpy()] == UNLABELLED)
        self._unlabelled = self.train_rows[is_u].to(self.device)

    def before_epoch(self, epoch: int) -> None:
        for k, student in enumerate(self.pair.students):
            if (share := self._selfpu.trusted_share(k, epoch)) is not None:
                scores = score_rows(student, self.view, self.X[self._unlabelled])
                self._trusted[k].pick(scores, self._unlabelled, share, self._prior)

    def objective(self, model: nn.Module, inputs: Tensor, batch: Batch) -> Objective:
        scores, targets, known = model(inputs), self._teachers(inputs), self.label_of[batch.rows]
        parts = [
            _parts(scores[k], scores[1 - k], targets[k], known, trusted.of(batch.rows), trusted.risk)
            for k, trusted in enumerate(self._trusted)
        ]
        first, second = (
            part.total(trusted.share, self._selfpu.consistency_weight)
            for part, trusted in zip(parts, self._trusted, strict=True)
        )
        return Objective(first + second, {"loss": first + second, **vars(parts[0])})

    def after_step(self, step: int) -> None:
        self._teachers.follow(self.pair, ema_decay(step, self._selfpu.ema_decay))

    def epoch_values(self) -> Mapping[str, float]:
        return {"trusted_share": self._trusted[0].share}

    def judge(self) -> Judgement:
        # One teacher is enough in the end: the better one of this epoch competes with those of other epochs.
        return min((self.error(teacher, self._prior) for teacher in self._teachers.both), key=lambda j: j.criterion)

    def identity(self) -> dict[str, Any]:
        return {**super().identity(), "prior": self._prior}

    def state(self) -> dict[str, Stateful]:
        return {"teachers": self._teachers, "a": self._trusted[0], "b": self._trusted[1]}

    def finish(self, best: dict[str, Tensor] | None) -> None:
        """The teacher's weights go into the first network, whose encoder is the caller's."""
        self.pair.first.load_state_dict(self._teachers.first.state_dict() if best is None else best)
        self.pair.eval()


def _warn_without_trusted_rows(config: SelfPUConfig) -> None:
    """Two networks that never trust a row are nnPU with teachers, not Self-PU; shares of 0 ask for just that."""
    if 0 < config.epochs <= config.select_from and any(config.trusted_shares):
        warnings.warn(
            f"Self-PU picks trusted rows from epoch {config.select_from} on, but trains for {config.epochs}: it never "
            f"picks any; use SelfPUConfig.in_proportion({config.epochs}), or set select_from and select_until",
            RiskWarning,
            stacklevel=3,
        )


class Pair(nn.Module):
    """Two networks with different first weights. Shape: (B, ...) -> scores (2, B)."""

    def __init__(self, encoder: Encoder, seed: int) -> None:
        super().__init__()
        second = deepcopy(encoder)  # the caller's encoder stays the first one: it is what the result is left in
        reinitialise(encoder, seed)
        reinitialise(second, seed + _SECOND_SEED)
        self.first, self.second = Scorer(encoder), Scorer(second)

    @property
    def students(self) -> tuple[Scorer, Scorer]:
        """Both networks."""
        return self.first, self.second

    def forward(self, x: Tensor) -> Tensor:
        """Scores of both."""
        return torch.stack([self.first(x), self.second(x)])


class Teachers(nn.Module):
    """The running averages of two networks, BatchNorm's buffers included; always in eval mode, never trained."""

    def __init__(self, pair: Pair) -> None:
        super().__init__()
        self.first, self.second = deepcopy(pair.first), deepcopy(pair.second)
        self.requires_grad_(False)
        self.eval()

    @property
    def both(self) -> tuple[Scorer, Scorer]:
        """Both teachers, in the order of their networks."""
        return self.first, self.second

    @torch.no_grad()
    def follow(self, pair: Pair, decay: float) -> None:
        """teacher ← decay·teacher + (1−decay)·student; counters are copied."""
        for teacher, student in zip(self.both, pair.students, strict=True):
            new = student.state_dict()
            for name, value in teacher.state_dict().items():
                if value.is_floating_point():
                    value.lerp_(new[name], 1.0 - decay)
                else:
                    value.copy_(new[name])

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """σ of both teachers' scores. Shape: (B, ...) -> (2, B)."""
        return torch.stack([teacher(x).sigmoid() for teacher in self.both])


def ema_decay(step: int, largest: float) -> float:
    """The decay at a step: (1+step)/(10+step) until it reaches `largest`."""
    return min(largest, (1.0 + step) / (10.0 + step))


class Trusted:
    """The rows a network trusts, what share of U they are, and nnPU with the prior of the rest."""

    def __init__(self, n: int, prior: float, device: torch.device) -> None:
        self._is_trusted = torch.zeros(n, dtype=torch.bool, device=device)
        self.share, self.risk = 0.0, NNPU(prior)

    def pick(self, scores: Tensor, rows: Tensor, share: float, prior: float) -> None:
        """Trust `share` of the unlabelled `rows` anew, half from the top of the ranking and half from the bottom.

        At most half of the positives that `prior` leaves room for are trusted, and at most half of the negatives. With
        a small prior the set fills up from the bottom, and some rows always remain to learn from.
        """
        n = len(rows)
        wanted = round(share * n)
        n_top = min(wanted // 2, int(prior * n / 2))
        n_bottom = min(wanted - n_top, int((1 - prior) * n / 2))
        order = rows[torch.argsort(scores, stable=True)]  # stable: ties are broken alike on every rank
        self._is_trusted.zero_()
        self._is_trusted[order[:n_bottom]] = True
        self._is_trusted[order[n - n_top :]] = True
        self.share = (n_top + n_bottom) / n
        self.risk = NNPU((prior * n - n_top) / (n - n_top - n_bottom))

    def of(self, rows: Tensor) -> Tensor:
        """Which of these rows are trusted. Shape: (b,) -> (b,) bool."""
        return self._is_trusted[rows]

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"is_trusted": self._is_trusted, "share": self.share, "prior": self.risk.prior}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""
        self._is_trusted.copy_(state["is_trusted"])
        self.share, self.risk = float(state["share"]), NNPU(float(state["prior"]))


@dataclass(frozen=True)
class Parts:
    """The three parts of one network's loss, each a mean over the rows of all ranks."""

    pu: Tensor
    trusted: Tensor
    consistency: Tensor

    def total(self, trusted_share: float, consistency_weight: float) -> Tensor:
        """Each unlabelled row counts once: the rest with its share in the PU risk, the trusted with theirs."""
        return (1.0 - trusted_share) * self.pu + trusted_share * self.trusted + consistency_weight * self.consistency


def _parts(own: Tensor, other: Tensor, teacher: Tensor, labels: Tensor, is_trusted: Tensor, risk: NNPU) -> Parts:
    """Shape: own and other scores (b,), teacher probabilities (b,), labels (b,), is_trusted (b,)."""
    soft = other.detach().sigmoid()  # detached: this loss must not change who gives the labels
    entropy = binary_cross_entropy_with_logits(own, soft, reduction="none")
    difference = (own.sigmoid() - teacher).square()
    means = group_means([(entropy, is_trusted), (difference, labels == UNLABELLED)]).means
    return Parts(risk(own[~is_trusted], labels[~is_trusted]), *means)

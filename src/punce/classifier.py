"""PUClassifier: the stages in order behind scikit-learn's interface.

fit: what kind of input is this → which share of the unlabelled rows is positive (prior) → learn scores on all rows but
a held-out share → calibrate them on the held-out rows → choose a threshold → say how good it is, without negatives.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from punce.columns.given import plain_rows
from punce.errors import InputError
from punce.judging.drift import SeenColumns
from punce.judging.estimates import Estimate
from punce.judging.judgement import JudgedScores, Judgement, judge_fit
from punce.judging.new_rows import NOTHING_KEPT, Seen
from punce.judging.propensity import Thinned, by_propensity
from punce.judging.ranking import ranking_score
from punce.judging.shift import count
from punce.judging.thresholds import Rule, check_rule
from punce.judging.used_prior import GivenPrior, about_few_labelled, first_prior, prior_to_learn_with
from punce.labels import (
    UNLABELLED,
    Labels,
    RowLabels,
    about_scorers,
    labels_of_rows,
    require_positive_and_unlabelled,
    row_weights,
)
from punce.losses import ContrastiveLoss
from punce.models import ROUTES, FitSettings, Fitted, kind_of
from punce.models.configs import plain, plain_configs
from punce.models.copies import about_copies
from punce.models.heads import check_objects
from punce.models.insight import Insight
from punce.models.kinds import KINDS, about_matrix, check_rows, check_shape
from punce.models.known_rows import about_known, require_unknown, require_verdicts
from punce.models.network import check_device
from punce.models.saved import Saved
from punce.options import (
    automatic_encoder,
    check_arguments,
    check_options,
    check_weights,
    describe,
    resolved,
)
from punce.row_numbers import require_same_index
from punce.scenario import Scenario, Target
from punce.training.cpus import limited_threads
from punce.training.random_stream import check_random_state, drawn_seed

Floats = npt.NDArray[np.float64]
# By a fit, beside the names that end in "_"
_LEARNED = ("_route", "_calibrator", "_columns", "_n_features_out", "_measured", "_seen")


class ClassifierWarning(UserWarning):
    """Something about a fit that a person should know."""


class ScorerWarning(ClassifierWarning):
    """Labels that scorers of scikit-learn misread; for whoever uses none, nothing is wrong."""


class PUClassifier(Insight, Saved, ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier from a few labelled positives and a pile of unlabelled rows.

    An argument that would have no effect on the rows at hand is refused (``punce.options`` is the table of what
    applies to what), so what the parameters say is what runs; ``ran_`` has it in full.

    Args:
        loss: contrastive loss of the pretraining: a name in ``punce.losses.LOSSES``, a loss object, or None to train
            without pretraining. With "auto" for loss and risk, several features and heads are tried and weighted by
            held-out labelled rows (docs/when-to-use.md); if anything else is chosen, "auto" is the paper's pair, puNCE
            and nnPU.
        risk: PU risk of the head: a name in ``punce.risks.RISKS``, a risk object, or "pupl" (pseudo-labels by
            clustering) or "selfpu" (without a loss).
        transfer: "probe" freezes the encoder, "finetune" trains it further with the head.
        encoder: "auto" by input kind, a name in ``punce.encoders.ENCODERS``, or an Encoder. For tables "auto" is the
            ensemble of docs/tables.md, to which loss, risk, transfer and epochs do not apply. For texts and images
            also a Hugging Face encoder by name or folder, for texts "tfidf", for images a ``punce.encoders.Vision``
            (docs/text.md and docs/images.md say what "auto" is).
        prior: share of positives among the *unlabelled* rows, or (share, low, high) with its 90 % interval, or "auto"
            to estimate it.
        scenario: "single_set" (labels taken out of one sample) or "case_control" (positives collected separately).
        target: the rows that probabilities, calls and quality are for: "population", new rows from where these came
            from, or "unlabelled", the unlabelled rows at hand, among which the labelled positives are missing. They
            are the same in "case_control".
        labelling: "random", the labelled rows are a random sample of the positives, or "biased", they prefer some; then
            groups of rows take their place where the rows show any (the default of every kind of input).
        threshold: "accuracy", "f1", "precision=0.9", "recall=0.95", or a probability.
        kind: "auto", or "table", "image", "embedding", "text".
        epochs: of pretraining and of training the encoder on the risk; None picks by the number of rows.
        configs: settings of single stages, as a stage's Config object or a dictionary of the fields to change:
            ``{"pretrain": PretrainConfig(...), "probe": {"lr": 1e-3}, "loss": {"temperature": 0.3}}``.
        device: "auto" (a GPU if there is one), "cpu", "cuda", …; the ensemble for tables uses the CPU only.
        progress: whether to show progress.
        random_state: seed of everything random: a whole number, None to draw one, or a RandomState to draw it from.

    Attributes:
        prior_: the PriorEstimate that probabilities and quality rest on: first_prior_, from cheap models before
            training, combined with second_prior_, from the learned scores (None if the prior was given), and with
            both_prior_, from the labelled negatives, if there are any.
        scores_: P(y=1 | x) of the training rows, for the target as all probabilities, from models that did not see the
            row wherever there is one; ``predict_proba`` scores them by the final model, which saw them: too well.
        seen_in_training_: the training rows whose label was used by the model that made their entry of scores_.
        decision_scores_: what ranks the training rows, finer than the probabilities, which can tie.
        threshold_: from which probability a row is called positive.
        ran_: what was trained, with the settings of each stage; for tables the members and their weights.
        encoder_: the encoder that was used: `encoder`, or the pretrained one that "auto" found for images.
        setting_: "pnu" if there were labelled negatives, else "pu".
        labelling_: LabellingCheck: whether the labelled rows can be a random sample of the positives.
        metrics_: PUMetrics from held-out rows. history_: one dict per training epoch. kind_: the input kind.
        importances_, feature_importances_: how much each column of a table matters.
        notes_: what to know about how the rows were read.
    """

    def __init__(
        self,
        loss: str | ContrastiveLoss | None = "auto",
        risk: Any = "auto",
        transfer: str = "probe",
        encoder: Any = "auto",
        prior: GivenPrior = "auto",
        scenario: Scenario = "single_set",
        target: Target = "population",
        labelling: str = "random",
        threshold: Rule = "accuracy",
        kind: str = "auto",
        epochs: int | None = None,
        configs: Mapping[str, Any] | None = None,
        device: str = "auto",
        progress: bool = False,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.loss = loss
        self.risk = risk
        self.transfer = transfer
        self.encoder = encoder
        self.prior = prior
        self.scenario = scenario
        self.target = target
        self.labelling = labelling
        self.threshold = threshold
        self.kind = kind
        self.epochs = epochs
        self.configs = configs
        self.device = device
        self.progress = progress
        self.random_state = random_state

    # Learning --------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        propensity: Any = None,
        judged: Any = None,
        folder: str | Path | None = None,
    ) -> Self:
        """Learn from rows `X` and labels `y`: 1 labelled positive, 0 unlabelled, -1 labelled negative.

        Labelled rows are taken for random samples of their class. `judged` marks rows that are not: a person looked up
        their class because the row was chosen. Their label, 1 or -1, is the truth, and everything learns from it, but
        for the share of positives they stay unlabelled rows. Labels of only 1 and -1 are those of other libraries:
        there -1 means unlabelled.

        `sample_weight` says how much each row counts in the training of the ensemble for tables and of the heads of a
        default fit or on the rows as they are (``encoder="identity"``); one loss and risk that you name have no use for
        it and refuse it. The prior, the calibration and the quality count every row once. `propensity`, for the same
        ways to learn, is the chance of each labelled row to be labelled, up to a factor, and everything corrects for
        it. With a `folder` training is checkpointed there and resumes after a kill. A fit that fails leaves the
        estimator unfitted: a mixture of two fits would not be noticed.
        """
        self._forget()
        try:
            self._learn(X, y, sample_weight, propensity, judged, Path(folder) if folder else None)
        except BaseException:
            self._forget()
            raise
        return self

    def _forget(self) -> None:
        """Back to before any fit. What scikit-learn itself keeps on an estimator (metadata requests) stays."""
        for name in list(vars(self)):
            if name in _LEARNED or (name.endswith("_") and not name.startswith("_")):
                delattr(self, name)

    def _learn(self, X: Any, y: Any, sample_weight: Any, propensity: Any, judged: Any, folder: Path | None) -> None:
        self.check_arguments()
        X = plain_rows(X)
        check_rows(X)
        codes, notes = labels_of_rows(plain_rows(y), X)
        for name, given in (("sample_weight", sample_weight), ("propensity", propensity), ("judged", judged)):
            require_same_index(given, X, name)
        mask = plain_rows(judged)
        rows = RowLabels.of(codes, mask)
        labels = rows.labels
        require_positive_and_unlabelled(rows.codes, "y")
        if np.shape(X)[0] != len(labels):
            raise InputError(f"X has {np.shape(X)[0]} rows but y has {len(labels)} labels; give one for each row")
        require_verdicts(codes, mask)
        require_unknown(rows)
        self.setting_ = rows.setting
        self.seed_ = drawn_seed(self.random_state)
        self.kind_ = kind_of(X) if self.kind == "auto" else self.kind
        check_shape(self.kind_, X)
        self.encoder_ = automatic_encoder(self.kind_, np.shape(X), self.encoder)
        way = check_options(self.kind_, {**self.get_params(deep=False), "encoder": self.encoder_})
        weights = None if sample_weight is None else row_weights(sample_weight, labels)
        if propensity is not None and self.labelling == "biased":
            raise InputError("labelling='biased' and propensity= correct for the same preference; give one of them")
        kept, weights = by_propensity(labels, propensity, weights, self.seed_)
        if weights is not None:
            check_weights(way, self._asked(), "sample_weight" if propensity is None else "propensity")
            weights = weights if np.ptp(weights) > 0 else None  # equal weights say as much as none
        self._remember_columns(X)
        self._route = ROUTES[self.kind_]()  # type: ignore[index]
        settings = self._settings(folder, weights, rows.known)
        about_kind = about_matrix(X) if (self.kind, self.kind_) == ("auto", "table") else ""
        self._warn(*notes, rows.note, about_few_labelled(labels), about_kind)
        self._warn(about_scorers(plain_rows(y), rows), kind=ScorerWarning)
        prepared = self._route.prepare(X, settings)
        self._warn(about_copies(prepared, labels))
        self.first_prior_ = first_prior(prepared, rows.codes, self.prior, self.scenario, seed=self.seed_)
        prior = rows.diluted(prior_to_learn_with(self.first_prior_, prepared, rows.codes, self.seed_))
        fitted = self._route.fit(X, labels, replace(settings, prior=prior))
        self.history_, self.notes_ = fitted.history, fitted.notes
        self.ran_ = {"way": describe(way, self._asked()), **settings.used}
        self._warn(*fitted.warnings, *about_known(self.ran_, rows.counts))
        thinned = Thinned(rows.codes, kept, self.scenario)
        with limited_threads(1):  # small matrices: BLAS's threads would wait for each other longer than they work
            judgement = self._judge(fitted.only(thinned.rows), rows, thinned)
            about_target = thinned.about_target(self.target, judgement.prior.value, self.prior_.value)
            self._warn(*self.prior_.warnings, *judgement.warnings, about_target)
        self._keep_scores(fitted, X, len(labels))
        self._remember_rows(judgement, X, thinned)
        self.classes_ = np.array([0, 1])  # last: it says that there is a fit

    def check_arguments(self) -> None:
        """Refuse arguments that cannot work, before anything is read or written."""
        check_rule(self.threshold)
        if self.kind != "auto" and self.kind not in KINDS:
            raise InputError(f"kind must be 'auto' or one of {list(KINDS)}, got {self.kind!r}")
        check_arguments(self.get_params(deep=False))
        check_objects(self.loss, self.risk)
        plain_configs(self.configs, self.loss, self.risk)
        check_random_state(self.random_state)
        check_device(self.device)

    def _warn(self, *texts: str, kind: type[ClassifierWarning] = ClassifierWarning) -> None:
        """Tell whoever called fit, at their line: the frames are this one, _learn, fit and theirs."""
        for text in filter(None, texts):
            warnings.warn(text, kind, stacklevel=4)

    def _asked(self) -> dict[str, Any]:
        """The parameters, with the loss and the risk that "auto" stands for on these rows."""
        return resolved(self.kind_, {**self.get_params(deep=False), "encoder": self.encoder_})

    def _settings(
        self, folder: Path | None, weights: Floats | None = None, truths: Labels | None = None
    ) -> FitSettings:
        as_given = ("loss", "risk", "transfer", "encoder", "scenario", "device", "progress")
        asked = self._asked()
        return FitSettings(
            **{name: asked[name] for name in as_given},
            prior=float("nan"),
            random_state=self.seed_,
            epochs=plain(self.epochs),  # it is written to checkpoints as JSON
            configs=plain_configs(self.configs, self.loss, self.risk),
            folder=folder,
            weights=weights,
            truths=truths,
        )

    def _judge(self, fitted: Fitted, rows: RowLabels, thinned: Thinned) -> Judgement:
        """Probabilities, threshold and quality, all from rows no stage had seen."""
        codes, first = thinned.codes[fitted.rows], self.first_prior_
        if not thinned.kept.all():  # the first estimate saw all labelled rows
            prior = thinned.given(self.prior)
            first = first_prior(None, codes, prior, self.scenario, scores=fitted.scores, seed=self.seed_)
        judged, self.labelling_ = judge_fit(
            fitted.scores,
            codes,
            first,
            self.threshold,
            labelling=self.labelling,
            features=fitted.features,
            are_directions=fitted.are_directions,
            shares=thinned.shares,
            scenario=self.scenario,
            target=self.target,
            sees_more=fitted.sees_more,
            seed=self.seed_,
            people=JudgedScores.of(fitted.scores, codes, rows.truths[fitted.rows]),
            has_all=bool(np.isin(np.flatnonzero(thinned.codes == UNLABELLED), fitted.rows).all()),
        )
        self.prior_, self.first_prior_ = map(thinned.among_unlabelled, (judged.prior, first))
        self.second_prior_, self.both_prior_ = (
            None if own is None else thinned.among_unlabelled(own) for own in (judged.second_prior, judged.both_prior)
        )
        self._calibrator, self.threshold_ = judged.calibrator, judged.threshold
        self.held_out_, self.metrics_ = judged.held_out, judged.metrics
        return judged

    def _keep_scores(self, fitted: Fitted, X: Any, n_rows: int) -> None:
        """The training rows' own scores: those of models that did not see the row, as far as the route has them."""
        scores, seen = fitted.of_all_rows(n_rows, lambda: self._known(self._route.score(X)))
        self.seen_in_training_ = seen
        self.scores_ = self._calibrator.probability(scores)
        self.decision_scores_ = self._calibrator.margin(scores, self.threshold_)
        self._n_features_out = int(self._route.embed(X.iloc[:1] if hasattr(X, "iloc") else X[:1]).shape[1])

    def _remember_rows(self, judged: Judgement, X: Any, thinned: Thinned) -> None:
        """Counts of the rows, to compare new ones with: positives are those that the judgement rests on."""
        shares = thinned.shares if self.scenario == "single_set" else (0.0, 0.0)
        columns = SeenColumns.of(self._route.looked_at(X), thinned.codes, self.seed_, thinned.rows)
        self._seen: Seen | None = Seen.of(judged.scores, judged.calibrator, judged.prior, shares, columns)

    # Using -------------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Scores, higher for positives; ≥ 0 where :meth:`predict` says 1, < 0 where it says 0. Shape: (n,)."""
        scores = self._scores(X)  # first: it says if there is no fit yet
        return self._calibrator.margin(scores, self.threshold_)

    def predict_proba(self, X: Any, deploy_prior: float | None = None) -> Floats:
        """P(y | x), columns negative and positive; `deploy_prior` for a population with that share of positives."""
        scores = self._scores(X)  # first: it says if there is no fit yet
        positive = self._calibrator.probability(scores, deploy_prior)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """1 where P(y=1 | x) reaches ``threshold_``, else 0."""
        return (self.predict_proba(X)[:, 1] >= self.threshold_).astype(np.int64)

    def _scores(self, X: Any) -> Floats:
        rows = self._rows(X)  # first: without a fit there is no route
        return self._known(self._route.score(rows))

    def _known(self, scores: Floats) -> Floats:
        """A row in which nothing is known (NaN) gets the score of the prior."""
        return np.where(np.isnan(scores), self._calibrator.score_of_prior, scores)

    def estimate_share(self, X: Any) -> Estimate:
        """The share of positives among new rows `X`, with its interval (``punce.judging.shift``).

        It holds if both classes look as they did in the fit and only their mix differs. Rows in which nothing is known
        do not count.
        """
        rows = self._rows(X)
        if self._seen is None:
            return Estimate.impossible(NOTHING_KEPT)
        scores = self._route.score(rows)
        counted = count(self._calibrator.probability(scores[~np.isnan(scores)]))
        return self._seen.scores.share(counted, has_prior=not self.prior_.reason).estimate

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, prior: float | None = None) -> float:
        """How well rows labelled in `y` are told from unlabelled ones, on rows held out of the fit: 0.5 is chance.

        The mean of two AUCs of labelled against unlabelled rows: of the ranking, and of the calls of :meth:`predict`
        (0.5 for a model that calls nothing positive). With share π of positives among the unlabelled rows each is
        π/2 + (1 − π)·(true AUC), so that it orders models as true labels would. If you know π of these rows, give it
        as `prior` and get the mean of the true AUCs, which chance (or rows of the fit) can bring above 1: it is not cut
        off, because that would favour noise. The classifier's own ``prior`` is not used: a search over
        ``prior`` would only find the value that corrects most.
        """
        scores = self._scores(X)  # first: it says if there is no fit yet
        labels = RowLabels.of(labels_of_rows(plain_rows(y), X)[0]).codes
        require_positive_and_unlabelled(labels, "y")
        if len(scores) != len(labels):
            raise InputError(f"X has {len(scores)} rows but y has {len(labels)} labels; give one for each row")
        require_same_index(sample_weight, X, "sample_weight")
        weights = None if sample_weight is None else row_weights(sample_weight, labels)
        called = self._calibrator.probability(scores) >= self.threshold_
        return ranking_score(scores, labels, called, weights, prior)

    def transform(self, X: Any) -> Floats:
        """The rows as the scores see them, the same as :meth:`embed`. Shape: (n, D)."""
        return self.embed(X)

    def embed(self, X: Any) -> Floats:
        """What the scores were made from. Shape: (n, D)."""
        rows = self._rows(X)  # first: without a fit there is no route
        return self._route.embed(rows)

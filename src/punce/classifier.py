"""PUClassifier: the stages in order behind scikit-learn's interface.

fit: what kind of input is this → how many positives hide (prior) → learn scores on all rows but a held-out share →
calibrate them on the held-out rows → choose a threshold → say how good it is, without negatives.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from punce.errors import InputError
from punce.judging.calibration import PUCalibrator
from punce.judging.metrics import PUMetrics, check_collapse, pu_metrics
from punce.judging.thresholds import Rule, check_rule, choose_threshold
from punce.judging.used_prior import given_prior, prior_from_json, prior_to_json, tighter, usable_interval, usable_prior
from punce.labels import POSITIVE, UNLABELLED, Labels, as_labels, require_positive_and_unlabelled
from punce.losses import LOSSES
from punce.models import ROUTES, FitSettings, Fitted, check_encoder, kind_of
from punce.models.columns import Columns
from punce.models.heads import check_head
from punce.models.kinds import KINDS, check_rows, plain_rows
from punce.models.network import check_device
from punce.priors import PriorEstimate, estimate_prior
from punce.scenario import Scenario, check_prior, check_scenario
from punce.storage.model_file import ModelFileError, read_model, write_model

Floats = npt.NDArray[np.float64]
_DISAGREE = 0.15
_LEARNED = ("_route", "_calibrator", "_columns")  # by a fit, beside the public names, which end in "_"
_CONFIDENCE = 0.9  # of every interval, like those of the prior estimators


class ClassifierWarning(UserWarning):
    """Something about a fit that a person should know."""


class PUClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier from a few labelled positives and a pile of unlabelled rows.

    Args:
        loss: contrastive loss of the pretraining, a name in ``punce.losses.LOSSES``, or None to train without one.
        risk: PU risk of the head, a name in ``punce.risks.RISKS``, or "pupl" (pseudo-labels by clustering) or "selfpu".
        transfer: "probe" freezes the encoder, "finetune" trains it on with the head.
        encoder: "auto" by input kind, a name in ``punce.encoders.ENCODERS``, or an Encoder. For tables "auto" is the
            ensemble of docs/tables.md, which did better there than any single network. For texts also a Hugging Face
            encoder by name or folder, or "tfidf" (docs/text.md says what "auto" is).
        prior: share of positives among the *unlabelled* rows, or "auto" to estimate it.
        scenario: "single_set" (labels taken out of one sample) or "case_control" (positives collected separately).
        threshold: "accuracy", "f1", "precision=0.9", "recall=0.95", or a probability.
        kind: "auto", or "table", "image", "embedding", "text".
        epochs: of pretraining; None picks by the number of rows.
        device: "auto", "cpu", "cuda", …
        progress: whether to show progress.
        random_state: seed of everything random.

    Attributes:
        prior_: the PriorEstimate that probabilities and quality rest on: first_prior_, from a cheap model before
            training, or second_prior_, from the learned scores (None if the prior was given; on tables only told).
        scores_: P(y=1 | x) of the training rows. threshold_: from which probability a row is called positive.
        decision_scores_: what ranks the training rows, finer than the probabilities, which can tie.
        metrics_: PUMetrics from held-out rows. history_: one dict per training epoch. kind_: the input kind.
        notes_: what to know about how the rows were read.
    """

    def __init__(
        self,
        loss: str | None = "punce",
        risk: str = "nnpu",
        transfer: str = "probe",
        encoder: Any = "auto",
        prior: float | str = "auto",
        scenario: Scenario = "single_set",
        threshold: Rule = "accuracy",
        kind: str = "auto",
        epochs: int | None = None,
        device: str = "auto",
        progress: bool = False,
        random_state: int | None = 0,
    ) -> None:
        self.loss = loss
        self.risk = risk
        self.transfer = transfer
        self.encoder = encoder
        self.prior = prior
        self.scenario = scenario
        self.threshold = threshold
        self.kind = kind
        self.epochs = epochs
        self.device = device
        self.progress = progress
        self.random_state = random_state

    # Learning --------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, folder: str | Path | None = None) -> Self:
        """Learn from rows `X` and labels `y` (1 labelled positive, 0 unlabelled; see ``punce.labels``).

        With a `folder` training is checkpointed there and goes on after a kill. A fit that fails leaves no fit, not an
        earlier one and not a part of this one: scores of one with probabilities of the other would look right.
        """
        self._forget()
        try:
            self._learn(X, y, Path(folder) if folder else None)
        except BaseException:
            self._forget()
            raise
        return self

    def _forget(self) -> None:
        """Back to before any fit. What scikit-learn itself keeps on an estimator (metadata requests) stays."""
        for name in list(vars(self)):
            if name in _LEARNED or (name.endswith("_") and not name.startswith("_")):
                delattr(self, name)

    def _learn(self, X: Any, y: Any, folder: Path | None) -> None:
        self.check_arguments()
        X = plain_rows(X)
        check_rows(X)
        labels = _labels(y)
        require_positive_and_unlabelled(labels, "y")
        if len(X) != len(labels):
            raise InputError(f"X has {len(X)} rows but y has {len(labels)} labels")
        self.seed_ = _seed(self.random_state)
        self.kind_ = kind_of(X) if self.kind == "auto" else self.kind
        self._remember_columns(X)
        check_encoder(self.encoder, self.kind_)
        self._route = ROUTES[self.kind_]()  # type: ignore[index]
        settings = self._settings(folder)
        self.first_prior_ = self._first_prior(self._route.prepare(X, settings), labels)
        fitted = self._route.fit(X, labels, replace(settings, prior=usable_prior(self.first_prior_)))
        self.history_, self.notes_ = fitted.history, fitted.notes
        self._calibrate(fitted, labels)
        scores = self._route.score(X)
        self.scores_ = self._calibrator.probability(scores)
        self.decision_scores_ = self._calibrator.margin(scores, self.threshold_)
        self.classes_ = np.array([0, 1])  # last: it says that there is a fit

    def check_arguments(self) -> None:
        """Refuse arguments that cannot work, before anything is read or written."""
        check_rule(self.threshold)
        check_scenario(self.scenario)
        if self.loss is not None and self.loss not in LOSSES:
            raise InputError(f"loss must be one of {sorted(LOSSES)} or None, got {self.loss!r}")
        check_head(self.risk)
        if self.transfer not in ("probe", "finetune"):
            raise InputError(f"transfer must be 'probe' or 'finetune', got {self.transfer!r}")
        if self.kind != "auto" and self.kind not in KINDS:
            raise InputError(f"kind must be 'auto' or one of {list(KINDS)}, got {self.kind!r}")
        if isinstance(self.prior, str):
            if self.prior != "auto":
                raise InputError(f"prior must be a number in (0, 1) or 'auto', got {self.prior!r}")
        else:
            check_prior(self.prior, open_interval=True)
        check_encoder(self.encoder, self.kind)
        if self.epochs is not None and self.epochs < 1:
            raise InputError(f"epochs must be at least 1, or None to choose by the number of rows, got {self.epochs}")
        _seed(self.random_state)
        check_device(self.device)

    def _first_prior(self, X: Any, labels: Labels) -> PriorEstimate:
        if self.prior != "auto":
            return given_prior(float(self.prior), labels, self.scenario)
        return estimate_prior(X, labels, random_state=self.seed_, scenario=self.scenario)

    def _settings(self, folder: Path | None) -> FitSettings:
        return FitSettings(
            loss=self.loss,
            risk=self.risk,
            transfer=self.transfer,
            encoder=self.encoder,
            prior=float("nan"),
            scenario=self.scenario,
            random_state=self.seed_,
            epochs=_plain(self.epochs),  # it is written to checkpoints as JSON
            device=self.device,
            progress=self.progress,
            folder=folder,
        )

    def _calibrate(self, fitted: Fitted, labels: Labels) -> None:
        """Probabilities, threshold and quality, all from rows no stage had seen."""
        scores, held_out = fitted.scores, labels[fitted.rows]
        p, u = scores[held_out == POSITIVE], scores[held_out == UNLABELLED]
        self.second_prior_ = self._second_prior(scores, held_out)
        self.prior_ = tighter(self.first_prior_, self.second_prior_ if fitted.sees_more else None)
        prior = usable_prior(self.prior_)
        self._calibrator = PUCalibrator.fit(p, u, prior)
        probability_p, probability_u = self._calibrator.probability(p), self._calibrator.probability(u)
        self.held_out_ = {"positive": probability_p, "unlabelled": probability_u}
        self.threshold_ = choose_threshold(self.threshold, probability_p, probability_u, prior)
        cut = self._calibrator.score_at(self.threshold_)
        metrics = pu_metrics(
            p,  # scores rank without the ties that probabilities can have
            u,
            prior,
            threshold=np.nextafter(cut, -np.inf),  # predict says positive *at* the threshold
            scenario=self.scenario,
            labelled_share=float((labels == POSITIVE).mean()),
            prior_interval=usable_interval(self.prior_),
            confidence=_CONFIDENCE,
            random_state=self.seed_,
        )
        self.metrics_: PUMetrics = replace(metrics, threshold=self.threshold_)
        collapse = check_collapse(p, u, np.nextafter(cut, -np.inf))
        if collapse.collapsed:
            warnings.warn(
                f"the classifier does not tell rows apart: {collapse.reason}", ClassifierWarning, stacklevel=4
            )

    def _second_prior(self, scores: Floats, labels: Labels) -> PriorEstimate | None:
        """The prior again, on held-out learned scores; a disagreement with the first is worth knowing."""
        if self.prior != "auto":
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            second = estimate_prior(None, labels, scores=scores, random_state=self.seed_, scenario=self.scenario)
        first = self.first_prior_
        if abs(second.value - first.value) > _DISAGREE:
            warnings.warn(
                f"the share of positives among the unlabelled rows is {first.value:.2f} by a first model and "
                f"{second.value:.2f} by the learned scores: treat both with care, or give prior= if you know it",
                ClassifierWarning,
                stacklevel=5,
            )
        return second

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
        return self._route.score(rows)

    def embed(self, X: Any) -> Floats:
        """What the scores were made from. Shape: (n, D)."""
        rows = self._rows(X)  # first: without a fit there is no route
        return self._route.embed(rows)

    def save(self, path: str | Path) -> None:
        """Write the classifier as a folder of safetensors and JSON."""
        check_is_fitted(self, "classes_")
        tensors, route = self._route.state()
        content = {
            "parameters": {k: _plain(v) for k, v in self.get_params(deep=False).items() if _is_plain(_plain(v))},
            "kind": self.kind_,
            "route": route,
            "calibrator": self._calibrator.to_json(),
            "threshold": self.threshold_,
            "columns": None if self._columns.names is None else list(self._columns.names),
            "n_features": self._columns.width,
            "feature_names": list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None,
            "prior": prior_to_json(self.prior_),
        }
        write_model(Path(path), tensors, content)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a classifier that :meth:`save` wrote; damaged or changed files are refused.

        A device that this machine does not have becomes "auto".
        """
        tensors, content = read_model(Path(path))
        try:
            classifier = cls(**_usable_here(content["parameters"]))
            classifier.check_arguments()
            classifier._restore(tensors, content)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
            what = str(error).strip() or type(error).__name__
            raise ModelFileError(f"{path} is not a model that this version of punce reads: {what[:200]}") from error
        return classifier

    def _restore(self, tensors: dict[str, Tensor], content: dict[str, Any]) -> None:
        """What :meth:`save` wrote. Entries read with `get` are missing from older files."""
        self.kind_ = content["kind"]
        self._route = ROUTES[content["kind"]].from_state(tensors, content["route"])
        self._calibrator = PUCalibrator.from_json(content["calibrator"])
        self.threshold_ = check_prior(content["threshold"], "threshold")
        names = None if content["columns"] is None else tuple(content["columns"])
        self._columns = Columns(names, content.get("n_features", None if names is None else len(names)))
        self._show_columns(content.get("feature_names"))
        if (prior := prior_from_json(content.get("prior", {}))) is not None:
            self.prior_ = prior
        self.classes_ = np.array([0, 1])

    def _remember_columns(self, X: Any) -> None:
        self._columns = Columns.of(X)
        is_named = isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns)
        self._show_columns(list(X.columns) if is_named else None)

    def _show_columns(self, names: list[str] | None) -> None:
        """scikit-learn's attributes, which are there only where they mean something."""
        if self._columns.width is not None:
            self.n_features_in_ = self._columns.width
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _rows(self, X: Any) -> Any:
        """New rows as the route expects them; says if there is no fit yet."""
        check_is_fitted(self, "classes_")
        return self._columns.take(plain_rows(X), type(self).__name__, and_new=self.kind_ == "table")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        is_table = self.kind in ("auto", "table")
        tags.input_tags.allow_nan = is_table
        tags.input_tags.categorical = is_table
        tags.input_tags.string = self.kind != "embedding"
        return tags


def _seed(random_state: int | None) -> int:
    """None draws a seed, which is kept so that the fit can be repeated."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if not isinstance(random_state, int | np.integer) or not 0 <= random_state < 2**32:
        raise InputError(f"random_state must be None or a whole number from 0 to 2³² − 1, got {random_state!r}")
    return int(random_state)


def _labels(y: Any) -> Labels:
    """Labels of the vocabulary, with scikit-learn's words where its users expect them."""
    if y is None:
        raise InputError("PUClassifier requires y to be passed, but the target y is None")
    y = plain_rows(y)
    if np.ndim(y) == 2 and np.shape(y)[1] == 1:
        what = "A column-vector y was passed when a 1d array was expected; it was read as one"
        warnings.warn(what, DataConversionWarning, stacklevel=4)
    try:
        return as_labels(y)
    except InputError as error:
        kind = type_of_target(y) if np.ndim(y) == 1 and np.size(y) else ""
        if kind == "continuous":
            raise InputError(f"Unknown label type: continuous. {error}") from error
        if kind == "multiclass":
            words = "Only binary classification is supported. The type of the target is multiclass"
            raise InputError(f"{words}. {error}") from error
        raise


def _plain(value: Any) -> Any:
    """A NumPy number, which JSON does not know, as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _usable_here(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a saved model, whose device may be one of another machine."""
    try:
        check_device(parameters.get("device", "auto"))
    except InputError:
        return {**parameters, "device": "auto"}
    return parameters

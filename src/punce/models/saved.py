"""A classifier on disk: attributes of the classifier beside the state of its route."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from punce.datasets.dataset import Kind
from punce.encoders.pretrained import EncoderNotFoundError
from punce.judging.calibration import PUCalibrator
from punce.judging.metrics import PUMetrics
from punce.judging.new_rows import NewRows, Seen
from punce.judging.used_prior import prior_from_json, prior_to_json
from punce.models import ROUTES
from punce.models.columns import Columns
from punce.models.configs import plain_parameters
from punce.models.network import usable_here
from punce.models.route import State
from punce.scenario import check_prior
from punce.storage.json_tree import decode
from punce.storage.model_file import ModelFileError, read_model, write_model


@dataclass(frozen=True)
class ModelFile:
    """``model.json``, as :func:`state_of` makes it. What has a default is missing from older files.

    The routes, the prior and the rest check their own parts, which are dictionaries here.
    """

    format: int
    parameters: dict[str, Any]
    kind: Kind
    route: dict[str, Any]
    calibrator: dict[str, Any]
    threshold: float
    columns: tuple[str, ...] | None
    n_features: int | None = None
    feature_names: tuple[str, ...] | None = None
    prior: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] | None = None
    setting: str | None = None
    ran: dict[str, Any] | None = None
    n_embedding: int | None = None
    importances: tuple[tuple[str, float | None, float | None, float | None], ...] | None = None
    seen: dict[str, Any] | None = None


@dataclass(frozen=True)
class _Ran:
    """What is read of ``ran_``, which has more: the settings of every stage."""

    way: str
    encoder: str = ""
    members: dict[str, float] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)


class Saved:
    """The part of PUClassifier that writes it to a folder and reads it again."""

    def save(self, path: str | Path) -> None:
        """Write the classifier as a folder of safetensors and JSON."""
        check_is_fitted(self, "classes_")
        write_model(Path(path), *state_of(self))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a classifier that :meth:`save` wrote; damaged or changed files are refused.

        A device that this machine does not have becomes "auto". What says how the fit went and what its rows got
        (``scores_``, ``history_``, ``notes_`` and the like) is not saved.
        """
        tensors, content = read_model(Path(path))
        try:
            saved: ModelFile = decode(ModelFile, content, "model.json")
            classifier: Any = cls(**usable_here(saved.parameters))
            classifier.check_arguments()
            restore(classifier, tensors, saved)
            try_out(classifier, saved)
        except EncoderNotFoundError as error:
            raise ModelFileError(str(error)) from error
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
            what = " ".join(str(error).split()) or type(error).__name__  # torch lists misfits on several lines
            raise ModelFileError(f"{path} is not a model that this version of punce reads: {what[:200]}") from error
        found: Self = classifier
        return found


class _OfTheFit:
    """A learned attribute that a model file does not hold. What a fit sets on the classifier comes before it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, classifier: Any, owner: type) -> Any:
        if classifier is None:
            return self
        if "classes_" not in vars(classifier):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")
        raise AttributeError(f"a loaded model has no {self._name}: it is of the fit, read it there, before save()")


_TRAINING = ("encoder_", "seed_", "first_prior_", "second_prior_", "both_prior_", "labelling_", "history_", "notes_")
_TRAINING_ROWS = ("scores_", "decision_scores_", "seen_in_training_", "held_out_")
for _name in (*_TRAINING, *_TRAINING_ROWS):
    setattr(Saved, _name, _OfTheFit(_name))


def state_of(classifier: Any) -> State:
    """Tensors and JSON of a fitted classifier."""
    tensors, route = classifier._route.state()
    seen_tensors, seen = ({}, None) if classifier._seen is None else classifier._seen.state()
    columns = classifier._columns
    seed = getattr(classifier, "seed_", None)  # a loaded one has none
    content = {
        "parameters": plain_parameters(classifier.get_params(deep=False), seed),
        "kind": classifier.kind_,
        "route": route,
        "calibrator": classifier._calibrator.to_json(),
        "threshold": classifier.threshold_,
        "columns": None if columns.names is None else list(columns.names),
        "n_features": columns.width,
        "feature_names": list(classifier.feature_names_in_) if hasattr(classifier, "feature_names_in_") else None,
        "prior": prior_to_json(classifier.prior_),
        "metrics": classifier.metrics_.to_json() if hasattr(classifier, "metrics_") else None,
        "setting": getattr(classifier, "setting_", None),
        "ran": getattr(classifier, "ran_", None),
        "n_embedding": getattr(classifier, "_n_features_out", None),
        "importances": classifier._measured_json(),
        "seen": seen,
    }
    return tensors | seen_tensors, content


def restore(classifier: Any, tensors: dict[str, Tensor], saved: ModelFile) -> None:
    """What :func:`state_of` gave."""
    classifier.kind_ = saved.kind
    classifier._seen = Seen.from_state(tensors, saved.seen)
    classifier._route = ROUTES[saved.kind].from_state(tensors, saved.route)
    classifier._calibrator = PUCalibrator.from_json(saved.calibrator)
    classifier.threshold_ = check_prior(saved.threshold, "threshold")
    width = saved.n_features if saved.n_features is not None or saved.columns is None else len(saved.columns)
    classifier._columns = Columns(saved.columns, width)
    classifier._show_columns(saved.feature_names)
    if (prior := prior_from_json(saved.prior)) is not None:
        classifier.prior_ = prior
    if saved.metrics is not None:
        classifier.metrics_ = PUMetrics.from_json(saved.metrics)
    classifier.setting_ = saved.setting or "pu"  # earlier versions knew no other
    if saved.ran is not None:
        decode(_Ran, {one.name: saved.ran[one.name] for one in fields(_Ran) if one.name in saved.ran}, "ran")
        classifier.ran_ = saved.ran
    if saved.n_embedding is not None:
        classifier._n_features_out = saved.n_embedding
    classifier._restore_measured(saved.importances)
    classifier.classes_ = np.array([0, 1])


def try_out(classifier: Any, saved: ModelFile) -> None:
    """Score made-up rows: parts that do not fit together are found here, and not when somebody's rows are waiting."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about the rows
        tried = classifier._route.tried()
    if tried is None:
        return
    n, width = np.shape(tried.embedded)
    if np.shape(tried.scores) != (n,):
        raise ValueError(f"{n} rows have scores of shape {np.shape(tried.scores)}")
    if saved.n_embedding not in (None, width):
        raise ValueError(f"n_embedding is {saved.n_embedding}, but rows have {width} features")
    if classifier._seen is not None:
        NewRows(classifier._seen).add(classifier._calibrator.probability(tried.scores), tried.looked_at)

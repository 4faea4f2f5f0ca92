"""A classifier on disk: attributes of the classifier beside the state of its route."""

from __future__ import annotations

from operator import index
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from punce.judging.calibration import PUCalibrator
from punce.judging.metrics import PUMetrics
from punce.judging.new_rows import Seen
from punce.judging.used_prior import prior_from_json, prior_to_json
from punce.models import ROUTES
from punce.models.columns import Columns
from punce.models.configs import plain_parameters
from punce.models.network import usable_here
from punce.models.route import State
from punce.scenario import check_prior
from punce.storage.model_file import ModelFileError, read_model, write_model


class Saved:
    """The part of PUClassifier that writes it to a folder and reads it again."""

    def save(self, path: str | Path) -> None:
        """Write the classifier as a folder of safetensors and JSON."""
        check_is_fitted(self, "classes_")
        write_model(Path(path), *state_of(self))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a classifier that :meth:`save` wrote; damaged or changed files are refused.

        A device that this machine does not have becomes "auto".
        """
        tensors, content = read_model(Path(path))
        try:
            classifier: Any = cls(**usable_here(content["parameters"]))
            classifier.check_arguments()
            restore(classifier, tensors, content)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
            what = str(error).strip() or type(error).__name__
            raise ModelFileError(f"{path} is not a model that this version of punce reads: {what[:200]}") from error
        found: Self = classifier
        return found


def state_of(classifier: Any) -> State:
    """Tensors and JSON of a fitted classifier."""
    tensors, route = classifier._route.state()
    seen_tensors, seen = ({}, None) if classifier._seen is None else classifier._seen.state()
    columns = classifier._columns
    content = {
        "parameters": plain_parameters(classifier.get_params(deep=False), classifier.seed_),
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


def restore(classifier: Any, tensors: dict[str, Tensor], content: dict[str, Any]) -> None:
    """What :func:`state_of` gave. Entries read with `get` are missing from older files."""
    classifier.kind_ = content["kind"]
    classifier._seen = Seen.from_state(tensors, content.get("seen"))
    classifier._route = ROUTES[content["kind"]].from_state(tensors, content["route"])
    classifier._calibrator = PUCalibrator.from_json(content["calibrator"])
    classifier.threshold_ = check_prior(content["threshold"], "threshold")
    names = None if content["columns"] is None else tuple(content["columns"])
    width = content.get("n_features", None if names is None else len(names))
    classifier._columns = Columns(names, None if width is None else index(width))
    classifier._show_columns(content.get("feature_names"))
    if (prior := prior_from_json(content.get("prior", {}))) is not None:
        classifier.prior_ = prior
    if content.get("metrics") is not None:
        classifier.metrics_ = PUMetrics.from_json(content["metrics"])
    classifier.setting_ = content.get("setting") or "pu"  # earlier versions knew no other
    for name, saved in (("ran_", "ran"), ("_n_features_out", "n_embedding")):
        if content.get(saved) is not None:
            setattr(classifier, name, content[saved])
    classifier._restore_measured(content.get("importances"))
    classifier.classes_ = np.array([0, 1])

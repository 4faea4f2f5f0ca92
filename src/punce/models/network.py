"""Images and embeddings: contrastive pretraining, then a linear layer on a PU risk (the paper's method)."""

from __future__ import annotations

import copy
import logging
import warnings
from dataclasses import asdict, dataclass, replace
from inspect import signature
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import issparse
from sklearn.metrics import roc_auc_score
from torch import Tensor

from punce.columns.encoder import EncodedTable, plain_columns
from punce.columns.sparse import matrix_from_sparse
from punce.data.embeddings import LARGEST_EMBEDDING
from punce.encoders import ENCODERS, Encoder, build_encoder, row_options
from punce.errors import InputError, first_line
from punce.labels import POSITIVE, Labels
from punce.losses import DCL, InfoNCE
from punce.models.heads import (
    automatic_epochs,
    batch_size,
    fit_head,
    frozen_head,
    load_network,
    network_tensors,
    pretrain_encoder,
    pretrains,
    uses_frozen_features,
)
from punce.models.route import LEARNED_FROM_KNOWN, FitSettings, Fitted, Floats, NamedPart, State, Tried
from punce.stages.pretrain import PretrainConfig
from punce.stages.probe import LinearHead, extract_features
from punce.storage.json_tree import decode
from punce.training.random_stream import seeded
from punce.training.splits import PUStratifiedKFold, holdout_split
from punce.views import View, build_view

log = logging.getLogger("punce")

BRIGHTNESS_OF = "brightness of channel {}"
"""What new images are compared with those of the fit by."""
_HELD_OUT = 0.2
_SCARCE = 100  # labelled rows below which more of them are held out, so that recall means something
_HELD_OUT_SCARCE = 0.3
NETWORKS = ("linear", "mlp")
"""For embeddings of texts; the first is taken where they cannot be told apart."""

TEXT_EPOCHS = 25
"""At most; with more, both begin to memorise the labelled rows."""
_FOLDS = 3  # of the cross-fit: each costs one more head, which is cheap on frozen features
_FEWEST = 50  # labelled rows below which the held-out ones are too few to choose by
_ROWS_AT_ONCE = 65_536
_LARGEST_TRIED = 2**24  # numbers of a row: an image of 2,300 x 2,300 pixels


@dataclass(frozen=True)
class _NetworkFile:
    """The JSON of a network. Models of earlier versions have no shape."""

    encoder: NamedPart
    view: NamedPart
    row_shape: tuple[int, ...] | None = None


class NetworkRoute:
    """Encoder, view and linear head for images (n, C, H, W) or (n, H, W, C), or embeddings (n, d).

    `view` says which view to take (name and options); by default it follows from the input.
    """

    _encoder: Encoder
    _view: View
    _head: LinearHead

    def __init__(self, view: dict[str, Any] | None = None) -> None:
        self._given_view = view
        self._encoder_spec: dict[str, Any] = {}
        self._view_spec: dict[str, Any] = {}
        self._device = torch.device("cpu")
        self._row_shape: tuple[int, ...] | None = None  # None in models that earlier versions saved

    def prepare(self, X: Any, settings: FitSettings) -> Any:
        """The images or embeddings themselves."""
        return X

    def fit(self, X: Any, labels: Labels, settings: FitSettings) -> Fitted:
        """Pretrain and probe on all rows but a held-out share, which no stage sees."""
        x = as_tensor(X)
        self._row_shape = tuple(x.shape[1:])
        self._device = check_device(settings.device)
        with seeded(settings.random_state, self._device):  # the encoder's first weights
            return self._fit(x, labels, settings)

    def _fit(self, x: Tensor, labels: Labels, settings: FitSettings) -> Fitted:
        self._choose(x, settings)
        train, held_out = outer_split(labels, settings.random_state)
        own, known = x[train].to(self._device), labels[train.numpy()]
        automatic = PretrainConfig(
            epochs=settings.epochs_of("pretrain") or automatic_epochs(len(own)), batch_size=batch_size(len(own))
        )
        # Known negatives shape the features, too; the loss is told the prior of the rows of unknown class.
        classes = settings.known_classes(labels)[train.numpy()]
        told = replace(settings, prior=settings.prior_of_rest(labels))
        if encoder_saw_labels(settings):
            settings.used[LEARNED_FROM_KNOWN] = True
        history = pretrain_encoder(self._encoder, self._view, own, classes, told, automatic)
        settings = settings.of_rows(train.numpy())  # heads see the training rows alone
        self._head = fit_head(self._encoder, self._view, own, known, settings)
        return self._fitted(x, labels, (train, held_out), [*history, *self._head.history], settings)

    def _fitted(
        self,
        x: Tensor,
        labels: Labels,
        split: tuple[Tensor, Tensor],
        history: list[dict[str, Any]],
        settings: FitSettings,
    ) -> Fitted:
        """The held-out rows' scores, and those of the training rows by heads that did not see them where cheap."""
        train, held_out = (rows.numpy() for rows in split)
        seen, everywhere = np.zeros(len(labels), dtype=bool), None
        seen[train] = True
        held_out = with_a_labelled_row(held_out, labels)
        scores = self.score(x[held_out])
        if settings.cross_fit and can_cross_fit(labels[train], settings):
            reference, features = (torch.from_numpy(self.embed(x[rows])).float() for rows in (held_out, train))
            everywhere = np.zeros(len(labels))
            everywhere[train] = cross_fitted_scores(features, labels[train], reference, scores, settings)
            seen[train] = encoder_saw_labels(settings)
        return Fitted(held_out, scores, history, training_scores=everywhere, seen=seen)

    def _choose(self, x: Tensor, settings: FitSettings) -> None:
        self._view_spec = self._given_view or view_for(x)
        self._view = build_view(self._view_spec["name"], **self._view_spec["options"]).fit(x)
        self._view_spec["options"] = asdict(self._view)  # type: ignore[call-overload]
        if isinstance(settings.encoder, Encoder):
            # A copy: training the caller's encoder would change it, and with it the next fit.
            self._encoder, self._encoder_spec = copy.deepcopy(settings.encoder), {"name": "custom"}
        else:
            self._encoder_spec = encoder_for(x, settings.encoder)
            self._encoder = build_encoder(self._encoder_spec["name"], **self._encoder_spec["options"])
        self._encoder.to(self._device)
        settings.used["encoder"] = self._encoder_spec["name"]

    def score(self, X: Any) -> Floats:
        """Scores of the linear head. Shape: (n,)."""
        scores: Floats = self._head(torch.from_numpy(self.embed(X)).float()).double().numpy()
        return scores

    def looked_at(self, X: Any) -> EncodedTable:
        """The numbers of an embedding, or the mean of each channel of an image."""
        x = as_tensor(X)
        # In parts: the mean converts all its pixels first.
        values = x if x.ndim == 2 else torch.cat([p.mean((2, 3), dtype=torch.float32) for p in torch.split(x, 4096)])
        name = "x{}" if x.ndim == 2 else BRIGHTNESS_OF
        return plain_columns(values.float().numpy(), [name.format(i) for i in range(values.shape[1])])

    def embed(self, X: Any) -> Floats:
        """Features of the encoder. Shape: (n, D)."""
        x = as_tensor(X)
        if self._row_shape is not None:
            check_row_shape(x, self._row_shape)
        return extract_features(self._encoder, self._view, x.to(self._device)).cpu().double().numpy()

    def tried(self) -> Tried | None:
        """On rows of zeros; not in models of earlier versions, which kept no shape."""
        rows = None if self._row_shape is None else rows_of_zeros(self._row_shape)
        return None if rows is None else Tried.on(self, rows)

    def state(self) -> State:
        """Encoder and head as tensors, their making as JSON."""
        if self._encoder_spec.get("name") == "custom":
            raise InputError("a classifier with an encoder object of your own cannot be saved; name one of punce's")
        tensors = network_tensors(self._encoder, self._head)
        shape = None if self._row_shape is None else list(self._row_shape)
        return tensors, {"encoder": self._encoder_spec, "view": self._view_spec, "row_shape": shape}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> NetworkRoute:
        """Inverse of :meth:`state`."""
        route = cls()
        saved: _NetworkFile = decode(_NetworkFile, content, "network")
        route._encoder_spec, route._view_spec = asdict(saved.encoder), asdict(saved.view)
        with torch.device("meta"):  # no memory until the shapes are known to fit: a file may claim any width
            route._encoder = build_encoder(saved.encoder.name, **saved.encoder.options)
        route._view = build_view(saved.view.name, **saved.view.options)
        route._row_shape = saved.row_shape
        route._head = load_network(route._encoder, tensors, assign=True)
        return route


# Training rows scored by heads that did not see them, so that a ranked list is not too good. A head on
# frozen features is cheap to train once more without each fold. The encoder is not: where the contrastive loss used
# labels, it knows those of its training rows, and they are marked as seen.


def can_cross_fit(labels: Labels, settings: FitSettings) -> bool:
    """Whether the head is trained alone, on features that stay as they are, and by enough labelled rows for folds."""
    return uses_frozen_features(settings) and int((labels == POSITIVE).sum()) >= _FOLDS


def encoder_saw_labels(settings: FitSettings) -> bool:
    """Whether frozen features depend on which rows are labelled."""
    is_blind = settings.loss in ("infonce", "dcl") or isinstance(settings.loss, InfoNCE | DCL)
    return pretrains(settings) and not is_blind


def cross_fitted_scores(
    features: Tensor, labels: Labels, reference: Tensor, wanted: Floats, settings: FitSettings
) -> Floats:
    """Each row's score by a head that did not see it, on the scale of the final head.

    Two heads agree on the order of rows but not on the scale of their scores. Rows that no head has seen set it: each
    head's scores of the `reference` rows are brought to the mean and spread of `wanted`, the final head's.

    Shape: features (n, D), labels (n,), reference (m, D), wanted (m,) -> (n,).
    """
    scores = np.zeros(len(labels))
    for rest, fold in PUStratifiedKFold(_FOLDS, random_state=settings.random_state).split(features, labels):
        head = frozen_head(features[rest], labels[rest], settings.of_rows(rest)).cpu()
        raw, own = (head(part).double().numpy() for part in (reference, features[fold]))
        spread = raw.std() or 1.0
        scores[fold] = (own - raw.mean()) / spread * wanted.std() + wanted.mean()
    return scores


# Embeddings of texts: which of two networks ------------------------------------------------------------------------


def fit_chosen_network(
    x: Any, labels: Labels, view: dict[str, float], settings: FitSettings
) -> tuple[NetworkRoute, Fitted]:
    """The better network by rows held out of it, trained on all rows but those that the final fit holds out.

    Shape: x float32 (n, d). The rows for the choice are taken from the final fit's training rows, so the scores that
    come back are still those of rows that nothing has seen.

    A linear map is the safe choice where the signal is weak (sentiment): an MLP then memorises the labelled rows
    and does far worse. Where the signal is strong (spam) the MLP is better. No true label is needed to tell: the AUC of
    labelled against unlabelled rows, on rows held out of pretraining and head, orders networks like the true AUC.
    """
    settings = replace(settings, epochs=settings.epochs or min(TEXT_EPOCHS, automatic_epochs(len(x))))
    train = outer_split(labels, settings.random_state)[0].numpy()
    name = choose_network(x[train], labels[train], view, settings.of_rows(train))
    return _fit_network(name, x, labels, view, settings)


def choose_network(x: Any, labels: Labels, view: dict[str, float], settings: FitSettings) -> str:
    """Name of the network whose held-out scores rank labelled rows highest among unlabelled ones."""
    if not pretrains(settings) or int((labels == POSITIVE).sum()) < _FEWEST:
        return NETWORKS[0]
    found = {}
    for name in NETWORKS:
        folder = settings.folder / f"try-{name}" if settings.folder else None
        fitted = _fit_network(name, x, labels, view, replace(settings, folder=folder, cross_fit=False))[1]
        found[name] = float(roc_auc_score(labels[fitted.rows] == POSITIVE, fitted.scores))
    best = max(NETWORKS, key=lambda name: found[name])
    log.info("features by %s; AUC of labelled against unlabelled rows by network: %s", best, found)
    return best


def _fit_network(
    name: str, x: Any, labels: Labels, view: dict[str, float], settings: FitSettings
) -> tuple[NetworkRoute, Fitted]:
    route = NetworkRoute({"name": "embedding", "options": view})
    return route, route.fit(x, labels, replace(settings, encoder=name))


def outer_split(labels: Labels, seed: int) -> tuple[Tensor, Tensor]:
    """Rows to train on and rows that no stage sees, more of them where labelled rows are scarce."""
    share = _HELD_OUT if int((labels == POSITIVE).sum()) >= _SCARCE else _HELD_OUT_SCARCE
    return holdout_split(labels, share, seed)


def with_a_labelled_row(held_out: npt.NDArray[np.int64], labels: Labels) -> npt.NDArray[np.int64]:
    """The rows to judge by: a single labelled row is trained on, and calibration must do with a row it saw."""
    if (labels[held_out] == POSITIVE).any():
        return held_out
    return np.concatenate([held_out, np.flatnonzero(labels == POSITIVE)])


def rows_of_zeros(shape: tuple[int, ...]) -> Any:
    """Two rows of this shape, to try a model with: arrays of a wrong shape would be stretched to fit a single one.

    None if they are so large that trying would cost much memory.
    """
    if len(shape) not in (1, 3) or min(shape) < 1:
        raise InputError(f"no row has the shape {shape}")
    return None if prod(shape) > _LARGEST_TRIED else np.zeros((2, *shape), dtype=np.uint8 if len(shape) == 3 else "f4")


def check_row_shape(x: Tensor, learned: tuple[int, ...]) -> None:
    """Refuse rows of another shape: some encoders would fail with an error of torch, and others score them silently."""
    if (shape := tuple(x.shape[1:])) != learned:
        raise InputError(
            f"the rows have the shape {shape}, but the model learned from rows of shape {learned}; "
            "bring them to that shape (images: the same size and number of channels)"
        )


def as_tensor(X: Any) -> Tensor:
    """Rows as a tensor: images as (n, C, H, W), embeddings as float32 (n, d)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # it is only read
        x = X if isinstance(X, Tensor) else torch.from_numpy(_numbers(X))
    # Channels last, as most image readers give them. (n, 3, H, 3) stays as it is: the second axis decides first.
    if x.dim() == 4 and x.shape[1] not in (1, 3) and x.shape[3] in (1, 3):
        x = x.permute(0, 3, 1, 2).contiguous()
    if x.dim() not in (2, 4):
        # scikit-learn's checks of estimators look for "Reshape your data"
        mend = "grey images (n, H, W) are X[:, None]" if x.dim() == 3 else "one row is (1, d)"
        raise InputError(
            f"expected images (n, C, H, W), (n, H, W, C) or embeddings (n, d), got shape {tuple(x.shape)}. "
            f"Reshape your data: {mend}"
        )
    if x.dim() == 4:
        return x
    x = x.float()
    for start in range(0, len(x), _ROWS_AT_ONCE):  # in parts: the test makes copies of its rows
        is_good = (x[start : start + _ROWS_AT_ONCE].abs() <= LARGEST_EMBEDDING).all(1)  # False for NaN, too
        if not bool(is_good.all()):
            row = start + int((~is_good).nonzero()[0])
            raise InputError(
                f"row {row} of the embeddings holds a NaN, infinite or too large value "
                f"(beyond ±{LARGEST_EMBEDDING:g}); drop or fill it"
            )
    return x


def _numbers(X: Any) -> Any:
    """An array torch can take: numbers kept as Python objects or as text become floats."""
    if issparse(X):
        return matrix_from_sparse(X)
    array = np.ascontiguousarray(X) if np.ndim(X) else np.asarray(X)
    if array.dtype.kind in "Mm":
        raise InputError(f"embeddings and images must be numbers, got {array.dtype}")
    if array.dtype.kind not in "OUS":
        return array
    try:
        return array.astype(np.float32)
    except (TypeError, ValueError) as error:
        # the words scikit-learn's own validation uses, and its TypeError
        kind = TypeError if isinstance(error, TypeError) else InputError
        raise kind(
            f"embeddings must be numbers; float() argument must be a string or a real number: {error}"
        ) from error


def view_for(x: Tensor) -> dict[str, Any]:
    """Colour images are recoloured and flipped, grey ones (digits, scans) are not; embeddings get noise."""
    if x.dim() == 2:
        return {"name": "embedding", "options": {}}
    return {"name": "crop_flip_colour" if x.shape[1] == 3 else "digit", "options": {}}


def encoder_for(x: Tensor, name: str) -> dict[str, Any]:
    """What builds the encoder for these inputs. "auto": an MLP, or for colour images a small convolutional network."""
    if name == "auto":
        is_coloured = x.dim() == 4 and x.shape[1] == 3
        name = ("allconv" if x.shape[2] == x.shape[3] else "resnet18") if is_coloured else "mlp"
    if name not in ENCODERS or name == "transformer":  # which reads texts
        raise InputError(f"encoder must be 'auto', one of {sorted(ENCODERS)} or an Encoder, got {name!r}")
    takes_width = "width" in signature(ENCODERS[name]).parameters  # Identity and Linear have none
    width = {"width": 0.2 if name == "mlp" else 0.25} if takes_width else {}
    return {"name": name, "options": {**row_options(name, tuple(x.shape[1:])), **width}}


def check_device(name: str) -> torch.device:
    """The device of that name; "auto" is a GPU if there is one. Refuses what this machine does not have."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:  # its words list all that torch was ever built for
        raise InputError(f"device must be auto, cpu, cuda or cuda:NUMBER, got {name!r}") from error
    try:
        torch.empty(0, device=device)  # a name that torch knows may still be a device this machine does not have
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = first_line(error)
        raise InputError(f"device {name!r} cannot be used here ({reason[:120]}); try 'auto' or 'cpu'") from error
    return device


def usable_here(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a saved model, whose device may be one of another machine; older ones had this target only."""
    parameters = {"target": "unlabelled", **parameters}
    try:
        check_device(parameters.get("device", "auto"))
    except InputError:
        return {**parameters, "device": "auto"}
    return parameters

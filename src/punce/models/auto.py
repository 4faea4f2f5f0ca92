"""Images and embeddings by default: a portfolio of features and heads; the one network that was asked for otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from punce.columns.encoder import EncodedTable
from punce.labels import Labels
from punce.models.network import NetworkRoute, as_tensor, check_device, check_row_shape, rows_of_zeros
from punce.models.portfolio.costs import first_reduction, reduced
from punce.models.portfolio.model import FeatureModel, Portfolio, about_scales
from punce.models.portfolio.readers import Given, Raw
from punce.models.route import FitSettings, Fitted, Floats, State, Tried
from punce.storage.json_tree import decode

_PORTFOLIO = "portfolio"
_MOST_CELLS = 250_000_000  # pixels of all images


@dataclass(frozen=True)
class _PortfolioFile:
    """The JSON of a portfolio on images or embeddings."""

    how: str
    row_shape: tuple[int, ...]
    portfolio: dict[str, Any]
    factor: int = 1


class AutoRoute:
    """Images (n, C, H, W) or (n, H, W, C), or embeddings (n, d)."""

    def __init__(self) -> None:
        self._model: NetworkRoute | FeatureModel | Portfolio = NetworkRoute()
        self._row_shape: tuple[int, ...] = ()
        self._factor = 1  # by which large images are reduced

    def prepare(self, X: Any, settings: FitSettings) -> Any:
        """The rows themselves; large images as the features will see them, very many by their main directions.

        Rows that cannot be learned from are refused here: estimators of the share would advise NaN for a missing value.
        """
        x = as_tensor(X)  # images: the same columns in the same order, wherever the channels stand
        if x.dim() == 2:
            return X
        if settings.loss != "auto":
            return x
        factor = first_reduction(tuple(x.shape[1:]))
        small = reduced(x, factor)
        if small.numel() > _MOST_CELLS:  # estimators take floats of all of it
            return Raw.fit(small, settings.random_state)(Given(small))
        return small

    def fit(self, X: Any, labels: Labels, settings: FitSettings) -> Fitted:
        """Cross-fitted candidates, or the network that was asked for."""
        if isinstance(self._model, NetworkRoute) and settings.loss != "auto":
            return self._model.fit(X, labels, settings)
        x = as_tensor(X)
        self._row_shape = tuple(x.shape[1:])
        if x.dim() == 2:
            self._model, fitted = FeatureModel.fit(x.numpy(), labels, settings)
            return replace(fitted, notes=(*about_scales(x.numpy()), *self._model.about_width(), *fitted.notes))
        self._factor = first_reduction(self._row_shape)
        small = reduced(x, self._factor)
        self._model, fitted = Portfolio.fit(Given(small), labels, settings, check_device(settings.device))
        return replace(fitted, notes=(*_about_size(small, self._factor), *fitted.notes))

    def score(self, X: Any) -> Floats:
        """Shape: (n,)."""
        return self._model.score(self._rows(X))

    def embed(self, X: Any) -> Floats:
        """The features that count most. Shape: (n, D)."""
        return self._model.embed(self._rows(X))

    def looked_at(self, X: Any) -> EncodedTable:
        """The numbers of an embedding, or the mean of each channel of an image."""
        return NetworkRoute().looked_at(X)

    def _rows(self, X: Any) -> Any:
        """The rows as the model takes them: an array of features, or images."""
        if isinstance(self._model, NetworkRoute):
            return X
        x = as_tensor(X)
        check_row_shape(x, self._row_shape)
        return x.numpy() if x.dim() == 2 else Given(reduced(x, self._factor))

    def tried(self) -> Tried | None:
        """On rows of zeros."""
        if isinstance(self._model, NetworkRoute):
            return self._model.tried()
        rows = rows_of_zeros(self._row_shape)
        return None if rows is None else Tried.on(self, rows)

    def state(self) -> State:
        """That of the network, or of the portfolio with the shape of a row."""
        tensors, content = self._model.state()
        if isinstance(self._model, NetworkRoute):
            return tensors, content
        of_rows = {"row_shape": list(self._row_shape), "factor": self._factor}
        return tensors, {"how": _PORTFOLIO, **of_rows, _PORTFOLIO: content}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> AutoRoute:
        """Inverse of :meth:`state`."""
        route = cls()
        if content.get("how") != _PORTFOLIO:
            route._model = NetworkRoute.from_state(tensors, content)
            return route
        saved: _PortfolioFile = decode(_PortfolioFile, content, "route")
        route._row_shape, route._factor = saved.row_shape, saved.factor
        kind = FeatureModel if len(route._row_shape) == 1 else Portfolio
        route._model = kind.from_state(tensors, saved.portfolio)
        return route


def _about_size(x: Tensor, factor: int) -> tuple[str, ...]:
    """A note on images that are reduced."""
    size = f"{x.shape[3]} × {x.shape[2]} pixels"
    return (f"images were reduced to {size} before anything was learned from them",) if factor > 1 else ()

"""Images and embeddings by default: a portfolio of features and heads; the one network that was asked for otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from punce.columns.encoder import EncodedTable
from punce.labels import Labels
from punce.models.network import NetworkRoute, as_tensor, check_device, check_row_shape
from punce.models.portfolio.model import FeatureModel, Portfolio, about_width
from punce.models.portfolio.readers import Given
from punce.models.route import FitSettings, Fitted, Floats, State

_PORTFOLIO = "portfolio"


class AutoRoute:
    """Images (n, C, H, W) or (n, H, W, C), or embeddings (n, d)."""

    def __init__(self) -> None:
        self._model: NetworkRoute | FeatureModel | Portfolio = NetworkRoute()
        self._row_shape: tuple[int, ...] = ()

    def prepare(self, X: Any, settings: FitSettings) -> Any:
        """The rows themselves; wide embeddings by their main directions, which is all that the heads will see."""
        return X

    def fit(self, X: Any, labels: Labels, settings: FitSettings) -> Fitted:
        """Cross-fitted candidates, or the network that was asked for."""
        if isinstance(self._model, NetworkRoute) and settings.loss != "auto":
            return self._model.fit(X, labels, settings)
        x = as_tensor(X)
        self._row_shape = tuple(x.shape[1:])
        if x.dim() == 2:
            self._model, fitted = FeatureModel.fit(x.numpy(), labels, settings)
            return replace(fitted, notes=(*about_width(x.shape[1]), *fitted.notes))
        self._model, fitted = Portfolio.fit(Given(x), labels, settings, check_device(settings.device))
        return fitted

    def score(self, X: Any) -> Floats:
        """Shape: (n,)."""
        return self._model.score(self._rows(X))

    def embed(self, X: Any) -> Floats:
        """The features that count most. Shape: (n, D)."""
        return self._model.embed(self._rows(X))

    def looked_at(self, X: Any) -> EncodedTable:
        """The numbers of an embedding, or the mean of each channel of a picture."""
        return NetworkRoute().looked_at(X)

    def _rows(self, X: Any) -> Any:
        """As the model takes them: an array of features, or pictures."""
        if isinstance(self._model, NetworkRoute):
            return X
        x = as_tensor(X)
        check_row_shape(x, self._row_shape)
        return x.numpy() if x.dim() == 2 else Given(x)

    def state(self) -> State:
        """That of the network, or of the portfolio with the shape of a row."""
        tensors, content = self._model.state()
        if isinstance(self._model, NetworkRoute):
            return tensors, content
        return tensors, {"how": _PORTFOLIO, "row_shape": list(self._row_shape), _PORTFOLIO: content}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], content: dict[str, Any]) -> AutoRoute:
        """Inverse of :meth:`state`."""
        route = cls()
        if content.get("how") != _PORTFOLIO:
            route._model = NetworkRoute.from_state(tensors, content)
            return route
        route._row_shape = tuple(map(int, content["row_shape"]))
        kind = FeatureModel if len(route._row_shape) == 1 else Portfolio
        route._model = kind.from_state(tensors, content[_PORTFOLIO])
        return route

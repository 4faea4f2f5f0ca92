"""Builders of the catalogues: a name with options, or a ready object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from punce.encoders import MLP, build_encoder, row_options
from punce.errors import InputError
from punce.losses import DCL, LOSSES, PuNCE, build_loss
from punce.risks import NNPU, build_risk
from punce.views import VIEWS, build_view

READY: list[tuple[Callable[..., Any], Any]] = [
    (build_loss, PuNCE(0.3)),
    (build_risk, NNPU(0.3)),
    (build_encoder, MLP(4, width=0.01)),
    (build_view, VIEWS["embedding"]()),
]
ready = pytest.mark.parametrize(("build", "entry"), READY, ids=[build.__name__ for build, _ in READY])


@ready
def test_a_ready_object_is_taken_as_it_is(build: Callable[..., Any], entry: Any) -> None:
    assert build(entry) is entry
    with pytest.raises(InputError, match=r"the options \['width'\] go with a name"):
        build(entry, width=1.0)


@ready
def test_unknown_names_and_other_objects_are_refused(build: Callable[..., Any], entry: Any) -> None:
    for wrong in ("nope", 3, None, ["punce"]):
        with pytest.raises(InputError, match=r"must be one of \[.*\] or a ready \w+, got"):
            build(wrong)


def test_a_loss_gets_its_options_and_only_punce_the_prior() -> None:
    losses = {name: build_loss(name, prior=0.3, temperature=0.2) for name in LOSSES}
    assert {loss.temperature for loss in losses.values()} == {0.2}
    assert [name for name, loss in losses.items() if hasattr(loss, "prior")] == ["punce"]
    dcl = build_loss("dcl", tau_plus=0.3)
    assert isinstance(dcl, DCL)
    assert dcl.tau_plus == 0.3
    with pytest.raises(InputError, match="loss 'punce' needs prior="):
        build_loss("punce")
    with pytest.raises(InputError, match=r"loss 'scl' has no option \['tau_plus'\]; it takes \['temperature'\]"):
        build_loss("scl", tau_plus=0.1)


def test_a_view_gets_its_options() -> None:
    assert build_view("digit", degrees=3.0).degrees == 3.0  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"view 'digit' has no option \['tilt'\]"):
        build_view("digit", tilt=3.0)


def test_the_shape_of_a_row_decides_the_first_layer() -> None:
    for name in ("mlp", "allconv", "resnet18"):
        encoder = build_encoder(name, **row_options(name, (3, 16, 16)), width=0.1)
        assert encoder.feature_size > 0
    assert row_options("mlp", (3, 4, 5)) == {"in_features": 60}
    with pytest.raises(InputError, match="reads images, but a row has the shape"):
        row_options("resnet18", (12,))
    with pytest.raises(InputError, match="AllConv reads square images"):
        row_options("allconv", (3, 16, 12))

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from torch import Tensor

from punce.errors import InputError
from punce.views import VIEWS, Image, cifar, digit
from punce.views import colour as colours
from punce.views import geometry as geometries
from punce.views.image import ImagePlan
from tests.views import reference

PLAIN = {"mean": (0.0,), "std": (1.0,)}
STRONG = Image(degrees=30, shift=0.2, zoom=(0.7, 1.3), shear=20, crop_scale=(0.3, 1.0), padding="zeros", **PLAIN)


def photos(n: int, channels: int, height: int, width: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (n, channels, height, width), dtype=torch.uint8, generator=generator)


def drawn(view: Image, plan: ImagePlan, rows: Tensor, height: int, width: int) -> geometries.Geometry:
    """The parameters behind plan.apply, first views first."""
    return geometries.draw(_keys(plan, rows), height, width, view)


def drawn_colour(view: Image, plan: ImagePlan, rows: Tensor) -> colours.Colour:
    return colours.draw(_keys(plan, rows), view)


def _keys(plan: ImagePlan, rows: Tensor) -> Tensor:
    return torch.cat(plan.draws.keys(rows, len(rows), "cpu"))


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (1, 8, 8), (3, 9, 14), (1, 17, 5)])
@pytest.mark.parametrize("view", [cifar(**PLAIN), digit(**PLAIN), STRONG], ids=["cifar", "digit", "strong"])
def test_the_batched_views_are_those_of_a_loop_over_pixels(view: Image, shape: tuple[int, int, int]) -> None:
    n = 3
    x, rows = photos(n, *shape), torch.tensor([4, 0, 9])
    plan = view.plan(n_rows=10, seed=3, epoch=1)
    two = plan.apply(x, rows).numpy()
    g = drawn(view, plan, rows, *shape[1:])
    c = drawn_colour(view, plan, rows) if shape[0] == 3 else None
    for which in range(2):
        for i in range(n):
            expected = reference.view_of(x[i].numpy() / 255.0, g, c, which * n + i, padding=view.padding)
            assert np.abs(two[which, i] - expected).max() < 1e-5


@pytest.mark.parametrize("order", [(3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1)])
def test_the_order_of_the_colour_operations_does_not_matter(order: tuple[int, ...]) -> None:
    view = cifar(jitter=(0.8, 0.8, 0.8, 0.4), jitter_probability=1.0, grey=0.0, **PLAIN)
    plan, rows = view.plan(n_rows=8, seed=0, epoch=0), torch.arange(8)
    c = drawn_colour(view, plan, rows)
    for i in range(8):
        image = photos(1, 3, 4, 4, seed=i)[0].numpy() / 255.0
        once = reference.recolour(image, c, i, (0, 1, 2, 3))
        assert np.allclose(reference.recolour(image, c, i, order), once, atol=1e-12)


def test_normalisation_comes_last_and_is_that_of_clean() -> None:
    x, rows = photos(6, 3, 16, 16), torch.arange(6)
    plain, scaled = cifar(**PLAIN), cifar(mean=(0.2, 0.4, 0.6), std=(0.3, 0.2, 0.1))
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (scaled.mean, scaled.std))
    for ours, raw in (
        (scaled.plan(6, 0, 0).apply(x, rows), plain.plan(6, 0, 0).apply(x, rows)),
        (scaled.clean(x), plain.clean(x)),
    ):
        assert torch.allclose(ours, (raw - mean) / std, atol=1e-5)
    assert torch.allclose(plain.clean(x), x / 255)


def test_a_view_without_augmentation_is_the_image() -> None:
    still = Image(crop_scale=(1, 1), crop_ratio=(1, 1), flip=0, jitter=(0, 0, 0, 0), grey=0)
    x = photos(4, 3, 12, 12)
    two = still.plan(4, 0, 0).apply(x, torch.arange(4))
    assert torch.allclose(two, still.clean(x).expand(2, -1, -1, -1, -1), atol=1e-5)


def test_uint8_and_unit_floats_give_the_same_views() -> None:
    x, rows = photos(5, 3, 10, 10), torch.arange(5)
    plan = cifar().plan(5, 0, 0)
    for same in (x / 255, (x / 255).double()):
        two = plan.apply(same, rows)
        assert two.dtype == torch.float32
        assert torch.allclose(two, plan.apply(x, rows), atol=1e-5)


def test_layout_in_memory_does_not_matter() -> None:
    x, rows = photos(5, 3, 10, 12), torch.arange(5)
    plan = cifar().plan(5, 0, 0)
    last = x.contiguous(memory_format=torch.channels_last)
    assert torch.equal(plan.apply(last, rows), plan.apply(x, rows))
    before = x.clone()
    plan.apply(x, rows)
    assert torch.equal(x, before)


def test_fit_finds_the_channel_statistics() -> None:
    X = photos(50, 3, 6, 6) // torch.tensor([1, 2, 4], dtype=torch.uint8).view(3, 1, 1)
    view = cifar().fit(X)
    values = X.double() / 255
    assert view.mean == pytest.approx(values.mean((0, 2, 3)).tolist())
    assert view.std == pytest.approx(values.std((0, 2, 3), correction=0).tolist())
    clean = view.clean(X)
    assert clean.mean((0, 2, 3)).abs().max() < 1e-4
    assert digit().fit(torch.zeros(2, 1, 4, 4, dtype=torch.uint8)).std == (1.0,)


class TestDistributions:
    n = 20_000

    def geometry(self, view: Image, height: int = 32, width: int = 32) -> geometries.Geometry:
        return drawn(view, view.plan(self.n, 0, 0), torch.arange(self.n), height, width)

    @pytest.mark.parametrize("size", [(32, 32), (20, 40), (50, 25)])
    def test_crops_have_the_asked_areas_and_ratios_and_stay_inside(self, size: tuple[int, int]) -> None:
        view, (height, width) = cifar(), size
        g = self.geometry(view, *size)
        area, ratio = g.width * g.height, g.width * width / (g.height * height)
        assert area.min() >= 0.08
        assert area.min() < 0.085
        assert area.max() <= 1
        assert ratio.min() >= 3 / 4 - 1e-9
        assert ratio.max() <= 4 / 3 + 1e-9
        for centre, side in ((g.centre_x, g.width), (g.centre_y, g.height)):
            assert (centre.abs() + side).max() <= 1 + 1e-9

    def test_areas_are_those_of_the_usual_rejection_sampling(self) -> None:
        g = self.geometry(cifar())
        generator = np.random.default_rng(0)
        area = generator.uniform(0.08, 1, 200_000)
        shape = np.exp(generator.uniform(np.log(3 / 4), np.log(4 / 3), 200_000))
        accepted = area[(area * shape <= 1) & (area / shape <= 1)]
        ours = (g.width * g.height).numpy()
        for quantile in (0.1, 0.25, 0.5, 0.75, 0.9):
            assert np.quantile(ours, quantile) == pytest.approx(np.quantile(accepted, quantile), abs=0.012)

    def test_half_of_the_natural_images_are_mirrored_and_no_digit_is(self) -> None:
        assert self.geometry(cifar()).mirrored.double().mean() == pytest.approx(0.5, abs=0.015)
        view = digit()
        theta = geometries.matrices(self.geometry(view, 28, 28), 28, 28).double()
        assert torch.linalg.det(theta[:, :, :2]).min() > 0

    def test_digits_turn_slant_shift_and_zoom_within_bounds(self) -> None:
        view = digit()
        g = self.geometry(view, 28, 28)
        angle = torch.rad2deg(g.angle)
        assert view.degrees * 0.99 < angle.abs().max() <= view.degrees <= 20
        assert torch.rad2deg(torch.atan(g.shear)).abs().max() <= view.shear
        assert max(g.shift_x.abs().max(), g.shift_y.abs().max()) <= view.shift
        assert view.zoom[0] <= g.zoom.min() < g.zoom.max() <= view.zoom[1]
        assert (g.width * g.height).min() >= 0.5
        assert angle.mean().abs() < 0.2

    def test_an_upright_digit_stays_upright(self) -> None:
        """Where the matrices send 'up' in the image: never further than turn and slant together allow."""
        view = digit()
        theta = geometries.matrices(self.geometry(view, 28, 28), 28, 28).double()
        up = theta[:, :, 1]  # the input direction shown downwards in the output
        lean = torch.rad2deg(torch.atan2(up[:, 0], up[:, 1])).abs()
        assert lean.max() < view.degrees + view.shear + 5

    def test_jitter_and_grey_happen_as_often_and_as_strongly_as_asked(self) -> None:
        view = cifar()
        c = drawn_colour(view, view.plan(self.n, 0, 0), torch.arange(self.n))
        jittered = c.brightness != 1
        assert jittered.double().mean() == pytest.approx(0.8, abs=0.01)
        assert (c.saturation == 0).double().mean() == pytest.approx(0.2, abs=0.01)
        assert torch.equal(jittered, c.contrast != 1)
        for factor in (c.brightness[jittered], c.contrast[jittered]):
            assert 0.6 <= factor.min() < 0.61
            assert 1.39 < factor.max() < 1.4
            assert factor.mean() == pytest.approx(1.0, abs=0.01)
        assert 0.099 < c.hue.abs().max() <= 0.1
        together = torch.stack([c.brightness, c.contrast, c.hue])[:, jittered]
        assert torch.corrcoef(together).fill_diagonal_(0).abs().max() < 0.03

    def test_the_two_views_and_two_epochs_are_independent(self) -> None:
        view = cifar()
        rows = torch.arange(self.n)
        first, second = drawn(view, view.plan(self.n, 0, 0), rows, 32, 32).centre_x.view(2, -1)
        later = drawn(view, view.plan(self.n, 0, 1), rows, 32, 32).centre_x[: self.n]
        other = drawn(view, view.plan(self.n, 1, 0), rows, 32, 32).centre_x[: self.n]
        together = torch.stack([first, second, later, other])
        assert torch.corrcoef(together).fill_diagonal_(0).abs().max() < 0.03


def test_a_grey_view_is_grey_and_a_hue_turn_keeps_the_luma() -> None:
    x, rows = photos(20, 3, 8, 8), torch.arange(20)
    grey = cifar(grey=1.0, **PLAIN).plan(20, 0, 0).apply(x, rows)
    assert (grey.amax(2) - grey.amin(2)).max() < 1e-6
    soft = (0.3 + 0.2 * x / 255).float()  # far from the ends, so that nothing is clamped
    turned = cifar(jitter=(0, 0, 0, 0.5), jitter_probability=1.0, grey=0.0, **PLAIN).plan(20, 0, 0)
    plain = cifar(jitter=(0, 0, 0, 0), grey=0.0, **PLAIN).plan(20, 0, 0)
    luma = torch.tensor(colours.LUMA).view(3, 1, 1)
    a, b = turned.apply(soft, rows), plain.apply(soft, rows)
    assert torch.allclose((a * luma).sum(2), (b * luma).sum(2), atol=1e-5)
    assert (a - b).abs().max() > 0.05


def test_recipes_survive_json() -> None:
    for name in ("cifar", "digit"):
        view = VIEWS[name](flip=0.25)
        again = VIEWS[name](**json.loads(json.dumps(dataclasses.asdict(view))))  # type: ignore[call-overload]
        assert again == view


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"crop_scale": (0.0, 1.0)}, "crop_scale must be a pair"),
        ({"crop_scale": (0.9, 0.5)}, "crop_scale must be a pair"),
        ({"crop_ratio": (0.5,)}, "crop_ratio must be a pair"),
        ({"zoom": (-1.0, 1.0)}, "zoom must be a pair"),
        ({"flip": 1.5}, r"flip must be within \[0, 1\], got 1.5"),
        ({"grey": float("nan")}, "grey must be within"),
        ({"degrees": -3}, "degrees must be within"),
        ({"jitter": (0.4, 0.4, 0.4)}, "brightness, contrast, saturation, hue"),
        ({"jitter": 0.4}, r"jitter must be \(brightness, contrast, saturation, hue\), got 0.4"),
        ({"std": (0.0,)}, "std must be within"),
        ({"mean": 0.5}, "mean must be a tuple, one number for all channels or one each, got 0.5"),
        ({"flip": "yes"}, "flip must be within .* got 'yes'"),
        ({"padding": "reflect"}, "padding must be one of"),
    ],
)
def test_impossible_settings_are_refused_by_name(setting: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Image(**setting)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(2, 8, 8, 3, dtype=torch.uint8), r"channels stand last: use x.permute\(0, 3, 1, 2\)"),
        (torch.zeros(2, 8, 8, dtype=torch.uint8), r"must be images .* got \(2, 8, 8\)"),
        (torch.zeros(2, 4, 8, 8, dtype=torch.uint8), "1 or 3 channels"),
        (torch.zeros(2, 3, 8, 0, dtype=torch.uint8), "must be images"),
        (torch.zeros(2, 3, 8, 8, dtype=torch.int32), "got dtype torch.int32"),
        (torch.full((2, 3, 8, 8), 255.0), "divide by 255"),
        (torch.full((2, 3, 8, 8), float("nan")), "without NaN"),
        (np.zeros((2, 3, 8, 8), dtype=np.uint8), "torch tensor, got ndarray"),
    ],
)
def test_images_that_cannot_be_used_are_refused(x: Tensor, message: str) -> None:
    view = cifar()
    for use in (lambda: view.plan(5, 0, 0).apply(x, torch.arange(2)), lambda: view.clean(x), lambda: view.fit(x)):
        with pytest.raises(InputError, match=message):
            use()


def test_statistics_of_another_number_of_channels_are_refused() -> None:
    view = cifar(mean=(0.1, 0.2, 0.3), std=(0.1, 0.1, 0.1))
    with pytest.raises(InputError, match=r"each of the 1 channels; fit the view"):
        view.plan(4, 0, 0).apply(photos(4, 1, 8, 8), torch.arange(4))
    with pytest.raises(InputError, match="no image to take channel means"):
        view.fit(photos(0, 3, 8, 8))

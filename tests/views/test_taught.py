"""Small images, whitened and changed: against plain loops, and that a change belongs to its row alone."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from punce.views import counter
from punce.views.image import digit
from punce.views.taught import TaughtView, WritingView, view_from_state

PICTURES = torch.randint(256, (40, 3, 16, 16), generator=torch.Generator().manual_seed(0)).to(torch.uint8)


def plain(channels: int, *, is_mirrored: bool = True) -> TaughtView:
    """The pixels themselves in the first channels: a kernel that whitens nothing."""
    kernel = torch.zeros(channels, channels, 2, 2)
    kernel[range(channels), range(channels), 0, 0] = 1.0
    return TaughtView(kernel, torch.zeros(channels), is_mirrored)


def keys(rows: Tensor, epoch: int = 0) -> Tensor:
    return counter.row_keys(rows, seed=7, epoch=epoch, view=0)


def moves(wide: np.ndarray, picture: np.ndarray) -> list[tuple[int, int, bool]]:
    """By how many pixels, and whether mirrored, the picture was cut out of the wide one."""
    return [
        (down, right, mirrored)
        for down in range(5)
        for right in range(5)
        for mirrored in (False, True)
        if np.array_equal(wide[:, down : down + 16, right : right + 16][:, :, :: -1 if mirrored else 1], picture)
    ]


def test_whitened_patches_have_no_mean_and_unit_covariance() -> None:
    smooth = torch.nn.functional.avg_pool2d(PICTURES.float(), 3, stride=1, padding=1) / 255
    white = TaughtView.fit(smooth, is_mirrored=True).clean(smooth)[:, :, ::2, ::2]  # the patches it was learned from
    rows = white.permute(0, 2, 3, 1).flatten(0, 2).double()
    covariance = rows.T @ rows / len(rows)
    assert rows.mean(0).abs().max() < 1e-3
    assert (covariance - torch.eye(12)).abs().max() < 0.3  # small variances are not blown up to 1
    assert TaughtView.fit(PICTURES, is_mirrored=True).clean(PICTURES).shape == (40, 12, 16, 16)


def test_a_moved_picture_is_the_picture_moved_by_up_to_two_pixels_and_mirrored_or_not() -> None:
    x = PICTURES.float() / 255
    found = plain(3).moved(PICTURES, keys(torch.arange(40)))
    wide = np.pad(x.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)), mode="reflect")
    seen = set()
    for k, picture in enumerate(found.numpy()):
        fits = moves(wide[k], picture)
        assert len(fits) == 1, k
        seen.add(fits[0])
    assert len(seen) > 20
    alone = plain(3, is_mirrored=False).moved(PICTURES, keys(torch.arange(40)))
    assert (alone == found).flatten(1).all(1).float().mean() < 0.8  # about half of them were mirrored


def test_a_draw_that_float32_rounds_up_to_1_moves_a_picture_as_far_as_any() -> None:
    key = counter.row_keys(torch.tensor([3844491]), seed=0, epoch=0, view=0)
    assert counter.uniform(key, 2, stream=3).float().max() == 1
    found = plain(3).moved(PICTURES[:1], key).numpy()[0]
    wide = np.pad(PICTURES[0].numpy() / np.float32(255), ((0, 0), (2, 2), (2, 2)), mode="reflect")
    assert [max(down, right) for down, right, _ in moves(wide, found)] == [4]


def test_a_changed_picture_in_plain_loops() -> None:
    x, drawn = PICTURES[:6].float() / 255, counter.uniform(keys(torch.arange(6)), 9, stream=3).float()
    moved, found = (getattr(plain(3), name)(PICTURES[:6], keys(torch.arange(6))) for name in ("moved", "changed"))
    for k in range(len(x)):
        mean, factor = float(moved[k].mean()), 1 + 0.4 * (2 * float(drawn[3, k]) - 1)
        centre = [int(drawn[7 + axis, k] * 16) for axis in range(2)]
        for channel in range(3):
            shade = 0.2 * (2 * float(drawn[4 + channel, k]) - 1)
            for i in range(16):
                for j in range(16):
                    value = min(1.0, max(0.0, (float(moved[k, channel, i, j]) - mean) * factor + mean + shade))
                    value = mean if abs(i - centre[0]) < 4 and abs(j - centre[1]) < 4 else value
                    assert abs(float(found[k, channel, i, j]) - value) < 1e-5


def test_a_change_is_a_function_of_seed_epoch_and_row() -> None:
    view, order = TaughtView.fit(PICTURES, is_mirrored=True), torch.randperm(40, generator=torch.Generator())
    for change in (view.moved, view.changed):
        whole = change(PICTURES, keys(torch.arange(40)))
        part = change(PICTURES[order[:7]], keys(order[:7]))
        torch.testing.assert_close(part, whole[order[:7]], rtol=0, atol=1e-5)
        assert not torch.equal(change(PICTURES, keys(torch.arange(40), epoch=1)), whole)


def test_bytes_and_shares_of_one_are_the_same_picture_and_the_state_comes_back() -> None:
    view = TaughtView.fit(PICTURES, is_mirrored=True)
    again = view_from_state(*view.state())
    torch.testing.assert_close(again.clean(PICTURES.float() / 255), view.clean(PICTURES))
    torch.testing.assert_close(again.mirrored(PICTURES), view.clean(PICTURES.flip(3)))


def test_writing_is_turned_a_little_or_a_lot_and_never_mirrored() -> None:
    """One half of a pair of views of the same keys, so that the arithmetic is that of the tested image views."""
    writing = PICTURES[:, :1]
    view, rows = WritingView.fit(writing), torch.arange(40)
    fitted = digit().fit(writing)
    torch.testing.assert_close(view.clean(writing), fitted.clean(writing))
    torch.testing.assert_close(view.mirrored(writing), view.clean(writing))
    first = counter.row_keys(rows, seed=5, epoch=2, view=0)
    torch.testing.assert_close(view.changed(writing, first), fitted.plan(40, 5, 2).apply(writing, rows)[0])
    little, lot = ((change(writing, first) - view.clean(writing)).abs().mean() for change in (view.moved, view.changed))
    assert 0 < little < lot
    assert view_from_state(*view.state()) == view

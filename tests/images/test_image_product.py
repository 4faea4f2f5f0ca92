"""Folders and arrays of images through a frozen encoder: decoded and embedded once, saved, found again, streamed."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from punce import PUClassifier
from punce.classifier import ClassifierWarning
from punce.data import check, load, read, simulate_pu
from punce.data import pictures as decoding
from punce.data.pictures import looks_of, near_duplicates
from punce.encoders import Vision
from punce.errors import InputError
from punce.models import image
from punce.models.pictures import ImageVectors
from punce.product.fit import run_fit
from punce.product.plan import DataOptions, ModelOptions, plan_fit
from punce.product.predict import run_predict
from punce.storage.model_file import ModelFileError
from tests.images.conftest import draw, write_folder, write_model

Counts = dict[str, int]
PRIOR = 0.13  # told, as to estimate it takes seconds


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """How many images were decoded and embedded."""
    found = {"decoded": 0, "embedded": 0}
    decode, embed = decoding.decode, Vision.embed

    def counted_decode(*given: Any) -> Any:
        found["decoded"] += 1
        return decode(*given)

    def counted_embed(self: Vision, pixels: torch.Tensor) -> torch.Tensor:
        found["embedded"] += len(pixels)
        return embed(self, pixels)

    monkeypatch.setattr(decoding, "decode", counted_decode)
    monkeypatch.setattr(Vision, "embed", counted_embed)
    image._loaded.cache_clear()
    return found


def _fit(folder: Path, out: Path, encoder: Path | str, **options: Any) -> PUClassifier:
    source = DataOptions(str(folder), None, **options)
    return run_fit(source, ModelOptions(encoder=str(encoder), prior=PRIOR), out, say=lambda what: None).classifier


def _arrays(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    X = np.stack([np.asarray(draw(k % 3 == 0, k)) for k in range(n)])
    return X, np.array([int(k % 3 == 0 and k // 3 < 35) for k in range(n)])


def test_from_command_to_page_and_again_in_no_time(tmp_path: Path, convnext: Path, counts: Counts) -> None:
    folder = write_folder(tmp_path / "pictures")
    _fit(folder, tmp_path / "run", convnext)
    assert counts["embedded"] == 150
    on_the_page = 150 + 100 + 24  # points of the map, rows of the list, unsure ones
    assert counts["decoded"] <= 150 + on_the_page
    page = (tmp_path / "run" / "report.html").read_text()
    assert "data:image" in page
    unsure = json.loads((tmp_path / "run" / "report.json").read_text())["unsure"]["rows"]
    assert len(unsure) == 115 // 8
    assert "Images it is unsure about" in page
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["ran"]["way"] == "heads on the features of a frozen encoder"
    assert config["ran"]["encoder"] == str(convnext.resolve())
    ranked = pd.read_parquet(tmp_path / "run" / "scores.parquet")
    positive = ranked.id.str.removesuffix(".png").astype(int) % 3 == 0
    assert positive[:12].all()
    # A second fit with other labels embeds nothing and decodes only what the page shows.
    counts.update(decoded=0, embedded=0)
    (folder / "labels.csv").write_text(
        "file,label\n" + "".join(f"{k},1\n" for k in [f"{j}.png" for j in range(1, 106, 3)])
    )
    _fit(folder, tmp_path / "again", convnext)
    assert counts["embedded"] == 0
    assert counts["decoded"] <= on_the_page + 5


def test_new_pictures_are_streamed_and_unreadable_ones_left_out(
    tmp_path: Path, convnext: Path, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fit(write_folder(tmp_path / "pictures"), tmp_path / "run", convnext)
    new = tmp_path / "new"
    new.mkdir()
    for k in range(30):
        draw(k % 2 == 0, 1000 + k, (50 + k, 40)).save(new / f"{k:02d}.jpg")
    (new / "99.jpg").write_bytes((new / "00.jpg").read_bytes()[:300])
    counts.update(decoded=0, embedded=0)
    monkeypatch.setattr("punce.product.predict._MOST_IMAGES", 8)
    with pytest.raises(InputError, match=r"1 image cannot be read: 99\.jpg"):
        run_predict(tmp_path / "run", new, tmp_path / "out.csv")
    done = run_predict(tmp_path / "run", new, tmp_path / "out.csv", written={"skip_unreadable": True})
    assert done.rows == 30
    assert any("99.jpg" in note for note in done.notes)
    scored = pd.read_csv(tmp_path / "out.csv")
    assert scored.probability[::2].min() > scored.probability[1::2].max()
    assert counts == {"decoded": 30 + 2, "embedded": 30}  # the second pass found them in the cache


def test_a_saved_model_finds_its_encoder_and_refuses_another(tmp_path: Path) -> None:
    encoder = write_model(tmp_path / "encoder", "clip")
    X, y = _arrays()
    fitted = PUClassifier(encoder=str(encoder), prior=PRIOR).fit(X, y)
    fitted.save(tmp_path / "model")
    loaded = PUClassifier.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(X), fitted.predict_proba(X), atol=1e-6)
    write_model(encoder, "clip", seed=1)
    with pytest.raises(ModelFileError, match="holds other weights"):
        PUClassifier.load(tmp_path / "model")


def test_arrays_of_both_layouts_and_a_network_of_your_own(counts: Counts, tmp_path: Path) -> None:
    X, y = _arrays()
    network = torch.nn.Conv2d(3, 8, 5, stride=5)
    fitted = PUClassifier(encoder=Vision(network, size=20), prior=PRIOR).fit(X, y)
    assert counts["embedded"] == 150 + 1  # one more, to see how wide a row is
    last = np.ascontiguousarray(X.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(fitted.predict_proba(last), fitted.predict_proba(X), atol=1e-6)
    assert fitted.scores_[0::3][35:].min() > np.quantile(fitted.scores_[1::3], 0.9)
    with pytest.raises(InputError, match="encoder object of your own cannot be saved"):
        fitted.save(tmp_path / "model")


@pytest.mark.parametrize("transfer", ["probe", "finetune"])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda x: x.astype(np.int64), "got dtype torch.int64"),
        (lambda x: x.astype(np.uint16) * 257, "got dtype torch.uint16"),
        (lambda x: x.astype(np.float32), "spans 0 to 2"),
        (lambda x: x / 127.5 - 1, "spans -1 to "),
        (lambda x: np.where(x == 7, np.nan, x / 255), "without NaN"),
        (lambda x: np.concatenate([x, x[..., :1]], axis=3), "got \\(40, 24, 20, 4\\)"),
    ],
    ids=["int64", "uint16", "0 to 255", "-1 to 1", "NaN", "four channels"],
)
def test_arrays_that_are_no_pictures_are_refused(
    transfer: Any, change: Callable[[Any], Any], reason: str, convnext: Path
) -> None:
    """What lies above 1 would be white to the encoder, without a word."""
    x = np.stack([np.asarray(draw(k % 3 == 0, k, (20, 24))) for k in range(40)])
    x.flat[0] = 0
    classifier = PUClassifier(encoder=str(convnext), kind="image", transfer=transfer, prior=0.3)
    with pytest.raises(InputError, match=reason):
        classifier.fit(change(x), np.arange(40) % 6 == 0)


def test_an_array_that_is_filled_again_is_embedded_again() -> None:
    vectors = ImageVectors(Vision(torch.nn.AvgPool2d(16), size=16))
    batch, _ = _arrays(8)
    before = vectors.embedded(batch)[0].copy()
    batch[:] = 255 - batch
    after = vectors.embedded(batch)[0]
    assert not np.isclose(after, before).all(axis=1).any()
    assert np.array_equal(after, vectors.embedded(batch.copy())[0])


def test_options_without_effect_are_refused_before_anything_is_embedded(
    tmp_path: Path, convnext: Path, counts: Counts
) -> None:
    folder = write_folder(tmp_path / "pictures")
    source = DataOptions(str(folder), None)
    for change, named in (({"risk": "upu"}, "risk='upu'"), ({"epochs": 3}, "epochs=3")):
        with pytest.raises(InputError, match=f"{named} has no effect on images: heads on the features of a frozen"):
            run_fit(source, ModelOptions(encoder=str(convnext), **change), tmp_path / "run", say=lambda what: None)
    assert counts["embedded"] == 0
    plan = plan_fit(source, ModelOptions(encoder=str(convnext)), tmp_path / "run", say=lambda what: None)
    assert "heads on the features of a frozen encoder" in plan


@pytest.mark.filterwarnings("ignore::punce.classifier.ClassifierWarning")  # of random weights after one epoch
def test_an_encoder_is_trained_further_and_kept_with_the_model(tmp_path: Path) -> None:
    source, out = write_model(tmp_path / "vit", "vit"), tmp_path / "run"
    asked = ModelOptions(encoder=str(source), transfer="finetune", epochs=1, prior=PRIOR)
    folder = DataOptions(str(write_folder(tmp_path / "pictures", n=90, n_labelled=20)), None)
    fitted = run_fit(folder, asked, out, say=lambda what: None).classifier
    assert fitted.ran_["way"] == "punce, then nnpu on a pretrained encoder and head"
    X, _ = _arrays(30)
    expected = fitted.predict_proba(X)
    np.testing.assert_allclose(PUClassifier.load(out / "model").predict_proba(X), expected, atol=1e-6)
    assert not np.allclose(fitted.transform(X), Vision(str(source)).embed(_as_seen(source, X)).numpy(), atol=1e-4)


def test_a_named_encoder_is_the_same_whatever_was_drawn_before(convnext: Path) -> None:
    found = []
    for seed in (1, 2):
        image._loaded.cache_clear()
        expected = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        found.append(image.vision_for(_arrays(2)[0], str(convnext)).state_dict())
        assert torch.equal(torch.rand(3), torch.rand(3, generator=expected))
    assert all(torch.equal(value, found[1][name]) for name, value in found[0].items())


def test_the_encoder_of_a_caller_is_not_changed() -> None:
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 6, 5, stride=5), torch.nn.ReLU())
    before = network[0].weight.detach().clone()
    model = PUClassifier(encoder=Vision(network, size=20), transfer="finetune", loss="scl", epochs=1, prior=PRIOR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClassifierWarning)
        model.fit(*_arrays(90))
    assert torch.equal(network[0].weight, before)


def _as_seen(source: Path, X: np.ndarray) -> torch.Tensor:
    """Images as the encoder takes them."""
    return Vision(str(source)).preprocessing.batch(torch.from_numpy(X).permute(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"loss": None}, "loss=None trains from scratch"), ({"risk": "vpu"}, "risk 'vpu' cannot train a pretrained")],
)
def test_what_cannot_train_a_pretrained_encoder_is_refused(
    change: dict[str, Any], message: str, convnext: Path
) -> None:
    with pytest.raises(InputError, match=message):
        PUClassifier(encoder=str(convnext), transfer="finetune", prior=PRIOR, **change).fit(*_arrays())


def test_a_cache_that_cannot_be_written_is_a_note(tmp_path: Path, convnext: Path, own_cache: Path) -> None:
    own_cache.parent.mkdir(exist_ok=True)
    own_cache.write_text("a file where the cache should be")
    X, y = _arrays()
    fitted = PUClassifier(encoder=str(convnext), prior=PRIOR).fit(X, y)
    assert any("embeddings were not kept for later runs: cannot write" in note for note in fitted.notes_)


def test_learning_from_scratch_says_what_an_encoder_would_bring() -> None:
    X = np.zeros((2, 3, 8, 8))
    assert "pip install 'punce[images]'" in image._why_from_scratch(X, "auto")[0]
    assert image._why_from_scratch(X, "allconv") == ()
    assert image._why_from_scratch(X[:, :1], "auto") == ()  # grey: digits and scans


MODES = ["L", "LA", "RGBA", "P", "1", "CMYK", "I;16"]


def test_every_mode_and_form_is_read(tmp_path: Path, convnext: Path) -> None:
    folder = write_folder(tmp_path / "pictures", 105, 30)
    for k, mode in enumerate(MODES):
        picture = draw(True, 500 + k, (33, 70))
        if mode == "I;16":
            Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257).save(folder / "deep.png")
            continue
        ending = {"CMYK": "jpg", "P": "gif"}.get(mode, "png")
        picture.convert(mode).save(folder / f"mode{k}.{ending}")
    draw(True, 600, (40, 30)).save(folder / "x.webp")
    fitted = _fit(folder, tmp_path / "run", convnext)
    assert len(fitted.scores_) == 105 + len(MODES) + 1
    assert np.isfinite(fitted.scores_).all()


def test_large_jpeg_files_are_decoded_at_a_fraction_and_upright(tmp_path: Path) -> None:
    half = Image.new("RGB", (1600, 1200), (0, 0, 255))
    half.paste((255, 0, 0), (0, 0, 1600, 600))  # red above blue
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned a quarter
    half.save(tmp_path / "a.jpg", exif=exif)
    pixels = read(tmp_path, image_size=32).load()[0]
    assert pixels[0, :, -8:].mean() > 240  # red is on the right
    assert pixels[2, :, :8].mean() > 240


def test_different_digits_on_a_black_ground_are_no_near_duplicates() -> None:
    digits = load("digits").train
    looks = np.stack([looks_of(pixels) for pixels in digits.X])
    labels = simulate_pu(digits.y_true, n_labelled=100, seed=0).labels
    assert near_duplicates(looks, np.arange(len(looks), dtype=np.uint64), labels) == []


def test_frames_of_a_film_which_all_look_alike_are_named_once_each() -> None:
    looks = np.tile(np.array([[0x0F0F0F0F0F0F0F0F] * 4], dtype=np.uint64), (60, 1))
    looks[:, 3] ^= np.arange(60, dtype=np.uint64) % 16
    labels = (np.arange(60) < 20).astype(np.int8)
    found = near_duplicates(looks, np.arange(60, dtype=np.uint64), labels)
    assert found == [(row, 0) for row in range(20, 60)]


def test_all_labelled_pictures_are_compared() -> None:
    looks = np.random.default_rng(0).integers(0, 2**63, size=(7000, 4), dtype=np.uint64)
    looks[6500] = looks[6400] ^ np.uint64(1)
    found = near_duplicates(looks, np.arange(7000, dtype=np.uint64), np.repeat([1, 0], [6450, 550]).astype(np.int8))
    assert found == [(6500, 6400)]


def test_near_duplicates_of_labelled_pictures_are_reported(tmp_path: Path) -> None:
    draws = np.random.RandomState(3)
    smooth = [
        Image.fromarray(draws.randint(0, 256, (6, 6, 3)).astype(np.uint8)).resize((90, 70), Image.Resampling.BICUBIC)
        for _ in range(40)
    ]
    for name in ("labelled", "unlabelled"):
        (tmp_path / name).mkdir()
    for k, picture in enumerate(smooth):
        picture.save(tmp_path / ("labelled" if k < 10 else "unlabelled") / f"{k:02d}.png")
    smooth[3].resize((61, 47)).save(tmp_path / "unlabelled" / "smaller.jpg", quality=60)
    shutil.copy(tmp_path / "labelled" / "05.png", tmp_path / "unlabelled" / "same.png")
    for side in ("labelled", "unlabelled"):
        Image.new("RGB", (50, 50), (200, 200, 200 if side == "labelled" else 190)).save(tmp_path / side / "blank.png")
    report = check(read(tmp_path))
    near = next(finding for finding in report.findings if finding.code == "near_duplicates")
    assert near.where == ("unlabelled/smaller.jpg (labelled/03.png)",)  # not the blank ones, not the equal one
    assert report.duplicates == 1

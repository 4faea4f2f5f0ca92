from __future__ import annotations

import errno
import hashlib
import os
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from punce.data import check, image_files, read, stream
from punce.data.pictures import DECODING, Square, decoded_images
from punce.errors import InputError, WriteError
from punce.product.plan import DataOptions, ModelOptions, RunOptions, read_and_check


def _picture(path: Path, seed: int, size: tuple[int, int] = (16, 16), mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (size[1], size[0], 3) if mode == "RGB" else (size[1], size[0])
    Image.fromarray(np.random.RandomState(seed).randint(0, 256, shape).astype(np.uint8)).save(path)


def _folder(folder: Path, n: int = 6) -> Path:
    for k in range(n):
        _picture(folder / f"{k}.png", k)
    return folder


def _csv(folder: Path, rows: dict[str, object], header: str = "file,label") -> Path:
    path = folder / "labels.csv"
    path.write_text(header + "\n" + "".join(f"{name},{label}\n" for name, label in rows.items()))
    return path


def test_a_folder_with_a_csv(tmp_path: Path) -> None:
    _csv(_folder(tmp_path), {f"{k}.png": int(k < 2) for k in range(6)})
    data = read(tmp_path, "label")
    assert data.kind == "image"
    assert data.labels is not None
    assert data.labels.tolist() == [1, 1, 0, 0, 0, 0]
    assert data.ids.tolist() == [f"{k}.png" for k in range(6)]
    pixels = data.load()
    assert pixels.shape == (6, 3, 16, 16)
    assert pixels.dtype == np.uint8
    assert (pixels[3] == np.asarray(Image.open(tmp_path / "3.png")).transpose(2, 0, 1)).all()


def test_images_the_csv_does_not_name_are_unlabelled(tmp_path: Path) -> None:
    _csv(_folder(tmp_path), {"4.png": 1})
    data = read(tmp_path, "label")
    assert dict(zip(data.ids, data.labels, strict=True))["4.png"] == 1  # type: ignore[arg-type]
    assert len(data) == 6
    assert data.notes == ("5 images are not in labels.csv and taken as unlabelled",)


@pytest.mark.parametrize("spelling", [("labelled", "unlabelled"), ("labeled", "unlabeled"), ("Positive", "unlabelled")])
def test_labels_from_subfolders(spelling: tuple[str, str], tmp_path: Path) -> None:
    _folder(tmp_path / spelling[0], 2)
    _folder(tmp_path / spelling[1] / "deeper", 3)
    data = read(tmp_path)
    assert data.labels is not None
    assert sorted(data.labels.tolist()) == [0, 0, 0, 1, 1]


def test_a_subfolder_of_negatives(tmp_path: Path) -> None:
    for name in ("labelled", "unlabelled", "negative"):
        _folder(tmp_path / name, 2)
    assert sorted(read(tmp_path).labels.tolist()) == [-1, -1, 0, 0, 1, 1]  # type: ignore[union-attr]


def test_a_subfolder_of_negatives_without_unlabelled_images_is_refused(tmp_path: Path) -> None:
    for name in ("positive", "negative"):
        _folder(tmp_path / name, 2)
    with pytest.raises(InputError, match=r"no unlabelled row among 4; PU learning needs .* images in unlabelled/"):
        read(tmp_path)
    assert len(stream(tmp_path).labels) == 4  # type: ignore[arg-type]  # they can be scored


def test_without_labels_a_folder_is_there_to_be_scored(tmp_path: Path) -> None:
    assert read(_folder(tmp_path)).labels is None


def test_mixed_sizes_and_modes_come_to_one_form(tmp_path: Path) -> None:
    _picture(tmp_path / "a.png", 0, (30, 20))
    _picture(tmp_path / "b.jpg", 1, (50, 50), "L")
    Image.fromarray(np.zeros((9, 9, 4), dtype=np.uint8), "RGBA").save(tmp_path / "c.png")
    assert read(tmp_path).load().shape == (3, 3, 64, 64)
    assert read(tmp_path, image_size=32).load().shape == (3, 3, 32, 32)


def test_one_colour_image_far_down_the_list_keeps_the_colours(tmp_path: Path) -> None:
    """Only headers of 256 images are read: not of the first ones, which may all be scans in labelled/."""
    for k in range(300):
        _picture(tmp_path / "labelled" / f"{k}.png", k, (4, 4), "L")
        _picture(tmp_path / "unlabelled" / f"{k}.png", k, (5, 4))
    assert read(tmp_path).features.form_shape == (3, 64, 64)


def test_what_is_drawn_black_on_transparent_ground_is_seen(tmp_path: Path) -> None:
    drawn = np.zeros((8, 8, 4), dtype=np.uint8)  # black below the transparent parts, too
    drawn[:, :4, 3] = 255
    Image.fromarray(drawn, "RGBA").save(tmp_path / "a.png")
    pixels = read(tmp_path).load()[0]
    assert pixels[:, :, :4].max() == 0
    assert pixels[:, :, 4:].min() == 255


@pytest.mark.parametrize("form", ["pgm", "png", "tif"])
def test_dark_images_of_sixteen_bits_stay_dark(form: str, tmp_path: Path) -> None:
    """Pillow reads those of PGM as 32 bits, of which each image was brought to its own range."""
    for name, value in (("dark", 6_425), ("light", 64_250)):
        values = np.full((8, 8), value, dtype=np.uint16)
        path = tmp_path / f"{name}.{form}"
        if form == "pgm":
            path.write_bytes(b"P5\n8 8\n65535\n" + values.astype(">u2").tobytes())
        else:
            Image.fromarray(values).save(path)
    dark, light = read(tmp_path).load()
    assert (int(dark.max()), int(light.max())) == (25, 250)


def test_grey_folders_stay_grey_and_deep_grey_is_scaled(tmp_path: Path) -> None:
    deep = np.linspace(0, 65_535, 64).reshape(8, 8).astype(np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    _picture(tmp_path / "plain.png", 1, (8, 8), "L")
    pixels = read(tmp_path).load()
    assert pixels.shape == (2, 1, 8, 8)
    assert pixels[0, 0, 0, 0] == 0
    assert pixels[0, 0, -1, -1] == 255
    assert 120 <= pixels[0].mean() <= 135  # not clipped to white


@pytest.mark.parametrize(("top", "told"), [(4_095, True), (16_383, False), (65_535, False), (0, False)])
@pytest.mark.parametrize("form", ["tif", "png", "pgm"])
def test_deep_grey_that_fills_only_twelve_bits_is_told(top: int, told: bool, form: str, tmp_path: Path) -> None:
    """A camera's 12 bits in 16: such an image is read as nearly black, 0 to 15."""
    _picture(tmp_path / "plain.png", 1, (8, 8), "L")
    (tmp_path / "spoilt.tif").write_bytes(b"II*")
    for k in range(2):
        deep = np.linspace(0, top, 64).round().reshape(8, 8).astype(np.uint16)
        if form == "pgm":
            (tmp_path / f"deep{k}.pgm").write_bytes(b"P5\n8 8\n65535\n" + deep.astype(">u2").tobytes())
        else:
            Image.fromarray(deep).save(tmp_path / f"deep{k}.{form}")
    found = [finding for finding in check(read(tmp_path)).findings if finding.code == "dark_images"]
    assert len(found) == told
    if told:
        assert "largest value in those looked at is 4,095 of 65,535" in found[0].message
        assert "(0 to 15 of 255)" in found[0].message


@pytest.mark.parametrize(
    ("dtype", "low", "high", "told"),
    [("float32", 0, 1, False), ("float32", 0, 900, True), ("float32", -1, 1, True), ("int32", 0, 70_000, True)],
)
def test_images_that_have_a_scale_each_are_told(
    dtype: str, low: float, high: float, told: bool, tmp_path: Path
) -> None:
    """A dark image looks like a light one then."""
    _picture(tmp_path / "plain.png", 1, (8, 8), "L")
    values = np.linspace(low, high, 64).reshape(8, 8).astype(dtype)
    if dtype == "float32":
        values[0, 0] = np.nan
    Image.fromarray(values).save(tmp_path / "deep.tif")
    found = [finding for finding in check(read(tmp_path)).findings if finding.code == "own_scales"]
    assert len(found) == told
    assert not told or "each is scaled by its own largest value" in found[0].message


def test_kept_embeddings_are_those_of_this_decoding(tmp_path: Path) -> None:
    """If this fails because the pixels are others, raise DECODING: kept embeddings would be those of the old ones."""
    pixels = np.arange(256, dtype=np.uint8).reshape(8, 8, 4)
    Image.fromarray(pixels).save(tmp_path / "alpha.png")
    Image.fromarray(pixels[..., 0].astype(np.uint16) * 257).save(tmp_path / "deep.png")
    Image.fromarray(pixels[..., 1].astype(np.float32) * 3).save(tmp_path / "float.tif")
    names = sorted(path.name for path in tmp_path.iterdir())
    found = [image for _, chunk in decoded_images(tmp_path, names, Square(8, 3)) for image in chunk]
    seen = hashlib.sha256(b"".join(image.pixels.tobytes() for image in found if image.pixels is not None))
    assert (DECODING, seen.hexdigest()[:16]) == (b"2", "a03fd2251e7e59aa")
    assert found[0].key != hashlib.blake2b((tmp_path / "alpha.png").read_bytes(), digest_size=16).digest()


@pytest.mark.parametrize("missing", [np.nan, np.inf, -np.inf])
def test_a_pixel_without_data_is_black_and_changes_no_other(missing: float, tmp_path: Path) -> None:
    """Maps and scans mark so what was not measured; the whole image was black."""
    deep = np.linspace(0, 3, 64, dtype=np.float32).reshape(8, 8)
    Image.fromarray(deep).save(tmp_path / "whole.tif")
    deep[2, 3] = missing
    Image.fromarray(deep).save(tmp_path / "gap.tif")
    gap, whole = image_files.image_files(tmp_path, ["gap.tif", "whole.tif"], 8).load()
    whole[0, 2, 3] = 0
    assert np.array_equal(gap, whole)
    assert gap.max() == 255


def test_turned_photographs_are_set_upright(tmp_path: Path) -> None:
    picture = Image.new("RGB", (16, 16))
    picture.paste((255, 0, 0), (0, 0, 16, 4))  # a red band on top
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    picture.save(tmp_path / "a.png", exif=exif)
    assert read(tmp_path).load()[0, 0, -1].mean() > 200


def test_deep_grey_is_set_upright_too(tmp_path: Path) -> None:
    values = np.zeros((8, 8), dtype=np.uint16)
    values[:2] = 65_535
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    Image.fromarray(values).save(tmp_path / "a.png", exif=exif)
    assert read(tmp_path).load()[0, 0, -1].min() == 255


def test_a_folder_streams_in_batches(tmp_path: Path) -> None:
    rows = stream(_folder(tmp_path), batch_rows=4)
    shapes = [batch.load().shape for batch in rows.batches()]
    assert shapes == [(4, 3, 16, 16), (2, 3, 16, 16)]


def test_the_check_names_unreadable_images_and_equal_pictures(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _picture(tmp_path / "labelled" / f"{name}.png", ord(name))
    _picture(tmp_path / "unlabelled" / "same.png", ord("a"))
    _picture(tmp_path / "unlabelled" / "other.png", 7)
    (tmp_path / "unlabelled" / "broken.png").write_bytes(b"\x89PNG no picture")
    (tmp_path / "unlabelled" / "empty.jpg").write_bytes(b"")
    whole = (tmp_path / "unlabelled" / "other.png").read_bytes()
    (tmp_path / "unlabelled" / "cut.png").write_bytes(whole[: len(whole) // 2])
    data = read(tmp_path)
    report = check(data)
    unreadable = next(finding for finding in report.findings if finding.code == "unreadable_images")
    assert unreadable.severity == "error"
    assert {name.split(" ")[0] for name in unreadable.where} == {
        "unlabelled/broken.png",
        "unlabelled/empty.jpg",
        "unlabelled/cut.png",
    }
    assert report.duplicates == 1
    with pytest.raises(InputError, match=r"3 images cannot be read: unlabelled/broken\.png"):
        data.load()
    with pytest.raises(InputError, match="3 images cannot be read") as told:
        report.raise_for_errors()
    assert str(told.value).count(f"{tmp_path}: ") == 1


def test_a_decompression_bomb_is_unreadable_not_fatal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _folder(tmp_path, 1)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert [finding.code for finding in check(read(tmp_path)).findings if finding.severity == "error"] == [
        "unreadable_images"
    ]


# --- what is refused ----------------------------------------------------------------------------------------------


def test_a_file_too_large_for_a_picture_is_not_taken_into_memory(tmp_path: Path) -> None:
    with (_folder(tmp_path) / "6.png").open("wb") as file:
        file.truncate(1 << 40)  # without blocks on disk
    files = image_files.image_files(tmp_path, [f"{k}.png" for k in range(7)])
    assert list(files.unreadable()) == [6]
    assert "bytes are more than" in files.unreadable()[6]


@pytest.mark.parametrize("error", [TypeError, KeyError, ZeroDivisionError, struct.error, IndexError])
def test_whatever_a_reader_of_pictures_raises_makes_one_unreadable_picture(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error("spoilt")

    _folder(tmp_path, 2)
    files = image_files.image_files(tmp_path, ["0.png", "1.png"])
    monkeypatch.setattr("punce.data.pictures.eight_bits", fails)
    assert list(files.unreadable()) == [0, 1]
    assert "spoilt" in files.unreadable()[0]


def test_pipes_and_devices_among_pictures_are_not_read(tmp_path: Path) -> None:
    _folder(tmp_path, 3)
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "endless.png").symlink_to("/dev/zero")
    (tmp_path / "loop.png").symlink_to("loop.png")
    (tmp_path / "deeper").symlink_to(".")
    assert read(tmp_path).ids.tolist() == ["0.png", "1.png", "2.png"]


def test_what_programs_keep_in_hidden_folders_is_no_row(tmp_path: Path) -> None:
    _folder(tmp_path / "labelled", 2)
    _folder(tmp_path / "unlabelled", 3)
    _folder(tmp_path / "unlabelled" / ".thumbnails", 4)
    _folder(tmp_path / ".ipynb_checkpoints", 4)
    assert len(read(tmp_path)) == 5


def test_images_that_are_not_read_and_linked_folders_are_told(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "pictures", 2)
    for name in ("a.HEIC", "b.heic", "c.svg", "notes.txt"):
        (folder / name).write_text("")
    Image.new("RGB", (16, 16)).save(folder / "d.jfif", "JPEG")
    (folder / "more").symlink_to(_folder(tmp_path / "elsewhere", 3))
    data = read(folder)
    assert data.ids.tolist() == ["0.png", "1.png", "d.jfif"]
    kinds, links = data.notes
    assert kinds.startswith("3 files are images of kinds that are not read and left out (2 .heic, 1 .svg)")
    assert links.startswith("1 link to a folder is not followed, first ['more']")


def test_a_linked_folder_of_labelled_images_is_refused(tmp_path: Path) -> None:
    _folder(tmp_path / "pictures" / "unlabelled", 3)
    (tmp_path / "pictures" / "labelled").symlink_to(_folder(tmp_path / "elsewhere", 3))
    with pytest.raises(InputError, match="labelled is a link, and links to folders are not followed"):
        read(tmp_path / "pictures")


def test_names_are_the_same_however_their_letters_are_composed(tmp_path: Path) -> None:
    """Archives made on a Mac hold u and two dots where a table of labels has ü."""
    _picture(tmp_path / "u\u0308.png", 0)
    _picture(tmp_path / "b.png", 1)
    _csv(tmp_path, {"\u00fc.png": 1, "b.png": 0})
    data = read(tmp_path, "label")
    assert dict(zip(data.ids, data.labels, strict=True)) == {"u\u0308.png": 1, "b.png": 0}  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform != "linux", reason="the names of files are any bytes on Linux alone")
def test_names_of_images_that_are_not_utf8_are_told(tmp_path: Path) -> None:
    _picture(tmp_path / "a.png", 0)
    (tmp_path / "a.png").rename(tmp_path / os.fsdecode(b"caf\xe9.png"))
    with pytest.raises(InputError, match=r"1 image has a name that is not UTF-8, first \['caf\\udce9\.png'\]; rename"):
        read(tmp_path)


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(InputError, match=r"holds no image files .* and no \.parquet files"):
        read(tmp_path)
    with pytest.raises(InputError, match=r"without \.parquet files.*kind='table' needs a file, or a folder of Parquet"):
        read(tmp_path, kind="table")


def test_a_label_without_a_csv_says_how_to_give_labels(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no labels: put a CSV with the columns file,label"):
        read(_folder(tmp_path), "label")


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        ({"0.png": 1, "gone.png": 0}, "file,label", r"names 1 file that is no image.*gone\.png"),
        ({"../secret.png": 1}, "file,label", "no image in"),
        ({"0.png": 1, "": 0}, "file,label", "1 line without a file name in the column 'file'"),
        ({"0.png": 1, "./0.png": 0}, "file,label", r"names files twice: \['0\.png'\]"),
        ({"0.png": 1}, "picture,label", "no column for the file names"),
        ({"0.png": 1}, "file,labl", "no column 'label'; did you mean 'labl'"),
        ({"0.png": "cat", "1.png": "dog"}, "file,label", "without a known meaning"),
    ],
)
def test_bad_tables_of_labels_are_refused(rows: dict[str, object], header: str, message: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "pictures")
    _picture(tmp_path / "secret.png", 9)
    _csv(folder, rows, header)
    with pytest.raises(InputError, match=message):
        read(folder, "label")


def test_images_to_score_do_not_need_the_table_beside_them(tmp_path: Path) -> None:
    """It may be about something else, or name files that were moved away; labels are not asked for."""
    _csv(_folder(tmp_path, 2), {"gone.png": 1, "0.png": 0}, "name,price")
    data = stream(tmp_path)
    (batch,) = data.batches()
    assert batch.ids.tolist() == ["0.png", "1.png"]
    assert data.notes[0].startswith("labels.csv is not used: ")
    assert batch.notes == ()  # punce predict said it twice
    with pytest.raises(InputError, match="names 1 file that is no image"):
        read(tmp_path, labels=tmp_path / "labels.csv", label="price")


def test_several_csv_files_need_a_name(tmp_path: Path) -> None:
    table = _csv(_folder(tmp_path), {"0.png": 1})
    (tmp_path / "other.csv").write_text("file,label\n")
    with pytest.raises(InputError, match="several CSV files"):
        read(tmp_path, "label")
    assert read(tmp_path, "label", labels=table).labels.sum() == 1  # type: ignore[union-attr]


def test_pictures_outside_the_subfolders_are_refused(tmp_path: Path) -> None:
    _folder(tmp_path / "labelled", 1)
    _folder(tmp_path / "unlabelled", 1)
    _picture(tmp_path / "stray.png", 3)
    with pytest.raises(InputError, match=r"1 image lies outside.*stray\.png"):
        read(tmp_path)


def test_other_kinds_and_tiny_sizes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="kind='text' needs a file"):
        read(_folder(tmp_path), kind="text")
    with pytest.raises(InputError, match="at least 4 pixels"):
        read(tmp_path, image_size=2)
    with pytest.raises(InputError, match="at most 1,024 pixels"):
        read(tmp_path, image_size=500_000)


def test_a_label_column_beside_subfolders_has_no_effect(tmp_path: Path) -> None:
    for name in ("labelled", "unlabelled"):
        _folder(tmp_path / name, 2)
    with pytest.raises(InputError, match="--label has no effect"):
        read(tmp_path, "fraud")
    with pytest.raises(InputError, match=r"--positive has no effect .* columns file,label beside"):
        read(tmp_path, positive="fraud")


def test_a_csv_that_is_not_about_labels_changes_nothing(tmp_path: Path) -> None:
    _folder(tmp_path / "labelled", 2)
    _folder(tmp_path / "unlabelled", 3)
    names = [f"labelled/{k}.png" for k in range(2)] + [f"unlabelled/{k}.png" for k in range(3)]
    for rows, header in ((dict.fromkeys(names, "a"), "file,camera"), ({"a": 2}, "camera,price")):
        _csv(tmp_path, rows, header)
        data = read(tmp_path)
        assert data.labels is not None
        assert dict(zip(data.ids, data.labels.tolist(), strict=True)) == {name: int(name[0] == "l") for name in names}
    _csv(_folder(tmp_path / "new", 3), {"a": 2}, "camera,price")
    assert len(stream(tmp_path / "new").labels or ()) == 0
    assert len(read(tmp_path / "new")) == 3


def test_a_table_of_labels_whose_column_is_not_named(tmp_path: Path) -> None:
    _folder(tmp_path / "pictures")
    table = _csv(tmp_path, {f"{k}.png": int(k < 2) for k in range(6)}, "file,fraud")
    with pytest.raises(InputError, match=r"labels.csv has the columns \['file', 'fraud'\]; name the one .*--label"):
        read(tmp_path / "pictures", labels=table)
    assert read(tmp_path / "pictures", "fraud", labels=table).labels is not None


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ((), r"name a table of files and labels \(--labels\)"),
        (("filename,is_cat",), r"name the column of labels of labels0\.csv with --label \(it has: filename, is_cat\)"),
        (("picture,label",), r"labels0\.csv needs a column called file .*\(it has: picture, label\)"),
        (("file,label", "file,label"), r"several CSV files \(labels0\.csv, labels1\.csv\): name the one .*--labels"),
    ],
)
def test_how_to_label_speaks_of_the_tables_that_are_there(
    headers: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    _folder(tmp_path)
    for number, header in enumerate(headers):
        (tmp_path / f"labels{number}.csv").write_text(f"{header}\n0.png,1\n")
    with pytest.raises(InputError, match=f"no labels; .*{message}"):
        read_and_check(DataOptions(str(tmp_path), None), ModelOptions(), RunOptions(), lambda *_: None)


def test_many_pictures_are_kept_in_a_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = read(_folder(tmp_path / "pictures")).load()
    monkeypatch.setattr(image_files, "_MOST_IN_MEMORY", 1_000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    files = read(tmp_path / "pictures").features
    mapped, some = files.load(), files[[4, 1]].load()
    assert isinstance(mapped, np.memmap)
    assert isinstance(some, np.memmap)
    assert np.array_equal(mapped, in_memory)
    assert np.array_equal(some, in_memory[[4, 1]])
    assert [path.name for path in tmp_path.iterdir()] == ["pictures"]  # nothing is left behind by name


@pytest.mark.faults
def test_a_disk_without_room_for_the_pictures_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(image_files, "_MOST_IN_MEMORY", 1_000)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(WriteError, match=r"no room for 0\.0 GB in .* for the decoded images .*No space left"):
        read(_folder(tmp_path)).load()


def test_decoding_of_many_pictures_shows_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    read(_folder(tmp_path)).features.look(keep=True, progress=True)
    assert capfd.readouterr().err == ""
    monkeypatch.setattr("punce.data.pictures.CHUNK", 1)
    read(tmp_path).features.look(keep=True, progress=True)
    assert "decode: 6/6 steps" in capfd.readouterr().err

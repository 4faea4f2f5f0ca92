from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import os
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from punce.data import DATASETS, MissingFilesError, load, simulate_pu
from punce.datasets.benchmarks import (
    cache_directory,
    data_directories,
    download_directory,
    load_benchmark,
    locate,
    verify,
)
from punce.datasets.catalogue import Archive, Benchmark, DataFile
from punce.datasets.dataset import fixed_split
from punce.datasets.uci import _part
from punce.errors import InputError
from tests.serving import Server, everything_in, real

# --- real files ---------------------------------------------------------------------------------------------------


def test_real_mnist_counts_and_priors() -> None:
    mnist = real("mnist")
    assert mnist.train.X.shape == (60_000, 1, 28, 28)
    assert mnist.test.X.shape == (10_000, 1, 28, 28)
    assert mnist.train.X.dtype == np.uint8
    assert mnist.train.X.flags.writeable  # torch.from_numpy warns otherwise
    assert (mnist.train.n_positive, mnist.test.n_positive) == (30_508, 5_074)
    assert mnist.train.X.mean() == pytest.approx(33.318421, abs=1e-5)  # the published mean .1307 × 255
    assert simulate_pu(mnist.train.y_true, 1000).prior == 29_508 / 59_000


def test_real_mnist_with_even_digits_positive() -> None:
    real("mnist")
    even = load("mnist", positive=(0, 2, 4, 6, 8), download=False)
    assert even.train.n_positive == 60_000 - 30_508
    assert even.positive == "even digits {0, 2, 4, 6, 8}"


def test_real_cifar10_counts_priors_and_published_channel_means() -> None:
    cifar = real("cifar10")
    assert cifar.train.X.shape == (50_000, 3, 32, 32)
    assert cifar.train.X.dtype == np.uint8
    assert (cifar.train.n_positive, cifar.train.n_negative) == (20_000, 30_000)
    assert (cifar.test.n_positive, cifar.test.n_negative) == (4_000, 6_000)
    means = cifar.train.X.mean(axis=(0, 2, 3))
    assert means == pytest.approx([125.30691805, 122.95039414, 113.86538318], abs=1e-6)
    priors = [simulate_pu(cifar.train.y_true, n).prior for n in (1_000, 3_000, 10_000)]
    assert np.round(priors, 4).tolist() == [0.3878, 0.3617, 0.25]
    assert simulate_pu(cifar.train.y_true, 1_000, "case_control").prior == 0.4


@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("sst2", (67_349, 37_569), (872, 444)),
        ("sst2_sentence", (6_920, 3_610), (1_821, 909)),
        ("sms_spam", (4_460, 594), (1_114, 153)),
        ("spambase", (3_680, 1_450), (921, 363)),
        ("mushroom", (6_499, 3_133), (1_625, 783)),
        ("banknote", (1_098, 488), (274, 122)),
        ("landsat", (4_435, 1_923), (2_000, 918)),
        ("pageblocks", (4_377, 447), (1_096, 113)),
        ("shuttle", (43_500, 9_392), (14_500, 3_022)),
    ],
)
def test_real_tables_and_texts_have_their_counts(name: str, train: tuple[int, int], test: tuple[int, int]) -> None:
    dataset = real(name)
    assert (len(dataset.train), dataset.train.n_positive) == train
    assert (len(dataset.test), dataset.test.n_positive) == test
    assert set(verify(DATASETS[name], locate(DATASETS[name], download=False)).values()) == {True}


def test_real_mushrooms_are_categories_with_missing_values() -> None:
    X = real("mushroom").train.X
    assert {str(dtype) for dtype in X.dtypes} == {"category"}
    assert X.columns[X.isna().any()].tolist() == ["stalk-root"]


@pytest.mark.parametrize("text", [object, "str"])  # of pandas 2 and of pandas 3
def test_text_of_a_table_becomes_categories(text: Any) -> None:
    table = pd.DataFrame({"odor": pd.Series(["a", "b"], dtype=text), "rings": [1, 2], "class": ["p", "e"]})
    assert [str(dtype) for dtype in _part(table, ("p",)).X.dtypes] == ["category", "int64"]


def test_real_sst2_sentence_has_its_validation_part() -> None:
    assert len(load("sst2_sentence", split="validation", download=False) if real("sst2_sentence") else []) == 872


# --- digits and the fixed split -----------------------------------------------------------------------------------


def test_digits_are_always_there_and_always_split_alike() -> None:
    digits = load("digits")
    assert digits.kind == "image"
    assert digits.train.X.shape == (1_438, 1, 8, 8)
    assert digits.train.X.dtype == np.uint8
    assert digits.train.X.max() == 255
    assert (len(digits.test), digits.test.n_positive) == (359, 181)
    pinned = hashlib.sha256(digits.train.X.tobytes() + digits.train.y_true.tobytes()).hexdigest()
    assert pinned.startswith(DIGITS_SHA256)


DIGITS_SHA256 = "d652fc06f851cd0a"


def test_the_fixed_split_keeps_shares_and_loses_no_row() -> None:
    strata = np.repeat([0, 1, 2], [500, 300, 10])
    train, test = fixed_split(strata)
    assert sorted([*train, *test]) == list(range(810))
    assert np.bincount(strata[test]).tolist() == [100, 60, 2]


def test_one_part_can_be_asked_for() -> None:
    assert len(load("digits", split="test")) == 359
    with pytest.raises(InputError, match=r"no part 'validation'; it has 'train', 'test'$"):
        load("digits", split="validation")


def test_the_parts_that_there_are_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    digits = load("digits")
    monkeypatch.setattr(
        "punce.datasets.load_benchmark", lambda *_, **__: dataclasses.replace(digits, validation=digits.test)
    )
    with pytest.raises(InputError, match=r"no part 'dev'; it has 'train', 'test', 'validation'$"):
        load("digits", split="dev")  # type: ignore[call-overload]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'minst'.*digits, mnist"):
        load("minst")


@pytest.mark.parametrize("positive", [(), (77,), tuple(range(10)), "odd"])
def test_a_positive_class_that_splits_nothing_is_refused(positive: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="positive"):
        load("digits", positive=positive)


@pytest.mark.parametrize("name", ["digits", "mnist", "fashion_mnist", "cifar10"])
@pytest.mark.parametrize("unknown", [10, -1, "cat", 1.5])
def test_a_class_that_the_set_does_not_have_is_refused(name: str, unknown: object) -> None:
    with pytest.raises(InputError, match=f"there is no class {unknown!r}; classes are 0 to 9"):
        DATASETS[name].describe((1, unknown))


def test_one_number_is_no_collection_of_classes() -> None:
    with pytest.raises(InputError, match=r"positive must be a collection of classes such as \(1, 3, 5\), got 5"):
        load("digits", positive=5)  # type: ignore[call-overload]


@pytest.mark.parametrize("positive", [{1, 3}, np.array([1, 3]), [1.0, 3.0]], ids=str)
def test_any_collection_names_the_positive_classes(positive: Collection[Any]) -> None:
    assert load("digits", positive=positive).train.n_positive == load("digits", positive=(1, 3)).train.n_positive


def test_no_test_message_was_seen_in_training() -> None:
    data = real("sms_spam")
    assert not set(data.train.X) & set(data.test.X)
    assert len({*data.train.X, *data.test.X}) == 5_171


def test_text_sets_refuse_another_positive_class() -> None:
    real("sms_spam")
    with pytest.raises(InputError, match="fixed positive"):
        load("sms_spam", positive=("ham",), download=False)


# --- where files are looked for -----------------------------------------------------------------------------------


def _idx(values: np.ndarray) -> bytes:
    return struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def _small_mnist(folder: Path, form: Callable[[str, bytes], tuple[str, bytes]]) -> None:
    folder.mkdir(parents=True)
    for part, n in (("train", 20), ("t10k", 10)):
        images = np.arange(n * 16, dtype=np.uint8).reshape(n, 4, 4)
        for name, values in (("images-idx3", images), ("labels-idx1", np.arange(n, dtype=np.uint8) % 10)):
            file, body = form(f"{part}-{name}-ubyte", _idx(values))
            (folder / file).write_bytes(body)


def _gzipped(name: str, body: bytes) -> tuple[str, bytes]:
    return name + ".gz", gzip.compress(body)


def _dotted(name: str, body: bytes) -> tuple[str, bytes]:
    return name.replace("-idx", ".idx"), body


@pytest.mark.parametrize(
    ("folder", "form"),
    [("mnist", _gzipped), ("MNIST/raw", lambda name, body: (name, body)), ("mnist", _dotted)],
)
def test_mnist_is_read_in_every_common_layout(
    folder: str, form: Callable[[str, bytes], tuple[str, bytes]], tmp_path: Path
) -> None:
    _small_mnist(tmp_path / folder, form)
    mnist = load("mnist", root=tmp_path, download=False)
    assert mnist.train.X.shape == (20, 1, 4, 4)
    assert mnist.train.y_true.tolist() == [0, 1] * 10


def test_punce_data_may_name_several_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _small_mnist(tmp_path / "second" / "mnist", _gzipped)
    monkeypatch.setenv("PUNCE_DATA", os.pathsep.join([str(tmp_path / "first"), str(tmp_path / "second")]))
    assert len(load("mnist", download=False).train) == 20


def test_search_order_and_download_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PUNCE_DATA", str(tmp_path / "a"))
    assert cache_directory() == tmp_path / "cache" / "punce"
    assert data_directories() == [tmp_path / "a", tmp_path / "cache" / "punce"]
    assert data_directories("here") == [Path("here")]
    assert download_directory() == tmp_path / "a"
    monkeypatch.delenv("PUNCE_DATA")
    assert download_directory() == tmp_path / "cache" / "punce"


def test_a_file_in_the_way_of_the_data_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="no data directory can be written to"):
        download_directory(tmp_path / "file" / "deeper")


def test_missing_files_without_downloads_say_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(MissingFilesError) as error:
        load("landsat", root=tmp_path, download=False)
    message = str(error.value)
    assert "2 of 2 files are missing (downloads are off)" in message
    assert f"Put sat.trn, sat.tst into {tmp_path / 'uci/landsat'}" in message
    assert "https://archive.ics.uci.edu/" in message
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "starts with nothing"),
        (b"\0\0\x08\x01\0\0\0\x05abc", r"shape \(5,\) but holds 3 bytes"),
        (b"GIF89a", "not an IDX file"),
        (_idx(np.zeros(7, dtype=np.uint8)), "20 images, .* 7 labels"),
        (_idx(np.zeros((2, 2), dtype=np.uint8)), "images and labels"),
    ],
)
@pytest.mark.faults
def test_damaged_idx_files_are_named(body: bytes, message: str, tmp_path: Path) -> None:
    _small_mnist(tmp_path / "mnist", lambda name, body: (name, body))
    (tmp_path / "mnist" / "train-labels-idx1-ubyte").write_bytes(body)
    with pytest.raises(InputError, match=message) as error:
        load("mnist", root=tmp_path, download=False)
    assert "train-labels-idx1-ubyte" in str(error.value)


@pytest.mark.faults
def test_a_cut_off_gzip_file_is_named(tmp_path: Path) -> None:
    _small_mnist(tmp_path / "mnist", _gzipped)
    path = tmp_path / "mnist" / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte\.gz cannot be read"):
        load("mnist", root=tmp_path, download=False)


@pytest.mark.faults
def test_damaged_cifar_and_table_and_text_files_are_named(tmp_path: Path) -> None:
    cifar = tmp_path / "cifar-10-batches-bin"
    cifar.mkdir()
    for file in DATASETS["cifar10"].files:
        (cifar / file.name).write_bytes(b"short")
    with pytest.raises(InputError, match=r"data_batch_1\.bin holds 5 bytes instead of 30,730,000"):
        load("cifar10", root=tmp_path)
    (tmp_path / "banknote").mkdir()
    (tmp_path / "banknote" / "banknote_authentication.csv").write_text("1,2,0\n3,4,1\n")
    with pytest.raises(InputError, match="has 3 columns, expected 5"):
        load("banknote", root=tmp_path)
    (tmp_path / "sms_spam").mkdir()
    (tmp_path / "sms_spam" / "SMSSpamCollection").write_text("ham\thello\neggs\tbuy\n")
    with pytest.raises(InputError, match="row 1: class 'eggs'"):
        load("sms_spam", root=tmp_path)
    (tmp_path / "SST-2").mkdir()
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / "SST-2" / name).write_text("text\tclass\n")
    with pytest.raises(InputError, match="must start with the header"):
        load("sst2", root=tmp_path)
    (tmp_path / "SST-2" / "train.tsv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read as UTF-8"):
        load("sst2", root=tmp_path)


# --- fetching whole sets from a local server ----------------------------------------------------------------------


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


ROWS = b"".join(b"%d,%d,%d,%d,%d\n" % (k, k, k, k, k % 2) for k in range(40))


def _from_files(server: Server) -> Benchmark:
    file = DataFile("data_banknote_authentication.txt", _sha256(ROWS), (server.serve("/rows", ROWS),))
    return dataclasses.replace(DATASETS["banknote"], files=(file,))


def _from_archive(server: Server, body: bytes, sha256: str | None = None, pinned: bytes = ROWS) -> Benchmark:
    file = DataFile("data_banknote_authentication.txt", _sha256(pinned))
    archive = Archive((server.serve("/set.tar.gz", body),), sha256 or _sha256(body), "top")
    return dataclasses.replace(DATASETS["banknote"], files=(file,), archive=archive)


def _packed(*members: tuple[str, bytes], link: str | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, body in members:
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
        if link:
            info = tarfile.TarInfo(link)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(info)
    return buffer.getvalue()


GOOD = ("top/data_banknote_authentication.txt", ROWS)


def test_missing_files_are_fetched_once_and_then_found(server: Server, tmp_path: Path) -> None:
    benchmark = _from_files(server)
    assert len(load_benchmark(benchmark, tmp_path).train) == 32
    assert len(load_benchmark(benchmark, tmp_path).train) == 32
    assert server.hits == ["/rows"]
    assert everything_in(tmp_path) == ["uci", "uci/banknote", "uci/banknote/data_banknote_authentication.txt"]


def test_an_archive_is_fetched_unpacked_and_removed(server: Server, tmp_path: Path) -> None:
    benchmark = _from_archive(server, _packed(GOOD, ("top/readme.html", b"hello")))
    assert len(load_benchmark(benchmark, tmp_path).train) == 32
    assert everything_in(tmp_path / "uci") == ["banknote", "banknote/data_banknote_authentication.txt"]
    mode = (tmp_path / "uci" / "banknote").stat().st_mode & 0o777
    assert mode == 0o777 & ~_umask()  # not a private temporary folder


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_an_archive_completes_a_folder_that_exists(server: Server, tmp_path: Path) -> None:
    (tmp_path / "uci" / "banknote").mkdir(parents=True)
    (tmp_path / "uci" / "banknote" / "notes.txt").write_text("mine")
    load_benchmark(_from_archive(server, _packed(GOOD)), tmp_path)
    assert everything_in(tmp_path / "uci" / "banknote") == ["data_banknote_authentication.txt", "notes.txt"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (_packed(("../../evil", b"evil")), "the archive holds no file top/data_banknote"),
        (_packed(link="top/data_banknote_authentication.txt"), "the archive holds no file top/data_banknote"),
        (_packed(("top/data_banknote_authentication.txt", b"1,2")), "wrong content of data_banknote"),
        (b"no archive", "cannot be unpacked"),
    ],
)
def test_hostile_and_wrong_archives_leave_nothing_behind(
    body: bytes, message: str, server: Server, tmp_path: Path
) -> None:
    root = tmp_path / "deep" / "root"
    with pytest.raises(InputError, match=message):
        load_benchmark(_from_archive(server, body), root)
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize("fault", ["cut", "hash"])
def test_failed_downloads_leave_nothing_behind_and_say_what_to_do(fault: str, server: Server, tmp_path: Path) -> None:
    body = _packed(GOOD)
    benchmark = _from_archive(server, body, sha256="0" * 64 if fault == "hash" else None)
    if fault == "cut":
        server.serve("/set.tar.gz", body, sent=len(body) // 2)
    with pytest.raises(MissingFilesError, match=r"Put data_banknote_authentication\.txt into"):
        load_benchmark(benchmark, tmp_path / "root")
    assert everything_in(tmp_path) == []


def test_a_compressed_file_is_unpacked_and_its_content_pinned(server: Server, tmp_path: Path) -> None:
    # ROWS of single characters fit codes of 9 bits without any table entry being used
    bits = sum(byte << (9 * k) for k, byte in enumerate(ROWS[:60]))
    packed = b"\x1f\x9d\x89" + bits.to_bytes((9 * 60 + 7) // 8, "little")
    file = DataFile("x.data", _sha256(ROWS[:60]), (server.serve("/x.Z", packed),), compressed=True)
    benchmark = dataclasses.replace(DATASETS["banknote"], files=(file,))
    assert locate(benchmark, tmp_path)["x.data"].read_bytes() == ROWS[:60]
    broken = dataclasses.replace(file, name="y.data", urls=(server.serve("/y.Z", b"plain"),))
    with pytest.raises(MissingFilesError, match=r"the \.Z file cannot be unpacked: .*not in gzip format"):
        locate(dataclasses.replace(benchmark, files=(broken,)), tmp_path)


def test_without_gzip_a_compressed_file_is_to_be_unpacked_by_hand(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    file = DataFile("x.data", _sha256(ROWS), (server.serve("/x.Z", b"packed"),), compressed=True)
    with pytest.raises(MissingFilesError, match=r"there is no gzip.*Put x\.data into .*\(unpack it with: gzip -d\)"):
        locate(dataclasses.replace(DATASETS["banknote"], files=(file,)), tmp_path)


def test_verify_tells_a_changed_file_from_the_pinned_one(server: Server, tmp_path: Path) -> None:
    benchmark = _from_files(server)
    found = locate(benchmark, tmp_path)
    assert verify(benchmark, found) == {"data_banknote_authentication.txt": True}
    found["data_banknote_authentication.txt"].write_bytes(ROWS + b"1,1,1,1,1\n")
    assert verify(benchmark, found) == {"data_banknote_authentication.txt": False}


def test_importing_the_data_package_does_not_import_torch() -> None:
    code = "import sys, punce.data; sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_every_set_pins_its_files_and_has_an_address() -> None:
    for name, benchmark in DATASETS.items():
        assert benchmark.name == name
        for file in benchmark.files:
            assert len(file.sha256) == 64, (name, file.name)
            assert file.urls or benchmark.archive, (name, file.name)

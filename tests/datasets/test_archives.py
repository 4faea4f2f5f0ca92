from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from punce.datasets.catalogue import DataFile
from punce.datasets.download import DownloadError, unpack
from tests.serving import everything_in

ONE = DataFile("a.bin", hashlib.sha256(b"one").hexdigest())


def _tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info, body in members:
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return path


def _info(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def _zip(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(zipfile.ZipInfo(name), body, zipfile.ZIP_DEFLATED)
    return path


def _pack(form: str, path: Path, **members: bytes) -> Path:
    if form == "zip":
        return _zip(path, **members)
    return _tar(path, *((_info(name), body) for name, body in members.items()))


def _unpack(archive: Path, tmp_path: Path, *files: DataFile, top: str = "top", **limits: int) -> Path:
    inside = tmp_path / "outer" / "inside"
    inside.mkdir(parents=True)
    unpack(archive, top, files or (ONE,), inside, **limits)
    return inside


@pytest.mark.parametrize("form", ["tar", "zip"])
@pytest.mark.parametrize("top", ["top", ""])
def test_pinned_files_are_unpacked_and_no_others(form: str, top: str, tmp_path: Path) -> None:
    name = f"{top}/a.bin".lstrip("/")
    packed = _pack(form, tmp_path / "packed", **{name: b"one", "top/readme.html": b"hello"})
    inside = _unpack(packed, tmp_path, top=top)
    assert everything_in(inside) == ["a.bin"]
    assert (inside / "a.bin").read_bytes() == b"one"


@pytest.mark.parametrize("name", ["../evil", "top/../../evil", "/evil", "top\\..\\..\\evil", "C:/evil"])
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_paths_outside_are_never_written(name: str, form: str, tmp_path: Path) -> None:
    packed = _pack(form, tmp_path / "packed", **{name: b"evil", "top/a.bin": b"one"})
    _unpack(packed, tmp_path)
    assert everything_in(tmp_path) == ["outer", "outer/inside", "outer/inside/a.bin", "packed"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_a_link_or_device_under_a_pinned_name_is_refused(kind: bytes, tmp_path: Path) -> None:
    packed = _tar(tmp_path / "a.tar.gz", (_info("top/a.bin", kind, "/etc/passwd"), b""))
    with pytest.raises(DownloadError, match=r"holds no file top/a\.bin"):
        _unpack(packed, tmp_path)
    assert everything_in(tmp_path / "outer") == ["inside"]


def test_a_link_in_a_zip_file_is_not_followed(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("top/a.bin")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DownloadError, match="wrong content"):
        _unpack(tmp_path / "a.zip", tmp_path)
    assert not (tmp_path / "outer" / "inside" / "a.bin").is_symlink()


@pytest.mark.parametrize("form", ["tar", "zip"])
def test_a_bomb_is_stopped_while_unpacking(form: str, tmp_path: Path) -> None:
    packed = _pack(form, tmp_path / "bomb", **{"top/a.bin": bytes(50_000_000)})
    assert packed.stat().st_size < 100_000
    with pytest.raises(DownloadError, match="more than 10,000,000 bytes"):
        _unpack(packed, tmp_path, limit=10_000_000)
    assert (tmp_path / "outer" / "inside" / "a.bin").stat().st_size <= 10_000_000


def test_the_limit_counts_all_files_together(tmp_path: Path) -> None:
    zeros = [DataFile(str(k), hashlib.sha256(bytes(400)).hexdigest()) for k in range(3)]
    packed = _tar(tmp_path / "a.tar.gz", *((_info(file.name), bytes(400)) for file in zeros))
    with pytest.raises(DownloadError, match="more than 200 bytes"):
        _unpack(packed, tmp_path, *zeros, top="", limit=1000)


@pytest.mark.parametrize("body", [b"", b"neither tar nor zip", b"PK\x03\x04 cut off"])
def test_what_is_no_archive_is_refused(body: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(body)
    with pytest.raises(DownloadError, match="cannot be unpacked"):
        _unpack(tmp_path / "a.tar.gz", tmp_path)


@pytest.mark.faults
def test_a_cut_off_archive_is_refused(tmp_path: Path) -> None:
    packed = _tar(tmp_path / "a.tar.gz", (_info("top/a.bin"), bytes(range(256)) * 4000))
    packed.write_bytes(packed.read_bytes()[:2000])
    with pytest.raises(DownloadError, match="cannot be unpacked"):
        _unpack(packed, tmp_path)

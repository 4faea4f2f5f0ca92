from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from punce.datasets.archives import ArchiveError, extract
from tests.serving import everything_in


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


def _extract(archive: Path, tmp_path: Path, **limits: int) -> Path:
    inside = tmp_path / "outer" / "inside"
    inside.mkdir(parents=True)
    extract(archive, inside, **limits)
    return inside


def test_plain_archives_unpack(tmp_path: Path) -> None:
    packed = _tar(tmp_path / "a.tar.gz", (_info("top/a.bin"), b"one"), (_info("top/sub/b.bin"), b"two"))
    inside = _extract(packed, tmp_path)
    assert everything_in(inside) == ["top", "top/a.bin", "top/sub", "top/sub/b.bin"]
    assert (inside / "top/sub/b.bin").read_bytes() == b"two"


def test_zip_archives_unpack(tmp_path: Path) -> None:
    packed = tmp_path / "a.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("top/", "")
        archive.writestr("top/a.txt", "one")
    assert (_extract(packed, tmp_path) / "top/a.txt").read_text() == "one"


@pytest.mark.parametrize("name", ["../evil", "top/../../evil", "/evil", "top\\..\\..\\evil", "C:/evil"])
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_paths_outside_are_refused(name: str, form: str, tmp_path: Path) -> None:
    packed = tmp_path / "a"
    if form == "tar":
        _tar(packed, (_info(name), b"evil"))
    else:
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(zipfile.ZipInfo(name), "evil")
    with pytest.raises(ArchiveError, match="outside its folder"):
        _extract(packed, tmp_path)
    assert everything_in(tmp_path) == ["a", "outer", "outer/inside"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(kind: bytes, tmp_path: Path) -> None:
    packed = _tar(tmp_path / "a.tar.gz", (_info("top/link", kind, "/etc/passwd"), b""))
    with pytest.raises(ArchiveError, match="a link or device"):
        _extract(packed, tmp_path)
    assert everything_in(tmp_path / "outer") == ["inside"]


def test_a_file_through_a_link_is_never_reached(tmp_path: Path) -> None:
    packed = _tar(tmp_path / "a.tar.gz", (_info("d", tarfile.SYMTYPE, ".."), b""), (_info("d/evil"), b"evil"))
    with pytest.raises(ArchiveError):
        _extract(packed, tmp_path)
    assert not (tmp_path / "outer" / "evil").exists()


def test_links_in_zip_files_are_refused(tmp_path: Path) -> None:
    packed = tmp_path / "a.zip"
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(ArchiveError, match="a link or device"):
        _extract(packed, tmp_path)


@pytest.mark.parametrize("form", ["tar", "zip"])
def test_a_bomb_is_stopped_while_unpacking(form: str, tmp_path: Path) -> None:
    packed, body = tmp_path / "bomb", bytes(50_000_000)
    if form == "tar":
        _tar(packed, (_info("zeros"), body))
    else:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("zeros", body)
    assert packed.stat().st_size < 100_000
    with pytest.raises(ArchiveError, match="more than the allowed size"):
        _extract(packed, tmp_path, limit=10_000_000)
    assert (tmp_path / "outer" / "inside" / "zeros").stat().st_size <= 10_000_000


def test_the_limit_counts_all_files_together(tmp_path: Path) -> None:
    packed = _tar(tmp_path / "a.tar.gz", *((_info(str(k)), bytes(400)) for k in range(3)))
    with pytest.raises(ArchiveError, match="allowed size"):
        _extract(packed, tmp_path, limit=1000)


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    packed = _tar(tmp_path / "a.tar.gz", *((_info(str(k)), b"") for k in range(11)))
    with pytest.raises(ArchiveError, match="more than 10 files"):
        _extract(packed, tmp_path, count=10)


@pytest.mark.parametrize("body", [b"", b"neither tar nor zip", b"PK\x03\x04 cut off"])
def test_what_is_no_archive_is_refused(body: bytes, tmp_path: Path) -> None:
    packed = tmp_path / "a.tar.gz"
    packed.write_bytes(body)
    with pytest.raises(ArchiveError, match="cannot be unpacked"):
        _extract(packed, tmp_path)


def test_a_cut_off_archive_is_refused(tmp_path: Path) -> None:
    packed = _tar(tmp_path / "a.tar.gz", (_info("noise"), bytes(range(256)) * 4000))
    packed.write_bytes(packed.read_bytes()[:2000])
    with pytest.raises(ArchiveError, match="cannot be unpacked"):
        _extract(packed, tmp_path)

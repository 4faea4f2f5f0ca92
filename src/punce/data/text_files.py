"""The bytes of a text file, unpacked, and the encoding in which they are text."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, cast

from punce.data.unpacked import bounded
from punce.errors import InputError

PACKED = (".gz", ".bz2", ".xz", ".zip")
BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)
"""What reading a damaged or packed file raises."""

_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_CHUNK = 1 << 20
_SHOWN = 8
_MIXED = 0.05  # so many of the special characters valid as UTF-8 are no accident of another encoding


def open_bytes(path: Path, member: str | None = None) -> IO[bytes]:
    """The unpacked bytes. How a file is packed is seen from its first bytes: its name may not say it."""
    with path.open("rb") as stream:
        start = stream.read(6)
    if start.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(path) as archive:  # a member keeps the file open by itself
            return bounded(archive.open(zip_member(path, archive.namelist(), member)), path)
    if start.startswith(b"\x1f\x8b"):
        return bounded(cast("IO[bytes]", gzip.open(path)), path)
    if start.startswith(b"BZh"):
        return bounded(bz2.open(path), path)
    return bounded(lzma.open(path), path) if start.startswith(b"\xfd7zXZ") else path.open("rb")


def zip_member(path: Path, names: list[str], wanted: str | None) -> str:
    """The one file in an archive; archives made on a Mac hold a shadow of each file besides."""
    files = [name for name in names if not name.startswith("__MACOSX/") and not name.endswith(("/", ".DS_Store"))]
    if "[Content_Types].xml" in files:
        raise InputError(f"{path} is an Excel file: give it the ending .xlsx")
    if wanted is not None and wanted in files:
        return wanted
    listed = ", ".join(files[:_SHOWN]) + (", …" if len(files) > _SHOWN else "")
    if wanted is not None:
        raise InputError(f"{path} holds no file {wanted!r} (it holds: {listed})")
    if len(files) != 1:
        raise InputError(f"{path} holds {len(files)} files ({listed}); name one with --table, or unpack it")
    return files[0]


def find_encoding(path: Path, member: str | None, asked: str | None) -> tuple[str, str]:
    """The encoding of a text file, and a note if it was guessed. Refuses what is no text in it, with the line."""
    if asked is not None:
        try:
            "a".encode(asked)
        except (LookupError, UnicodeError) as error:  # also of what is no encoding of text, such as base64
            raise InputError(
                f"--encoding {asked!r} is not known; utf-8, utf-16, cp1252 and latin-1 are common"
            ) from error
    stat = path.stat()
    try:
        return _found(path, member, asked, (stat.st_mtime_ns, stat.st_size))
    except (*BROKEN, UnicodeDecodeError) as error:  # names of files in an archive are text, too
        raise unreadable(path, error) from error


@lru_cache(maxsize=8)  # a file is opened more than once, and large ones take seconds
def _found(path: Path, member: str | None, asked: str | None, _: tuple[int, int]) -> tuple[str, str]:
    with open_bytes(path, member) as stream:
        start = stream.read(4096)
    encoding = asked or _by_first_bytes(start) or "utf-8"
    if asked is None and encoding == "utf-8" and b"\0" in start:
        raise InputError(f"{path} is not text: byte {start.index(0)} is 0")
    if (wrong := _first_wrong(path, member, encoding)) is None:
        return encoding, ""
    if asked is not None or encoding != "utf-8":
        raise InputError(f"{path}, line {wrong[0]}: {wrong[1]} is not {encoding}; name another one with --encoding")
    return _single_byte(path, member, wrong)


def _by_first_bytes(start: bytes) -> str | None:
    for mark, encoding in _BOMS.items():
        if start.startswith(mark):
            return encoding
    # UTF-16 without its mark: every other byte of plain letters is 0
    half = len(start) // 2
    return next(
        (f"utf-16-{end}" for end, k in (("be", 0), ("le", 1)) if half and start[k::2].count(0) > half / 2), None
    )


def _chunks(path: Path, member: str | None) -> Iterator[bytes]:
    with open_bytes(path, member) as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def _first_wrong(path: Path, member: str | None, encoding: str) -> tuple[int, str] | None:
    """Line and bytes that are no text in this encoding; None if all are."""
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    for chunk in _with_end(_chunks(path, member)):
        try:
            line += decoder.decode(chunk, final=not chunk).count("\n")
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(encoding, "ignore").count("\n")
            wrong = error.object[error.start : error.end]
            return line + before, f"byte 0x{wrong[:2].hex()}" if wrong else "its end"
        except UnicodeError:  # of UTF-16 without its mark, which says no place
            return line, "the text"
    return None


def _with_end(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """An empty chunk at the end asks the decoder whether something was cut off."""
    yield from chunks
    yield b""


def _single_byte(path: Path, member: str | None, wrong: tuple[int, str]) -> tuple[str, str]:
    """Windows-1252, or Latin-1 where a byte has no meaning in it; refuses a file that is UTF-8 for the most part."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    valid = invalid = undefined = 0
    for chunk in _chunks(path, member):
        text = decoder.decode(chunk)
        special = len(re.findall(r"[^\x00-\x7f]", text))
        stray = len(re.findall(r"[\udc80-\udcff]", text))
        valid, invalid = valid + special - stray, invalid + stray
        undefined += len(re.findall(rb"[\x81\x8d\x8f\x90\x9d]", chunk))
        if b"\0" in chunk:
            raise InputError(f"{path} is not text: it holds bytes that are 0")
    if valid > _MIXED * (valid + invalid):
        raise InputError(
            f"{path} mixes encodings: line {wrong[0]} is not UTF-8 ({wrong[1]}), but others are; save it again as "
            "UTF-8, or name the encoding to read all of it in with --encoding (cp1252 is common)"
        )
    encoding = "latin-1" if undefined else "cp1252"
    name = "Latin-1" if undefined else "Windows-1252"
    return encoding, f"the file is not UTF-8 (line {wrong[0]}); it is read as {name}, --encoding names another one"


def unreadable(path: Path, error: Exception) -> InputError:
    """The error for a person: what is wrong with the file."""
    if isinstance(error, InputError):
        return error
    if not path.exists():
        return InputError(f"{path} does not exist")
    if path.is_file() and path.stat().st_size == 0:
        return InputError(f"{path} is empty")
    if isinstance(error, EOFError) or "truncated" in str(error).lower() or "end-of-stream" in str(error):
        return InputError(f"{path} cannot be read: it is cut off before its end; copy or download it again")
    return InputError(f"{path} cannot be read as a table: {str(error).strip()}")

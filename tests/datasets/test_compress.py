from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from punce.datasets.compress import decompress
from punce.errors import InputError


class _Packer:
    """LZW as Unix compress writes it, with an optional clear code, written independently of the unpacker."""

    def __init__(self, widest: int = 16) -> None:
        self.widest, self.bits, self.length, self.start = widest, 0, 0, 0
        self.reset()

    def reset(self) -> None:
        self.table = {bytes([k]): k for k in range(256)}
        self.next, self.width = 257, 9

    def emit(self, code: int) -> None:
        self.bits |= code << self.length
        self.length += self.width

    def pad(self) -> None:
        while (self.length - self.start) % (8 * self.width):
            self.length += 1
        self.start = self.length

    def pack(self, body: bytes, clear_at: int | None = None) -> bytes:
        word = b""
        for position, byte in enumerate(body):
            letter = bytes([byte])
            if word + letter in self.table:
                word += letter
                continue
            self.emit(self.table[word])
            if self.next < 1 << self.widest:
                self.table[word + letter] = self.next
                self.next += 1
                # the unpacker's table is one entry behind, so the width grows one code later
            if self.next - 1 == 1 << self.width and self.width < self.widest:
                self.pad()
                self.width += 1
            word = letter
            if clear_at is not None and position >= clear_at:
                self.emit(self.table[word])
                self.emit(256)
                self.pad()
                self.reset()
                word, clear_at = b"", None
                return self._rest(body[position + 1 :])
        return self._rest_done(word)

    def _rest(self, body: bytes) -> bytes:
        return self.pack(body)

    def _rest_done(self, word: bytes) -> bytes:
        if word:
            self.emit(self.table[word])
        return b"\x1f\x9d" + bytes([128 | self.widest]) + self.bits.to_bytes((self.length + 7) // 8, "little")


def _bodies() -> dict[str, bytes]:
    random = np.random.RandomState(0)
    return {
        "short": b"abababababab",
        "one byte": b"x",
        "runs": b"a" * 5000,
        "table": "\n".join(f"{k % 97} {k % 13} {k}" for k in range(5000)).encode(),
        "noise": random.randint(0, 256, 6000).astype(np.uint8).tobytes(),
    }


@pytest.mark.parametrize("name", _bodies())
@pytest.mark.parametrize("widest", [9, 12, 16])
def test_what_compress_packs_is_unpacked(name: str, widest: int) -> None:
    body = _bodies()[name]
    assert decompress(_Packer(widest).pack(body)) == body


def test_the_table_may_be_cleared_half_way() -> None:
    body = _bodies()["table"]
    assert decompress(_Packer().pack(body, clear_at=9000)) == body


@pytest.mark.skipif(shutil.which("gzip") is None, reason="gzip is the reference unpacker")
def test_the_test_packer_writes_what_gzip_reads() -> None:
    body = _bodies()["table"]
    for clear_at in (None, 9000):
        packed = _Packer().pack(body, clear_at)
        assert subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True).stdout == body


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"plain text", "not a file packed"),
        (b"", "not a file packed"),
        (b"\x1f\x9d\x83", "codes of 3 bits"),
        (b"\x1f\x9d\x90" + (500).to_bytes(2, "little"), "code 500 is not defined"),
    ],
)
def test_damaged_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        decompress(data)


def test_a_bomb_is_stopped() -> None:
    with pytest.raises(InputError, match="more than 1,000 bytes"):
        decompress(_Packer().pack(b"a" * 100_000), limit=1000)

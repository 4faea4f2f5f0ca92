"""Files packed with Unix ``compress`` (.Z, LZW), which a few UCI sets still use and no Python library unpacks."""

from __future__ import annotations

from pathlib import Path

from punce.errors import InputError

_MAGIC = b"\x1f\x9d"
_CLEAR = 256
_LARGEST = 1 << 28


def unpack_compress(packed: Path, plain: Path) -> None:
    """Unpack `packed` into `plain`."""
    plain.write_bytes(decompress(packed.read_bytes()))


def decompress(data: bytes, limit: int = _LARGEST) -> bytes:
    """LZW with codes of 9 to 16 bits, as written by ``compress``."""
    if data[:2] != _MAGIC or len(data) < 3:
        raise InputError("not a file packed with Unix compress (.Z)")
    widest, block_mode = data[2] & 31, bool(data[2] & 128)
    if not 9 <= widest <= 16:
        raise InputError(f"damaged .Z file: codes of {widest} bits")
    return _decode(data[3:], widest, block_mode, limit)


def _decode(data: bytes, widest: int, block_mode: bool, limit: int) -> bytes:
    roots = [bytes([k]) for k in range(256)] + ([b""] if block_mode else [])
    table, out, previous, size = list(roots), [], b"", 0
    width, position, start = 9, 0, 0
    end = len(data) * 8
    while position + width <= end:
        code = _bits(data, position, width)
        position += width
        if block_mode and code == _CLEAR:
            position = start = _next_group(position, start, width)
            table, previous, width = list(roots), b"", 9
            continue
        entry = _entry(table, code, previous)
        out.append(entry)
        size += len(entry)
        if size > limit:
            raise InputError(f".Z file unpacks to more than {limit:,} bytes; refused")
        if previous and len(table) < 1 << widest:
            table.append(previous + entry[:1])
        previous = entry
        if len(table) == 1 << width and width < widest:
            # compress writes codes in groups of eight; the rest of a group is padding when the width changes
            position = start = _next_group(position, start, width)
            width += 1
    return b"".join(out)


def _bits(data: bytes, position: int, width: int) -> int:
    first = position >> 3
    window = int.from_bytes(data[first : first + 4], "little")
    return (window >> (position & 7)) & ((1 << width) - 1)


def _next_group(position: int, start: int, width: int) -> int:
    group = 8 * width
    return start + -(-(position - start) // group) * group


def _entry(table: list[bytes], code: int, previous: bytes) -> bytes:
    if code < len(table) and table[code]:
        return table[code]
    if code == len(table) and previous:
        return previous + previous[:1]
    raise InputError(f"damaged .Z file: code {code} is not defined")

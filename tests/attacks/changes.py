"""Inputs that are nearly right: good files with a few changes, drawn by hypothesis.

Random bytes are refused by the first check of a reader. A good file with one odd number in its header gets further.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.attacks.folders import Parts

ODD: tuple[Any, ...] = (None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 1e308, -0.0, 0.5, "", "x", "auto")
ODD += ([], {}, [None], [[]], {"a": 1}, [1, 2, 3], "../../etc/passwd", "os.system", "\ud800", "=1+1", "table", "image")
_NUMBERS = (b"\0" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0" * 8, b"\xff" * 8, b"\0\0\xc0\x7f")


@st.composite
def changed(draw: st.DrawFn, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A seed with up to four changes, or seldom nothing but drawn bytes."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.binary(max_size=200))
    content = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 4))):
        content = _edited(draw, content, words)
    return content


def spoilt(content: bytes, rng: random.Random) -> bytes:
    """A copy with up to three bytes changed, near the beginning or anywhere, or cut off."""
    if not content:
        return content
    changed = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        changed[rng.randrange(min(len(changed), 400) if rng.random() < 0.5 else len(changed))] = rng.randrange(256)
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.05 else changed)


def _edited(draw: st.DrawFn, content: bytes, words: Sequence[bytes]) -> bytes:
    kind = draw(st.sampled_from(("tree", "tree", "word", "bytes", "number", "cut", "drop", "repeat", "bit")))
    if kind == "tree":
        return _tree_edit(draw, content)
    at = _place(draw, len(content))
    end = min(len(content), at + draw(st.integers(0, 12)))
    if kind == "cut":
        return content[:at]
    if kind == "drop":
        return content[:at] + content[end:]
    if kind == "repeat":
        return content[:end] + content[at:end] * draw(st.integers(1, 40)) + content[end:]
    if kind == "bit":
        flipped = bytes([content[at] ^ (1 << draw(st.integers(0, 7)))]) if at < len(content) else b""
        return content[:at] + flipped + content[at + 1 :]
    new = draw(st.binary(min_size=1, max_size=6))
    if kind == "word" and words:
        new = draw(st.sampled_from(words))
    if kind == "number":
        new = draw(st.sampled_from(_NUMBERS))
    keeps_length = draw(st.booleans())
    return content[:at] + new + content[at + len(new) if keeps_length else at :]


def _place(draw: st.DrawFn, length: int) -> int:
    """Anywhere, and as often near the beginning or the end, where files keep what they say of themselves."""
    near = draw(st.sampled_from(("start", "anywhere", "end")))
    if near == "anywhere":
        return int(draw(st.floats(0, 1)) * length)
    offset = min(length, draw(st.integers(0, 400)))
    return offset if near == "start" else length - offset


# Trees: JSON files, and the headers of tensors ------------------------------------------------------------------------


def _tree_edit(draw: st.DrawFn, content: bytes) -> bytes:
    """One odd value somewhere in what is JSON in this file; a model is JSON and tensors, whose header is JSON too."""
    parts = Parts.of(content)
    if parts.tensors and draw(st.booleans()):
        return Parts(parts.text, _header_edit(draw, parts.tensors)).joined()
    try:
        tree = json.loads(parts.text)
    except (ValueError, RecursionError):
        return _header_edit(draw, content)
    text = json.dumps(_odd_somewhere(draw, tree)).encode()
    return Parts(text, parts.tensors).joined() if parts.tensors else text


def _header_edit(draw: st.DrawFn, tensors: bytes) -> bytes:
    if len(tensors) < 8:
        return tensors
    (length,) = struct.unpack("<Q", tensors[:8])
    try:
        tree = json.loads(tensors[8 : 8 + length])
    except (ValueError, RecursionError, OverflowError, MemoryError):
        return tensors
    header = json.dumps(_odd_somewhere(draw, tree)).encode()
    return struct.pack("<Q", len(header)) + header + tensors[8 + length :]


def _odd_somewhere(draw: st.DrawFn, tree: Any) -> Any:
    """A copy of the tree with one value replaced, removed or renamed."""
    if isinstance(tree, dict) and tree and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(tree)))
        if draw(st.integers(0, 9)) == 0:
            return {name: value for name, value in tree.items() if name != key}
        return {**tree, key: _odd_somewhere(draw, tree[key])}
    if isinstance(tree, list) and tree and draw(st.integers(0, 5)):
        at = draw(st.integers(0, len(tree) - 1))
        return [*tree[:at], _odd_somewhere(draw, tree[at]), *tree[at + 1 :]]
    return draw(st.sampled_from(ODD))

"""Which encoders may be asked for with which kind of input."""

from __future__ import annotations

from typing import Any

from punce.encoders import ENCODERS, Encoder
from punce.errors import InputError


def check_encoder(encoder: Any, kind: str) -> None:
    """Refuse an encoder that cannot read rows of this kind; "auto" is a kind that is not known yet.

    For texts every other name is a pretrained encoder's, and whether it can be had shows when it is looked for.
    """
    networks = sorted(set(ENCODERS) - {"transformer"})
    if isinstance(encoder, Encoder) or encoder in ("auto", *networks):
        return
    if isinstance(encoder, str) and encoder.strip() and kind in ("auto", "text"):
        return
    raise InputError(
        f"encoder must be 'auto', one of {networks} or an Encoder (for texts also 'tfidf', or a pretrained encoder's "
        f"name or folder), got {encoder!r}"
    )

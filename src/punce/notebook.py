"""Small tables as HTML, for results that a notebook shows (``_repr_html_``). Whatever they hold is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
_TITLE = "text-align:left;font-weight:bold;padding:.3em 0;white-space:nowrap"
_CELL = "text-align:left;padding:.15em 1em .15em 0;border-bottom:1px solid #8886"


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], notes: Iterable[str] = ()) -> str:
    """A caption, a table, and lines below it."""
    cells = "".join(f'<th scope="col" style="{_CELL}">{escape(name)}</th>' for name in header)
    head = f"<thead><tr>{cells}</tr></thead>" if any(header) else ""
    lines = ("".join(f'<td style="{_CELL}">{escape(str(cell))}</td>' for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    below = "".join(f'<p style="margin:.3em 0;max-width:60em">{escape(note)}</p>' for note in notes)
    title = f'<caption style="{_TITLE}">{escape(caption)}</caption>'
    return f'<div><table style="{_STYLE}">{title}{head}<tbody>{body}</tbody></table>{below}</div>'

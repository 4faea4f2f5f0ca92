"""What is printed for a person: names and values of a file must not steer the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

# Escape, which starts commands to a terminal, and its relatives; tabs and line ends stay.
_COMMANDS = dict.fromkeys((*range(9), 11, 12, 13, *range(14, 32), *range(127, 160)), "�")


class Terminal(Console):
    """A console of rich that shows control characters in text as U+FFFD; its own colours are no text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Everything that is printed passes here in pieces of text with their style."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(piece.text.translate(_COMMANDS), piece.style)

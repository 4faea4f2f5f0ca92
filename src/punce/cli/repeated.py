"""An option that takes one value may be given once: of two, the first would be ignored without a word."""

from __future__ import annotations

from collections import Counter
from typing import Any

from typer.core import TyperCommand

from punce.errors import InputError


class OnceEach(TyperCommand):
    """A command that refuses a repeated option, unless the option collects its values or is a plain flag."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line; the parser keeps the last of two values, so repeats are looked for before that."""
        order = self.make_parser(ctx).parse_args(list(args))[2]
        for option, times in Counter(order).items():
            is_single = option.param_type_name == "option" and not option.multiple and not getattr(option, "is_flag", 0)
            if is_single and times > 1:
                raise InputError(f"{option.opts[0]} was given {times} times and takes one value; give it once")
        return super().parse_args(ctx, args)

"""A hook of mkdocs: links to files outside docs/ become text, because the site does not hold these files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Keep the text of a link that leads out of docs/."""
    docs, folder = Path(config["docs_dir"]), Path(page.file.abs_src_path).parent

    def kept(match: re.Match[str]) -> str:
        target = (folder / match[2]).resolve()
        return match[0] if target.is_relative_to(docs) else f"{match[1]} (`{target.relative_to(docs.parent)}`)"

    return _LINK.sub(kept, markdown)

"""For mkdocs: CHANGELOG.md of the repository's root takes the place of the stub docs/changelog.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    if page.file.src_uri != "changelog.md":
        return markdown
    return (Path(__file__).parent.parent / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")

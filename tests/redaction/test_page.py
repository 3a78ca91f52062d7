"""The manual lists every name and every form of key from the code."""

from __future__ import annotations

from pathlib import Path

import a2a_proxy
from a2a_proxy.redaction.page import format_markdown

PAGE = Path(a2a_proxy.__file__).parent / "manual" / "redaction.md"
BEGIN, END = "<!-- generated from the code -->", "<!-- end of what is generated -->"


def updated(page: str) -> str:
    """Return the page with the section generated again."""
    before, _, rest = page.partition(BEGIN)
    return (
        "\n".join((f"{before}{BEGIN}", "", *format_markdown(), "", ""))
        + END
        + rest.partition(END)[2]
    )


def test_the_manual_equals_the_generated_page() -> None:
    """After a change, run `python tests/redaction/test_page.py`."""
    page = PAGE.read_text("utf-8")
    assert BEGIN in page
    assert END in page
    assert updated(page) == page


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text("utf-8")), "utf-8")

"""The manual can be found: each page from the README, each link has something at its end, each
option its line."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from a2a_proxy.cli.main import cli

_ROOT = Path(__file__).parents[2]
_MANUAL = _ROOT / "proxy/a2a_proxy/manual"
_TOP = [
    _ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md", "recordings/README.md")
]
_PAGES = [*_TOP, *sorted(_MANUAL.glob("*.md"))]


def _links(page: Path) -> list[tuple[Path, str]]:
    """The files of this repository that a page leads to, and the headings in them."""
    found = [
        each.partition("#")
        for each in re.findall(r"\]\(([^)\s]+)\)", page.read_text())
        if "://" not in each
    ]
    return [
        ((page.parent / path).resolve() if path else page, heading) for path, _, heading in found
    ]


def _anchors(page: Path) -> set[str]:
    """Names of headings, as they stand in links."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.strip().lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.name))
def test_links_lead_somewhere(page: Path) -> None:
    for path, heading in _links(page):
        assert path.exists(), path
        assert not heading or heading in _anchors(path), (path, heading)


def test_every_page_is_in_the_readme() -> None:
    known = {path for path, _ in _links(_ROOT / "README.md")}
    assert {path for path in _MANUAL.glob("*.md") if path.resolve() not in known} == set()


def test_every_option_of_the_proxy_is_explained() -> None:
    told = set(re.findall(r"`(--[\w-]+)", (_MANUAL / "options.md").read_text()))
    options = [each for each in cli.params if isinstance(each, click.Option) and not each.hidden]
    assert {each.opts[0] for each in options} - told == {"--version"}

"""The manual as a site: a strict build, no address outside the site, every page in the navigation,
the same lists and tables as in other readers of Markdown, and one folder for each version."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import markdown
import pytest
import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "proxy/a2a_proxy/manual/site/mkdocs.yml"
GROUPS = ["Learn", "Do", "Look up", "Understand"]
SECONDS = 120.0
_BLOCKS = ("ul", "ol", "li", "pre", "table", "tr", "blockquote", "h1", "h2", "h3", "h4")
_ADDRESSES = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


def run(program: str, *words: str, folder: Path = ROOT, **environment: str) -> None:
    """Run a program of this environment; `mike` looks for `mkdocs` on PATH."""
    programs = Path(sys.executable).parent
    done = subprocess.run(
        [str(programs / program), *words],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "NO_MKDOCS_2_WARNING": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a link without a target, an unknown heading or a page outside the
    navigation fails."""
    folder = tmp_path_factory.mktemp("site")
    run("mkdocs", "build", "--strict", "--config-file", str(CONFIG), "--site-dir", str(folder))
    return folder


class _Loaded(HTMLParser):
    """Collects the addresses that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs).get(_ADDRESSES.get(tag, ""))
        if found and dict(attrs).get("rel") not in ("canonical", "next", "prev"):
            self.addresses.append(found)


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        loaded = _Loaded()
        loaded.feed(page.read_text("utf-8"))
        assert loaded.addresses, page
        assert [each for each in loaded.addresses if re.match(r"(?:\w+:)?//", each)] == [], page
    for style in site.rglob("*.css"):
        assert re.findall(r"url\([\"']?(?:https?:)?//", style.read_text("utf-8")) == [], style


def test_the_map_of_the_site_has_the_address_of_the_package(site: Path) -> None:
    address = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"][
        "Documentation"
    ]
    assert f"<loc>{address}/filters.html</loc>" in (site / "sitemap.xml").read_text("utf-8")


def test_search_finds_every_page(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    found = {each["location"].partition("#")[0] for each in index["docs"]}
    pages = {page.name for page in site.glob("*.html")} - {"404.html", "index.html"}
    assert pages - found == set()


def test_pictures_of_the_screen_are_those_of_the_tests(site: Path) -> None:
    """Each by night and by day."""
    shown = sorted((site / "screens").iterdir())
    assert len(shown) >= 2
    for picture in shown:
        assert picture.read_bytes() == (ROOT / "tests/inspect/pictures" / picture.name).read_bytes()
    assert {each.name.replace("-night", "-day") for each in shown if "-night" in each.name} <= {
        e.name for e in shown
    }


def test_the_navigation_has_four_groups() -> None:
    assert [name for entry in _config()["nav"] for name in entry] == ["Home", *GROUPS]


def _config() -> dict[str, Any]:
    """The configuration; the function for anchors is a tag that only mkdocs reads."""
    text = re.sub(r"!!python\S+ \{.*?\}\}", "null", CONFIG.read_text("utf-8"))
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def _blocks(html: str) -> dict[str, int]:
    return {tag: len(re.findall(rf"<{tag}[ >]", html)) for tag in _BLOCKS}


@pytest.mark.parametrize(
    "page", sorted((ROOT / "proxy/a2a_proxy/manual").glob("*.md")), ids=lambda page: page.stem
)
def test_the_site_shows_the_same_blocks_as_other_readers(page: Path) -> None:
    """Python-Markdown, which builds the site, is not CommonMark: a list inside a list is indented
    by four spaces, and a code block inside a list is fenced."""
    text = page.read_text("utf-8")
    extensions = ["tables", "attr_list", "sane_lists", "pymdownx.superfences"]
    common = MarkdownIt("commonmark").enable("table").render(text)
    assert _blocks(markdown.markdown(text, extensions=extensions)) == _blocks(common)


def test_each_version_has_its_folder(tmp_path: Path) -> None:
    """`mike deploy` adds a version to the branch of the site and keeps the others."""
    clone = tmp_path / "clone"
    names = [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "recordings/README.md",
        "pyproject.toml",
    ]
    manual = (
        path
        for path in CONFIG.parents[1].rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    pictures = (ROOT / "tests/inspect/pictures").glob("*.svg")
    for path in (*manual, *pictures, *(ROOT / name for name in names)):
        target = clone / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    author = {
        f"GIT_{who}_{what}": "a@example.com"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run(
            ["git", *words], cwd=clone, env={**os.environ, **author}, check=True, timeout=SECONDS
        )
    config = str(clone / CONFIG.relative_to(ROOT))
    for version in ("0.1.0", "0.2.0"):
        deploy = ("deploy", "--config-file", config, "--update-aliases", version, "latest")
        run("mike", *deploy, folder=clone, **author)
    files = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "gh-pages"],
        cwd=clone,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {"0.1.0/filters.html", "0.2.0/filters.html", "latest", "versions.json"} <= set(files)
    page = subprocess.run(
        ["git", "show", "gh-pages:0.2.0/filters.html"], cwd=clone, capture_output=True, check=True
    )
    assert b'"provider": "mike"' in page.stdout

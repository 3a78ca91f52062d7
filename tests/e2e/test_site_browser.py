"""The site of the manual in headless Chromium: at the width of a phone and of a desktop, by day and
by night."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support_browser import Page, browsing, until_true
from support_cli import SECONDS, program

pytestmark = pytest.mark.peers
CONFIG = Path(__file__).parents[2] / "proxy/a2a_proxy/manual/site/mkdocs.yml"
PAGES = ("index", "learn-lost-event", "deploy", "usage", "rules", "inspect")
WIDTHS = (390, 1280)
_SEEN = (
    "[...document.querySelectorAll('article img')]"
    ".filter(each => each.offsetWidth).map(each => each.src)"
)
_FOUND = "[...document.querySelectorAll('.md-search-result__item a')].map(each => each.pathname)"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Build the site and serve it on loopback."""
    folder = tmp_path_factory.mktemp("site")
    words = [
        program("mkdocs"),
        "build",
        "--strict",
        "--config-file",
        str(CONFIG),
        "--site-dir",
        str(folder),
    ]
    subprocess.run(words, check=True, capture_output=True, timeout=SECONDS)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def open_page(page: Page, address: str, scheme: str) -> None:
    await page.ask(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    await page.go(address)


async def test_pages_fit_and_load_nothing_from_elsewhere(address: str) -> None:
    async with browsing() as browser:
        page = await browser.page()
        for name in PAGES:
            for width in WIDTHS:
                await page.resize(width, 844)
                await open_page(page, f"{address}/{name}.html", "light")
                assert await page.run("document.documentElement.scrollWidth") <= width, (
                    name,
                    width,
                )
        assert page.log == []
        assert {each for each in page.requests if not each.startswith((address, "data:"))} == set()


async def test_a_table_of_tests_fits(address: str) -> None:
    """The names of tests are long, and are broken at the ends of their words."""
    async with browsing() as browser:
        page = await browser.page()
        await page.resize(1280, 844)
        await open_page(page, f"{address}/promises.html", "light")
        table = "document.querySelector('.md-typeset__scrollwrap')"
        assert await page.run(f"{table}.scrollWidth <= {table}.clientWidth")


async def test_pictures_follow_the_colours(address: str) -> None:
    async with browsing() as browser:
        page = await browser.page()
        for scheme, ending in (("light", "-day.svg#only-light"), ("dark", "-night.svg#only-dark")):
            await open_page(page, f"{address}/learn-lost-event.html", scheme)
            shown = await page.run(_SEEN)
            assert [each.rpartition("swimlane-large")[2] for each in shown] == [ending]


@pytest.mark.parametrize(
    ("words", "found"), [("Generation gap", "/rules.html"), ("--journal-max 1GiB", "/options.html")]
)
async def test_the_search_finds(words: str, found: str, address: str) -> None:
    """Also an option with its dashes, which mean "without this word" in the search of the theme."""
    async with browsing() as browser:
        page = await browser.page()
        await page.resize(1280, 844)
        await open_page(page, f"{address}/index.html", "light")
        await page.run("document.querySelector('[data-md-toggle=search]').click()")
        await page.run("document.querySelector('.md-search__input').focus()")
        await page.ask("Input.insertText", text=words)

        async def has_result() -> bool:
            await page.press("Shift")
            return found in await page.run(_FOUND)

        await until_true(has_result, "the search found nothing")


async def test_only_commands_are_copied(address: str) -> None:
    """The theme marks the code while its button copies."""
    async with browsing() as browser:
        page = await browser.page()
        await open_page(page, f"{address}/learn-record.html", "light")
        copied = await page.run("""(() => {
          const code = document.querySelector('.highlight:has(.gp) code');
          code.setAttribute('data-md-copying', '');
          return code.innerText;
        })()""")
        assert copied.strip() == "a2a-proxy demo --record story.a2a.db"

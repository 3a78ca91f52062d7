"""Hooks of mkdocs: what the site shows besides the pages of the manual.

- Documents of the repository (README, SECURITY, ...) become pages; links between them and the
  manual still lead there.
- `<!-- screen: NAME -->` in a page becomes the picture NAME of `tests/inspect/pictures`, by night
  and by day. The pictures are drawn by the tests, so a page cannot show a screen that does not
  exist.
- In blocks of the language `console`, lines that begin with `$ ` are commands. Pygments also reads
  output with a `#` as a command, which the button would copy.
"""

import os
import posixpath
import re
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.lexers.shell import BashSessionLexer

ROOT = Path(__file__).resolve().parents[4]
MANUAL = "proxy/a2a_proxy/manual"
DOCUMENTS = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "recordings/README.md": "samples.md",
}
"""A document of the repository -> its page of the site."""
_WITHOUT_MENU = "---\nhide: [navigation]\n---\n"
PICTURES = ROOT / "tests/inspect/pictures"

_LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?\)")
_SCREEN = re.compile(r"<!-- screen: ([\w-]+): (.+?) -->")
_TEST_NAME, _PART_OF_NAME = re.compile(r"(?<=<code>)tests/[^<]+(?=</code>)"), re.compile(r"::|[/_]")
_NODE_NAME = ("e=e+s+o.id", 'e=e+s+o.id+" "')
_ESCAPED_PIPE = re.compile(r"`[^`\n]*\\\|[^`\n]*`")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the address of the site and the prompt of its consoles. Show the choice of a version only
    if `mike` builds, which writes their list.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    config.site_url = project["urls"]["Documentation"].rstrip("/") + "/"
    if "MIKE_DOCS_VERSION" in os.environ:
        config.extra["version"] = {"provider": "mike"}
    BashSessionLexer._ps1rgx = re.compile(r"(\$ )(.*\n?)")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents of the repository."""
    for document, page in DOCUMENTS.items():
        text = (ROOT / document).read_text("utf-8")
        files.append(
            File.generated(
                config, page, content=_WITHOUT_MENU + text if page == "index.md" else text
            )
        )
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page as Python-Markdown reads it, with links between pages of the site."""
    source = _path_in_repository(page.file.src_uri)

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        return f"{found[1]}{_path_in_site(target)}{found[3] or ''})"

    def screen(found: re.Match[str]) -> str:
        return "\n".join(
            _picture(found[1], theme, found[2], config, files) for theme in ("night", "day")
        )

    markdown = _LINK.sub(link, markdown)
    markdown = _SCREEN.sub(screen, markdown)
    # In a table `\|` is a bar also within code; Python-Markdown shows the backslash.
    return _ESCAPED_PIPE.sub(lambda found: found[0].replace(r"\|", "|"), markdown)


def on_page_content(html: str, **_: object) -> str:
    """Return the page with places where the long names of tests may be broken; one name would fill
    a table."""
    return _TEST_NAME.sub(lambda found: _PART_OF_NAME.sub(r"\g<0><wbr>", found[0]), html)


def on_post_build(config: MkDocsConfig) -> None:
    """Let the theme's search tell the nodes of its index apart.

    lunr 2.3 names a node by its letters and the numbers of the next nodes, without a mark between
    them. With digits in words two nodes can have the same name, one is lost, and searches that
    pass there find nothing ("Invalid query").

    Raises PluginError: the script of the theme has another text.
    """
    (worker,) = Path(config.site_dir, "assets/javascripts/workers").glob("search.*.min.js")
    script = worker.read_text("utf-8")
    if script.count(_NODE_NAME[0]) != 1:
        raise PluginError(
            f"{worker.name} names the nodes of its index in another way: see hooks.py"
        )
    worker.write_text(script.replace(*_NODE_NAME), "utf-8")


def _path_in_repository(uri: str) -> str:
    documents = {page: document for document, page in DOCUMENTS.items()}
    return documents.get(uri, f"{MANUAL}/{uri}")


def _path_in_site(path: str) -> str:
    """Return the page of a path of the repository, or the path itself, which the strict build then
    refuses."""
    return DOCUMENTS.get(path, path.removeprefix(f"{MANUAL}/"))


def _picture(name: str, theme: str, text: str, config: MkDocsConfig, files: Files) -> str:
    uri = f"screens/{name}-{theme}.svg"
    if uri not in files.src_uris:
        files.append(
            File.generated(config, uri, abs_src_path=str(PICTURES / f"{name}-{theme}.svg"))
        )
    side = {"night": "dark", "day": "light"}[theme]
    return f"![{text}]({uri}#only-{side})"

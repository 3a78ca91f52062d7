"""`a2a-inspect help`: print a page of the manual, a file of it, or the list of its pages."""

import re
from collections.abc import Collection
from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable

from a2a_proxy.model.errors import UserError
from a2a_proxy.present.output import is_terminal, print_document, print_line, show_in_pager

_INDENT = 18
_EXAMPLE_FOLDERS = ("deploy", "schemas")
_RULE_NAME = re.compile(r"(?:a2a-)?[a-z0-9]+-\d{3}")


def show_manual(topic: str, commands: Collection[str] = ()) -> None:
    """Print a page, or the list of pages if `topic` is empty; in a terminal formatted and through a
    pager.

    A file that pages refer to, such as `deploy/compose.yaml`, is printed as it is. `commands` are
    the names for which the error about a missing page refers to `--help`.

    Raises:
        UserError: there is no such page.
    """
    titles = {name: _read_page(name).partition("\n")[0].lstrip("# ") for name in list_pages()}
    name = topic.removesuffix(".md").lower()
    if not name:
        for page, title in titles.items():
            print_line(f"{page:{_INDENT}}{title}")
        print_line()
        print_line("begin with: a2a-inspect help commands; a rule: a2a-inspect rules GEN-001")
        return
    if topic in list_files():
        print_document((_manual() / topic).read_text("utf-8"), end="")
        return
    if name not in titles:
        close = (
            [page for page in titles if page.startswith(name)]
            or get_close_matches(name, titles)
            or [page for page, title in titles.items() if name in title.lower()]
        )
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        if name in commands:
            hint = f"the options of the command: a2a-inspect {name} --help; "
        elif _RULE_NAME.fullmatch(name):
            hint = f"a rule: a2a-inspect rules {name.upper()}; "
        raise UserError(
            f"the manual has no page {topic}", f"{hint}list the pages: a2a-inspect help"
        )
    text = _read_page(name)
    if not is_terminal():
        print_document(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    with console.capture() as captured:
        console.print(Markdown(text))
    show_in_pager(captured.get())


def list_pages() -> list[str]:
    """Return the names of the pages in alphabetical order."""
    return sorted(
        each.name.removesuffix(".md") for each in _manual().iterdir() if each.name.endswith(".md")
    )


def list_files() -> list[str]:
    """Return the names of the files that are no pages: examples to copy, schemas, the dashboard."""
    folders = [(f"{name}/", _manual() / name) for name in _EXAMPLE_FOLDERS]
    return [
        "grafana.json",
        *(f"{prefix}{each.name}" for prefix, folder in folders for each in folder.iterdir()),
    ]


def _read_page(name: str) -> str:
    return (_manual() / f"{name}.md").read_text("utf-8")


def _manual() -> Traversable:
    return files("a2a_proxy") / "manual"

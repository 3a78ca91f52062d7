"""The page around the tables: HTML, style and script, stored as files in this folder and copied
into the report unchanged.

The content security policy in its head allows only this script and this style, by their hashes, and
no network access, whatever the recording contains. Script and style are split into files only for
maintainers.
"""

import base64
import hashlib
import html
from importlib import resources
from string import Template

from a2a_proxy.protocol.text import make_visible

SCRIPTS = (
    "data.js",
    "elements.js",
    "payload.js",
    "diagram.js",
    "timeline.js",
    "list.js",
    "detail.js",
    "overview.js",
    "talk.js",
    "search.js",
    "main.js",
)
"""Scripts in order: later ones use earlier ones."""
STYLES = ("style.css", "diagram.css", "print.css")
_DATA_MARKER = "<!-- data -->"


def split_page(title: str) -> tuple[bytes, bytes]:
    """Return the page before and after the data. The first part has the hashes of the second."""
    script, style = join_files(SCRIPTS), join_files(STYLES)
    # The content security policy for this script and this style.
    whole = Template(join_files(("page.html",))).substitute(
        title=html.escape(make_visible(title)),
        policy="; ".join(
            (
                "default-src 'none'",
                f"script-src '{_csp_hash(script)}'",
                f"style-src '{_csp_hash(style)}'",
                "img-src data:",  # the empty icon, so that browsers request no icon from a server
                "base-uri 'none'",
                "form-action 'none'",
                "require-trusted-types-for 'script'",
            )
        ),
        style=style,
        script=script,
    )
    before, _, after = whole.partition(_DATA_MARKER)
    return before.encode(), after.encode()


def join_files(names: tuple[str, ...]) -> str:
    """Return the concatenated texts of these files."""
    return "\n".join(
        resources.files(__package__).joinpath(name).read_text("utf-8") for name in names
    )


def _csp_hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"

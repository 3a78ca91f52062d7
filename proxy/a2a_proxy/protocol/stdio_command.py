"""The command of a stdio agent as a card has it (manual/protocol.md "Stdio framing"): which interfaces have one, and
its form.

A command line, which clients split as a POSIX shell does, or hand to one; or `stdio:///PATH?WORD&WORD`.
"""

from __future__ import annotations

import re

STDIO_URI = re.compile(r"stdio://(?=/)", re.IGNORECASE)
"""How the second form begins."""
_URL_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_stdio(transport: str) -> bool:
    """The name of a transport or protocol binding means stdio: `stdio`, `STDIO`, a URI that ends so."""
    return re.split(r"[/:#]", transport.strip().rstrip("/").lower())[-1] == "stdio"


def is_command(text: str) -> bool:
    """It is one of the two forms, not a URL of another kind and not empty."""
    return bool(text.strip()) and (STDIO_URI.match(text) is not None or _URL_PATTERN.match(text.strip()) is None)

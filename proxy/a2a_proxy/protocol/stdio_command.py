"""The command of a stdio agent in an agent card (manual/protocol.md "Stdio framing"): interfaces
that have one, and its two forms.

A command is a command line, which clients split as a POSIX shell does or pass to a shell, or
`stdio:///PATH?WORD&WORD`.
"""

import re

STDIO_URI = re.compile(r"stdio://(?=/)", re.IGNORECASE)
"""Beginning of the second form."""
_URL_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_stdio(transport: str) -> bool:
    """Whether the name of a transport or protocol binding means stdio: `stdio`, `STDIO`, or a URI
    ending in it."""
    return re.split(r"[/:#]", transport.strip().rstrip("/").lower())[-1] == "stdio"


def is_command(text: str) -> bool:
    """Whether the text is a command of either form: not empty and not a URL of another kind."""
    return bool(text.strip()) and (
        STDIO_URI.match(text) is not None or _URL_PATTERN.match(text.strip()) is None
    )

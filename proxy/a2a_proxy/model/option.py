"""How an option of the command line is declared: as the annotation of a member of a config
dataclass.

Imported by `--help`, so it needs nothing but the standard library.
"""

from dataclasses import dataclass
from typing import Literal

Texts = tuple[str, ...]
"""Values of an option that can be repeated."""
LiveMode = Literal["auto", "bidi", "1975", "2153"]
"""Payload family of SendLiveMessage: detected from the bytes (`auto`), or set by the user
(manual/protocol.md "Live payload detection")."""
RewriteMode = Literal["auto", "always", "never"]
"""Which URLs of agent cards are rewritten."""
SpanKind = Literal["internal", "server"]
"""Kind of the spans of calls."""
Compat = Literal["kong", "openinference", "langfuse", "semconv"]
"""Tools and conventions whose attribute names are added to spans."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """What the type and the default of a dataclass's member do not say about its option. The
    option is named as the member."""

    help: str
    section: str = ""
    """Heading in the help of `a2a-proxy`; empty for that of the member before."""
    metavar: str | None = None
    short: str = ""
    """A second spelling: `-q`."""
    flag: str = ""
    """The spelling, if it is not the member's name: `--pass`."""
    commands: tuple[str, ...] = ()
    """Subcommands of `a2a-proxy` that have the option too."""
    is_file: bool = False
    """Whether a text names a file, as a `Path` always does."""
    minimum: float | None = None
    flag_value: str | None = None
    """The value if the option is given without one; None if it needs one."""
    hidden: bool = False

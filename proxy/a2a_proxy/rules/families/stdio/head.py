"""The header block of a message (manual/protocol.md "Stdio framing")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.model.wire import REASON_BROKE_OFF, REASON_CUT_SHORT
from a2a_proxy.rules.context import RuleContext, media_type
from a2a_proxy.rules.define.rule import STDIO, Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import json_text
from a2a_proxy.rules.examples.objects import send, snapshot, task
from a2a_proxy.rules.examples.pipe import HEAD, PLAIN, UP, VERSIONED, ask, octets, pipe, tell
from a2a_proxy.rules.families.stdio.reading import (
    EVERYWHERE,
    HANDSHAKES,
    RIGHT,
    fields,
    framed,
    once,
    session,
    side,
    values,
)

_GET = {"id": "t1"}
_CLEAN = pipe(ask("GetTask", _GET), tell(task()))
_TYPES = frozenset({"application/json", "application/a2a+json", "application/vscode-jsonrpc"})
_CHARSETS = frozenset({"utf-8", "utf8"})
_KNOWN = frozenset({"content-length", "content-type", "traceparent", "tracestate"})
_TEXT = json_text({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": send("é")})
_DONE = tell(snapshot("COMPLETED"))


@rule(
    "A2A-STDIO-001",
    "Content-Length is missing",
    Severity.ERROR,
    section="stdio proposal, Required Headers",
    moment=EVERYWHERE,
    bindings=STDIO,
    when=FrameFlag.FRAMED,
    draft=True,
    flagged=pipe(ask("GetTask", _GET), tell(task(), head="Content-Type: application/json\r\n\r\n")),
    clean=_CLEAN,
)
def no_length(see: RuleContext) -> Iterator[RuleFinding]:
    """The header block of a message has no Content-Length.

    A reader cannot know where the message ends, so it waits for ever or gives the connection up.
    """
    if framed(see.frame) and not values(see.frame, "content-length"):
        yield RuleFinding(summary=f"the {side(see.frame)}'s message has no Content-Length")


@rule(
    "A2A-STDIO-002",
    "Content-Type is missing",
    Severity.ERROR,
    section="stdio proposal, Required Headers",
    moment=EVERYWHERE,
    bindings=STDIO,
    when=FrameFlag.FRAMED,
    draft=True,
    flagged=pipe(ask("GetTask", _GET), tell(task(), head="Content-Length: {size}\r\n\r\n")),
    clean=_CLEAN,
)
def no_type(see: RuleContext) -> Iterator[RuleFinding]:
    """The header block of a message has no Content-Type. Where the peers have shaken hands, as a variant with an
    optional Content-Type does, it is a warning.

    Both fields are mandatory, and a strict reader refuses the message; the Language Server Protocol, from which the
    framing comes, lets it be left out.
    """
    if framed(see.frame) and not values(see.frame, "content-type"):
        variant = see.frame.note in HANDSHAKES or "handshake" in session(see)
        severity = Severity.WARNING if variant else None
        yield RuleFinding(summary=f"the {side(see.frame)}'s message has no Content-Type", severity=severity)


@rule(
    "A2A-STDIO-003",
    "Header lines do not end with CRLF",
    Severity.ERROR,
    section="stdio proposal, grammar",
    moment=EVERYWHERE,
    bindings=STDIO,
    when=FrameFlag.FRAMED,
    draft=True,
    flagged=pipe(ask("GetTask", _GET), tell(task(), head=PLAIN.replace("\r\n", "\n"))),
    clean=_CLEAN,
)
def line_ends(see: RuleContext) -> Iterator[RuleFinding]:
    """A line of the header block, or the empty line after it, ends with LF alone.

    A reader that looks for CRLF CRLF never finds the end of the block. Runtimes that translate line ends of standard
    output, or print the block with their own, do this.
    """
    found = [field for field in fields(see.frame) if not field.crlf]
    if found:
        count = f"{len(found)} of {len(fields(see.frame))} lines"
        yield RuleFinding(summary=f"{count} of the {side(see.frame)}'s header block end with LF alone, not with CRLF")


@rule(
    "A2A-STDIO-004",
    "Content-Length is wrong",
    Severity.ERROR,
    section="stdio proposal, Required Headers",
    moment=EVERYWHERE,
    bindings=STDIO,
    when=FrameFlag.FRAMED,
    draft=True,
    flagged=pipe(octets(UP, VERSIONED.format(size=len(_TEXT)) + _TEXT), _DONE),
    clean=pipe(octets(UP, VERSIONED.format(size=len(_TEXT.encode())) + _TEXT), _DONE),
)
def wrong_length(see: RuleContext) -> Iterator[RuleFinding]:
    """Content-Length is no decimal number of octets, several of them differ, or the content of that many octets is not
    exactly one JSON value: the characters were counted, not the octets, or the message was cut short.

    The reader takes the rest of the message for the next header block, or waits for octets that never come; from
    there it can read nothing. The recording goes on at the next header block.
    """
    frame = see.frame
    said = [value for value in values(frame, "content-length") if value != RIGHT]
    wrong = [value for value in said if not _same(value, frame.size)]
    no_value = frame.note in (REASON_CUT_SHORT, REASON_BROKE_OFF)
    if not (said if no_value else wrong) or (wrong and frame.note == REASON_BROKE_OFF) or frame.truncated:
        return
    value = (wrong or said)[0][:40]
    if no_value:
        told = f"Content-Length is {value}, and after {frame.size} octets the content is no JSON value"
    else:
        told = f"Content-Length is {value}, the content has {frame.size} octets"
        if not frame.redacted and _same(value, len(frame.payload.decode("utf-8", "replace"))):
            told += f" ({value} characters)"
    yield RuleFinding(summary=told, value=value)


def _same(value: str, size: int) -> bool:
    return value.isascii() and value.isdigit() and int(value[:20]) == size


@rule(
    "A2A-STDIO-006",
    "Content-Type is not JSON",
    Severity.WARNING,
    section="stdio proposal, Required Headers",
    moment=EVERYWHERE,
    bindings=STDIO,
    when=FrameFlag.FRAMED,
    draft=True,
    flagged=pipe(ask("GetTask", _GET), tell(task(), head="Content-Length: {size}\r\nContent-Type: text/plain\r\n\r\n")),
    clean=pipe(
        ask("GetTask", _GET),
        tell(task(), head="Content-Length: {size}\r\nContent-Type: application/json; charset=utf-8\r\n\r\n"),
    ),
)
def other_type(see: RuleContext) -> Iterator[RuleFinding]:
    """Content-Type is neither application/json nor application/a2a+json nor application/vscode-jsonrpc, or its charset
    is not UTF-8.

    The content is JSON-RPC in any case; a reader that goes by the type refuses it, or decodes it with the wrong
    charset.
    """
    for value in values(see.frame, "content-type"):
        charset = _charset(value)
        if media_type(value) not in _TYPES:
            yield RuleFinding(summary=f"Content-Type is {value[:60]}, it should be application/json", value=value)
        elif charset and charset not in _CHARSETS:
            yield RuleFinding(summary=f"the charset of Content-Type is {charset[:40]}, JSON is UTF-8", value=value)


def _charset(value: str) -> str:
    for parameter in value.split(";")[1:]:
        name, _, text = parameter.partition("=")
        if name.strip().lower() == "charset":
            return text.strip().strip('"').lower()
    return ""


@rule(
    "A2A-STDIO-015",
    "An unknown or repeated header field",
    Severity.INFO,
    section="stdio proposal, Required Headers",
    moment=EVERYWHERE,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    when=FrameFlag.FRAMED,
    draft=True,
    flagged=pipe(ask("GetTask", _GET), tell(task(), head=f"{HEAD}Foo: 1\r\n\r\n")),
    clean=pipe(
        ask("GetTask", _GET, head=f"{HEAD}A2A-Version: 1.0\r\ntraceparent: 00-{'a' * 32}-{'b' * 16}-01\r\n\r\n"),
        tell(task()),
    ),
)
def unknown_field(see: RuleContext) -> Iterator[RuleFinding]:
    """A header block has a field beside Content-Length, Content-Type, those that begin with A2A- and those of trace
    context, or one of them twice. Told once for each name and side.

    Nobody has said what it means, so the other side passes over it; of a field that stands twice it takes either.
    """
    names = [field.name for field in fields(see.frame) if field.name]
    for name in dict.fromkeys(names):
        known = name in _KNOWN or name.startswith(("a2a-", "x-a2a-"))
        twice = names.count(name) > 1
        if (twice or not known) and once(see, f"{side(see.frame)} field {name}"[:100]):
            what = "stands twice in a header block" if twice else "is no field of this transport"
            yield RuleFinding(summary=f"`{name[:40]}` {what} of the {side(see.frame)}", value=name)


@rule(
    "A2A-STDIO-019",
    "A request of 1.0 without A2A-Version",
    Severity.WARNING,
    section="1.0 3.6.1, 12.3",
    moment=HookPoint.REQUEST,
    lines=Dialects.V1,
    bindings=STDIO,
    when=FrameFlag.ASKS,
    also=("A2A-VER-001",),
    draft=True,
    flagged=pipe(ask("GetTask", _GET, head=PLAIN), tell(task())),
    clean=_CLEAN,
)
def no_version(see: RuleContext) -> Iterator[RuleFinding]:
    """A request of 1.0 has a header block, and no field A2A-Version in it.

    The header block is there to carry what HTTP carries in its header: without the version an agent must take the
    client for one of 0.3.
    """
    frame = see.frame
    if framed(frame) and frame.kind is FrameKind.REQUEST and see.operation and not see.exchange.version_header:
        yield RuleFinding(summary=f"`{see.exchange.method[:60]}` is of 1.0, and its header block has no A2A-Version")

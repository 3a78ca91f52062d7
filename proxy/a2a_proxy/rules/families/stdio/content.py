"""What stands on the pipe: messages of JSON-RPC in a frame, and nothing else (manual/protocol.md "Stdio")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.protocol.bindings.stdio import NOTE_NOT_JSON, NOTE_NOT_JSONRPC
from a2a_proxy.protocol.conversation import NOTE_STRAY
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import STDIO, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import json_text
from a2a_proxy.rules.examples.objects import task
from a2a_proxy.rules.examples.pipe import DOWN, ask, octets, pipe, said, tell
from a2a_proxy.rules.families.rpc.reading import breaks_at, kind_of, whole_text
from a2a_proxy.rules.families.stdio.reading import EVERYWHERE, HANDSHAKES, framed, once, session, side

_GET = {"id": "t1"}
_CLEAN = pipe(ask("GetTask", _GET), tell(task()))
_SHOWN = 60


@rule(
    "A2A-STDIO-005",
    "Foreign octets on the pipe",
    Severity.WARNING,
    section="stdio proposal; Language Server Protocol, base protocol",
    moment=HookPoint.CONNECTION,
    bindings=STDIO,
    draft=True,
    flagged=pipe(octets(DOWN, "Starting agent...\n"), ask("GetTask", _GET), tell(task())),
    clean=_CLEAN,
)
def stray(see: RuleContext) -> Iterator[RuleFinding]:
    """Octets stand outside every message: banners, log lines, stack traces. Told once for what stands together.

    A reader takes them for a header block, and either skips them, or breaks on them. Standard error is the place for
    what is written to people; libraries that print to standard output have to be told.
    """
    frame = see.frame
    if frame.kind is not FrameKind.OTHER or frame.note != NOTE_STRAY:
        return
    known = session(see)
    before = known.get(f"{side(frame)} stray")
    known[f"{side(frame)} stray"] = frame.end
    if before != frame.start:
        pipe = "stdin" if frame.direction is Direction.TO_AGENT else "stdout"
        text = frame.payload[:_SHOWN].decode("utf-8", "replace")
        what = f'"{text}"' if text.strip() else "an empty line"
        yield RuleFinding(summary=f"outside every message on {pipe}: {what}", value=text)


@rule(
    "A2A-STDIO-007",
    "The content is no JSON-RPC message",
    Severity.ERROR,
    section="stdio proposal; JSON-RPC 2.0",
    moment=EVERYWHERE,
    bindings=STDIO,
    when=FrameFlag.UNCLEAN,
    draft=True,
    flagged=pipe(ask("GetTask", _GET), said(DOWN, [task()]), tell(task())),
    clean=_CLEAN,
)
def no_message(see: RuleContext) -> Iterator[RuleFinding]:
    """The content of a message is no JSON, or an array or a scalar, or an object without `jsonrpc`. The handshake of a
    variant is an information.

    Every message is one request, response or notification of JSON-RPC; the other side drops anything else, or ends the
    connection.
    """
    frame = see.frame
    if frame.note in HANDSHAKES and not frame.exchange:
        if once(see, "handshake"):
            yield RuleFinding(
                summary=f"the {side(frame)} begins with a {frame.note}: a variant", severity=Severity.INFO
            )
    elif frame.note == NOTE_NOT_JSON and not frame.exchange:
        text = frame.payload[:_SHOWN].decode("utf-8", "replace")
        yield RuleFinding(summary=f"the content of the {side(frame)}'s message is no JSON", value=text)
    elif frame.note == NOTE_NOT_JSONRPC and not frame.exchange:
        told = kind_of(see.value)
        told += " that is neither request nor response" if isinstance(see.value, dict) else ""
        yield RuleFinding(summary=f"the content of the {side(frame)}'s message is {told}")
    elif frame.exchange and frame.payload and see.value is None:
        if whole_text(frame) and (place := breaks_at(frame.payload)) >= 0:
            text = frame.payload.decode("utf-8", "backslashreplace")[:_SHOWN]
            yield RuleFinding(summary=f"the {side(frame)}'s message is no JSON from octet {place} on", value=text)
    elif frame.exchange and isinstance(see.value, dict) and "jsonrpc" not in see.value:
        yield RuleFinding(summary=f"the {side(frame)}'s message has no member `jsonrpc`", path="jsonrpc")


@rule(
    "A2A-STDIO-014",
    "Newline-delimited JSON instead of framing",
    Severity.WARNING,
    section="stdio proposal, grammar",
    moment=EVERYWHERE,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    when=FrameFlag.FRAMED,
    draft=True,
    flagged=pipe(ask("GetTask", _GET), octets(DOWN, json_text({"jsonrpc": "2.0", "id": 1, "result": task()}) + "\n")),
    clean=_CLEAN,
)
def by_lines(see: RuleContext) -> Iterator[RuleFinding]:
    """A side writes JSON a line, without header blocks. Told once for each side.

    The other side waits for a Content-Length. There is no place for service parameters either: no version, no
    extensions, no trace context.
    """
    frame = see.frame
    message = "\0" in frame.framing and frame.note != NOTE_STRAY
    if message and not framed(frame) and once(see, f"{side(frame)} by lines"):
        yield RuleFinding(summary=f"the {side(frame)} writes newline-delimited JSON, each message needs a header block")

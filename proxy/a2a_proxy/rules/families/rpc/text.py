"""The JSON text of requests and responses (A2A 1.0 section 9.3; RFC 8259)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.rules.context import RuleContext, media_type
from a2a_proxy.rules.define.rule import ENVELOPE, HTTP, JSON_TEXT, STDIO, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import http, json_text, rpc, rpc_error
from a2a_proxy.rules.examples.objects import send, snapshot, task
from a2a_proxy.rules.families.rpc.reading import breaks_at, said_by_client, whole_text

_GET = {"id": "t1"}
_BOTH = (HookPoint.REQUEST, HookPoint.ANSWER)
_REFUSED = {"jsonrpc": "2.0", "id": None, "error": rpc_error(-32700, text="parse error")}
_CALL = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": _GET}
_BATCH = {"jsonrpc": "2.0", "id": None, "error": rpc_error(-32600, text="batches are not supported")}
_MOST = 1 << 20
"""Octets of a payload that are searched for double names; larger ones would hold up the recorder."""


@rule(
    "A2A-RPC-001",
    "The body is not valid JSON",
    Severity.ERROR,
    section="1.0 9.1; JSON-RPC 2.0; RFC 8259",
    moment=_BOTH,
    bindings=HTTP | STDIO,
    when=FrameFlag.UNCLEAN,
    flagged=http("POST", "/", '{"jsonrpc":"2.0",', answer=json_text(_REFUSED)),
    clean=rpc("GetTask", _GET, task()),
)
def not_json(see: RuleContext) -> Iterator[RuleFinding]:
    """A request or a response is not one JSON value: it is empty, ends early, has something after its end, or is no
    UTF-8. On REST this holds for bodies that are announced as JSON. The data of events is told by A2A-SSE-002, and by
    A2A-SSE-009 where it is no UTF-8.

    The other side cannot read anything of it, neither the call nor the id that an error has to name.
    """
    frame = see.frame
    if frame.framing or (see.binding is Binding.REST and not _json_body(see)):
        return
    if see.enveloped and not frame.size and _empty(see):
        side = "request" if said_by_client(see) else "response"
        yield RuleFinding(summary=f"the body of the {side} is empty, it must be one JSON-RPC {side}")
    elif frame.payload and _announced(see) and whole_text(frame):
        place = breaks_at(frame.payload)
        if place >= 0:
            what = "request" if said_by_client(see) else "response"
            text = frame.payload.decode("utf-8", "backslashreplace")
            yield RuleFinding(summary=f"the {what} is no JSON from character {place} on", value=text[:120])


def _empty(see: RuleContext) -> bool:
    """Nothing is there where something has to be. A notification has no answer."""
    if said_by_client(see):
        return see.exchange.method == "POST"
    asked = see.request
    if see.frame.kind is not FrameKind.RESPONSE or see.exchange.status != 200 or see.field("content-length") != "0":
        return False
    return asked is not None and asked.rpc_id not in ("", "null") and bool(see.operation)


def _json_body(see: RuleContext) -> bool:
    kind = media_type(see.asked_field("content-type")) if said_by_client(see) else see.media_type
    return kind == "application/json" or kind.endswith("+json")


def _announced(see: RuleContext) -> bool:
    """The payload should be JSON, and was not read as such."""
    frame = see.frame
    if frame.schema == JSON and see.value is not None:
        return False
    if not said_by_client(see):
        return see.exchange.status // 100 == 2 and _json_body(see)
    return frame.schema == JSON or frame.kind in (FrameKind.OTHER, FrameKind.UNDECODABLE)


@rule(
    "A2A-RPC-003",
    "A batch of calls",
    Severity.WARNING,
    section="1.0 9.3; JSON-RPC 2.0 6",
    moment=_BOTH,
    bindings=ENVELOPE,
    when=FrameFlag.UNCLEAN,
    flagged=http("POST", "/", json_text([_CALL, _CALL | {"id": 2}]), answer=json_text(_BATCH)),
    clean=rpc("GetTask", _GET, task()) + rpc("GetTask", _GET, task(), id=2),
)
def batch(see: RuleContext) -> Iterator[RuleFinding]:
    """The body is an array. JSON-RPC allows batches of calls, but A2A describes one call for each POST.

    Agents refuse batches with -32600 or answer only a part, and which HTTP answer a streaming call in a batch would get
    is nowhere defined.
    """
    frame = see.frame
    if frame.note != "batch" and (frame.kind is not FrameKind.OTHER or frame.payload.lstrip()[:1] != b"["):
        return
    notes = see.track.remember()
    if "batch" not in notes and (frame.note == "batch" or breaks_at(frame.payload) < 0):
        notes["batch"] = True
        side = "request" if said_by_client(see) else "response"
        yield RuleFinding(summary=f"the {side} is a JSON array, A2A has one call in each {side}")


class _Marked(dict[str, Any]):
    """An object in which names came twice."""

    __slots__ = ("twice",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.twice = sorted({name for name, _ in pairs if name in seen or seen.add(name)})  # type: ignore[func-returns-value]


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Marked(pairs)


def _twice(value: Any, path: str) -> Iterator[str]:
    """Paths of members that came twice."""
    if isinstance(value, dict):
        if isinstance(value, _Marked):
            yield from (f"{path}.{name}" for name in value.twice)
        for name, item in value.items():
            yield from _twice(item, f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _twice(item, f"{path}[{index}]")


@rule(
    "A2A-RPC-018",
    "A name twice in one object",
    Severity.WARNING,
    section="RFC 8259 4",
    moment=_BOTH,
    bindings=JSON_TEXT,
    when=FrameFlag.UNCLEAN,
    flagged=rpc(
        "SendMessage", send(), answer=f'{{"jsonrpc":"2.0","id":1,"id":1,"result":{json_text(snapshot("COMPLETED"))}}}'
    ),
    clean=rpc("SendMessage", send(), snapshot("COMPLETED")),
)
def name_twice(see: RuleContext) -> Iterator[RuleFinding]:
    """An object in a JSON payload has a member of the same name more than once.

    Readers take the first one, the last one, or refuse the text, so two peers may see two different messages; a proxy
    or a filter in between may check another value than the one that is used.
    """
    frame = see.frame
    if see.value is None or len(frame.payload) > _MOST:
        return
    try:
        marked = json.loads(frame.payload, object_pairs_hook=_pairs)
        found = [path[1:] for path in _twice(marked, "")]
    except (ValueError, RecursionError):
        return
    for path in found[:3]:
        name = path.rpartition(".")[2]
        yield RuleFinding(summary=f"`{name}` stands twice in one object, readers take one or the other", path=path)

"""Rules about the extensions header itself (A2A 1.0 section 3.2.6)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from a2a_proxy.model.values import Binding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import NETWORK, RPC, Dialects, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import SENDERS, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import send, task
from a2a_proxy.rules.families.ext.reading import HEADER_NAMES, extension_fields, split_uris

_URI_A = "https://example.com/ext/a/v1"
_ABSOLUTE_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_REDACTION_PREFIX = "redacted-"
_TASK_RESULT = {"task": task()}


def _extension_headers(context: RuleContext) -> Iterator[tuple[str, str, list[str]]]:
    """Yield side, header name and values of each extensions header."""
    asked, answered = extension_fields(context)
    for side, found in (("request", asked), ("response", answered)) if asked or answered else ():
        for name in HEADER_NAMES:
            values = [value for key, value in found if key == name]
            if values:
                yield side, name, values


@rule(
    "A2A-EXT-004",
    "Malformed list of extensions",
    Severity.WARNING,
    section="1.0 3.2.6",
    dialects=Dialects.SINCE_0_2,
    hook_points=HookPoint.HEADS,
    bindings=RPC,
    required_flags=FrameFlag.EXTENDS,
    flagged=rpc("SendMessage", send(), _TASK_RESULT, headers={"A2A-Extensions": "a"}),
    clean=rpc(
        "SendMessage", send(), _TASK_RESULT, headers={"A2A-Extensions": f"{_URI_A}, urn:example:b"}
    ),
)
def malformed(context: RuleContext) -> Iterator[RuleFinding]:
    """An entry of `A2A-Extensions`, in the request or the response, is not an absolute URI.
    Reported as information over HTTP: several header fields of that name instead of one
    comma-separated list, which HTTP treats as equal.

    Extensions are identified only by their URI, so such an entry activates nothing; some servers
    read only one of several fields. The sender of the header, client or agent, must name extensions
    by their URIs, in one header field.
    """
    for side, name, values in _extension_headers(context):
        for entry in split_uris(values):
            if not _ABSOLUTE_URI.fullmatch(entry) and _REDACTION_PREFIX not in entry:
                yield RuleFinding(
                    summary=f"{name} of the {side} lists {entry[:80]!r}, which is not a URI",
                    value=entry,
                    actor=SENDERS[side],
                )
        if len(values) > 1 and context.binding is not Binding.GRPC:
            told = f"the {side} has {len(values)} {name} fields, expected one comma-separated list"
            yield RuleFinding(
                summary=told, value="; ".join(values), severity=Severity.INFO, actor=SENDERS[side]
            )


@rule(
    "A2A-EXT-005",
    "Extensions header of another protocol version",
    Severity.WARNING,
    section="1.0 3.2.6; 0.3 extensions",
    dialects=Dialects.SINCE_0_2,
    hook_points=HookPoint.HEADS,
    bindings=NETWORK,
    required_flags=FrameFlag.EXTENDS,
    flagged=rpc("SendMessage", send(), _TASK_RESULT, headers={"X-A2A-Extensions": _URI_A}),
    clean=rpc("SendMessage", send(), _TASK_RESULT, headers={"A2A-Extensions": _URI_A}),
)
def other_name(context: RuleContext) -> Iterator[RuleFinding]:
    """A 1.0 request or response lists its extensions only in `X-A2A-Extensions`, or a 0.2 or 0.3
    one only in `A2A-Extensions`.

    The peer reads only the header name of its own version, so the extensions are silently not
    activated. The sender of the header, client or agent, must use the name of the protocol version
    in use.
    """
    dialect = context.exchange.dialect
    there = {(side, name) for side, name, _ in _extension_headers(context)}
    if not there:
        return
    mine, other = HEADER_NAMES if context.is_v1 else reversed(HEADER_NAMES)
    for side in ("request", "response"):
        if (side, other) in there and (side, mine) not in there:
            told = f"the {side} lists its extensions only in {other}, but {dialect} uses {mine}"
            yield RuleFinding(summary=told, value=other, actor=SENDERS[side])

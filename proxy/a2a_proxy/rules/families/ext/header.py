"""Rules about the names of extensions in headers, messages and artifacts (A2A 1.0 sections 3.2.6,
4.6.2)."""

import re
from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Binding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    NETWORK,
    RPC,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import SENDERS, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Fields, rpc
from a2a_proxy.rules.examples.objects import send, task
from a2a_proxy.rules.families.ext.reading import (
    HEADER_NAMES,
    activated_uris,
    extension_fields,
    listed_extensions,
    may_have_extensions,
    requested_uris,
    split_uris,
    used_extensions,
)
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_ABSOLUTE_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_REDACTION_PREFIX = "redacted-"
_TASK_RESULT = {"task": task()}
_URI_A, _URI_B = "https://example.com/ext/a/v1", "https://example.com/ext/b/v1"
_ACTIVE_HEADERS: Fields = {"A2A-Extensions": _URI_A}


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


@rule(
    "A2A-EXT-006",
    "A message or an artifact uses an inactive extension",
    Severity.WARNING,
    section="1.0 4.6.2",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    bindings=RPC,
    trigger_flags=FrameFlag.UNCLEAN,
    operations=SENDING_OPERATIONS,
    flagged=rpc(
        "SendMessage",
        send(extensions=[_URI_B]),
        _TASK_RESULT,
        headers=_ACTIVE_HEADERS,
        reply_headers=_ACTIVE_HEADERS,
    ),
    clean=rpc(
        "SendMessage",
        send(extensions=[_URI_A]),
        _TASK_RESULT,
        headers=_ACTIVE_HEADERS,
        reply_headers=_ACTIVE_HEADERS,
    ),
)
def inactive(context: RuleContext) -> Iterator[RuleFinding]:
    """The `extensions` of the client's message name an extension that its request does not
    activate, or the agent's message or artifact names an inactive extension: one not listed in the
    head of the response or, if that has no list, not requested. Objects older than the exchange are
    not checked.

    The receiver ignores an inactive extension and interprets the content without it. The client
    must name the extension in `A2A-Extensions`. The agent must use only active extensions.
    """
    if context.frame_or_none is None:
        yield from _check_request(context)
    elif may_have_extensions(context.frame):
        active = activated_uris(context) or requested_uris(context)
        for path, uri in used_extensions(context):
            if uri not in active:
                yield RuleFinding(
                    summary=f"the agent uses {uri[:100]}, which is not active here",
                    path=path,
                    value=uri,
                )


def _check_request(context: RuleContext) -> Iterator[RuleFinding]:
    request = context.request
    if request is None or not may_have_extensions(request):
        return
    wanted = requested_uris(context)
    root = "params.message" if context.is_enveloped else "message"
    for path, uri in listed_extensions(root, context.params.get("message")):
        if uri not in wanted:
            told = f"the message uses {uri[:100]}, which its request does not activate"
            yield RuleFinding(
                summary=told, path=path, value=uri, seq=request.seq, actor=Actor.CLIENT
            )

"""Rule about extensions named in messages and artifacts (A2A 1.0 section 4.6.2)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import RPC, Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Fields, rpc
from a2a_proxy.rules.examples.objects import send, task
from a2a_proxy.rules.families.ext.reading import (
    activated_uris,
    listed_extensions,
    may_have_extensions,
    requested_uris,
    used_extensions,
)
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_URI_A, _URI_B = "https://example.com/ext/a/v1", "https://example.com/ext/b/v1"
_TASK_RESULT = {"task": task()}
_ACTIVE_HEADERS: Fields = {"A2A-Extensions": _URI_A}


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

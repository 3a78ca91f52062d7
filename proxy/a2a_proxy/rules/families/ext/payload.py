"""Extensions that messages and artifacts name (A2A 1.0 section 4.6.2)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import RPC, Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
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
    "Inactive extension in a message or an artifact",
    Severity.WARNING,
    section="1.0 4.6.2",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    bindings=RPC,
    trigger_flags=FrameFlag.UNCLEAN,
    operations=SENDING_OPERATIONS,
    flagged=rpc(
        "SendMessage", send(extensions=[_URI_B]), _TASK_RESULT, headers=_ACTIVE_HEADERS, reply_headers=_ACTIVE_HEADERS
    ),
    clean=rpc(
        "SendMessage", send(extensions=[_URI_A]), _TASK_RESULT, headers=_ACTIVE_HEADERS, reply_headers=_ACTIVE_HEADERS
    ),
)
def inactive(context: RuleContext) -> Iterator[RuleFinding]:
    """The `extensions` of the client's message name one that its request does not ask for; or those of the agent's
    message or artifact one that is not active: not in the head of the response, or, where that has no list, not asked
    for. What is older than the exchange is not looked at.

    The receiver does not apply an extension that is not active, and reads the content without it.
    """
    if context.frame_or_none is None:
        yield from _check_request(context)
    elif may_have_extensions(context.frame):
        active = activated_uris(context) or requested_uris(context)
        for path, uri in used_extensions(context):
            if uri not in active:
                yield RuleFinding(summary=f"the agent uses {uri[:100]}, which is not active here", path=path, value=uri)


def _check_request(context: RuleContext) -> Iterator[RuleFinding]:
    request = context.request
    if request is None or not may_have_extensions(request):
        return
    wanted = requested_uris(context)
    root = "params.message" if context.is_enveloped else "message"
    for path, uri in listed_extensions(root, context.params.get("message")):
        if uri not in wanted:
            told = f"the message uses {uri[:100]}, which its request does not ask for"
            yield RuleFinding(summary=told, path=path, value=uri, seq=request.seq)

"""Extensions that messages and artifacts name (A2A 1.0 section 4.6.2)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import RPC, Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Fields, rpc
from a2a_proxy.rules.examples.objects import send, task
from a2a_proxy.rules.families.ext.reading import activated, asked, listed, may_have, used
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_A, _B = "https://example.com/ext/a/v1", "https://example.com/ext/b/v1"
_TASK = {"task": task()}
_ACTIVE: Fields = {"A2A-Extensions": _A}


@rule(
    "A2A-EXT-006",
    "Inactive extension in a message or an artifact",
    Severity.WARNING,
    section="1.0 4.6.2",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.SINCE_0_2,
    moment=(HookPoint.HEADS, HookPoint.ANSWER),
    bindings=RPC,
    when=FrameFlag.UNCLEAN,
    operations=SENDING_OPERATIONS,
    flagged=rpc("SendMessage", send(extensions=[_B]), _TASK, headers=_ACTIVE, reply_headers=_ACTIVE),
    clean=rpc("SendMessage", send(extensions=[_A]), _TASK, headers=_ACTIVE, reply_headers=_ACTIVE),
)
def inactive(see: RuleContext) -> Iterator[RuleFinding]:
    """The `extensions` of the client's message name one that its request does not ask for; or those of the agent's
    message or artifact one that is not active: not in the head of the response, or, where that has no list, not asked
    for. What is older than the exchange is not looked at.

    The receiver does not apply an extension that is not active, and reads the content without it.
    """
    if see.shown is None:
        yield from _of_client(see)
    elif may_have(see.frame):
        active = activated(see) or asked(see)
        for path, uri in used(see):
            if uri not in active:
                yield RuleFinding(summary=f"the agent uses {uri[:100]}, which is not active here", path=path, value=uri)


def _of_client(see: RuleContext) -> Iterator[RuleFinding]:
    request = see.request
    if request is None or not may_have(request):
        return
    wanted = asked(see)
    root = "params.message" if see.enveloped else "message"
    for path, uri in listed(root, see.params.get("message")):
        if uri not in wanted:
            told = f"the message uses {uri[:100]}, which its request does not ask for"
            yield RuleFinding(summary=told, path=path, value=uri, seq=request.seq)

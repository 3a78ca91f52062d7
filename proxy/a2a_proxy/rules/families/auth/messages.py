"""Rule about credentials inside messages (A2A 1.0 section 7.6.3)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import reply, send, snapshot, state
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.facts.secret_places import secret_paths
from a2a_proxy.rules.state.card_declarations import object_member
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS


def _login_script(text: str) -> Script:
    wanted = state("AUTH_REQUIRED", message=reply("log in first"))
    asks = rpc("SendMessage", send("book it"), snapshot("AUTH_REQUIRED", status=wanted))
    return asks + rpc(
        "SendMessage", send(text, id="m2", taskId="t1"), snapshot("COMPLETED", second=1)
    )


@rule(
    "A2A-AUTH-008",
    "Credentials in a message",
    Severity.WARNING,
    section="1.0 7.6.3, 7.6",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.LIVE,
    dialects=Dialects.V1,
    operations=SENDING_OPERATIONS,
    required_flags=FrameFlag.NAMES,
    flagged=_login_script("here it is: Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.c2ln"),
    clean=_login_script("I have logged in"),
)
def in_message(context: RuleContext) -> Iterator[RuleFinding]:
    """A client's message to a task in AUTH_REQUIRED contains an apparent token, key or password,
    and the request activates no extension that could allow credentials in messages. The recording
    contains a label in its place.

    Messages are stored in histories and forwarded to other agents and to models. The client should
    send credentials outside the protocol, for example through the login that the agent requested.
    """
    request_snapshot, exchange = context.record.request_snapshot, context.exchange
    if (
        request_snapshot is None
        or request_snapshot.state != TaskState.AUTH_REQUIRED
        or exchange.extensions
    ):
        return
    body = context.body if isinstance(context.body, dict) else {}
    for path in secret_paths(object_member(body, "message").get("parts")):
        told = f"`message.parts{path}`, sent to a task in AUTH_REQUIRED, looks like a credential"
        yield RuleFinding(summary=told, is_sure=False)

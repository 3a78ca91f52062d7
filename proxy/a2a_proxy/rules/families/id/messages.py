"""Rules about message ids (one id stands for one message) and the tenant of an interface (A2A 1.0
sections 3.3.1, 4.1.4, 8.3.2)."""

from collections.abc import Iterable, Iterator
from typing import Any

from a2a_proxy.model.eviction import keys_to_evict
from a2a_proxy.model.values import Actor, Binding, Frame, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import NETWORK, Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import agent_reply, card, reply, send, snapshot, status, task
from a2a_proxy.rules.facts.compared_values import PartsSummary
from a2a_proxy.rules.facts.request_summary import RequestSummary, summarise_request
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS
from a2a_proxy.rules.state.task_owners import named_tenant

_MAX_MESSAGES = 5000
"""Number of client messages remembered."""
_FIRST_SEND = rpc("SendMessage", send("hello"), agent_reply())
_SECOND_SEND = rpc("SendMessage", send("good bye"), agent_reply(id="r2"))
_TENANT_URL = "http://localhost:8000/"
_TENANT_PATH = [
    {
        "url": _TENANT_URL,
        "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0",
        "tenant": "billing",
    }
]
_TENANT_CARD = fetch_card(card(supportedInterfaces=_TENANT_PATH))


@rule(
    "A2A-ID-009",
    "Client reused a messageId",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.0 3.3.1, 4.1.4; 0.3 6.4",
    hook_points=(HookPoint.REQUEST, HookPoint.CLOSED),
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    operations=SENDING_OPERATIONS,
    flagged=_FIRST_SEND + _SECOND_SEND,
    clean=_FIRST_SEND + rpc("SendMessage", send("good bye", id="m2"), agent_reply(id="r2")),
)
def used_again(context: RuleContext) -> Iterable[RuleFinding]:
    """A client sends a message with the id of an earlier message to this agent that was not
    refused, but with different parts. Reported as information if the parts are equal: then it is a
    retry, and the finding says whether it created a second task. Clients are identified by host and
    `User-Agent`.

    Agents may drop a message whose id they know, and the new content is lost. The client must
    create a new `messageId` for each message and reuse it only for a retry.
    """
    if context.frame_or_none is None:
        return _check_retry(context)
    if not context.frame_or_none.message_id or "message_id" in context.frame_or_none.redacted:
        return ()
    return _check_sent_message(context, context.frame_or_none)


def _check_sent_message(context: RuleContext, frame: Frame) -> Iterable[RuleFinding]:
    record, look = context.record, _request_summary(context)
    if not look.parts:
        return ()
    digest = 0 if frame.redacted or frame.truncated else content_hash(look.content)
    key = (
        f"{record.agent} {record.client} {context.request_header('user-agent')} {frame.message_id}"
    )
    known: dict[str, Any] = context.session.notes.setdefault("sent", {})
    before = known.pop(key, None)
    known[key] = {
        "digest": digest,
        "exchange": record.id,
        "connection": record.connection,
        "task": "",
    }
    for oldest in keys_to_evict(known, _MAX_MESSAGES):
        del known[oldest]
    notes = record.writable_notes()
    notes["sent"] = key
    if before is None or before["exchange"] == record.id or not digest:
        return ()
    if before["digest"] and digest != before["digest"]:
        told = (
            f"the client reuses message id {frame.message_id}, which had other content on "
            f"#{before['exchange']}"
        )
        path = f"{context.root}message.messageId"
        same = before["connection"] == record.connection
        notes["reused"] = True
        return (RuleFinding(summary=told, path=path, value=frame.message_id, is_sure=same),)
    notes["resent"] = before
    return ()


def _request_summary(context: RuleContext) -> RequestSummary:
    """Return the summary of the request, computed once for all rules."""
    found: RequestSummary | None = context.cache.get("sent")
    if found is None:
        found = context.cache["sent"] = summarise_request(context.frame)
    return found


def content_hash(content: PartsSummary) -> int:
    """Return a hash of the content that can be stored and is the same in every process."""
    return hash((content.length, content.digest, content.byte_count, content.other_parts))


def _check_retry(context: RuleContext) -> Iterable[RuleFinding]:
    record = context.record
    notes = record.notes
    if notes is None or "sent" not in notes:
        return ()
    known = context.session.notes.get("sent", {})
    entry = known.get(notes["sent"])
    if entry is not None and entry["exchange"] == record.id:
        if record.errors and not record.events:  # refused messages may be sent again
            del known[notes["sent"]]
        entry["task"] = record.task_id
    before = notes.get("resent")
    if before is None or not record.events:
        return ()
    first = before["task"]
    told = f"the client repeats message {notes['sent'].rpartition(' ')[2]} of #{before['exchange']}"
    if (
        first
        and record.task_id
        and first != record.task_id
        and record.request_snapshot is not None
        and not record.request_snapshot.task_id
    ):
        told = f"{told}; the agent created a second task: {first}, then {record.task_id}"
    return (RuleFinding(summary=told, severity=Severity.INFO, seq=0),)


def _working_update(text: str, *, id: str, second: int) -> dict[str, Any]:
    return status("WORKING", second=second, message=reply(text, id=id, taskId="t1"))


@rule(
    "A2A-ID-015",
    "Agent reused a messageId",
    Severity.WARNING,
    section="1.0 4.1.4; 0.3 6.4",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.REUSED_MESSAGE_ID,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        _working_update("half of it", id="m5", second=1),
        _working_update("something else", id="m5", second=2),
        status("COMPLETED", second=3),
    ),
    clean=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        _working_update("half of it", id="m5", second=1),
        _working_update("something else", id="m6", second=2),
        status("COMPLETED", second=3),
    ),
)
def agent_again(context: RuleContext) -> Iterator[RuleFinding]:
    """The message of a status has the id of an earlier message of the task, but different content.
    Reported as information if the text only grew: some agents send one message in steps.

    Clients that store messages by id overwrite the earlier message, or drop this one as a
    duplicate. The agent must create a new `messageId` for each message.
    """
    frame = context.frame
    grew = context.has_flag(FrameFlag.GROWN)
    told = (
        f"the agent reuses message id {frame.message_id}, which had other content in task "
        f"{frame.task_id}"
    )
    if grew:
        told = f"the agent extends the text of message {frame.message_id} of task {frame.task_id}"
    wrapper = "statusUpdate." if context.is_v1 and context.has_flag(FrameFlag.STATUS) else ""
    place = f"{context.root}{wrapper}status.message.messageId"
    yield RuleFinding(
        summary=told, path=place, value=frame.message_id, severity=Severity.INFO if grew else None
    )


@rule(
    "A2A-ID-013",
    "Tenant of the interface is not sent",
    Severity.ERROR,
    section="1.0 8.3.2",
    bindings=NETWORK,
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.LIVE,
    dialects=Dialects.V1,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=_TENANT_CARD + rpc("GetTask", {"id": "t1"}, task()),
    clean=_TENANT_CARD + rpc("GetTask", {"id": "t1", "tenant": "billing"}, task()),
)
def not_echoed(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent card names a tenant for every interface of this binding, but the request has none
    of these tenants; or the card names none, and the request has one. Judged only if the card was
    fetched before the request.

    Several agents may share one address and differ only by tenant: the request reaches another
    customer's agent, or is refused. The client must send the `tenant` of the interface that it
    uses, and none if that interface has none.
    """
    declared = context.declarations
    offers = (
        declared.matching_interfaces(context.binding, context.exchange.dialect)
        if declared is not None
        else []
    )
    if not offers:
        return
    tenants = {offer.tenant for offer in offers}
    explicit = named_tenant(context, context.frame)
    tenant = explicit or _tenant_of_path(context)
    if tenant in tenants or "redacted-" in tenant or (tenants == {""} and not explicit):
        return
    wanted = " or ".join(f'"{each}"' if each else "none" for each in sorted(tenants))
    told = f'has the tenant "{tenant}"' if tenant else "has no tenant"
    yield RuleFinding(
        summary=f"{context.operation} {told}, the card says {wanted}",
        path=f"{context.root}tenant",
        value=tenant,
    )


def _tenant_of_path(context: RuleContext) -> str:
    """Return the path segment before the REST suffix if it follows the path of an interface, or an
    empty string."""
    if context.binding is not Binding.REST or context.rest_match is None:
        return ""
    return context.session.facts.tenant_of(context.record.agent, context.rest_match.prefix)

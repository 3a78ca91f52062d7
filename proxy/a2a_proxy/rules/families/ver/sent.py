"""Rules about the version that a client sends (A2A 1.0 sections 3.6.1, 3.6.2)."""

from collections.abc import Iterator
from functools import lru_cache
from sys import intern

from a2a_proxy.model.values import Actor, Binding, Dialect, Exchange, Severity
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    CARD,
    ENVELOPE,
    JSONRPC,
    NETWORK,
    RPC,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import CLEAN_SEND, rpc
from a2a_proxy.rules.examples.objects import TASK_PARAMS, agent_reply, send, task
from a2a_proxy.rules.families.ver.version import NEW_DIALECTS, OLD_DIALECTS, parse_version
from a2a_proxy.rules.state.records import ClientVersions

_IMMEDIATE_SEND = send(configuration={"returnImmediately": True})


def _request_form(exchange: Exchange) -> str:
    """Return the part of the request line that shows the dialect, for texts."""
    if exchange.binding is Binding.GRPC:
        return exchange.target.rpartition("/")[0].lstrip("/")
    return exchange.method if exchange.binding in ENVELOPE else exchange.target.partition("?")[0]


@rule(
    "A2A-VER-001",
    "1.0 request without A2A-Version",
    Severity.ERROR,
    actor=Actor.CLIENT,
    section="1.0 3.6.1",
    hook_points=HookPoint.HEADS,
    dialects=Dialects.V1,
    bindings=RPC,
    flagged=rpc("SendMessage", send(), agent_reply(), version=""),
    clean=CLEAN_SEND,
)
def absent(context: RuleContext) -> Iterator[RuleFinding]:
    """A request has the method, the path or the package of 1.0 but no `A2A-Version`, neither as
    header field nor as gRPC metadata nor as query parameter.

    Without it, an agent must take the client for a 0.3 client: a strict agent refuses every call of
    this client. The client must send `A2A-Version: 1.0`.
    """
    exchange = context.exchange
    if exchange.version_header or not exchange.operation:
        return
    if exchange.binding in ENVELOPE and "/" in exchange.method:
        return
    yield RuleFinding(
        summary=f"`{_request_form(exchange)}` is a 1.0 request, but the client sends no A2A-Version"
    )


@rule(
    "A2A-VER-002",
    "A2A-Version is malformed",
    Severity.ERROR,
    actor=Actor.CLIENT,
    section="1.0 3.6, 14.2.1",
    hook_points=HookPoint.HEADS,
    dialects=Dialects.V1,
    bindings=RPC,
    flagged=rpc("SendMessage", send(), agent_reply(), version="v1"),
    clean=CLEAN_SEND,
)
def malformed(context: RuleContext) -> Iterator[RuleFinding]:
    """`A2A-Version` does not have the form Major.Minor. A third number is a warning: patch versions
    should not be sent.

    Agents that compare the text, or parse two numbers, refuse the call. The client must send a
    value such as `1.0`.
    """
    version = context.exchange.version_header
    if not version or parse_version(version):
        return
    three = (
        version.count(".") == 2
        and parse_version(version.rpartition(".")[0])
        and version[-1].isdigit()
    )
    yield RuleFinding(
        summary=f"A2A-Version is `{version[:40]}`; it must have the form Major.Minor, such as 1.0",
        value=version,
        severity=Severity.WARNING if three else None,
    )


@rule(
    "A2A-VER-003",
    "A2A-Version contradicts the form of the request",
    Severity.ERROR,
    actor=Actor.CLIENT,
    section="1.0 3.6.2",
    hook_points=HookPoint.HEADS,
    bindings=NETWORK,
    flagged=rpc(
        "tasks/get",
        TASK_PARAMS,
        {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "working"}},
    ),
    clean=CLEAN_SEND,
)
def contradiction(context: RuleContext) -> Iterator[RuleFinding]:
    """`A2A-Version` is 1.0 or later, but the request has a method with a slash, a path under `/v1`
    that the agent's card does not declare as a 1.0 interface, or the package `a2a.v1`; or it is
    0.x, but the request has a method, a path or the package of 1.0.

    The agent reads the body in one dialect or the other; half of the agents refuse such a call, the
    rest guess. The client must send the version whose methods and paths it uses.
    """
    exchange = context.exchange
    if not exchange.version_header or not exchange.operation:
        return
    said, shown = dialect_of_version(exchange.version_header), _proven_dialect(context)
    if shown and (
        (said in NEW_DIALECTS and shown == "0.3") or (said in OLD_DIALECTS and shown == "1.0")
    ):
        told = (
            f"A2A-Version is {exchange.version_header}, but `{_request_form(exchange)}` belongs to "
            f"{shown}"
        )
        yield RuleFinding(summary=told, value=exchange.version_header)


def _proven_dialect(context: RuleContext) -> str:
    """Return the version that the request line proves, or an empty string if it fits both."""
    exchange = context.exchange
    if exchange.binding is Binding.GRPC:
        return "0.3" if exchange.target.startswith("/a2a.v1.") else "1.0"
    if exchange.binding in ENVELOPE:
        return "0.3" if "/" in exchange.method else "1.0"
    path = context.rest_match
    if path is None:
        return ""
    if not path.prefix.endswith("/v1"):
        return "1.0"
    interfaces = context.session.facts.get_card(context.record.agent).interfaces
    declared = any(each.path == path.prefix for each in interfaces if each.version.startswith("1"))
    return "0.3" if interfaces and not declared else ""


@rule(
    "A2A-VER-008",
    "Legacy or vendor dialect",
    Severity.INFO,
    actor=Actor.EITHER,
    section="0.1 and its JSON schema",
    hook_points=HookPoint.HEADS,
    dialects=Dialects.OLD,
    bindings=JSONRPC | CARD,
    flagged=rpc(
        "tasks/send",
        {"id": "t1", "message": {"role": "user", "parts": [{"type": "text", "text": "x"}]}},
        {"id": "t1", "sessionId": "s1", "status": {"state": "completed"}},
        version="",
    ),
    clean=CLEAN_SEND,
)
def legacy(context: RuleContext) -> Iterator[RuleFinding]:
    """An exchange is in the dialect of 0.1, or in the vendor dialect between 0.1 and 0.2: parts
    with `type`, `sessionId`, `tasks/send`, a status with `progress`, results without `kind`, a card
    with `authentication`. Reported once per agent.

    Current agents and clients do not understand it: the operators of the client and the agent
    should update them. Other oddities in such traffic may be correct in that dialect.
    """
    exchange = context.exchange
    if exchange.dialect not in (Dialect.V0_1, Dialect.VENDOR):
        return
    if context.agent.notes.setdefault("ver.legacy", exchange.id) != exchange.id:
        return
    name = "0.1" if exchange.dialect is Dialect.V0_1 else "the vendor dialect between 0.1 and 0.2"
    yield RuleFinding(
        summary=f"the exchange is in an old dialect: {name} (`{_request_form(exchange)}`)"
    )


@rule(
    "A2A-VER-013",
    "Client changes the version within a task",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="1.0 3.6.1",
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    trigger_flags=FrameFlag.UNCLEAN | FrameFlag.NEW_TASK,
    scope=EvidenceScope.LIVE,
    bindings=NETWORK,
    flagged=rpc("SendMessage", _IMMEDIATE_SEND, {"task": task("WORKING")})
    + rpc(
        "tasks/get",
        TASK_PARAMS,
        {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "working"}},
        version="0.3",
    ),
    clean=rpc("SendMessage", _IMMEDIATE_SEND, {"task": task("WORKING")})
    + rpc("GetTask", TASK_PARAMS, task("WORKING")),
)
def changed(context: RuleContext) -> Iterator[RuleFinding]:
    """A client uses different protocol versions for one task: by `A2A-Version`, or by the form of
    its requests.

    The task looks different in each: ids, states and errors change their spelling from one call to
    the next. The client should use one version for all calls about a task.
    """
    here = _request_version(context.exchange)
    if not here:
        return
    if context.frame_or_none is not None:
        if context.has_flag(FrameFlag.NEW_TASK) and context.task is not None:
            context.task.client_versions = _set_version(
                context.task.client_versions, context.record.client, here
            )
        return
    request_snapshot = context.record.request_snapshot
    known = (
        context.session.task_record(context.record.agent, request_snapshot.task_id)
        if request_snapshot is not None and request_snapshot.task_id
        else None
    )
    if known is None:
        return
    client = context.record.client
    before = next((version for name, version in known.client_versions if name == client), None)
    if before is None and len(known.client_versions) >= _MAX_CLIENTS:
        return
    known.client_versions = _set_version(known.client_versions, client, here)
    if before is not None and before != here:
        yield RuleFinding(
            summary=f"the client used version {before} for task {known.task_id}, "
            f"now it uses {here}",
            value=here,
        )


@lru_cache(maxsize=256)  # most tasks have one client and share its tuple
def _set_version(known: ClientVersions, client: str, version: str) -> ClientVersions:
    return (*[each for each in known if each[0] != client], (client, version))


_MAX_CLIENTS = 16
"""Number of clients of one task whose version is remembered."""


def _request_version(exchange: Exchange) -> str:
    """Return the version that was sent or that the form of the request shows; empty if neither is
    known."""
    version = parse_version(exchange.version_header)
    if version:
        return intern(f"{version[0]}.{version[1]}")  # interned because each open task stores it
    if exchange.binding in ENVELOPE and "/" in exchange.method:
        return "0.3"  # whatever the form of the answer
    return (
        "1.0"
        if exchange.dialect in NEW_DIALECTS
        else "0.3"
        if exchange.dialect in (*OLD_DIALECTS, Dialect.VENDOR)
        else ""
    )

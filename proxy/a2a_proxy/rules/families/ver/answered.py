"""Rules about the agent's handling of the version, and the dialect of its answers."""

from collections.abc import Iterable, Iterator

from a2a_proxy.model.values import Actor, Binding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    HTTP,
    MESSAGE_HOOKS,
    NETWORK,
    Dialects,
    EvidenceScope,
    FrameFlag,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card, rest, rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import (
    CONTEXT,
    TASK,
    agent_reply,
    reply,
    send,
    snapshot,
    status,
)
from a2a_proxy.rules.families.ver.version import declared_versions, parse_version
from a2a_proxy.rules.schema.check import findings_of_kinds
from a2a_proxy.rules.schema.fault import FaultKind

_VERSION_ERROR = rpc_error(-32009, "VERSION_NOT_SUPPORTED", "version 9.9 is not supported")
_CLEAN_CALL = fetch_card() + rpc("SendMessage", send(), agent_reply())


def _format_versions(versions: set[tuple[int, int]]) -> str:
    return ", ".join(f"{major}.{minor}" for major, minor in sorted(versions))


@rule(
    "A2A-VER-004",
    "Agent accepts a version that its card does not declare",
    Severity.ERROR,
    section="1.0 3.6.2",
    trigger_flags=FrameFlag.FIRST,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V1,
    bindings=NETWORK,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=fetch_card() + rpc("SendMessage", send(), agent_reply(), version="9.9"),
    clean=fetch_card() + rpc("SendMessage", send(), error=_VERSION_ERROR, version="9.9"),
)
def accepted(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent answers a call with success although no interface in its card has the version that
    the client sent. It is information if only the minor number differs, because libraries compare
    the major number.

    The client takes the answer for one of a version that the agent does not speak, and misreads it
    later. The agent must answer VersionNotSupportedError, or declare the version in its card.
    """
    version = parse_version(context.exchange.version_header)
    if version is None or version == (1, 0) or not context.is_success:
        return
    versions = declared_versions(context)
    if not versions or version in versions:
        return
    near = any(major == version[0] for major, _ in versions)
    yield RuleFinding(
        summary=f"the agent accepts A2A-Version {version[0]}.{version[1]}, "
        f"but its card declares only "
        f"{_format_versions(versions)}",
        value=context.exchange.version_header,
        severity=Severity.INFO if near else None,
    )


@rule(
    "A2A-VER-005",
    "Agent refuses a version that its card declares",
    Severity.WARNING,
    section="1.0 3.6.2",
    trigger_flags=FrameFlag.ERROR,
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    bindings=NETWORK,
    flagged=fetch_card() + rpc("SendMessage", send(), error=_VERSION_ERROR),
    clean=_CLEAN_CALL,
)
def refused(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent answers VersionNotSupportedError although its card declares that version for this
    binding.

    Clients choose an interface by the card; this interface does not work as declared. The agent
    must accept the version or remove it from its card.
    """
    version = parse_version(context.exchange.version_header)
    if version is None or context.failure.name != "VERSION_NOT_SUPPORTED":
        return
    if version in declared_versions(context, for_binding=True):
        told = (
            f"the agent refuses A2A-Version {version[0]}.{version[1]}, but its card declares it "
            f"for this binding"
        )
        yield RuleFinding(summary=told, value=context.exchange.version_header)


@rule(
    "A2A-VER-006",
    "Request without a version accepted by a 1.0 agent",
    Severity.WARNING,
    actor=Actor.EITHER,
    section="1.0 3.6.2",
    trigger_flags=FrameFlag.FIRST,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V1,
    bindings=NETWORK,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=fetch_card() + rpc("SendMessage", send(), agent_reply(), version=""),
    also_broken=("A2A-VER-001",),
    clean=_CLEAN_CALL,
)
def lenient(context: RuleContext) -> Iterator[RuleFinding]:
    """An agent whose card declares only interfaces of 1.0 or later answers a request without
    `A2A-Version` with success. A missing version means 0.3, so the agent must refuse the request.

    Clients that forget the version work with this agent and fail with others. The client must send
    `A2A-Version`; the agent should answer VersionNotSupportedError.
    """
    if context.exchange.version_header or not context.is_success:
        return
    if context.is_enveloped and "/" in context.exchange.method:
        return
    versions = declared_versions(context)
    if versions and all(major >= 1 for major, _ in versions):
        yield RuleFinding(
            summary="the agent accepts a request without A2A-Version, but its card declares only "
            f"{_format_versions(versions)}"
        )


@rule(
    "A2A-VER-007",
    "Answer in another dialect than the request",
    Severity.ERROR,
    section="1.0 3.6.2",
    trigger_flags=FrameFlag.UNCLEAN,
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    flagged=rest(
        "POST",
        "/message:send",
        send(),
        {"kind": "task", "id": TASK, "contextId": CONTEXT, "status": {"state": "completed"}},
    ),
    clean=rest("POST", "/message:send", send(), snapshot("COMPLETED")),
)
def foreign(context: RuleContext) -> Iterable[RuleFinding]:
    """A 1.0 request is answered in the form of 0.3 (`kind` in the result), or a 0.3 request in the
    form of 1.0 (a wrapper such as `statusUpdate`). Other rules skip such a payload.

    The client parses the answer in the dialect of its request, and finds nothing or fails. The
    agent must answer in the dialect of the request.
    """
    return findings_of_kinds(context, FaultKind.FOREIGN)


@rule(
    "A2A-VER-009",
    "Member of an older version in a 1.0 payload",
    Severity.WARNING,
    section="1.0 appendix A.2.1",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.V1,
    bindings=HTTP,
    flagged=rpc_stream(
        "SendStreamingMessage", send(), snapshot("WORKING"), status("COMPLETED", final=True)
    ),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot("WORKING"), status("COMPLETED")),
)
def removed(context: RuleContext) -> Iterable[RuleFinding]:
    """A 1.0 object has a member that 1.0 removed: `kind`, `final`, `blocking`,
    `pushNotificationConfig`, `schemes`, `mimeType`, `file`, `stateTransitionHistory`. Cards that
    serve both versions may have it.

    1.0 receivers ignore the member: `blocking: true` does not wait, a `file` is lost, `final` ends
    nothing. The sender (client or agent) must use the members of 1.0.
    """
    return findings_of_kinds(context, FaultKind.REMOVED)


@rule(
    "A2A-VER-010",
    "Enum spelled as in another version",
    Severity.ERROR,
    section="1.0 5.5",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=HTTP,
    flagged=rpc("SendMessage", send(role="user"), agent_reply()),
    clean=_CLEAN_CALL,
)
def other_enum(context: RuleContext) -> Iterable[RuleFinding]:
    """A state or role is spelled as in another version: `working` or `user` in 1.0,
    `TASK_STATE_WORKING` or `ROLE_USER` in 0.3, `TASK_STATE_CANCELLED` in 1.0. A JSON number is
    reported as a warning.

    The receiver's parser does not recognise the value, and rejects the message or treats the value
    as unspecified. The sender (client or agent) must use the spelling of the version in use.
    """
    return findings_of_kinds(context, FaultKind.OTHER_ENUM)


@rule(
    "A2A-VER-012",
    "`messageUpdate` sent to a client of a version before 1.1",
    Severity.ERROR,
    section="1.1 draft 3.2.8",
    trigger_flags=FrameFlag.UNCLEAN,
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=NETWORK,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot("WORKING"),
        {"messageUpdate": {"taskId": TASK, "contextId": CONTEXT, "message": reply(taskId=TASK)}},
        status("COMPLETED"),
    ),
    clean=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot("WORKING", generation="1"),
        {
            "messageUpdate": {
                "taskId": TASK,
                "contextId": CONTEXT,
                "message": reply(taskId=TASK),
                "generation": "2",
            }
        },
        status("COMPLETED", generation="3"),
        version="1.1",
    ),
)
def message_update(context: RuleContext) -> Iterator[RuleFinding]:
    """A stream contains a `messageUpdate` (field 5 of StreamResponse) although the client's
    `A2A-Version` is below 1.1 or absent.

    A 1.0 client does not know this event: it skips the event and its message, or ends the stream
    with an error. The agent must send `messageUpdate` only to clients with version 1.1 or later.
    """
    version = parse_version(context.exchange.version_header)
    if version and version >= (1, 1):
        return
    data = context.binding is Binding.GRPC and context.frame.payload[:1] == b"\x2a"
    if data and context.frame.schema.startswith("lf.a2a.v1.StreamResponse"):
        found = True
    else:
        found = isinstance(context.body, dict) and isinstance(
            context.body.get("messageUpdate"), dict
        )
    if found:
        said = context.exchange.version_header or "absent"
        yield RuleFinding(
            summary=f"the agent sends a `messageUpdate`, but A2A-Version of the client is {said}",
            path=f"{context.root}messageUpdate",
        )

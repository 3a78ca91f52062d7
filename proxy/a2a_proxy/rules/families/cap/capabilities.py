"""Rules that compare the declared capabilities and media types with what agent and client do (A2A
1.0 sections 3.1.1, 3.2.2, 3.3.4)."""

import re
from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, Binding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Fields, fetch_card, rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import card, message, send, snapshot, status, task
from a2a_proxy.rules.facts.failure import Failure
from a2a_proxy.rules.state.card_declarations import (
    CardDeclarations,
    Json,
    has_extended_card,
    indexed_objects,
    object_member,
    string_items,
    string_member,
)
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS, TERMINAL

STREAMING = frozenset({"SendStreamingMessage", "SubscribeToTask"})
PUSH = frozenset(
    {
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
    }
)
EXTENDED = "GetExtendedAgentCard"
UNSUPPORTED, NO_PUSH, NO_EXTENDED = (
    "UNSUPPORTED_OPERATION",
    "PUSH_NOTIFICATION_NOT_SUPPORTED",
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
)
NO_METHOD = "METHOD_NOT_FOUND"
_UNIMPLEMENTED = 12
"""A gRPC status."""
_WRONG_TYPE_ERROR = "CONTENT_TYPE_NOT_SUPPORTED"
_OTHER_REFUSALS = frozenset(
    {"INVALID_PARAMS", "INVALID_REQUEST", "UNSUPPORTED_OPERATION", "INTERNAL_ERROR"}
)
_MEDIA_PATTERN = re.compile(r"(?i)\b(media|content|mime)[ -]?types?\b")
_REFUSED_STATES = frozenset({int(TaskState.REJECTED), int(TaskState.FAILED)})


def refusal_name(context: RuleContext) -> str:
    """Return the error's name; gRPC's UNIMPLEMENTED without a reason counts as an unknown
    method."""
    failure = context.failure
    bare = context.binding is Binding.GRPC and failure.code == _UNIMPLEMENTED and not failure.reason
    return NO_METHOD if bare else failure.name


def declares_operation(declared: CardDeclarations, operation: str) -> bool:
    """Whether the card declares this operation; True if no flag exists for it."""
    if operation in STREAMING:
        return declared.streaming
    if operation in PUSH:
        return declared.push
    return declared.extended if operation == EXTENDED else True


_STREAM_HEADERS: Fields = {"Accept": "text/event-stream"}
_REFUSED_STREAM = rpc(
    "SendStreamingMessage",
    send(),
    error=rpc_error(-32004, UNSUPPORTED, "streaming is not supported"),
    headers=_STREAM_HEADERS,
)
_NO_STREAMING = fetch_card(card(capabilities={"streaming": False}))
_PLAYED_STREAM = (snapshot("WORKING"), status("COMPLETED", second=1))


@rule(
    "A2A-CAP-001",
    "Streaming without the capability",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 3.3.4, 3.1.2, 3.1.6; 0.3 7.2",
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST | FrameFlag.UNCLEAN,
    operations=STREAMING,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=_NO_STREAMING + rpc_stream("SendStreamingMessage", send(), *_PLAYED_STREAM),
    clean=_NO_STREAMING + rpc("SendMessage", send(), snapshot("COMPLETED")),
)
def streaming(context: RuleContext) -> Iterator[RuleFinding]:
    """The card does not declare `streaming`, but a streaming call is answered with events. From 1.0
    on, two variants are reported as a warning: the call is refused as an unknown method instead of
    with UnsupportedOperationError, and a client calls a streaming operation at all.

    Clients that follow the card never stream from this agent, and clients that try cannot rely on
    it. The agent must declare the capability or refuse the call. The client should call SendMessage
    and GetTask unless `streaming` is declared.
    """
    declared = context.declarations
    if declared is None or declared.streaming:
        return
    if context.frame_or_none is None:
        told = f"the client calls `{context.operation}`, but the card does not declare `streaming`"
        yield RuleFinding(summary=told, seq=-1, severity=Severity.WARNING)
    elif context.has_flag(FrameFlag.FIRST):
        if context.is_success:
            yield RuleFinding(
                summary=f"`{context.operation}` succeeds, but the card does not declare `streaming`"
            )
        elif (
            context.is_v1
            and context.has_flag(FrameFlag.ERROR)
            and refusal_name(context) == NO_METHOD
        ):
            told = (
                f"`{context.operation}` is refused as an unknown method instead of with "
                f"UnsupportedOperationError"
            )
            yield RuleFinding(summary=told, severity=Severity.WARNING)


@rule(
    "A2A-CAP-002",
    "A declared capability does not work",
    Severity.ERROR,
    section="1.0 3.3.4, 4.4.3; 0.3 5.5.2",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.ERROR,
    operations=STREAMING | PUSH,
    flagged=fetch_card() + _REFUSED_STREAM,
    clean=fetch_card() + rpc_stream("SendStreamingMessage", send(), *_PLAYED_STREAM),
)
def broken_promise(context: RuleContext) -> Iterator[RuleFinding]:
    """The card declares `streaming` or `pushNotifications`, but a call of that capability is
    refused as not supported or not implemented, in a binding and version that the card declares.
    Not checked if the task may be finished, which is another reason to refuse.

    Clients decide by the card how to follow a task, and here receive no updates. The agent must
    implement the capability or declare it as false. The client can fall back to polling with
    GetTask.
    """
    declared, operation = context.declarations, context.operation
    if declared is None or not declares_operation(declared, operation):
        return
    name = refusal_name(context)
    wrong = {NO_METHOD, UNSUPPORTED if operation in STREAMING else NO_PUSH}
    if name not in wrong or (name == UNSUPPORTED and _may_be_finished(context)):
        return
    if declared.matching_interfaces(context.binding, context.exchange.dialect):
        flag = "streaming" if operation in STREAMING else "pushNotifications"
        yield RuleFinding(
            summary=f"the card declares `{flag}`, but `{operation}` is refused: {name} "
            f"{context.failure.text[:100]}"
        )


def _may_be_finished(context: RuleContext) -> bool:
    """Whether the call is about a task that is finished, or not known to be running."""
    named = context.record.request_snapshot.task_id if context.record.request_snapshot else ""
    if context.operation == "SubscribeToTask" and not named:
        return True
    known = context.session.task_record(context.record.agent, named) if named else None
    return bool(named) and (
        known is None or not known.state or known.state in TERMINAL or not known.streams
    )


_NO_EXTENDED = fetch_card(card(capabilities={"streaming": True}))


@rule(
    "A2A-CAP-003",
    "The extended card is refused with the wrong error, or served undeclared",
    Severity.ERROR,
    section="1.0 3.3.4, 3.1.11; 0.3 7.10",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.FIRST,
    operations=(EXTENDED,),
    flagged=_NO_EXTENDED
    + rpc(EXTENDED, error=rpc_error(-32007, NO_EXTENDED, "there is no extended card")),
    clean=_NO_EXTENDED
    + rpc(EXTENDED, error=rpc_error(-32004, UNSUPPORTED, "there is no extended card")),
)
def extended(context: RuleContext) -> Iterator[RuleFinding]:
    """The card does not declare `extendedAgentCard`, so the call must fail with
    UnsupportedOperationError; instead it succeeds, or fails with
    ExtendedAgentCardNotConfiguredError or as an unknown method. Or the card declares it and no
    extended card is configured, so the call must fail with ExtendedAgentCardNotConfiguredError;
    instead it fails with UnsupportedOperationError. Before 1.0 only a success is judged, as a
    warning, because the card must declare `supportsAuthenticatedExtendedCard`; not on gRPC, where
    the call returns the public card too.

    The error tells clients whether it makes sense to try again once the agent is configured. The
    agent must declare `extendedAgentCard` in its card if it serves the extended card; otherwise it
    must answer with the error that fits.
    """
    if context.is_success:
        if context.binding is Binding.GRPC and not context.is_v1:
            return
        public = context.agent.card
        if (
            public is not None
            and context.agent.card_at < context.record.started
            and not has_extended_card(public)
        ):
            name = "extendedAgentCard" if context.is_v1 else "supportsAuthenticatedExtendedCard"
            yield RuleFinding(
                summary=f"the extended card is served, but the card does not declare `{name}`",
                severity=None if context.is_v1 else Severity.WARNING,
            )
        return
    declared = context.declarations
    if declared is None or not context.is_v1:
        return
    name = refusal_name(context) if context.has_flag(FrameFlag.ERROR) else ""
    if declared.extended and name == UNSUPPORTED:
        yield RuleFinding(
            summary=f"the card declares `extendedAgentCard`, but the call is refused with {name}"
        )
    elif not declared.extended and name in (NO_EXTENDED, NO_METHOD):
        yield RuleFinding(
            summary=f"the card does not declare `extendedAgentCard`, so the error must be "
            f"{UNSUPPORTED}, not {name}"
        )


def _normalise_media_type(text: str) -> str:
    """Return a media type in lower case without parameters; the old bare `text` becomes
    `text/*`."""
    kind = text.partition(";")[0].strip().lower()
    return "text/*" if kind == "text" else kind


def _accepts_media(modes: list[str], media: str) -> bool:
    """Whether a mode is this type or a pattern for it. A mode that is not a media type (an old
    habit) accepts everything.
    """
    top = media.partition("/")[0]
    return any(mode in (media, "*/*", f"{top}/*") or "/" not in mode for mode in modes)


def _part_media_types(parts: Any) -> Iterator[tuple[int, str]]:
    """Yield index and media type of each part that names one."""
    for index, part in indexed_objects(parts):
        media = _normalise_media_type(string_member(part, "mediaType"))
        if "/" in media:
            yield index, media


_IMAGE_MESSAGE: Json = {
    "message": message(parts=[{"url": "https://example.com/cat.png", "mediaType": "image/png"}])
}


@rule(
    "A2A-CAP-004",
    "A part of an undeclared media type is accepted, or refused with another error",
    Severity.WARNING,
    section="1.0 3.1.1, 4.4.1; 0.3 7.1",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=fetch_card() + rpc("SendMessage", _IMAGE_MESSAGE, snapshot("COMPLETED")),
    clean=fetch_card()
    + rpc(
        "SendMessage",
        _IMAGE_MESSAGE,
        error=rpc_error(-32005, _WRONG_TYPE_ERROR, "image/png is not supported"),
    ),
)
def input_modes(context: RuleContext) -> Iterator[RuleFinding]:
    """A part of a message has a media type that is not among the card's input modes, and the agent
    processes the message (the task is neither rejected nor failed). Or the agent refuses it because
    of the media type, with an error other than ContentTypeNotSupportedError.

    Clients decide by these modes what to send: either the card hides an ability of the agent, or
    the client cannot see why its call failed. The agent must declare the mode or refuse with
    ContentTypeNotSupportedError.
    """
    declared, request = context.declarations, context.request
    if (
        declared is None
        or not declared.input_modes
        or request is None
        or b"/" not in request.payload
    ):
        return
    modes = [_normalise_media_type(mode) for mode in declared.input_modes]
    sent = _part_media_types(object_member(context.params, "message").get("parts"))
    media = next((each for _, each in sent if not _accepts_media(modes, each)), "")
    if not media:
        return
    if context.is_success and context.frame.event and context.frame.state not in _REFUSED_STATES:
        has = ", ".join(modes)[:100]
        yield RuleFinding(
            summary=f"a part of type {media} is accepted, but the card's input modes are {has}",
            seq=-1,
        )
    elif context.has_flag(FrameFlag.ERROR) and _is_media_refusal(context.failure):
        yield RuleFinding(
            summary=f"a part of type {media} is refused with {context.failure.name} instead of "
            f"{_WRONG_TYPE_ERROR}"
        )


def _is_media_refusal(failure: Failure) -> bool:
    return failure.name in _OTHER_REFUSALS and bool(_MEDIA_PATTERN.search(failure.text))


_TEXT_ONLY: Json = {"message": message(), "configuration": {"acceptedOutputModes": ["text/plain"]}}


def _image_artifact(media: str) -> Json:
    part = {"url": "https://example.com/1", "mediaType": media}
    return {"task": task(artifacts=[{"artifactId": "a1", "parts": [part]}])}


@rule(
    "A2A-CAP-005",
    "The agent sends a media type that the client did not accept",
    Severity.WARNING,
    section="1.0 3.2.2; 0.3 7.1.2",
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.TYPED,
    operations=SENDING_OPERATIONS,
    flagged=rpc("SendMessage", _TEXT_ONLY, _image_artifact("image/png")),
    clean=rpc("SendMessage", _TEXT_ONLY, _image_artifact("text/plain")),
)
def output_modes(context: RuleContext) -> Iterator[RuleFinding]:
    """A part of an artifact, or of the agent's message, has a media type that is not among the
    `acceptedOutputModes` of the request.

    The client receives content that it cannot show or process. The agent should convert the content
    to an accepted type or reject the task.
    """
    if b"/" not in context.frame.payload:
        return
    accepted = _accepted_output_modes(context)
    if not accepted:
        return
    for path, holder in _part_holders(context.event):
        for index, media in _part_media_types(holder.get("parts")):
            if not _accepts_media(accepted, media):
                told = (
                    f"a part has type {media}, but the client accepts {', '.join(accepted)[:100]}"
                )
                yield RuleFinding(
                    summary=told, path=f"{context.root}{path}parts[{index}].mediaType", value=media
                )


def _accepted_output_modes(context: RuleContext) -> list[str]:
    """Return the media types accepted by the request, decoded once; an empty list means all."""
    notes = context.record.writable_notes()
    found: list[str] | None = notes.get("accepted")
    if found is None:
        modes = string_items(
            object_member(context.params, "configuration").get("acceptedOutputModes")
        )
        found = notes["accepted"] = [_normalise_media_type(mode) for mode in modes]
    return found


def _part_holders(event: Json) -> Iterator[tuple[str, Json]]:
    """Yield the objects of an event that have parts, each with its path in the event."""
    found = object_member(event, "task")
    for index, each in indexed_objects(found.get("artifacts")):
        yield f"task.artifacts[{index}].", each
    update = object_member(event, "artifactUpdate")
    yield "artifactUpdate.artifact.", object_member(update, "artifact")
    yield "message.", object_member(event, "message")

"""Rules about media types accepted by the agent and by the client (A2A 1.0 sections 3.1.1,
3.2.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card, rpc, rpc_error
from a2a_proxy.rules.examples.objects import message, snapshot, task
from a2a_proxy.rules.facts.failure import Failure
from a2a_proxy.rules.state.card_declarations import (
    Json,
    indexed_objects,
    object_member,
    string_items,
    string_member,
)
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_WRONG_TYPE_ERROR = "CONTENT_TYPE_NOT_SUPPORTED"
_OTHER_REFUSALS = frozenset(
    {"INVALID_PARAMS", "INVALID_REQUEST", "UNSUPPORTED_OPERATION", "INTERNAL_ERROR"}
)
_MEDIA_PATTERN = re.compile(r"(?i)\b(media|content|mime)[ -]?types?\b")
_REFUSED_STATES = frozenset({int(TaskState.REJECTED), int(TaskState.FAILED)})


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

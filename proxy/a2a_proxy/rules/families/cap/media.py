"""Media types: what the card takes, what the client takes (A2A 1.0 sections 3.1.1, 3.2.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card, rpc, rpc_error
from a2a_proxy.rules.examples.objects import message, snapshot, task
from a2a_proxy.rules.facts.failure import Failure
from a2a_proxy.rules.state.card_declarations import Json, member, objects, word, words
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_WRONG_TYPE = "CONTENT_TYPE_NOT_SUPPORTED"
_OTHER_REFUSALS = frozenset({"INVALID_PARAMS", "INVALID_REQUEST", "UNSUPPORTED_OPERATION", "INTERNAL_ERROR"})
_ABOUT_MEDIA = re.compile(r"(?i)\b(media|content|mime)[ -]?types?\b")
_REFUSED = frozenset({int(TaskState.REJECTED), int(TaskState.FAILED)})


def _kind(text: str) -> str:
    """A media type without parameters, lower case; the old bare `text` is any text."""
    kind = text.partition(";")[0].strip().lower()
    return "text/*" if kind == "text" else kind


def _takes(modes: list[str], media: str) -> bool:
    """One of the modes is this type, or a pattern for it; modes that are no media types (an old habit) take all."""
    top = media.partition("/")[0]
    return any(mode in (media, "*/*", f"{top}/*") or "/" not in mode for mode in modes)


def _media_types(parts: Any) -> Iterator[tuple[int, str]]:
    """Of the parts that name one."""
    for index, part in objects(parts):
        media = _kind(word(part, "mediaType"))
        if "/" in media:
            yield index, media


_IMAGE: Json = {"message": message(parts=[{"url": "https://example.com/cat.png", "mediaType": "image/png"}])}


@rule(
    "A2A-CAP-004",
    "A part of an undeclared media type is taken, or refused with another error",
    Severity.WARNING,
    section="1.0 3.1.1, 4.4.1; 0.3 7.1",
    scope=EvidenceScope.LIVE,
    when=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    needs=FrameFlag.CARD_SEEN,
    flagged=fetch_card() + rpc("SendMessage", _IMAGE, snapshot("COMPLETED")),
    clean=fetch_card() + rpc("SendMessage", _IMAGE, error=rpc_error(-32005, _WRONG_TYPE, "image/png is not supported")),
)
def input_modes(see: RuleContext) -> Iterator[RuleFinding]:
    """A part of a message names a media type that is in none of the card's input modes, and the agent works on it (the
    task is not rejected or failed); or it refuses for the media type, with an error other than
    ContentTypeNotSupportedError.

    Clients choose by the modes what they send: the card hides what the agent can do, or they cannot tell why it failed.
    """
    declared, request = see.declared, see.request
    if declared is None or not declared.input_modes or request is None or b"/" not in request.payload:
        return
    modes = [_kind(mode) for mode in declared.input_modes]
    sent = _media_types(member(see.params, "message").get("parts"))
    media = next((each for _, each in sent if not _takes(modes, each)), "")
    if not media:
        return
    if see.succeeded and see.frame.event and see.frame.state not in _REFUSED:
        has = ", ".join(modes)[:100]
        yield RuleFinding(summary=f"a part of type {media} is accepted, the card's input modes are {has}", seq=-1)
    elif see.is_(FrameFlag.ERROR) and _for_its_type(see.failure):
        yield RuleFinding(
            summary=f"a part of type {media} is refused with {see.failure.name}, it must be {_WRONG_TYPE}"
        )


def _for_its_type(failure: Failure) -> bool:
    return failure.name in _OTHER_REFUSALS and bool(_ABOUT_MEDIA.search(failure.text))


_TEXT_ONLY: Json = {"message": message(), "configuration": {"acceptedOutputModes": ["text/plain"]}}


def _drawn(media: str) -> Json:
    part = {"url": "https://example.com/1", "mediaType": media}
    return {"task": task(artifacts=[{"artifactId": "a1", "parts": [part]}])}


@rule(
    "A2A-CAP-005",
    "An artifact has a media type that the client did not accept",
    Severity.WARNING,
    section="1.0 3.2.2; 0.3 7.1.2",
    scope=EvidenceScope.EXCHANGE,
    when=FrameFlag.TASK | FrameFlag.ARTIFACT | FrameFlag.MESSAGE,
    operations=SENDING_OPERATIONS,
    flagged=rpc("SendMessage", _TEXT_ONLY, _drawn("image/png")),
    clean=rpc("SendMessage", _TEXT_ONLY, _drawn("text/plain")),
)
def output_modes(see: RuleContext) -> Iterator[RuleFinding]:
    """A part of an artifact, or of the agent's message, names a media type that is none of the `acceptedOutputModes`
    of the request.

    The client said what it can use: it gets something that it cannot show or process.
    """
    if b"/" not in see.frame.payload:
        return
    accepted = _accepted(see)
    if not accepted:
        return
    for path, holder in _holders(see.event):
        for index, media in _media_types(holder.get("parts")):
            if not _takes(accepted, media):
                told = f"a part of type {media}, the client accepts {', '.join(accepted)[:100]}"
                yield RuleFinding(summary=told, path=f"{see.root}{path}parts[{index}].mediaType", value=media)


def _accepted(see: RuleContext) -> list[str]:
    """What the request accepts, read once; empty: everything."""
    notes = see.track.remember()
    found: list[str] | None = notes.get("accepted")
    if found is None:
        modes = words(member(see.params, "configuration").get("acceptedOutputModes"))
        found = notes["accepted"] = [_kind(mode) for mode in modes]
    return found


def _holders(event: Json) -> Iterator[tuple[str, Json]]:
    """What has parts, with its path in the event."""
    found = member(event, "task")
    for index, each in objects(found.get("artifacts")):
        yield f"task.artifacts[{index}].", each
    update = member(event, "artifactUpdate")
    yield "artifactUpdate.artifact.", member(update, "artifact")
    yield "message.", member(event, "message")

"""Message texts in the semantic conventions for generative AI, only if the user enables them. No
I/O.

The texts are those of the recording, with its redaction. Parts without text are represented by
their kind only.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from a2a_proxy.model.event import Event, Message, Part
from a2a_proxy.protocol.artifact import assemble_artifacts
from a2a_proxy.telemetry.values import Attributes

MAX_TEXT = 16 << 10
"""Maximum bytes (UTF-8) of text per direction of a call; the rest is cut, and its bytes are
counted."""
MAX_PARTS = 256
"""Maximum number of parts per direction; the bytes of further parts are counted as cut."""
MAX_FRAMES = 4096
"""Maximum number of frames of a call that are read."""
_MAX_NAME = 128
"""Maximum characters of an artifact's name and of a media type."""


class DirectionContent(msgspec.Struct, frozen=True):
    """Content of one direction of a call."""

    messages: tuple[dict[str, Any], ...] = ()
    text: str = ""
    """The texts as plain text, with an empty line between two messages."""
    cut: int = 0
    """Bytes of text that were left out."""


class MessageContent(msgspec.Struct, frozen=True):
    """Content of both directions of a call."""

    input: DirectionContent = DirectionContent()
    output: DirectionContent = DirectionContent()
    unread: int = 0
    """Frames that were not read: they are truncated in the recording, or there were too many."""

    def make_attributes(self) -> Attributes:
        """Return `gen_ai.input.messages` and `gen_ai.output.messages` as JSON, and the numbers of
        omitted bytes and frames."""
        made: Attributes = {}
        for name, content in (("input", self.input), ("output", self.output)):
            if content.messages:
                made[f"gen_ai.{name}.messages"] = json.dumps(
                    content.messages, ensure_ascii=False, separators=(",", ":")
                )
            if content.cut:
                made[f"a2a_proxy.content.{name}_cut_bytes"] = content.cut
        if self.unread:
            made["a2a_proxy.content.frames_unread"] = self.unread
        return made


NO_CONTENT = MessageContent()


def message_content(
    requests: Iterable[Message], events: Iterable[Event], *, finish: str, unread: int = 0
) -> MessageContent:
    """Return the content of the client's messages and the agent's events, in order; `finish` is the
    finish reason."""
    return MessageContent(
        _direction_content(_request_messages(requests)),
        _direction_content(_response_messages(list(events), finish)),
        unread,
    )


def finish_reason(failed: bool, states: tuple[str, ...]) -> str:
    """Return the finish reason of the agent's messages: `stop`, or `error` if the call or the task
    failed."""
    return "error" if failed or states[-1:] == ("failed",) else "stop"


_Message = tuple[dict[str, Any], list[Part]]
"""A message without its parts, and its parts."""


def _request_messages(messages: Iterable[Message]) -> Iterator[_Message]:
    for message in messages:
        yield {"role": _role_label(message, "user")}, message.parts


def _response_messages(events: list[Event], finish: str) -> Iterator[_Message]:
    """Yield each message of the agent once, in order of arrival, followed by the assembled
    artifacts."""
    seen: set[str] = set()
    for message in _event_messages(events):
        if message.message_id and message.message_id in seen:
            continue
        seen.add(message.message_id)
        yield {"role": _role_label(message, "assistant"), "finish_reason": finish}, message.parts
    for found in assemble_artifacts(enumerate(events)).values():
        about = {"role": "assistant", "finish_reason": finish}
        name = (found.artifact.name or found.artifact.artifact_id)[:_MAX_NAME]
        yield (about | {"artifact": name} if name else about), found.artifact.parts


def _event_messages(events: list[Event]) -> Iterator[Message]:
    for event in events:
        status = (
            event.status_update.status
            if event.status_update
            else event.task.status
            if event.task
            else None
        )
        for message in (event.message, status.message if status else None):
            if message is not None:
                yield message


def _role_label(message: Message, default: str) -> str:
    return {"ROLE_AGENT": "assistant", "ROLE_USER": "user"}.get(message.role, default)


def _direction_content(messages: Iterable[_Message]) -> DirectionContent:
    room, parts_left, cut = MAX_TEXT, MAX_PARTS, 0
    made: list[dict[str, Any]] = []
    plain: list[str] = []
    for about, parts in messages:
        kept: list[dict[str, Any]] = []
        for part in parts:
            text = part.text or ""
            # The beginning of at most `max_bytes` bytes, in whole characters; lone surrogates
            # become `?`.
            fits = (
                text.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
                if parts_left
                else ""
            )
            room -= len(fits.encode())
            cut += len(text.encode("utf-8", "replace")) - len(fits.encode())
            if parts_left and (fits or part.text is None):
                kept.append(
                    {"type": "text", "content": fits}
                    if part.text is not None
                    else _other_part(part)
                )
                parts_left -= 1
        if kept:
            made.append({**about, "parts": kept})
            plain.append("\n".join(each["content"] for each in kept if "content" in each))
    return DirectionContent(tuple(made), "\n\n".join(filter(None, plain)), cut)


def _other_part(part: Part) -> dict[str, Any]:
    """Return a part without text as its kind and media type."""
    kind = "raw" if part.raw is not None else "url" if part.url is not None else "data"
    return {"type": kind, **({"mime_type": part.media_type[:_MAX_NAME]} if part.media_type else {})}

"""What was said, as text, by the convention for messages of generative AI; only where the user wants it. Pure.

The text is that of the recording, so redacted as it is. Parts that are no text are named by their kind alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from a2a_proxy.model.event import Event, Message, Part
from a2a_proxy.protocol.artifact import assemble_artifacts
from a2a_proxy.telemetry.values import Attributes

MAX_TEXT = 16 << 10
"""Bytes of text in UTF-8 that one direction of a call gets; what comes after them is cut, and counted."""
MAX_PARTS = 256
"""Parts of one direction; those after them are counted as bytes too."""
MAX_FRAMES = 4096
"""Frames of a call that are read for it."""
_MAX_NAME = 128
"""Characters of a name of an artifact, and of a media type."""


class DirectionContent(msgspec.Struct, frozen=True):
    """One direction of a call."""

    messages: tuple[dict[str, Any], ...] = ()
    text: str = ""
    """The same as plain text, an empty line between two messages."""
    cut: int = 0
    """Bytes of text that were left out."""


class MessageContent(msgspec.Struct, frozen=True):
    """Both directions."""

    input: DirectionContent = DirectionContent()
    output: DirectionContent = DirectionContent()
    unread: int = 0
    """Frames that were not read: the recording has a part of them only, or there were too many."""

    def attributes(self) -> Attributes:
        """`gen_ai.input.messages` and `gen_ai.output.messages` as JSON text, and what was left out of them."""
        made: Attributes = {}
        for name, said in (("input", self.input), ("output", self.output)):
            if said.messages:
                made[f"gen_ai.{name}.messages"] = json.dumps(said.messages, ensure_ascii=False, separators=(",", ":"))
            if said.cut:
                made[f"a2a_proxy.content.{name}_cut_bytes"] = said.cut
        if self.unread:
            made["a2a_proxy.content.frames_unread"] = self.unread
        return made


NO_CONTENT = MessageContent()


def message_content(
    requests: Iterable[Message], events: Iterable[Event], *, finish: str, unread: int = 0
) -> MessageContent:
    """Of the messages of the client and what the agent answered, in order; `finish` is why the agent's end."""
    return MessageContent(
        _direction_content(_request_messages(requests)),
        _direction_content(_response_messages(list(events), finish)),
        unread,
    )


def finish_reason(failed: bool, states: tuple[str, ...]) -> str:
    """Why the agent's messages end, as the convention says it: `stop`, or `error` where the call or the task failed."""
    return "error" if failed or states[-1:] == ("failed",) else "stop"


_Message = tuple[dict[str, Any], list[Part]]
"""A message without its parts, and those."""


def _request_messages(messages: Iterable[Message]) -> Iterator[_Message]:
    for message in messages:
        yield {"role": _role_label(message, "user")}, message.parts


def _response_messages(events: list[Event], finish: str) -> Iterator[_Message]:
    """Each message of the agent once, in the order in which they came, then the artifacts, put together."""
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
        status = event.status_update.status if event.status_update else event.task.status if event.task else None
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
            fits = _truncate_text(text, room) if parts_left else ""
            room -= len(fits.encode())
            cut += len(text.encode("utf-8", "replace")) - len(fits.encode())
            if parts_left and (fits or part.text is None):
                kept.append({"type": "text", "content": fits} if part.text is not None else _other_part(part))
                parts_left -= 1
        if kept:
            made.append({**about, "parts": kept})
            plain.append("\n".join(each["content"] for each in kept if "content" in each))
    return DirectionContent(tuple(made), "\n\n".join(filter(None, plain)), cut)


def _other_part(part: Part) -> dict[str, Any]:
    """What is no text: its kind, and of what type it is."""
    kind = "raw" if part.raw is not None else "url" if part.url is not None else "data"
    return {"type": kind, **({"mime_type": part.media_type[:_MAX_NAME]} if part.media_type else {})}


def _truncate_text(text: str, max_bytes: int) -> str:
    """The beginning of it that has so many bytes, in whole characters; what is no Unicode becomes `?`."""
    return text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")

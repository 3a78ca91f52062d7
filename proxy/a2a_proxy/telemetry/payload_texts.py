"""Texts and reported steps in the payloads of a call, read only if enabled."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.model.event import Event, Message
from a2a_proxy.model.values import Binding, Exchange, Frame, FrameKind
from a2a_proxy.protocol.event import event_from_json, normalise_event, to_event
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow
from a2a_proxy.telemetry.attributes import error_type
from a2a_proxy.telemetry.message_content import (
    MAX_FRAMES,
    NO_CONTENT,
    MessageContent,
    finish_reason,
    message_content,
)
from a2a_proxy.telemetry.steps import EXTENSION, StepReport, step_reports

_AGENT_MESSAGE_KINDS = (FrameKind.EVENT, FrameKind.RESPONSE)


class PayloadTexts(msgspec.Struct, frozen=True):
    """Message content of a call, and the agent's reports of its steps."""

    content: MessageContent = NO_CONTENT
    reports: tuple[StepReport, ...] = ()


def read_payload_texts(recording: Recording, row: ExchangeRow, *, content: bool) -> PayloadTexts:
    """Read a finished call. Steps are read if the client requested the extension by its URI."""
    exchange = row.exchange
    asks = EXTENSION in exchange.extensions
    if not (content or asks) or not (exchange.operation or exchange.binding is Binding.WEBHOOK):
        return PayloadTexts()
    asked: list[Message] = []
    events: list[Event] = []
    found: list[StepReport] = []
    unread = 0
    for number, each in enumerate(recording.read_frames(row.key, payloads=False)):
        frame = each.frame
        if frame.kind is not FrameKind.REQUEST and frame.kind not in _AGENT_MESSAGE_KINDS:
            continue
        if frame.truncated or number >= MAX_FRAMES:
            unread += 1
            continue
        frame = msgspec.structs.replace(frame, payload=recording.read_payload(each))
        if frame.kind is FrameKind.REQUEST:
            asked += _request_messages(frame, exchange)
        else:
            event = to_event(
                frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind
            )
            events.append(event)
            found += step_reports(frame.at, event) if asks else ()
    if not content:
        return PayloadTexts(reports=tuple(found))
    finish = finish_reason(bool(error_type(exchange)), exchange.states)
    return PayloadTexts(message_content(asked, events, finish=finish, unread=unread), tuple(found))


def _request_messages(frame: Frame, exchange: Exchange) -> list[Message]:
    """Return the message of a request in a list, which is empty if it has none."""
    value: Any = normalise_event(
        frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind
    ).get("message")
    message = event_from_json({"message": value}).message if isinstance(value, dict) else None
    return [message] if message is not None else []

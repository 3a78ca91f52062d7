"""Partial decoding of the message that a client sends, limited to the fields that rules compare."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.model.values import Frame
from a2a_proxy.protocol.artifact_chunks import PartShape, json_part_content, proto_part_content
from a2a_proxy.protocol.schema import JSON, decoder_for, is_protobuf
from a2a_proxy.protocol.status_summary import DECODE_ERRORS
from a2a_proxy.rules.facts.compared_values import NO_PARTS, PartsSummary, add_parts


class RequestSummary(msgspec.Struct, frozen=True, gc=False):
    """Summary of the message in a request; `parts` is 0 if there is none or it cannot be read."""

    parts: int = 0
    content: PartsSummary = NO_PARTS
    references: tuple[str, ...] = ()
    """The `referenceTaskIds` of the message."""


_NO_MESSAGE = RequestSummary()


class _SummaryMessage(msgspec.Struct, rename="camel", gc=False):
    parts: list[PartShape] | None = None
    content: list[PartShape] | None = None
    reference_task_ids: list[str] | None = None


class _MessageHolder(msgspec.Struct, gc=False):
    """The envelope, or the parameters."""

    params: _MessageHolder | None = None
    message: _SummaryMessage | None = None
    request: _SummaryMessage | None = None


_decode_request = msgspec.json.Decoder(_MessageHolder).decode


def summarise_request(frame: Frame) -> RequestSummary:
    """Return the summary of the message in a request."""
    try:
        if frame.schema == JSON:
            holder = _decode_request(frame.payload)
            holder = holder.params or holder
            return _summarise_json(holder.message or holder.request)
        if is_protobuf(frame.schema):
            return _summarise_proto(decoder_for(frame.schema).parse(frame.payload))
    except DECODE_ERRORS:
        pass
    return _NO_MESSAGE


def _summarise_json(message: _SummaryMessage | None) -> RequestSummary:
    if message is None:
        return _NO_MESSAGE
    parts = message.parts or message.content or []
    pieces = [json_part_content(part) for part in parts]
    return RequestSummary(
        len(parts), add_parts(NO_PARTS, pieces), tuple(message.reference_task_ids or ())
    )


def _summarise_proto(value: Any) -> RequestSummary:
    """Summarise a request's message, also inside the live request of one proposal."""
    if value.DESCRIPTOR.name != "Message":
        name = next(
            (each for each in ("message", "request") if each in value.DESCRIPTOR.fields_by_name), ""
        )
        return _summarise_proto(getattr(value, name)) if name else _NO_MESSAGE
    fields = value.DESCRIPTOR.fields_by_name
    old = "parts" not in fields
    parts = value.content if old else value.parts
    references = tuple(value.reference_task_ids) if "reference_task_ids" in fields else ()
    return RequestSummary(
        len(parts),
        add_parts(NO_PARTS, [proto_part_content(part) for part in parts]),
        references,
    )

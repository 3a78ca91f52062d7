"""The tasks in the response to ListTasks, each as a frame of its own."""

from __future__ import annotations

from typing import Any

import msgspec
from google.protobuf.message import DecodeError

from a2a_proxy.model.values import EventKind, Frame
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS, ResultShape
from a2a_proxy.protocol.json_summary import summarise_result
from a2a_proxy.protocol.proto_summary import reader_for
from a2a_proxy.protocol.schema import JSON, decoder_for, is_protobuf
from a2a_proxy.protocol.summary import Summary


class _Listing(msgspec.Struct, gc=False):
    """A task list: REST has it at the top level, JSON-RPC inside the result."""

    tasks: list[ResultShape] | None = None
    result: _Listing | None = None


_decode_listing = msgspec.json.Decoder(_Listing).decode


def split_task_list(frame: Frame) -> list[Frame]:
    """Return one frame without payload per task of a list; empty if the list cannot be read."""
    try:
        summaries = _summaries_of(frame)
    except (*UNREADABLE_ERRORS, DecodeError, KeyError):
        return []
    return [_frame_of_task(frame, summary) for summary in summaries if summary[1]]


def _summaries_of(frame: Frame) -> list[Summary]:
    if frame.schema == JSON:
        listing = _decode_listing(frame.payload)
        return [
            summarise_result(task, streaming=False)
            for task in (listing.result or listing).tasks or ()
        ]
    if not is_protobuf(frame.schema):
        return []
    tasks: Any = decoder_for(frame.schema).parse(frame.payload).tasks
    return [reader_for(type(task))(task) for task in tasks]


def _frame_of_task(frame: Frame, summary: Summary) -> Frame:
    _, task_id, context_id, message_id, _, state, generation, *_ = summary
    return msgspec.structs.replace(
        frame,
        payload=b"",
        schema="",
        event=EventKind.TASK,
        task_id=task_id,
        context_id=context_id,
        message_id=message_id,
        state=state,
        generation=generation,
    )

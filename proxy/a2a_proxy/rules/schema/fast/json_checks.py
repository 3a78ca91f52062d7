"""Fast checks of JSON: 1.0 with the generations of the 1.1 draft, 0.2 and 0.3 in the JSON-RPC form,
and 0.3 in the protobuf form that REST carries (manual/protocol.md "Fields of 1.0", "Fields of 0.3",
"JSON objects before 1.0").

Objects are typed `Any`, because their types are made at run time from the shapes.
"""

import re
from collections.abc import Callable
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from a2a_proto.shapes.json_0_3 import json_0_3
from a2a_proto.shapes.protobuf_shapes import make_grammar
from a2a_proxy.protocol.artifact_chunks import make_chunk
from a2a_proxy.redaction.known_secrets import MIN_SECRET_DIGITS
from a2a_proxy.rules.facts.partial_decode import GateResult, StatusSummary
from a2a_proxy.rules.schema.fast.plain_objects import (
    PLAIN_MEMBERS,
    PLAIN_MEMBERS_0_3,
    PlainObjects,
    RpcAnswer,
    RpcCall,
)

Check = Callable[[bytes], GateResult]
"""Checks whether a payload is valid."""
Subject = Literal["event", "sent", "task", "send", "task id"]
"""Content of a payload: an event of a stream, the answer to a send, a task, a send, a request that
names a task."""
Inspection = tuple[GateResult, int]
"""Result for a payload of the right types, with the number of quotes expected in a payload without
escapes; 0 if it must be encoded to count.
"""
_INVALID: Inspection = (False, 0)

_DATE_PATTERN = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_TIME_PATTERN = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_match_utc = re.compile(rf"[12][0-9]{{3}}-{_DATE_PATTERN}T{_TIME_PATTERN}\.[0-9]{{3,9}}Z").fullmatch
"""UTC with milliseconds."""
_match_zoned = re.compile(
    rf"[12][0-9]{{3}}-{_DATE_PATTERN}T{_TIME_PATTERN}(?:\.[0-9]{{1,9}})?(?:Z|"
    rf"[+-][0-9]{{2}}:[0-9]{{2}})"
).fullmatch
"""Any zone, which is all that 0.x requires."""
_QUOTE_BYTE, _BACKSLASH_BYTE = ord('"'), ord("\\")
_TEXT_PART_QUOTES = 4
"""Quotes of a part that has a text and no other member."""


class JsonChecks:
    """The checks of JSON of 0.3 in its protobuf form. The other forms derive from it."""

    _user, _agent = "ROLE_USER", "ROLE_AGENT"
    _message_parts = attrgetter("content")
    _match_time = staticmethod(_match_utc)

    def __init__(self) -> None:
        self._checks: dict[tuple[Subject, bool], Check] = {}

    def check(self, subject: Subject, *, enveloped: bool = False) -> Check:
        """Return the check of payloads with this content, always the same; `enveloped` is whether
        they are JSON-RPC."""
        found = self._checks.get((subject, enveloped))
        if found is None:
            found = self._checks[subject, enveloped] = self._make_check(subject, enveloped)
        return found

    def _make_check(self, subject: Subject, enveloped: bool) -> Check:
        """Return a check that decodes strictly, and inspects what types cannot express."""
        kind: Any = self._types[subject]
        inspections: dict[Subject, Callable[[Any, int], Inspection]] = {
            "event": self._inspect_event,
            "sent": self._inspect_answer,
            "task": self._inspect_task,
            "send": self._inspect_send,
            "task id": lambda _request, _around: (True, 0),
        }
        inspect = inspections[subject]
        content: Callable[[Any], Any] | None = None
        if enveloped:
            base, name = (
                (RpcCall, "params") if subject in ("send", "task id") else (RpcAnswer, "result")
            )
            kind, content = (
                msgspec.defstruct("Rpc", [(name, kind)], bases=(base,)),
                attrgetter(name),
            )
        decode, encode = msgspec.json.Decoder(kind).decode, msgspec.json.Encoder().encode

        def check(payload: bytes) -> GateResult:
            try:
                made = decode(payload)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return False
            if content is None:
                seen, quotes = inspect(made, 0)
            else:  # jsonrpc with value, id, result; an id may be a text
                seen, quotes = inspect(content(made), 10 if type(made.id) is str else 8)
            # A duplicate member is lost in decoding, which the number of quotes reveals. Without a
            # backslash no quote is inside a text; otherwise both sides escape quotes in the same
            # way, except as \u0022.
            if quotes and _BACKSLASH_BYTE not in payload:
                return payload.count(_QUOTE_BYTE) == quotes and seen
            if not seen or b"\\u0022" in payload:
                return False
            return payload.count(_QUOTE_BYTE) == encode(made).count(_QUOTE_BYTE) and seen

        return check

    @cached_property
    def _objects(self) -> PlainObjects:
        return PlainObjects(make_grammar("0.3", False), PLAIN_MEMBERS_0_3)

    @cached_property
    def _types(self) -> dict[Subject, Any]:
        """The type of each content."""
        struct = self._objects.struct
        return {
            "event": struct("StreamResponse"),
            "sent": struct("SendMessageResponse"),
            "task": struct("Task"),
            "send": struct("SendMessageRequest"),
            "task id": struct("GetTaskRequest"),
        }

    def _inspect_event(self, event: Any, around: int) -> Inspection:
        """Inspect an event in its wrapper; `around` is the number of quotes around it."""
        update, chunk, task, message = (
            event.status_update,
            event.artifact_update,
            event.task,
            event.message,
        )
        if update is not UNSET:
            if chunk is UNSET and task is UNSET and message is UNSET:
                return self._inspect_status_update(update, around + 2)
            return _INVALID
        if chunk is not UNSET:
            return (
                self._inspect_artifact_update(chunk, around + 2)
                if task is UNSET and message is UNSET
                else _INVALID
            )
        return self._inspect_answer(event, around)

    def _inspect_answer(self, answer: Any, _around: int) -> Inspection:
        """Inspect an answer to a send, or an event that may be one."""
        task, message = answer.task, answer.message
        if task is not UNSET:
            return message is UNSET and self._is_valid_task(task), 0
        return message is not UNSET and self._is_valid_reply(message), 0

    def _inspect_task(self, task: Any, _around: int) -> Inspection:
        return self._is_valid_task(task), 0

    def _inspect_send(self, send: Any, _around: int) -> Inspection:
        message = send.message
        return message.role == self._user and self._are_valid_parts(message), 0

    def _inspect_status_update(self, update: Any, _around: int) -> Inspection:
        status = update.status
        if not self._is_valid_status(status, update.task_id, update.context_id):
            return _INVALID
        said, stamp = status.message, status.timestamp or ""
        is_plain = update.metadata is UNSET
        if said is UNSET:
            return StatusSummary(stamp, is_plain=is_plain), 0
        parts = self._message_parts(said)
        texts = self._texts_of(parts)
        named = (said.task_id or "", said.context_id or "")
        is_plain = (
            is_plain and said.metadata is UNSET and len(parts) == 1 and parts[0].metadata is UNSET
        )
        return (StatusSummary(stamp, b"".join(texts), named, is_plain) if texts else True), 0

    def _inspect_artifact_update(self, update: Any, _around: int) -> Inspection:
        artifact = update.artifact
        texts = self._texts_of(artifact.parts)
        return (make_chunk(artifact.artifact_id, artifact.name, texts) if texts else True), 0

    def _texts_of(self, parts: list[Any]) -> list[bytes]:
        """Return the texts of parts; empty if one part is not text."""
        return [part.text.encode() for part in parts]

    def _is_valid_status(self, status: Any, task_id: str, context_id: str) -> bool:
        stamp, said = status.timestamp, status.message
        if stamp is not UNSET and self._match_time(stamp) is None:
            return False
        return said is UNSET or (
            said.role == self._agent and _has_matching_ids(said, task_id, context_id)
        )

    def _is_valid_task(self, task: Any) -> bool:
        if not self._is_valid_status(task.status, task.id, task.context_id):
            return False
        if task.artifacts is not UNSET and not all(map(self._are_valid_parts, task.artifacts)):
            return False
        return task.history is UNSET or all(
            self._are_valid_parts(each) and _has_matching_ids(each, task.id, task.context_id)
            for each in task.history
        )

    def _is_valid_reply(self, message: Any) -> bool:
        return (
            message.role == self._agent
            and message.context_id is not UNSET
            and self._are_valid_parts(message)
        )

    def _are_valid_parts(self, _holder: Any) -> bool:
        """Whether the parts of a message or artifact are valid, as far as their types do not ensure
        it."""
        return True


class _OldJsonChecks(JsonChecks):
    """JSON of 0.2 and 0.3 in its JSON-RPC form: a member `kind` instead of wrappers."""

    _user, _agent = "user", "agent"
    _message_parts = attrgetter("parts")
    _match_time = staticmethod(_match_zoned)

    @cached_property
    def _objects(self) -> PlainObjects:
        return PlainObjects(json_0_3(), PLAIN_MEMBERS_0_3)

    @cached_property
    def _types(self) -> dict[Subject, Any]:
        struct = self._objects.struct
        self._text_part = struct("PartText", tagged=True)
        update, chunk, task, message = (
            struct(name, tagged=True)
            for name in ("StatusUpdate", "ArtifactUpdate", "Task", "Message")
        )
        self._inspections: dict[Any, Callable[[Any, int], Inspection]] = {
            update: self._inspect_status_update,
            chunk: self._inspect_artifact_update,
            task: self._inspect_task,
            message: self._inspect_reply,
        }
        return {
            "event": update | chunk | task | message,
            "sent": task | message,
            "task": task,
            "send": struct("SendParams"),
            "task id": struct("IdParams"),
        }

    def _inspect_event(self, event: Any, around: int) -> Inspection:
        return self._inspections[type(event)](event, around)

    def _inspect_answer(self, answer: Any, _around: int) -> Inspection:
        return self._inspections[type(answer)](answer, _around)

    def _inspect_reply(self, message: Any, _around: int) -> Inspection:
        return self._is_valid_reply(message), 0

    def _texts_of(self, parts: list[Any]) -> list[bytes]:
        kind = self._text_part
        texts: list[bytes] = [part.text.encode() for part in parts if type(part) is kind]
        return texts if len(texts) == len(parts) else []


class _NewJsonChecks(JsonChecks):
    """JSON of 1.0. Its updates are most of the traffic: their quotes are counted without encoding
    them."""

    _message_parts = attrgetter("parts")

    @cached_property
    def _objects(self) -> PlainObjects:
        return PlainObjects(make_grammar("1.0", False), PLAIN_MEMBERS)

    def _inspect_status_update(self, update: Any, around: int) -> Inspection:
        status = update.status
        said, stamp = status.message, status.timestamp
        if update.metadata is not UNSET or (said is not UNSET and said.metadata is not UNSET):
            return self._is_valid_status(status, update.task_id, update.context_id), 0
        quotes = around + 14  # taskId, contextId and state with values, status
        is_plain = True
        if update.generation is not UNSET:
            quotes += 4
            is_plain = len(update.generation) < MIN_SECRET_DIGITS
        if stamp is UNSET:
            stamp = ""
        elif _match_utc(stamp) is not None:
            quotes += 4
        else:
            return _INVALID
        if said is UNSET:
            return StatusSummary(stamp, is_plain=is_plain), quotes
        named: tuple[str, ...] = ()
        task_id, context_id = said.task_id, said.context_id
        if task_id is not UNSET or context_id is not UNSET:
            if not _has_matching_ids(said, update.task_id, update.context_id):
                return _INVALID
            named = (task_id or "", context_id or "")
            quotes += 8 if task_id is not UNSET and context_id is not UNSET else 4
        if said.role != "ROLE_AGENT":
            return _INVALID
        texts, inner = _collect_texts(said.parts)
        if not inner:
            return self._are_valid_parts(said), 0
        is_plain = (
            is_plain and inner == _TEXT_PART_QUOTES
        )  # with more parts or members there are more quotes
        # messageId and role with values, message, parts
        return StatusSummary(stamp, b"".join(texts), named, is_plain), quotes + 12 + inner

    def _inspect_artifact_update(self, update: Any, around: int) -> Inspection:
        artifact = update.artifact
        texts, inner = _collect_texts(artifact.parts)
        if not inner or update.metadata is not UNSET or artifact.metadata is not UNSET:
            return self._are_valid_parts(artifact), 0
        quotes = around + 16  # taskId, contextId and artifactId with values, artifact, parts
        if update.append is not UNSET:
            quotes += 2
        if update.last_chunk is not UNSET:
            quotes += 2
        if update.generation is not UNSET:
            quotes += 4
        if artifact.name is not UNSET:
            quotes += 4
        if artifact.description is not UNSET:
            quotes += 4
        return make_chunk(artifact.artifact_id, artifact.name, texts), quotes + inner

    def _is_valid_status(self, status: Any, task_id: str, context_id: str) -> bool:
        said = status.message
        return super()._is_valid_status(status, task_id, context_id) and (
            said is UNSET or self._are_valid_parts(said)
        )

    def _are_valid_parts(self, holder: Any) -> bool:
        for part in holder.parts:  # noqa: SIM110 - all() takes twice as long
            if (part.text is UNSET) is (part.data is UNSET):
                return False
        return True


def _has_matching_ids(message: Any, task_id: str, context_id: str) -> bool:
    """Whether the ids in a message are absent or equal to the ids of the enclosing object."""
    inner = message.task_id
    if inner is not UNSET and inner != task_id:
        return False
    inner = message.context_id
    return inner is UNSET or inner == context_id


def _collect_texts(parts: list[Any]) -> tuple[list[bytes], int]:
    """Return the texts of parts and the number of quotes of their members; empty if a part is more
    than text."""
    texts: list[bytes] = []
    quotes = 0
    for part in parts:
        text = part.text
        if text is UNSET or part.data is not UNSET or part.metadata is not UNSET:
            return [], 0
        texts.append(text.encode())
        quotes += _TEXT_PART_QUOTES
        if part.media_type is not UNSET:
            quotes += 4
        if part.filename is not UNSET:
            quotes += 4
    return texts, quotes


JSON_1_0, JSON_0_3, PROTO_JSON_0_3 = _NewJsonChecks(), _OldJsonChecks(), JsonChecks()


def check_empty(payload: bytes) -> GateResult:
    """Check a request whose members are all in its path."""
    return payload.strip(b" \t\r\n") == b"{}"

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
from a2a_proxy.model.values import EventKind
from a2a_proxy.protocol.artifact_chunks import make_chunk
from a2a_proxy.protocol.status_summary import MAX_PLAIN_DIGITS, A2AMessage, Content, StatusSummary
from a2a_proxy.protocol.strict.plain_objects import (
    PLAIN_MEMBERS,
    PLAIN_MEMBERS_0_3,
    PlainObjects,
    RpcAnswer,
    RpcCall,
)
from a2a_proxy.protocol.summary import STATE_NUMBERS

Check = Callable[[bytes], A2AMessage | None]
"""Reads a payload; returns None if it is not provably valid."""
Subject = Literal["event", "sent", "task", "send", "task id"]
"""Content of a payload: an event of a stream, the answer to a send, a task, a send, a request that
names a task."""
_STATUS, _ARTIFACT = EventKind.STATUS, EventKind.ARTIFACT

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
_match_id = re.compile(rb'"[ !#-\[\]-~]*"|0|[1-9][0-9]*').fullmatch
"""A JSON-RPC id in the usual form: a text without escapes, or a whole number."""
_QUOTE_BYTE, _BACKSLASH_BYTE = ord('"'), ord("\\")


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
        inspections: dict[Subject, Callable[[Any], A2AMessage | bool]] = {
            "event": self._read_event,
            "sent": self._read_answer,
            "task": self._is_valid_task,
            "send": self._is_valid_send,
            "task id": lambda _request: True,
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

        def check(payload: bytes) -> A2AMessage | None:
            try:
                made = decode(payload)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return None
            rpc_id = b"" if content is None else bytes(made.id)
            if rpc_id and not _match_id(rpc_id):
                return None
            found = inspect(made if content is None else content(made))
            # A duplicate member is lost in decoding, which the number of quotes reveals: both sides
            # escape quotes in the same way, except as \u0022.
            if (
                not found
                or (_BACKSLASH_BYTE in payload and b"\\u0022" in payload)
                or payload.count(_QUOTE_BYTE) != encode(made).count(_QUOTE_BYTE)
            ):
                return None
            message = found if type(found) is A2AMessage else A2AMessage(content=True)
            message.rpc_id = rpc_id.decode()
            return message

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

    def _read_event(self, event: Any) -> A2AMessage | bool:
        """Read an event in its wrapper."""
        update, chunk = event.status_update, event.artifact_update
        if update is UNSET and chunk is UNSET:
            return self._read_answer(event)
        if event.task is not UNSET or event.message is not UNSET:
            return False
        if chunk is UNSET:
            return self._read_status_update(update)
        return update is UNSET and self._read_artifact_update(chunk)

    def _read_answer(self, event: Any) -> A2AMessage | bool:
        """Inspect an answer to a send, or an event that may be one."""
        task, message = event.task, event.message
        if task is not UNSET:
            return message is UNSET and self._is_valid_task(task)
        return message is not UNSET and self._is_valid_reply(message)

    def _is_valid_send(self, send: Any) -> bool:
        message = send.message
        return message.role == self._user and self._are_valid_parts(message)

    def _read_status_update(self, update: Any) -> A2AMessage | bool:
        status, task_id, context_id = update.status, update.task_id, update.context_id
        if not self._is_valid_status(status, task_id, context_id):
            return False
        said, stamp, ident = status.message, status.timestamp or "", ""
        number: str = update.generation or ""
        is_plain = update.metadata is UNSET and len(number) <= MAX_PLAIN_DIGITS
        found: Content = StatusSummary(stamp, is_plain=is_plain)
        if said is not UNSET:
            ident, parts = said.message_id, self._message_parts(said)
            named = (said.task_id or "", said.context_id or "")
            is_plain = is_plain and said.metadata is UNSET and _is_one_text(parts)
            texts = _texts_of(parts)
            found = not texts or StatusSummary(
                stamp, b"".join(texts), named if any(named) else (), is_plain
            )
        state, final = STATE_NUMBERS[status.state], bool(update.final)
        ids = task_id, context_id, ident, ""
        return A2AMessage(found, (_STATUS, *ids, state, int(number or 0), False, False, final))

    def _read_artifact_update(self, update: Any) -> A2AMessage | bool:
        artifact = update.artifact
        if not self._are_valid_parts(artifact):
            return False
        texts, ident = _texts_of(artifact.parts), artifact.artifact_id
        ids, number = (update.task_id, update.context_id, "", ident), int(update.generation or 0)
        flags = bool(update.append), bool(update.last_chunk), False
        return A2AMessage(
            not texts or make_chunk(ident, artifact.name, texts),
            (_ARTIFACT, *ids, 0, number, *flags),
        )

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
        update, chunk, task, message = (
            struct(name, tagged=True)
            for name in ("StatusUpdate", "ArtifactUpdate", "Task", "Message")
        )
        self._inspections: dict[Any, Callable[[Any], A2AMessage | bool]] = {
            update: self._read_status_update,
            chunk: self._read_artifact_update,
            task: self._is_valid_task,
            message: self._is_valid_reply,
        }
        return {
            "event": update | chunk | task | message,
            "sent": task | message,
            "task": task,
            "send": struct("SendParams"),
            "task id": struct("IdParams"),
        }

    def _read_event(self, event: Any) -> A2AMessage | bool:
        return self._inspections[type(event)](event)

    _read_answer = _read_event


class _NewJsonChecks(JsonChecks):
    """JSON of 1.0."""

    _message_parts = attrgetter("parts")

    @cached_property
    def _objects(self) -> PlainObjects:
        return PlainObjects(make_grammar("1.0", False), PLAIN_MEMBERS)

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


def _texts_of(parts: list[Any]) -> list[bytes]:
    """Return the texts of parts; empty if one part is not text."""
    texts = [part.text.encode() for part in parts if part.text is not UNSET]
    return texts if len(texts) == len(parts) else []


def _is_one_text(parts: list[Any]) -> bool:
    """Whether there is one part, without texts beside its own."""
    part = parts[0]
    beside = part.metadata, part.media_type, part.filename
    return len(parts) == 1 and beside == (UNSET, UNSET, UNSET)


JSON_1_0, JSON_0_3, PROTO_JSON_0_3 = _NewJsonChecks(), _OldJsonChecks(), JsonChecks()


def check_empty(payload: bytes) -> A2AMessage | None:
    """Check a request whose members are all in its path."""
    return A2AMessage(content=True) if payload.strip(b" \t\r\n") == b"{}" else None

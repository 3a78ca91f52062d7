"""Fast check of protobuf of 1.0 and 0.3 (manual/protocol.md "Fields of 1.0" and "Fields of 0.3").

Messages are typed `Any`, because their classes are created at run time.
"""

from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError, EncodeError

from a2a_proto import SchemaSet, message_class
from a2a_proxy.model.values import EventKind
from a2a_proxy.protocol.artifact_chunks import make_chunk
from a2a_proxy.protocol.proto_summary import Reader, reader_for
from a2a_proxy.protocol.status_summary import A2AMessage, Content, StatusSummary, timestamp_text
from a2a_proxy.protocol.strict.strict_messages import twin
from a2a_proxy.protocol.summary import Summary

Check = Callable[[bytes], A2AMessage | None]
"""Reads a payload; returns None if it is not provably valid."""

_STATE_NUMBERS = frozenset(range(1, 9))
_MEDIA_TYPES = frozenset(("", "text/plain", "text/markdown", "text/html", "application/json"))
_USER_ROLE, _AGENT_ROLE = 1, 2
MAX_SECONDS = 253_402_300_799
"""End of the year 9999."""
_TASK, _MESSAGE = EventKind.TASK, EventKind.MESSAGE
_STATUS, _ARTIFACT = EventKind.STATUS, EventKind.ARTIFACT


def make_checker(line: SchemaSet, name: str, is_valid: Callable[[Any], bool]) -> Check:
    """Return a check that parses the payload: only known fields, each once, in the shortest form,
    and accepted by `is_valid`.
    """
    kind: Any = message_class(line, name)
    parse: Any = kind.FromString
    summarise = reader_for(kind)

    def check(payload: bytes) -> A2AMessage | None:
        try:
            made = parse(payload)
        except DecodeError:
            return None
        if not is_valid(made):
            return None
        made.DiscardUnknownFields()
        if made.ByteSize() != len(payload):
            return None
        return A2AMessage(content=True, summary=summarise(made))

    return check


def make_quick_checker(line: SchemaSet, name: str, fallback: Check) -> Check:
    """Return the same check with a strict twin that accepts only common messages; others are
    checked by `fallback`."""
    kind: Any = twin(line, name)
    parse: Any = kind.FromString
    summarise: Reader = reader_for(kind)
    old = line == "0.3"

    def check(payload: bytes) -> A2AMessage | None:
        if 0 in payload:  # possibly an empty text, which a twin accepts as present
            return fallback(payload)
        try:
            made = parse(payload)
            made.DiscardUnknownFields()
            size = made.ByteSize()
        except (DecodeError, EncodeError):  # EncodeError: a required field is missing
            return fallback(payload)
        if size != len(payload):
            return fallback(payload)
        summary = summarise(made)
        if summary[6] < 0:
            return fallback(payload)
        event = summary[0]
        found: Content
        if event is _STATUS:
            found = _check_status_update(made.status_update, summary, old=old)
        elif event is _ARTIFACT:
            found = _check_artifact(made.artifact_update.artifact)
        elif event is _TASK:
            found = _has_matching_facts(made if name == "Task" else made.task, old=old)
        else:
            found = event is _MESSAGE
        return A2AMessage(found, summary) if found else None

    return check


def _check_status_update(update: Any, summary: Summary, *, old: bool) -> Content:
    """Return the content of a status update parsed by a twin. The summary has a message id if its
    status has a message.
    """
    status = update.status
    stamp = ""
    if status.HasField("timestamp"):
        if not _is_valid_time(status.timestamp):
            return False
        stamp = timestamp_text(status.timestamp)
    if not summary[3]:
        return StatusSummary(stamp, is_plain=not update.HasField("metadata"))
    said = status.update if old else status.message
    task_id, context_id = said.task_id, said.context_id
    if (task_id and task_id != summary[1]) or (context_id and context_id != summary[2]):
        return False
    text = (said.content if old else said.parts).text.encode()
    named = (task_id, context_id) if task_id or context_id else ()
    is_plain = not (update.HasField("metadata") or said.HasField("metadata"))
    return StatusSummary(stamp, text, named, is_plain)


def _is_valid_time(timestamp: Any) -> bool:
    """Whether the timestamp is between 1970 and 9999, which is common."""
    seconds: int = timestamp.seconds
    nanos: int = timestamp.nanos
    return 0 <= seconds <= MAX_SECONDS and 0 <= nanos < 1_000_000_000


def _check_artifact(artifact: Any) -> Content:
    return make_chunk(artifact.artifact_id, artifact.name, [artifact.parts.text.encode()])


def _has_matching_facts(task: Any, *, old: bool) -> bool:
    """Whether the ids inside the task equal its own, and its time is valid."""
    if not _is_valid_time(task.status.timestamp):
        return False
    said = task.status.update if old else task.status.message
    return all(
        each.task_id in ("", task.id) and each.context_id in ("", task.context_id)
        for each in (said, *task.history)
    )


class MessageChecks:
    """Conditions for the messages of one schema set."""

    def __init__(self, *, is_new: bool) -> None:
        self._content_field = "content" if is_new else "part"
        self._parts_field = "parts" if is_new else "content"
        self._message_field = "message" if is_new else "update"
        self._is_new = is_new

    def _are_valid_parts(self, parts: Any) -> bool:
        for part in parts:
            which = part.WhichOneof(self._content_field)
            if which != "text" and which != "data":
                return False
            if self._is_new and part.media_type not in _MEDIA_TYPES:
                return False
        return len(parts) > 0

    def _is_valid_message(self, message: Any, task_id: str, context_id: str) -> bool:
        """Whether the message is valid; fields that are not checked here must be empty."""
        if not message.message_id or message.extensions:
            return False
        if message.task_id not in ("", task_id) or message.context_id not in ("", context_id):
            return False
        if self._is_new and message.reference_task_ids:
            return False
        return self._are_valid_parts(getattr(message, self._parts_field))

    def _is_valid_status(self, status: Any, task_id: str, context_id: str) -> bool:
        if status.state not in _STATE_NUMBERS:
            return False
        if not _is_valid_time(status.timestamp):
            return False
        if not status.HasField(self._message_field):
            return True
        said = getattr(status, self._message_field)
        return said.role == _AGENT_ROLE and self._is_valid_message(said, task_id, context_id)

    def _is_valid_artifact(self, artifact: Any) -> bool:
        if not artifact.artifact_id or artifact.extensions:
            return False
        return self._are_valid_parts(artifact.parts)

    def is_valid_task(self, task: Any) -> bool:
        """Whether a task is valid as an answer or event."""
        task_id, context_id = task.id, task.context_id
        if not task_id or not context_id:
            return False
        if self._is_new and task.generation < 0:
            return False
        if not self._is_valid_status(task.status, task_id, context_id):
            return False
        return all(self._is_valid_artifact(each) for each in task.artifacts) and all(
            each.role in (_USER_ROLE, _AGENT_ROLE)
            and self._is_valid_message(each, task_id, context_id)
            for each in task.history
        )

    def is_valid_reply(self, message: Any) -> bool:
        """Whether an agent's message is valid as an answer or event."""
        return (
            message.role == _AGENT_ROLE
            and bool(message.context_id)
            and self._is_valid_message(message, message.task_id, message.context_id)
        )

    def is_valid_answer(self, response: Any) -> bool:
        """Whether a StreamResponse or a SendMessageResponse is valid."""
        which = response.WhichOneof("payload")
        if which == "status_update":
            event = response.status_update
            task_id, context_id = event.task_id, event.context_id
            if not task_id or not context_id or (self._is_new and event.generation < 0):
                return False
            return self._is_valid_status(event.status, task_id, context_id)
        if which == "artifact_update":
            event = response.artifact_update
            if not event.task_id or not event.context_id or (self._is_new and event.generation < 0):
                return False
            return self._is_valid_artifact(event.artifact)
        if which == "task":
            return self.is_valid_task(response.task)
        if which == "message" or which == "msg":
            return self.is_valid_reply(getattr(response, which))
        return False

    def is_valid_send(self, request: Any) -> bool:
        """Whether a SendMessageRequest is valid."""
        message = request.message if self._is_new else request.request
        if message.role != _USER_ROLE:
            return False
        if not self._is_valid_message(message, message.task_id, message.context_id):
            return False
        configuration = request.configuration
        if configuration.history_length < 0 or configuration.accepted_output_modes:
            return False
        if not self._is_new:
            return not configuration.HasField("push_notification")
        return not (
            request.tenant
            or configuration.HasField("task_push_notification_config")
            or configuration.HasField("if_generation_match")
        )


def is_task_id_request(request: Any) -> bool:
    """Whether a request names a task and nothing else."""
    name = "id" if "id" in request.DESCRIPTOR.fields_by_name else "name"
    return bool(getattr(request, name)) and len(request.ListFields()) == 1


_NEW_CHECKS, _OLD_CHECKS = MessageChecks(is_new=True), MessageChecks(is_new=False)

CHECKS: dict[str, Check] = {
    "lf.a2a.v1.StreamResponse": make_quick_checker(
        "1.0", "StreamResponse", make_checker("1.0", "StreamResponse", _NEW_CHECKS.is_valid_answer)
    ),
    "lf.a2a.v1.SendMessageResponse": make_quick_checker(
        "1.0",
        "SendMessageResponse",
        make_checker("1.0", "SendMessageResponse", _NEW_CHECKS.is_valid_answer),
    ),
    "lf.a2a.v1.Task": make_quick_checker(
        "1.0", "Task", make_checker("1.0", "Task", _NEW_CHECKS.is_valid_task)
    ),
    "lf.a2a.v1.SendMessageRequest": make_checker(
        "1.0", "SendMessageRequest", _NEW_CHECKS.is_valid_send
    ),
    "lf.a2a.v1.GetTaskRequest": make_checker("1.0", "GetTaskRequest", is_task_id_request),
    "lf.a2a.v1.CancelTaskRequest": make_checker("1.0", "CancelTaskRequest", is_task_id_request),
    "lf.a2a.v1.SubscribeToTaskRequest": make_checker(
        "1.0", "SubscribeToTaskRequest", is_task_id_request
    ),
    "a2a.v1.StreamResponse": make_quick_checker(
        "0.3", "StreamResponse", make_checker("0.3", "StreamResponse", _OLD_CHECKS.is_valid_answer)
    ),
    "a2a.v1.SendMessageResponse": make_quick_checker(
        "0.3",
        "SendMessageResponse",
        make_checker("0.3", "SendMessageResponse", _OLD_CHECKS.is_valid_answer),
    ),
    "a2a.v1.Task": make_quick_checker(
        "0.3", "Task", make_checker("0.3", "Task", _OLD_CHECKS.is_valid_task)
    ),
    "a2a.v1.SendMessageRequest": make_checker(
        "0.3", "SendMessageRequest", _OLD_CHECKS.is_valid_send
    ),
    "a2a.v1.GetTaskRequest": make_checker("0.3", "GetTaskRequest", is_task_id_request),
    "a2a.v1.CancelTaskRequest": make_checker("0.3", "CancelTaskRequest", is_task_id_request),
    "a2a.v1.TaskSubscriptionRequest": make_checker(
        "0.3", "TaskSubscriptionRequest", is_task_id_request
    ),
}
"""Check of each schema."""

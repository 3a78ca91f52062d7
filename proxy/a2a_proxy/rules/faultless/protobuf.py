"""Faultless protobuf of 1.0 and 0.3 (protocol sheet 2.1, 2.8).

Messages are `Any` here: their classes are made at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError

from a2a_proto import message_class
from a2a_proxy.rules.faultless.common import Check

_STATES = frozenset(range(1, 9))
_MEDIA_TYPES = frozenset(("", "text/plain", "text/markdown", "text/html", "application/json"))
_USER, _AGENT = 1, 2
_LAST_SECOND = 253_402_300_799
"""Of the year 9999; later times have no JSON form."""


def checker(line: Any, name: str, fine: Callable[[Any], bool]) -> Check:
    """A check by parsing: known fields only, each once, in the shortest form, and `fine`."""
    parse: Any = message_class(line, name).FromString

    def check(payload: bytes) -> bool:
        try:
            made = parse(payload)
        except DecodeError:
            return False
        if not fine(made):
            return False
        made.DiscardUnknownFields()
        size: int = made.ByteSize()
        return size == len(payload)

    return check


class Fine:
    """What one line's messages must be like."""

    def __init__(self, *, new: bool) -> None:
        self._content = "content" if new else "part"
        self._parts = "parts" if new else "content"
        self._said = "message" if new else "update"
        self._new = new

    def _fine_parts(self, parts: Any) -> bool:
        for part in parts:
            which = part.WhichOneof(self._content)
            if which != "text" and which != "data":
                return False
            if self._new and part.media_type not in _MEDIA_TYPES:
                return False
        return len(parts) > 0

    def _fine_message(self, message: Any, task_id: str, context_id: str) -> bool:
        """Of what it does not look at there must be nothing."""
        if not message.message_id or message.extensions:
            return False
        if message.task_id not in ("", task_id) or message.context_id not in ("", context_id):
            return False
        if self._new and message.reference_task_ids:
            return False
        return self._fine_parts(getattr(message, self._parts))

    def _fine_status(self, status: Any, task_id: str, context_id: str) -> bool:
        if status.state not in _STATES:
            return False
        stamp = status.timestamp
        if not (0 <= stamp.seconds <= _LAST_SECOND and 0 <= stamp.nanos < 1_000_000_000):
            return False
        if not status.HasField(self._said):
            return True
        said = getattr(status, self._said)
        return said.role == _AGENT and self._fine_message(said, task_id, context_id)

    def _fine_artifact(self, artifact: Any) -> bool:
        if not artifact.artifact_id or artifact.extensions:
            return False
        return self._fine_parts(artifact.parts)

    def task(self, task: Any) -> bool:
        """A task as an answer or event."""
        task_id, context_id = task.id, task.context_id
        if not task_id or not context_id:
            return False
        if self._new and task.generation < 0:
            return False
        if not self._fine_status(task.status, task_id, context_id):
            return False
        return all(self._fine_artifact(each) for each in task.artifacts) and all(
            each.role in (_USER, _AGENT) and self._fine_message(each, task_id, context_id) for each in task.history
        )

    def message(self, message: Any) -> bool:
        """An agent's message as an answer or event."""
        return (
            message.role == _AGENT
            and bool(message.context_id)
            and self._fine_message(message, message.task_id, message.context_id)
        )

    def answer(self, response: Any) -> bool:
        """A StreamResponse or a SendMessageResponse."""
        which = response.WhichOneof("payload")
        if which == "status_update":
            event = response.status_update
            task_id, context_id = event.task_id, event.context_id
            if not task_id or not context_id or (self._new and event.generation < 0):
                return False
            return self._fine_status(event.status, task_id, context_id)
        if which == "artifact_update":
            event = response.artifact_update
            if not event.task_id or not event.context_id or (self._new and event.generation < 0):
                return False
            return self._fine_artifact(event.artifact)
        if which == "task":
            return self.task(response.task)
        if which == "message" or which == "msg":
            return self.message(getattr(response, which))
        return False

    def send(self, request: Any) -> bool:
        """A SendMessageRequest."""
        message = request.message if self._new else request.request
        if message.role != _USER:
            return False
        if not self._fine_message(message, message.task_id, message.context_id):
            return False
        configuration = request.configuration
        if configuration.history_length < 0 or configuration.accepted_output_modes:
            return False
        if not self._new:
            return not configuration.HasField("push_notification")
        return not (
            request.tenant
            or configuration.HasField("task_push_notification_config")
            or configuration.HasField("if_generation_match")
        )


def by_id(request: Any) -> bool:
    """A request that names a task and nothing else; what else there is makes it longer."""
    name = "id" if "id" in request.DESCRIPTOR.fields_by_name else "name"
    return bool(getattr(request, name)) and len(request.ListFields()) == 1


_NEW, _OLD = Fine(new=True), Fine(new=False)

CHECKS: dict[str, Check] = {
    f"lf.a2a.v1.{name}": checker("1.0", name, fine)
    for name, fine in (
        ("StreamResponse", _NEW.answer),
        ("SendMessageResponse", _NEW.answer),
        ("Task", _NEW.task),
        ("SendMessageRequest", _NEW.send),
        ("GetTaskRequest", by_id),
        ("CancelTaskRequest", by_id),
        ("SubscribeToTaskRequest", by_id),
    )
} | {
    f"a2a.v1.{name}": checker("0.3", name, fine)
    for name, fine in (
        ("StreamResponse", _OLD.answer),
        ("SendMessageResponse", _OLD.answer),
        ("Task", _OLD.task),
        ("SendMessageRequest", _OLD.send),
        ("GetTaskRequest", by_id),
        ("CancelTaskRequest", by_id),
        ("TaskSubscriptionRequest", by_id),
    )
}
"""Schema -> check."""

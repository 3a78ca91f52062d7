"""Summaries of protobuf messages: the function that reads each message type, for every schema set.

Messages are `Any` here, because their classes are built at run time from the descriptors.
"""

from collections.abc import Callable
from typing import Any

from a2a_proxy.model.values import EventKind
from a2a_proxy.protocol.summary import NO_SUMMARY, UNKNOWN_SUMMARY, Summary, make_summary

Reader = Callable[[Any], Summary]

_TASK, _MESSAGE = EventKind.TASK, EventKind.MESSAGE
_STATUS, _ARTIFACT = EventKind.STATUS, EventKind.ARTIFACT


def bare_id(name: str) -> str:
    """Return the task id in a 0.3 resource name (`tasks/{id}`,
    `tasks/{id}/pushNotificationConfigs/{cid}`); any other name is returned unchanged."""
    return name[6:].partition("/pushNotificationConfigs")[0] if name.startswith("tasks/") else name


def reader_for(cls: Any) -> Reader:
    """Return the function that summarises messages of `cls`."""
    name: str = cls.DESCRIPTOR.name
    if name in ("StreamResponse", "SendMessageResponse"):
        return _response_reader(cls.DESCRIPTOR)
    if name == "LiveResponse":
        return _live_response_reader(cls.DESCRIPTOR)
    if name == "LiveRequest":
        return _summarise_live_request
    if name == "Task":
        return _task_reader(cls.DESCRIPTOR)
    return _READERS.get(name, _summarise_nothing)


def _status_message_field(status_type: Any) -> str:
    """Return the field of the status message, which 0.3 calls `update` (manual/protocol.md "Fields
    of 0.3")."""
    return "message" if "message" in status_type.fields_by_name else "update"


def _task_reader(task_type: Any) -> Reader:
    counts = "generation" in task_type.fields_by_name
    message_field = _status_message_field(task_type.fields_by_name["status"].message_type)

    def read(task: Any) -> Summary:
        status = task.status
        message_id = (
            getattr(status, message_field).message_id if status.HasField(message_field) else ""
        )
        generation = task.generation if counts else 0
        return (
            _TASK,
            task.id,
            task.context_id,
            message_id,
            "",
            status.state,
            generation,
            False,
            False,
            False,
        )

    return read


def _response_reader(response_type: Any) -> Reader:
    """Return the reader of StreamResponse or SendMessageResponse, whose oneof determines the
    event."""
    fields = response_type.fields_by_name
    read_task = _task_reader(fields["task"].message_type)
    v0_3 = "msg" in fields
    update = (
        fields["status_update"].message_type.fields_by_name if "status_update" in fields else {}
    )
    counts, finals = "generation" in update, "final" in update
    message_field = _status_message_field(update["status"].message_type) if update else ""

    def read(response: Any) -> Summary:
        which = response.WhichOneof("payload")
        if which == "status_update":
            event = response.status_update
            status = event.status
            message_id = (
                getattr(status, message_field).message_id if status.HasField(message_field) else ""
            )
            return (
                _STATUS,
                event.task_id,
                event.context_id,
                message_id,
                "",
                status.state,
                event.generation if counts else 0,
                False,
                False,
                event.final if finals else False,
            )
        if which == "artifact_update":
            event = response.artifact_update
            return (
                _ARTIFACT,
                event.task_id,
                event.context_id,
                "",
                event.artifact.artifact_id,
                0,
                event.generation if counts else 0,
                event.append,
                event.last_chunk,
                False,
            )
        if which == "task":
            return read_task(response.task)
        if which is None:
            return UNKNOWN_SUMMARY
        if which == "message_update":
            return _summarise_message_update(response.message_update)
        return _summarise_message(response.msg if v0_3 else response.message)

    return read


def _summarise_message(message: Any) -> Summary:
    return (
        _MESSAGE,
        message.task_id,
        message.context_id,
        message.message_id,
        "",
        0,
        0,
        False,
        False,
        False,
    )


def _summarise_message_update(event: Any) -> Summary:
    return make_summary(
        _MESSAGE, event.task_id, event.context_id, event.message.message_id, event.generation
    )


def _live_response_reader(live_type: Any) -> Reader:
    read_event = _response_reader(live_type.fields_by_name["event"].message_type)

    def read(response: Any) -> Summary:
        which = response.WhichOneof("payload")
        return (
            read_event(response.event)
            if which == "event"
            else UNKNOWN_SUMMARY
            if which is None
            else NO_SUMMARY
        )

    return read


def _summarise_live_request(request: Any) -> Summary:
    return _summarise_send(request.message) if request.HasField("message") else NO_SUMMARY


def _summarise_send(request: Any) -> Summary:
    message = request.request if "request" in request.DESCRIPTOR.fields_by_name else request.message
    generation = getattr(request.configuration, "if_generation_match", 0)
    return make_summary(
        _MESSAGE, message.task_id, message.context_id, message.message_id, generation
    )


def expected_generations(request: Any) -> tuple[int | None, int | None]:
    """Return `current_generation` and `if_generation_match` of a request, each None if not set or
    not in this schema."""
    configuration = (
        request.configuration if "configuration" in request.DESCRIPTOR.fields_by_name else None
    )
    return _number_if_set(request, "current_generation"), _number_if_set(
        configuration, "if_generation_match"
    )


def _number_if_set(message: Any, name: str) -> int | None:
    if (
        message is None
        or name not in message.DESCRIPTOR.fields_by_name
        or not message.HasField(name)
    ):
        return None
    number: int = getattr(message, name)
    return number


def _summarise_live_2153(request: Any) -> Summary:
    if request.WhichOneof("payload") == "artifact_update":
        event = request.artifact_update
        flags = (event.append, event.last_chunk, False)
        return (
            _ARTIFACT,
            event.task_id,
            event.context_id,
            "",
            event.artifact.artifact_id,
            0,
            event.generation,
            *flags,
        )
    return _summarise_message(request.message)


def _summarise_by_id(request: Any) -> Summary:
    """Summarise a request about a task: `id` in 1.0, `name` in 0.3."""
    fields = request.DESCRIPTOR.fields_by_name
    task_id = request.id if "id" in fields else bare_id(request.name)
    return make_summary(task_id=task_id, generation=getattr(request, "current_generation", 0))


def _summarise_by_task_id(message: Any) -> Summary:
    """Summarise a push request or response: `task_id` in 1.0, `name` or `parent` in 0.3."""
    for field in ("task_id", "parent", "name"):
        if field in message.DESCRIPTOR.fields_by_name:
            return make_summary(task_id=bare_id(getattr(message, field)))
    return NO_SUMMARY


def _summarise_push_config(message: Any) -> Summary:
    return (EventKind.PUSH_CONFIG, _summarise_by_task_id(message)[1], *NO_SUMMARY[2:])


def _summarise_task_list(response: Any) -> Summary:
    contexts = {task.context_id for task in response.tasks[:100]}
    return make_summary(EventKind.TASKS, context_id=contexts.pop() if len(contexts) == 1 else "")


def _summarise_nothing(_message: Any) -> Summary:
    return NO_SUMMARY


_READERS: dict[str, Reader] = {
    "SendMessageRequest": _summarise_send,
    "StreamRequest": _summarise_live_2153,
    "GetTaskRequest": _summarise_by_id,
    "CancelTaskRequest": _summarise_by_id,
    "SubscribeToTaskRequest": _summarise_by_id,
    "TaskSubscriptionRequest": _summarise_by_id,
    "ListTasksRequest": lambda request: make_summary(context_id=request.context_id),
    "ListTasksResponse": _summarise_task_list,
    "TaskPushNotificationConfig": _summarise_push_config,
    "CreateTaskPushNotificationConfigRequest": _summarise_push_config,
    "GetTaskPushNotificationConfigRequest": _summarise_by_task_id,
    "DeleteTaskPushNotificationConfigRequest": _summarise_by_task_id,
    "ListTaskPushNotificationConfigRequest": _summarise_by_task_id,
    "ListTaskPushNotificationConfigsRequest": _summarise_by_task_id,
    "ListTaskPushNotificationConfigResponse": lambda _: make_summary(EventKind.PUSH_CONFIGS),
    "ListTaskPushNotificationConfigsResponse": lambda _: make_summary(EventKind.PUSH_CONFIGS),
    "AgentCard": lambda _: make_summary(EventKind.CARD),
}

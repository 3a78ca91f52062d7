"""Summaries of JSON: results and events of every dialect, and the parameters of calls.

The hot path is `summarise_result`, over a typed partial decode. The `*_leniently` functions handle
input that the typed decode rejects: other types in known members, snake_case names, arrays.
"""

from functools import cache
from typing import Any, TypeVar

import msgspec

from a2a_proto.shapes.json_0_3 import json_names
from a2a_proxy.model.values import EventKind
from a2a_proxy.protocol.json_shapes import (
    ArtifactShape,
    ParamsShape,
    ResultShape,
    StatusShape,
    TaskShape,
    UpdateShape,
)
from a2a_proxy.protocol.operations import ResponseKind
from a2a_proxy.protocol.proto_summary import bare_id
from a2a_proxy.protocol.summary import (
    NO_SUMMARY,
    Summary,
    generation_number,
    generation_or_none,
    make_summary,
    state_number,
)

_TASK, _MESSAGE = EventKind.TASK, EventKind.MESSAGE
_STATUS, _ARTIFACT = EventKind.STATUS, EventKind.ARTIFACT


def summarise_result(result: ResultShape, streaming: bool) -> Summary:
    """Return the summary of one result or event; NO_SUMMARY if its members match no A2A object.

    `streaming` decides the one ambiguity: an object with `id` and `status` alone is a Task as an
    answer, and a status update in a stream (0.1 and the vendor dialect, manual/protocol.md "Vendor
    hybrid").
    """
    if result.status_update is not None:
        return _summarise_update(_STATUS, result.status_update)
    if result.artifact_update is not None:
        return _summarise_update(_ARTIFACT, result.artifact_update)
    if result.task is not None:
        return _summarise_task(result.task)
    if result.message_update is not None:
        update = result.message_update
        message_id = update.message.message_id if update.message else ""
        generation = generation_number(update.generation)
        return make_summary(
            _MESSAGE, update.task_id or "", update.context_id or "", message_id or "", generation
        )
    if result.kind is not None or result.status is not None or result.artifact is not None:
        return _summarise_bare(result, streaming)
    if result.message is not None:
        message = result.message
        return make_summary(
            _MESSAGE, message.task_id or "", message.context_id or "", message.message_id or ""
        )
    return _summarise_message(result) if result.message_id or result.parts else NO_SUMMARY


def _summarise_update(event: EventKind, update: UpdateShape) -> Summary:
    state, message_id = _summarise_status(update.status) if update.status is not None else (0, "")
    artifact = update.artifact
    return (
        event,
        update.task_id or "",
        update.context_id or "",
        message_id,
        _id_of_artifact(artifact) if artifact is not None else "",
        state,
        generation_number(update.generation),
        update.append or False,
        update.last_chunk or False,
        update.final or False,
    )


def _summarise_status(status: StatusShape) -> tuple[int, str]:
    said = status.message
    return state_number(status.state), (said.message_id or "") if said else ""


def _summarise_task(task: TaskShape) -> Summary:
    state, message_id = _summarise_status(task.status) if task.status is not None else (0, "")
    generation = generation_number(task.generation)
    return (
        _TASK,
        task.id or "",
        task.context_id or "",
        message_id,
        "",
        state,
        generation,
        False,
        False,
        False,
    )


def _id_of_artifact(artifact: ArtifactShape) -> str:
    """Return the artifact's id; 0.1 numbers artifacts by `index`, 0 if it is left out."""
    return artifact.artifact_id or str(artifact.index or 0)


_EVENT_OF_KIND = {
    "task": _TASK,
    "message": _MESSAGE,
    "status-update": _STATUS,
    "artifact-update": _ARTIFACT,
}


def kind_of(result: ResultShape, streaming: bool) -> EventKind:
    """Return the kind of an unwrapped result: by `kind`, else by its members."""
    if result.kind is not None:
        return _EVENT_OF_KIND.get(result.kind, EventKind.UNKNOWN)
    if result.artifact is not None:
        return _ARTIFACT
    if result.final is not None or (result.task_id and not result.id):
        return _STATUS
    return (
        _STATUS
        if streaming and not (result.artifacts or result.history or result.session_id)
        else _TASK
    )


def _summarise_bare(result: ResultShape, streaming: bool) -> Summary:
    event = kind_of(result, streaming)
    if event is _MESSAGE:
        return _summarise_message(result)
    state, message_id = _summarise_status(result.status) if result.status is not None else (0, "")
    artifact = result.artifact
    return (
        event,
        result.task_id or result.id or "",
        result.context_id or result.session_id or "",
        message_id,
        _id_of_artifact(artifact) if artifact is not None else "",
        state,
        generation_number(result.generation),
        result.append or (artifact is not None and artifact.append) or False,
        result.last_chunk or (artifact is not None and artifact.last_chunk) or False,
        result.final or False,
    )


def _summarise_message(result: ResultShape) -> Summary:
    return make_summary(
        _MESSAGE, result.task_id or "", result.context_id or "", result.message_id or ""
    )


def summarise_params(params: ParamsShape) -> Summary:
    """Return the summary of a request's parameters."""
    message = params.message or params.request
    if message is not None:
        configuration = params.configuration
        generation = generation_number(configuration.if_generation_match) if configuration else 0
        task_id = message.task_id or params.task_id or params.id or ""
        context_id = message.context_id or params.session_id or ""
        return make_summary(_MESSAGE, task_id, context_id, message.message_id or "", generation)
    pushes = params.url or params.push_notification_config or params.config
    event = EventKind.PUSH_CONFIG if pushes else EventKind.NONE
    task_id = params.task_id or bare_id(params.name or params.parent or "") or params.id or ""
    return make_summary(
        event, task_id, params.context_id or "", "", generation_number(params.current_generation)
    )


def expected_generations(params: ParamsShape) -> tuple[int | None, int | None]:
    """Return `currentGeneration` and `ifGenerationMatch`, each None if not set."""
    configuration = params.configuration
    match = configuration.if_generation_match if configuration is not None else None
    return generation_or_none(params.current_generation), generation_or_none(match)


def push_url_of(params: ParamsShape) -> str:
    """Return the push URL that a call sets, or an empty string."""
    configuration = params.configuration
    nested = (
        params.push_notification_config,
        params.push_notification,
        params.config,
        configuration and configuration.push_notification_config,
        configuration and configuration.task_push_notification_config,
    )
    return params.url or next((push.url for push in nested if push and push.url), "")


_EVENT_OF_ANSWER = {
    ResponseKind.TASKS: EventKind.TASKS,
    ResponseKind.PUSH_CONFIG: EventKind.PUSH_CONFIG,
    ResponseKind.PUSH_CONFIGS: EventKind.PUSH_CONFIGS,
    ResponseKind.CARD: EventKind.CARD,
}


def summarise_answer(answer: ResponseKind, body: object) -> Summary:
    """Return the summary of a unary response; `body` is the decoded JSON."""
    event = _EVENT_OF_ANSWER.get(answer)
    if event is None:
        return (
            NO_SUMMARY
            if answer is ResponseKind.EMPTY
            else summarise_leniently(body, streaming=False)
        )
    if event is EventKind.PUSH_CONFIG and isinstance(body, dict):
        return make_summary(event, summarise_params_leniently(body)[1])
    return make_summary(event)


_FREE_MEMBERS = frozenset({"metadata", "data", "params", "progress"})
"""Members whose content is the peer's own data."""


MAX_DEPTH = 32
"""Maximum depth of a value that is read; A2A's own objects need ten levels."""


def rename_to_camel(value: object, depth: int = MAX_DEPTH) -> Any:
    """Rename A2A's members from snake_case, which a ProtoJSON parser accepts too; the peer's own
    names are kept."""
    if not depth:
        return value
    if isinstance(value, dict):
        names = json_names()
        return {
            names.get(name, name): item
            if name in _FREE_MEMBERS
            else rename_to_camel(item, depth - 1)
            for name, item in value.items()
        }
    return (
        [rename_to_camel(item, depth - 1) for item in value] if isinstance(value, list) else value
    )


def summarise_leniently(value: object, streaming: bool) -> Summary:
    """Return the summary of a value with unexpected types: members that fit are read, the others
    ignored."""
    if not isinstance(value, dict):
        return NO_SUMMARY
    members: dict[str, Any] = rename_to_camel(value)
    summary = summarise_result(_fit_shape(members, ResultShape), streaming)
    return summary if summary[0] is not EventKind.NONE else _summarise_unknown(members)


def _summarise_unknown(members: dict[str, Any]) -> Summary:
    """Return the summary of a wrapper with an unknown member: UNKNOWN, with its task and generation
    (Q-32)."""
    member = next(iter(members.values())) if len(members) == 1 and "error" not in members else None
    if not isinstance(member, dict):
        return NO_SUMMARY
    shape = _fit_shape(member, UpdateShape)
    generation = generation_number(shape.generation)
    return make_summary(
        EventKind.UNKNOWN, shape.task_id or "", shape.context_id or "", "", generation
    )


def summarise_params_leniently(value: object) -> Summary:
    """Return the summary of parameters with unexpected types."""
    return (
        summarise_params(_fit_shape(rename_to_camel(value), ParamsShape))
        if isinstance(value, dict)
        else NO_SUMMARY
    )


def fit_params(value: object) -> ParamsShape:
    """Read parameters from decoded JSON, ignoring members of a wrong type."""
    return (
        _fit_shape(rename_to_camel(value), ParamsShape)
        if isinstance(value, dict)
        else ParamsShape()
    )


def fit_result(value: dict[str, Any]) -> ResultShape:
    """Read a result from decoded JSON, ignoring members of a wrong type."""
    return _fit_shape(value, ResultShape)


_ShapeT = TypeVar("_ShapeT", bound=msgspec.Struct)


_fields_of_shape = cache(msgspec.structs.fields)
"""Fields of a shape. Cached, because msgspec computes them from the annotations on every call."""


def _fit_shape(value: dict[str, Any], shape: type[_ShapeT]) -> _ShapeT:
    """Build a shape from the members of the right type."""
    made = shape()
    for field in _fields_of_shape(shape):
        item = value.get(field.encode_name)
        if item is None:
            continue
        try:
            setattr(made, field.name, _fit_member(item, field.type))
        except msgspec.ValidationError:
            continue
    return made


def _fit_member(item: object, kind: Any) -> object:
    if kind is msgspec.Raw:
        return msgspec.Raw(b"1") if item else msgspec.Raw()
    if isinstance(item, dict):
        nested = next(
            (
                option
                for option in getattr(kind, "__args__", ())
                if hasattr(option, "__struct_fields__")
            ),
            None,
        )
        return _fit_shape(item, nested) if nested else msgspec.convert(item, kind)
    if isinstance(item, int) and not isinstance(item, bool) and kind == (str | None):
        return str(item)
    return msgspec.convert(item, kind)

"""Fast check of JSON of 1.0, with the generations of the 1.1 draft (manual/protocol.md "Fields of 1.0")."""

from __future__ import annotations

from typing import Literal
from zlib import crc32

from msgspec import UNSET, UnsetType

from a2a_proxy.redaction.known_secrets import MIN_SECRET_DIGITS
from a2a_proxy.rules.facts.partial_decode import ArtifactSummary, StatusSummary
from a2a_proxy.rules.schema.fast.common import (
    DECODE_ERRORS,
    TEXT_PART_QUOTES,
    Check,
    Flag,
    FreeObject,
    Generation,
    Id,
    Length,
    MaybeId,
    MediaType,
    Parts,
    PayloadResult,
    RpcId,
    StrictStruct,
    Text,
    Version,
    collect_texts,
    has_matching_ids,
    have_one_content,
    is_utc,
    make_checker,
)

State = Literal[
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
]


class _Message(StrictStruct):
    message_id: Id
    parts: Parts
    role: Literal["ROLE_USER", "ROLE_AGENT"]
    context_id: MaybeId = UNSET
    task_id: MaybeId = UNSET
    metadata: FreeObject = UNSET


class _Status(StrictStruct):
    state: State
    timestamp: Text = UNSET
    message: _Message | UnsetType = UNSET


class _Artifact(StrictStruct):
    artifact_id: Id
    parts: Parts
    name: Text = UNSET
    description: Text = UNSET
    metadata: FreeObject = UNSET


class _Task(StrictStruct):
    id: Id
    context_id: Id
    status: _Status
    artifacts: list[_Artifact] | UnsetType = UNSET
    history: list[_Message] | UnsetType = UNSET
    metadata: FreeObject = UNSET
    generation: Generation = UNSET


class _StatusUpdate(StrictStruct):
    task_id: Id
    context_id: Id
    status: _Status
    metadata: FreeObject = UNSET
    generation: Generation = UNSET


class _ArtifactUpdate(StrictStruct):
    task_id: Id
    context_id: Id
    artifact: _Artifact
    append: Flag = UNSET
    last_chunk: Flag = UNSET
    metadata: FreeObject = UNSET
    generation: Generation = UNSET


class _Event(StrictStruct):
    status_update: _StatusUpdate | UnsetType = UNSET
    artifact_update: _ArtifactUpdate | UnsetType = UNSET
    task: _Task | UnsetType = UNSET
    message: _Message | UnsetType = UNSET


class _Sent(StrictStruct):
    task: _Task | UnsetType = UNSET
    message: _Message | UnsetType = UNSET


class _RpcEvent(StrictStruct):
    jsonrpc: Version
    id: RpcId
    result: _Event


class _RpcSent(StrictStruct):
    jsonrpc: Version
    id: RpcId
    result: _Sent


class _RpcTask(StrictStruct):
    jsonrpc: Version
    id: RpcId
    result: _Task


def _is_valid_status(status: _Status, task_id: str, context_id: str) -> bool:
    said = status.message
    if not is_utc(status.timestamp):
        return False
    if said is UNSET:
        return True
    return said.role == "ROLE_AGENT" and have_one_content(said.parts) and has_matching_ids(said, task_id, context_id)


def _is_valid_task(task: _Task) -> bool:
    if not _is_valid_status(task.status, task.id, task.context_id):
        return False
    if task.artifacts is not UNSET and not all(have_one_content(each.parts) for each in task.artifacts):
        return False
    return task.history is UNSET or all(
        have_one_content(each.parts) and has_matching_ids(each, task.id, task.context_id) for each in task.history
    )


def _is_valid_answer(message: _Message) -> bool:
    return message.role == "ROLE_AGENT" and message.context_id is not UNSET and have_one_content(message.parts)


def _check_event(event: _Event, quotes: int) -> PayloadResult:
    """Check an event; `quotes` is the number of quotes around it."""
    update, chunk, task, message = event.status_update, event.artifact_update, event.task, event.message
    if update is not UNSET:
        return (
            _check_status_update(update, quotes + 2)
            if chunk is UNSET and task is UNSET and message is UNSET
            else DECODE_ERRORS
        )
    if chunk is not UNSET:
        return _check_artifact_update(chunk, quotes + 2) if task is UNSET and message is UNSET else DECODE_ERRORS
    return _is_valid_send_result(task, message), 0


def _check_status_update(update: _StatusUpdate, quotes: int) -> PayloadResult:
    status = update.status
    said, stamp = status.message, status.timestamp
    if update.metadata is not UNSET or (said is not UNSET and said.metadata is not UNSET):
        return _is_valid_status(status, update.task_id, update.context_id), 0
    quotes += 14  # taskId, contextId and state with values, status
    is_plain = True
    if update.generation is not UNSET:
        quotes += 4
        is_plain = len(update.generation) < MIN_SECRET_DIGITS
    if stamp is UNSET:
        stamp = ""
    elif is_utc(stamp):
        quotes += 4
    else:
        return DECODE_ERRORS
    if said is UNSET:
        return StatusSummary(stamp, None, True, is_plain=is_plain), quotes
    named: tuple[str, ...] = ()
    task_id, context_id = said.task_id, said.context_id
    if task_id is not UNSET or context_id is not UNSET:
        if not has_matching_ids(said, update.task_id, update.context_id):
            return DECODE_ERRORS
        named = (task_id or "", context_id or "")
        quotes += 8 if task_id is not UNSET and context_id is not UNSET else 4
    if said.role != "ROLE_AGENT":
        return DECODE_ERRORS
    texts, inner = collect_texts(said.parts)
    if not inner:
        return have_one_content(said.parts), 0
    # messageId and role with values, message, parts
    is_plain = is_plain and inner == TEXT_PART_QUOTES  # with more parts or members there are more quotes
    return StatusSummary(stamp, b"".join(texts), False, named, is_plain), quotes + 12 + inner


def _check_artifact_update(update: _ArtifactUpdate, quotes: int) -> PayloadResult:
    artifact = update.artifact
    texts, inner = collect_texts(artifact.parts)
    if not inner or update.metadata is not UNSET or artifact.metadata is not UNSET:
        return have_one_content(artifact.parts), 0
    quotes += 16  # taskId, contextId and artifactId with values, artifact, parts
    if update.append is not UNSET:
        quotes += 2
    if update.last_chunk is not UNSET:
        quotes += 2
    if update.generation is not UNSET:
        quotes += 4
    name, described, media_type = artifact.name, artifact.description, artifact.parts[0].media_type
    if name is not UNSET:
        quotes += 4
    if described is not UNSET:
        quotes += 4
    description = crc32(described.encode()) if described else 0
    return ArtifactSummary(artifact.artifact_id, name or "", description, media_type or "", texts), quotes + inner


def _is_valid_send_result(task: _Task | UnsetType, message: _Message | UnsetType) -> bool:
    if task is not UNSET:
        return message is UNSET and _is_valid_task(task)
    return message is not UNSET and _is_valid_answer(message)


def _check_send_result(sent: _Sent) -> PayloadResult:
    return _is_valid_send_result(sent.task, sent.message), 0


# --- requests -----------------------------------------------------------------------------------------------------


class _Configuration(StrictStruct):
    accepted_output_modes: list[MediaType] | UnsetType = UNSET
    history_length: Length = UNSET
    return_immediately: Flag = UNSET


class _Send(StrictStruct):
    message: _Message
    configuration: _Configuration | UnsetType = UNSET
    metadata: FreeObject = UNSET


class _ById(StrictStruct):
    id: Id


class _Empty(StrictStruct):
    pass


class _RpcSend(StrictStruct):
    jsonrpc: Version
    id: RpcId
    method: str
    params: _Send


class _RpcById(StrictStruct):
    jsonrpc: Version
    id: RpcId
    method: str
    params: _ById


def _check_send(send: _Send) -> PayloadResult:
    return send.message.role == "ROLE_USER" and have_one_content(send.message.parts), 0


def _accept_any(_made: object) -> PayloadResult:
    return True, 0


def _check_rpc_event(made: _RpcEvent) -> PayloadResult:
    # jsonrpc with value, id, result; an id may be a text
    return _check_event(made.result, 10 if type(made.id) is str else 8)


RPC_EVENT: Check = make_checker(_RpcEvent, _check_rpc_event)
RPC_SENT: Check = make_checker(_RpcSent, lambda made: _check_send_result(made.result))
RPC_TASK: Check = make_checker(_RpcTask, lambda made: (_is_valid_task(made.result), 0))
EVENT: Check = make_checker(_Event, lambda made: _check_event(made, 0))
SENT: Check = make_checker(_Sent, _check_send_result)
TASK: Check = make_checker(_Task, lambda made: (_is_valid_task(made), 0))
RPC_SEND: Check = make_checker(_RpcSend, lambda made: _check_send(made.params))
RPC_BY_ID: Check = make_checker(_RpcById, _accept_any)
SEND: Check = make_checker(_Send, _check_send)
EMPTY: Check = make_checker(_Empty, _accept_any)

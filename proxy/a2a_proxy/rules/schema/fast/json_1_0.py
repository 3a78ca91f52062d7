"""Faultless JSON of 1.0, with the generations of the 1.1 draft (manual/protocol.md "Fields of 1.0")."""

from __future__ import annotations

from typing import Literal
from zlib import crc32

from msgspec import UNSET, Struct, UnsetType

from a2a_proxy.rules.facts.partial_decode import ArtifactLook, StatusLook
from a2a_proxy.rules.schema.fast.common import (
    WRONG,
    Check,
    Flag,
    Found,
    Free,
    Generation,
    Id,
    Length,
    MaybeId,
    MediaType,
    Parts,
    RpcId,
    Text,
    Version,
    belongs,
    checker,
    in_utc,
    texts_of,
    whole,
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


class _Message(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    message_id: Id
    parts: Parts
    role: Literal["ROLE_USER", "ROLE_AGENT"]
    context_id: MaybeId = UNSET
    task_id: MaybeId = UNSET
    metadata: Free = UNSET


class _Status(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    state: State
    timestamp: Text = UNSET
    message: _Message | UnsetType = UNSET


class _Artifact(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    artifact_id: Id
    parts: Parts
    name: Text = UNSET
    description: Text = UNSET
    metadata: Free = UNSET


class _Task(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    id: Id
    context_id: Id
    status: _Status
    artifacts: list[_Artifact] | UnsetType = UNSET
    history: list[_Message] | UnsetType = UNSET
    metadata: Free = UNSET
    generation: Generation = UNSET


class _StatusUpdate(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    task_id: Id
    context_id: Id
    status: _Status
    metadata: Free = UNSET
    generation: Generation = UNSET


class _ArtifactUpdate(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    task_id: Id
    context_id: Id
    artifact: _Artifact
    append: Flag = UNSET
    last_chunk: Flag = UNSET
    metadata: Free = UNSET
    generation: Generation = UNSET


class _Event(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    status_update: _StatusUpdate | UnsetType = UNSET
    artifact_update: _ArtifactUpdate | UnsetType = UNSET
    task: _Task | UnsetType = UNSET
    message: _Message | UnsetType = UNSET


class _Sent(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    task: _Task | UnsetType = UNSET
    message: _Message | UnsetType = UNSET


class _RpcEvent(Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Version
    id: RpcId
    result: _Event


class _RpcSent(Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Version
    id: RpcId
    result: _Sent


class _RpcTask(Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Version
    id: RpcId
    result: _Task


def _fine_status(status: _Status, task_id: str, context_id: str) -> bool:
    said = status.message
    if not in_utc(status.timestamp):
        return False
    if said is UNSET:
        return True
    return said.role == "ROLE_AGENT" and whole(said.parts) and belongs(said, task_id, context_id)


def _fine_task(task: _Task) -> bool:
    if not _fine_status(task.status, task.id, task.context_id):
        return False
    if task.artifacts is not UNSET and not all(whole(each.parts) for each in task.artifacts):
        return False
    return task.history is UNSET or all(
        whole(each.parts) and belongs(each, task.id, task.context_id) for each in task.history
    )


def _fine_answer(message: _Message) -> bool:
    return message.role == "ROLE_AGENT" and message.context_id is not UNSET and whole(message.parts)


def _event(event: _Event, quotes: int) -> Found:
    """An event with so many quotes around it."""
    update, chunk, task, message = event.status_update, event.artifact_update, event.task, event.message
    if update is not UNSET:
        return _told(update, quotes + 2) if chunk is UNSET and task is UNSET and message is UNSET else WRONG
    if chunk is not UNSET:
        return _chunk(chunk, quotes + 2) if task is UNSET and message is UNSET else WRONG
    return _fine_pair(task, message), 0


def _told(update: _StatusUpdate, quotes: int) -> Found:
    status = update.status
    said, stamp = status.message, status.timestamp
    if update.metadata is not UNSET or (said is not UNSET and said.metadata is not UNSET):
        return _fine_status(status, update.task_id, update.context_id), 0
    quotes += 14  # taskId and contextId and what they are, status, state and what it is
    if update.generation is not UNSET:
        quotes += 4
    if stamp is UNSET:
        stamp = ""
    elif in_utc(stamp):
        quotes += 4
    else:
        return WRONG
    if said is UNSET:
        return StatusLook(stamp, None, True), quotes
    named: tuple[str, ...] = ()
    task_id, context_id = said.task_id, said.context_id
    if task_id is not UNSET or context_id is not UNSET:
        if not belongs(said, update.task_id, update.context_id):
            return WRONG
        named = (task_id or "", context_id or "")
        quotes += 8 if task_id is not UNSET and context_id is not UNSET else 4
    if said.role != "ROLE_AGENT":
        return WRONG
    texts, inner = texts_of(said.parts)
    if not inner:
        return whole(said.parts), 0
    # message, messageId and what it is, role and what it is, parts
    return StatusLook(stamp, b"".join(texts), False, named), quotes + 12 + inner


def _chunk(update: _ArtifactUpdate, quotes: int) -> Found:
    artifact = update.artifact
    texts, inner = texts_of(artifact.parts)
    if not inner or update.metadata is not UNSET or artifact.metadata is not UNSET:
        return whole(artifact.parts), 0
    quotes += 16  # taskId, contextId and artifactId and what they are, artifact, parts
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
    return ArtifactLook(artifact.artifact_id, name or "", description, media_type or "", texts), quotes + inner


def _fine_pair(task: _Task | UnsetType, message: _Message | UnsetType) -> bool:
    if task is not UNSET:
        return message is UNSET and _fine_task(task)
    return message is not UNSET and _fine_answer(message)


def _sent(sent: _Sent) -> Found:
    return _fine_pair(sent.task, sent.message), 0


# --- requests -----------------------------------------------------------------------------------------------------


class _Configuration(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    accepted_output_modes: list[MediaType] | UnsetType = UNSET
    history_length: Length = UNSET
    return_immediately: Flag = UNSET


class _Send(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    message: _Message
    configuration: _Configuration | UnsetType = UNSET
    metadata: Free = UNSET


class _ById(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    id: Id


class _Empty(Struct, forbid_unknown_fields=True, gc=False):
    pass


class _RpcSend(Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Version
    id: RpcId
    method: str
    params: _Send


class _RpcById(Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Version
    id: RpcId
    method: str
    params: _ById


def _asked(send: _Send) -> Found:
    return send.message.role == "ROLE_USER" and whole(send.message.parts), 0


def _nothing_more(_made: object) -> Found:
    return True, 0


def _rpc_event(made: _RpcEvent) -> Found:
    # jsonrpc and what it is, id, result; an id may be a text
    return _event(made.result, 10 if type(made.id) is str else 8)


RPC_EVENT: Check = checker(_RpcEvent, _rpc_event)
RPC_SENT: Check = checker(_RpcSent, lambda made: _sent(made.result))
RPC_TASK: Check = checker(_RpcTask, lambda made: (_fine_task(made.result), 0))
EVENT: Check = checker(_Event, lambda made: _event(made, 0))
SENT: Check = checker(_Sent, _sent)
TASK: Check = checker(_Task, lambda made: (_fine_task(made), 0))
RPC_SEND: Check = checker(_RpcSend, lambda made: _asked(made.params))
RPC_BY_ID: Check = checker(_RpcById, _nothing_more)
SEND: Check = checker(_Send, _asked)
EMPTY: Check = checker(_Empty, _nothing_more)

"""Faultless JSON of 1.0, with the generations of the 1.1 draft (protocol sheet 2.1, 2.3)."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from a2a_proxy.rules.faultless.common import (
    Check,
    Flag,
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


class _Message(Struct, rename="camel", forbid_unknown_fields=True):
    message_id: Id
    parts: Parts
    role: Literal["ROLE_USER", "ROLE_AGENT"]
    context_id: MaybeId = UNSET
    task_id: MaybeId = UNSET
    metadata: Free = UNSET


class _Status(Struct, rename="camel", forbid_unknown_fields=True):
    state: State
    timestamp: Text = UNSET
    message: _Message | UnsetType = UNSET


class _Artifact(Struct, rename="camel", forbid_unknown_fields=True):
    artifact_id: Id
    parts: Parts
    name: Text = UNSET
    description: Text = UNSET
    metadata: Free = UNSET


class _Task(Struct, rename="camel", forbid_unknown_fields=True):
    id: Id
    context_id: Id
    status: _Status
    artifacts: list[_Artifact] | UnsetType = UNSET
    history: list[_Message] | UnsetType = UNSET
    metadata: Free = UNSET
    generation: Generation = UNSET


class _StatusUpdate(Struct, rename="camel", forbid_unknown_fields=True):
    task_id: Id
    context_id: Id
    status: _Status
    metadata: Free = UNSET
    generation: Generation = UNSET


class _ArtifactUpdate(Struct, rename="camel", forbid_unknown_fields=True):
    task_id: Id
    context_id: Id
    artifact: _Artifact
    append: Flag = UNSET
    last_chunk: Flag = UNSET
    metadata: Free = UNSET
    generation: Generation = UNSET


class _Event(Struct, rename="camel", forbid_unknown_fields=True):
    status_update: _StatusUpdate | UnsetType = UNSET
    artifact_update: _ArtifactUpdate | UnsetType = UNSET
    task: _Task | UnsetType = UNSET
    message: _Message | UnsetType = UNSET


class _Sent(Struct, rename="camel", forbid_unknown_fields=True):
    task: _Task | UnsetType = UNSET
    message: _Message | UnsetType = UNSET


class _RpcEvent(Struct, forbid_unknown_fields=True):
    jsonrpc: Version
    id: RpcId
    result: _Event


class _RpcSent(Struct, forbid_unknown_fields=True):
    jsonrpc: Version
    id: RpcId
    result: _Sent


class _RpcTask(Struct, forbid_unknown_fields=True):
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


def _fine_event(event: _Event) -> bool:
    update, chunk, task, message = event.status_update, event.artifact_update, event.task, event.message
    if update is not UNSET:
        alone = chunk is UNSET and task is UNSET and message is UNSET
        return alone and _fine_status(update.status, update.task_id, update.context_id)
    if chunk is not UNSET:
        return task is UNSET and message is UNSET and whole(chunk.artifact.parts)
    return _fine_pair(task, message)


def _fine_pair(task: _Task | UnsetType, message: _Message | UnsetType) -> bool:
    if task is not UNSET:
        return message is UNSET and _fine_task(task)
    return message is not UNSET and _fine_answer(message)


def _fine_sent(sent: _Sent) -> bool:
    return _fine_pair(sent.task, sent.message)


# --- requests -----------------------------------------------------------------------------------------------------


class _Configuration(Struct, rename="camel", forbid_unknown_fields=True):
    accepted_output_modes: list[MediaType] | UnsetType = UNSET
    history_length: Length = UNSET
    return_immediately: Flag = UNSET


class _Send(Struct, rename="camel", forbid_unknown_fields=True):
    message: _Message
    configuration: _Configuration | UnsetType = UNSET
    metadata: Free = UNSET


class _ById(Struct, rename="camel", forbid_unknown_fields=True):
    id: Id


class _Empty(Struct, forbid_unknown_fields=True):
    pass


class _RpcSend(Struct, forbid_unknown_fields=True):
    jsonrpc: Version
    id: RpcId
    method: str
    params: _Send


class _RpcById(Struct, forbid_unknown_fields=True):
    jsonrpc: Version
    id: RpcId
    method: str
    params: _ById


def _fine_send(send: _Send) -> bool:
    return send.message.role == "ROLE_USER" and whole(send.message.parts)


def _nothing_more(_made: object) -> bool:
    return True


RPC_EVENT: Check = checker(_RpcEvent, lambda made: _fine_event(made.result))
RPC_SENT: Check = checker(_RpcSent, lambda made: _fine_sent(made.result))
RPC_TASK: Check = checker(_RpcTask, lambda made: _fine_task(made.result))
EVENT: Check = checker(_Event, _fine_event)
SENT: Check = checker(_Sent, _fine_sent)
TASK: Check = checker(_Task, _fine_task)
RPC_SEND: Check = checker(_RpcSend, lambda made: _fine_send(made.params))
RPC_BY_ID: Check = checker(_RpcById, _nothing_more)
SEND: Check = checker(_Send, _fine_send)
EMPTY: Check = checker(_Empty, _nothing_more)

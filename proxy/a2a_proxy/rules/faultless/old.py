"""Faultless JSON of 0.2 and 0.3 as JSON-RPC has it (protocol sheet 3.6)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from a2a_proxy.rules.faultless.common import (
    Check,
    Flag,
    Free,
    Id,
    Length,
    MaybeId,
    MediaType,
    RpcId,
    Text,
    Version,
    belongs,
    checker,
    zoned,
)

State = Literal[
    "submitted", "working", "completed", "failed", "canceled", "input-required", "rejected", "auth-required"
]


class _Text(Struct, forbid_unknown_fields=True, tag_field="kind", tag="text"):
    text: str
    metadata: Free = UNSET


class _Data(Struct, forbid_unknown_fields=True, tag_field="kind", tag="data"):
    data: dict[str, Any]
    metadata: Free = UNSET


_Parts = Annotated[list[_Text | _Data], Meta(min_length=1)]


class _Message(Struct, rename="camel", forbid_unknown_fields=True):
    kind: Literal["message"]
    message_id: Id
    parts: _Parts
    role: Literal["user", "agent"]
    context_id: MaybeId = UNSET
    task_id: MaybeId = UNSET
    metadata: Free = UNSET


class _Status(Struct, rename="camel", forbid_unknown_fields=True):
    state: State
    timestamp: Text = UNSET
    message: _Message | UnsetType = UNSET


class _Artifact(Struct, rename="camel", forbid_unknown_fields=True):
    artifact_id: Id
    parts: _Parts
    name: Text = UNSET
    description: Text = UNSET
    metadata: Free = UNSET


class _Task(Struct, rename="camel", forbid_unknown_fields=True, tag_field="kind", tag="task"):
    id: Id
    context_id: Id
    status: _Status
    artifacts: list[_Artifact] | UnsetType = UNSET
    history: list[_Message] | UnsetType = UNSET
    metadata: Free = UNSET


class _Said(Struct, rename="camel", forbid_unknown_fields=True, tag_field="kind", tag="message"):
    message_id: Id
    parts: _Parts
    role: Literal["agent"]
    context_id: Id
    task_id: MaybeId = UNSET
    metadata: Free = UNSET


class _StatusUpdate(Struct, rename="camel", forbid_unknown_fields=True, tag_field="kind", tag="status-update"):
    task_id: Id
    context_id: Id
    status: _Status
    final: bool
    metadata: Free = UNSET


class _ArtifactUpdate(Struct, rename="camel", forbid_unknown_fields=True, tag_field="kind", tag="artifact-update"):
    task_id: Id
    context_id: Id
    artifact: _Artifact
    append: Flag = UNSET
    last_chunk: Flag = UNSET
    metadata: Free = UNSET


class _RpcEvent(Struct, forbid_unknown_fields=True):
    jsonrpc: Version
    id: RpcId
    result: _StatusUpdate | _ArtifactUpdate | _Task | _Said


class _RpcSent(Struct, forbid_unknown_fields=True):
    jsonrpc: Version
    id: RpcId
    result: _Task | _Said


class _RpcTask(Struct, forbid_unknown_fields=True):
    jsonrpc: Version
    id: RpcId
    result: _Task


class _Configuration(Struct, rename="camel", forbid_unknown_fields=True):
    accepted_output_modes: list[MediaType] | UnsetType = UNSET
    history_length: Length = UNSET
    blocking: Flag = UNSET


class _Send(Struct, forbid_unknown_fields=True):
    message: _Message
    configuration: _Configuration | UnsetType = UNSET
    metadata: Free = UNSET


class _RpcSend(Struct, forbid_unknown_fields=True):
    jsonrpc: Version
    id: RpcId
    method: str
    params: _Send


class _ById(Struct, forbid_unknown_fields=True):
    id: Id


class _RpcById(Struct, forbid_unknown_fields=True):
    jsonrpc: Version
    id: RpcId
    method: str
    params: _ById


def _fine_status(status: _Status, task_id: str, context_id: str) -> bool:
    said = status.message
    if not zoned(status.timestamp):
        return False
    return said is UNSET or (said.role == "agent" and belongs(said, task_id, context_id))


def _fine_task(task: _Task) -> bool:
    if not _fine_status(task.status, task.id, task.context_id):
        return False
    return task.history is UNSET or all(belongs(each, task.id, task.context_id) for each in task.history)


def _fine_event(made: _RpcEvent) -> bool:
    event = made.result
    if type(event) is _StatusUpdate:
        return _fine_status(event.status, event.task_id, event.context_id)
    return _fine_task(event) if type(event) is _Task else True


def _fine_sent(made: _RpcSent) -> bool:
    return _fine_task(made.result) if type(made.result) is _Task else True


def _named(_made: _RpcById) -> bool:
    return True


RPC_EVENT: Check = checker(_RpcEvent, _fine_event)
RPC_SENT: Check = checker(_RpcSent, _fine_sent)
RPC_TASK: Check = checker(_RpcTask, lambda made: _fine_task(made.result))
RPC_BY_ID: Check = checker(_RpcById, _named)
RPC_SEND: Check = checker(_RpcSend, lambda made: made.params.message.role == "user")

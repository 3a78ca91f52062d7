"""Faultless JSON of 0.2 and 0.3: the JSON-RPC objects, and their protobuf form in REST (protocol sheet 2.8, 3.6)."""

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
    in_utc,
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


RPC_EVENT: Check = checker(_RpcEvent, _fine_event)
RPC_SENT: Check = checker(_RpcSent, _fine_sent)
RPC_SEND: Check = checker(_RpcSend, lambda made: made.params.message.role == "user")


# --- the protobuf form, in REST -----------------------------------------------------------------------------------

_ProtoState = Literal[
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELLED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
]


class _ProtoPart(Struct, forbid_unknown_fields=True):
    text: str
    metadata: Free = UNSET


_ProtoParts = Annotated[list[_ProtoPart], Meta(min_length=1)]


class _ProtoMessage(Struct, rename="camel", forbid_unknown_fields=True):
    message_id: Id
    content: _ProtoParts
    role: Literal["ROLE_USER", "ROLE_AGENT"]
    context_id: MaybeId = UNSET
    task_id: MaybeId = UNSET
    metadata: Free = UNSET


class _ProtoStatus(Struct, rename="camel", forbid_unknown_fields=True):
    state: _ProtoState
    timestamp: Text = UNSET
    message: _ProtoMessage | UnsetType = UNSET


class _ProtoArtifact(Struct, rename="camel", forbid_unknown_fields=True):
    artifact_id: Id
    parts: _ProtoParts
    name: Text = UNSET
    description: Text = UNSET
    metadata: Free = UNSET


class _ProtoTask(Struct, rename="camel", forbid_unknown_fields=True):
    id: Id
    context_id: Id
    status: _ProtoStatus
    artifacts: list[_ProtoArtifact] | UnsetType = UNSET
    history: list[_ProtoMessage] | UnsetType = UNSET
    metadata: Free = UNSET


class _ProtoStatusUpdate(Struct, rename="camel", forbid_unknown_fields=True):
    task_id: Id
    context_id: Id
    status: _ProtoStatus
    final: Flag = UNSET
    metadata: Free = UNSET


class _ProtoArtifactUpdate(Struct, rename="camel", forbid_unknown_fields=True):
    task_id: Id
    context_id: Id
    artifact: _ProtoArtifact
    append: Flag = UNSET
    last_chunk: Flag = UNSET
    metadata: Free = UNSET


class _ProtoEvent(Struct, rename="camel", forbid_unknown_fields=True):
    status_update: _ProtoStatusUpdate | UnsetType = UNSET
    artifact_update: _ProtoArtifactUpdate | UnsetType = UNSET
    task: _ProtoTask | UnsetType = UNSET
    message: _ProtoMessage | UnsetType = UNSET


class _ProtoSent(Struct, rename="camel", forbid_unknown_fields=True):
    task: _ProtoTask | UnsetType = UNSET
    message: _ProtoMessage | UnsetType = UNSET


def _fine_proto_status(status: _ProtoStatus, task_id: str, context_id: str) -> bool:
    said = status.message
    if not in_utc(status.timestamp):
        return False
    return said is UNSET or (said.role == "ROLE_AGENT" and belongs(said, task_id, context_id))


def _fine_proto_task(task: _ProtoTask) -> bool:
    if not _fine_proto_status(task.status, task.id, task.context_id):
        return False
    return task.history is UNSET or all(belongs(each, task.id, task.context_id) for each in task.history)


def _fine_proto_sent(sent: _ProtoSent | _ProtoEvent) -> bool:
    if sent.task is not UNSET:
        return sent.message is UNSET and _fine_proto_task(sent.task)
    said = sent.message
    return said is not UNSET and said.role == "ROLE_AGENT" and said.context_id is not UNSET


def _fine_proto_event(event: _ProtoEvent) -> bool:
    update, chunk = event.status_update, event.artifact_update
    if update is UNSET and chunk is UNSET:
        return _fine_proto_sent(event)
    if event.task is not UNSET or event.message is not UNSET or (update is not UNSET and chunk is not UNSET):
        return False
    return update is UNSET or _fine_proto_status(update.status, update.task_id, update.context_id)


PROTO_EVENT: Check = checker(_ProtoEvent, _fine_proto_event)
PROTO_SENT: Check = checker(_ProtoSent, _fine_proto_sent)
PROTO_TASK: Check = checker(_ProtoTask, _fine_proto_task)

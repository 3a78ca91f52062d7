"""Faultless JSON of 0.2 and 0.3 as JSON-RPC has it (manual/protocol.md "JSON objects before 1.0")."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from zlib import crc32

from msgspec import UNSET, Meta, Struct, UnsetType

from a2a_proxy.rules.faultless.common import (
    Check,
    Flag,
    Found,
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
from a2a_proxy.rules.glance import ArtifactLook, Seen, StatusLook

State = Literal[
    "submitted", "working", "completed", "failed", "canceled", "input-required", "rejected", "auth-required"
]


class _Text(Struct, forbid_unknown_fields=True, gc=False, tag_field="kind", tag="text"):
    text: str
    metadata: Free = UNSET


class _Data(Struct, forbid_unknown_fields=True, gc=False, tag_field="kind", tag="data"):
    data: dict[str, Any]
    metadata: Free = UNSET


_Parts = Annotated[list[_Text | _Data], Meta(min_length=1)]


class _Message(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    kind: Literal["message"]
    message_id: Id
    parts: _Parts
    role: Literal["user", "agent"]
    context_id: MaybeId = UNSET
    task_id: MaybeId = UNSET
    metadata: Free = UNSET


class _Status(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    state: State
    timestamp: Text = UNSET
    message: _Message | UnsetType = UNSET


class _Artifact(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    artifact_id: Id
    parts: _Parts
    name: Text = UNSET
    description: Text = UNSET
    metadata: Free = UNSET


class _Task(Struct, rename="camel", forbid_unknown_fields=True, gc=False, tag_field="kind", tag="task"):
    id: Id
    context_id: Id
    status: _Status
    artifacts: list[_Artifact] | UnsetType = UNSET
    history: list[_Message] | UnsetType = UNSET
    metadata: Free = UNSET


class _Said(Struct, rename="camel", forbid_unknown_fields=True, gc=False, tag_field="kind", tag="message"):
    message_id: Id
    parts: _Parts
    role: Literal["agent"]
    context_id: Id
    task_id: MaybeId = UNSET
    metadata: Free = UNSET


class _StatusUpdate(
    Struct, rename="camel", forbid_unknown_fields=True, gc=False, tag_field="kind", tag="status-update"
):
    task_id: Id
    context_id: Id
    status: _Status
    final: bool
    metadata: Free = UNSET


class _ArtifactUpdate(
    Struct, rename="camel", forbid_unknown_fields=True, gc=False, tag_field="kind", tag="artifact-update"
):
    task_id: Id
    context_id: Id
    artifact: _Artifact
    append: Flag = UNSET
    last_chunk: Flag = UNSET
    metadata: Free = UNSET


class _RpcEvent(Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Version
    id: RpcId
    result: _StatusUpdate | _ArtifactUpdate | _Task | _Said


class _RpcSent(Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Version
    id: RpcId
    result: _Task | _Said


class _RpcTask(Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Version
    id: RpcId
    result: _Task


class _Configuration(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    accepted_output_modes: list[MediaType] | UnsetType = UNSET
    history_length: Length = UNSET
    blocking: Flag = UNSET


class _Send(Struct, forbid_unknown_fields=True, gc=False):
    message: _Message
    configuration: _Configuration | UnsetType = UNSET
    metadata: Free = UNSET


class _RpcSend(Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Version
    id: RpcId
    method: str
    params: _Send


class _ById(Struct, forbid_unknown_fields=True, gc=False):
    id: Id


class _RpcById(Struct, forbid_unknown_fields=True, gc=False):
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


def _event(made: _RpcEvent) -> Found:
    event = made.result
    if type(event) is _StatusUpdate:
        return _told(event), 0
    if type(event) is _ArtifactUpdate:
        return _chunk(event), 0
    return type(event) is not _Task or _fine_task(event), 0


def _told(update: _StatusUpdate) -> Seen:
    status = update.status
    if not _fine_status(status, update.task_id, update.context_id):
        return False
    said, stamp = status.message, status.timestamp or ""
    if said is UNSET:
        return StatusLook(stamp, None, update.metadata is UNSET)
    texts = _texts(said.parts)
    named = (said.task_id or "", said.context_id or "")
    return StatusLook(stamp, b"".join(texts), False, named) if texts else True


def _chunk(update: _ArtifactUpdate) -> Seen:
    artifact = update.artifact
    texts, described = _texts(artifact.parts), artifact.description
    description = crc32(described.encode()) if described else 0
    return ArtifactLook(artifact.artifact_id, artifact.name or "", description, "", texts) if texts else True


def _texts(parts: list[_Text | _Data]) -> list[bytes]:
    """The texts of parts; none where one is no text."""
    texts: list[bytes] = [part.text.encode() for part in parts if type(part) is _Text]
    return texts if len(texts) == len(parts) else []


def _sent(made: _RpcSent) -> Found:
    return type(made.result) is not _Task or _fine_task(made.result), 0


RPC_EVENT: Check = checker(_RpcEvent, _event)
RPC_SENT: Check = checker(_RpcSent, _sent)
RPC_TASK: Check = checker(_RpcTask, lambda made: (_fine_task(made.result), 0))
RPC_BY_ID: Check = checker(_RpcById, lambda _made: (True, 0))
RPC_SEND: Check = checker(_RpcSend, lambda made: (made.params.message.role == "user", 0))

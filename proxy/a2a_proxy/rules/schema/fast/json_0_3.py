"""Fast check of JSON of 0.2 and 0.3 in its JSON-RPC form (manual/protocol.md "JSON objects before 1.0")."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from zlib import crc32

from msgspec import UNSET, Meta, UnsetType

from a2a_proxy.rules.facts.partial_decode import ArtifactSummary, GateResult, StatusSummary
from a2a_proxy.rules.schema.fast.common import (
    Check,
    Flag,
    FreeObject,
    Id,
    Length,
    MaybeId,
    MediaType,
    PayloadResult,
    RpcId,
    StrictStruct,
    Text,
    Version,
    has_matching_ids,
    is_zoned,
    make_checker,
)

State = Literal[
    "submitted", "working", "completed", "failed", "canceled", "input-required", "rejected", "auth-required"
]


class _Text(StrictStruct, tag_field="kind", tag="text"):
    text: str
    metadata: FreeObject = UNSET


class _Data(StrictStruct, tag_field="kind", tag="data"):
    data: dict[str, Any]
    metadata: FreeObject = UNSET


_Parts = Annotated[list[_Text | _Data], Meta(min_length=1)]


class _MessageV03(StrictStruct):
    kind: Literal["message"]
    message_id: Id
    parts: _Parts
    role: Literal["user", "agent"]
    context_id: MaybeId = UNSET
    task_id: MaybeId = UNSET
    metadata: FreeObject = UNSET


class _StatusV03(StrictStruct):
    state: State
    timestamp: Text = UNSET
    message: _MessageV03 | UnsetType = UNSET


class _ArtifactV03(StrictStruct):
    artifact_id: Id
    parts: _Parts
    name: Text = UNSET
    description: Text = UNSET
    metadata: FreeObject = UNSET


class _TaskV03(StrictStruct, tag_field="kind", tag="task"):
    id: Id
    context_id: Id
    status: _StatusV03
    artifacts: list[_ArtifactV03] | UnsetType = UNSET
    history: list[_MessageV03] | UnsetType = UNSET
    metadata: FreeObject = UNSET


class _HistoryMessageV03(StrictStruct, tag_field="kind", tag="message"):
    message_id: Id
    parts: _Parts
    role: Literal["agent"]
    context_id: Id
    task_id: MaybeId = UNSET
    metadata: FreeObject = UNSET


class _StatusUpdateV03(StrictStruct, tag_field="kind", tag="status-update"):
    task_id: Id
    context_id: Id
    status: _StatusV03
    final: bool
    metadata: FreeObject = UNSET


class _ArtifactUpdateV03(StrictStruct, tag_field="kind", tag="artifact-update"):
    task_id: Id
    context_id: Id
    artifact: _ArtifactV03
    append: Flag = UNSET
    last_chunk: Flag = UNSET
    metadata: FreeObject = UNSET


class _RpcEventV03(StrictStruct):
    jsonrpc: Version
    id: RpcId
    result: _StatusUpdateV03 | _ArtifactUpdateV03 | _TaskV03 | _HistoryMessageV03


class _RpcSentV03(StrictStruct):
    jsonrpc: Version
    id: RpcId
    result: _TaskV03 | _HistoryMessageV03


class _RpcTaskV03(StrictStruct):
    jsonrpc: Version
    id: RpcId
    result: _TaskV03


class _ConfigurationV03(StrictStruct):
    accepted_output_modes: list[MediaType] | UnsetType = UNSET
    history_length: Length = UNSET
    blocking: Flag = UNSET


class _SendV03(StrictStruct):
    message: _MessageV03
    configuration: _ConfigurationV03 | UnsetType = UNSET
    metadata: FreeObject = UNSET


class _RpcSendV03(StrictStruct):
    jsonrpc: Version
    id: RpcId
    method: str
    params: _SendV03


class _ByIdV03(StrictStruct):
    id: Id


class _RpcByIdV03(StrictStruct):
    jsonrpc: Version
    id: RpcId
    method: str
    params: _ByIdV03


def _is_valid_status(status: _StatusV03, task_id: str, context_id: str) -> bool:
    said = status.message
    if not is_zoned(status.timestamp):
        return False
    return said is UNSET or (said.role == "agent" and has_matching_ids(said, task_id, context_id))


def _is_valid_task(task: _TaskV03) -> bool:
    if not _is_valid_status(task.status, task.id, task.context_id):
        return False
    return task.history is UNSET or all(has_matching_ids(each, task.id, task.context_id) for each in task.history)


def _check_event(made: _RpcEventV03) -> PayloadResult:
    event = made.result
    if type(event) is _StatusUpdateV03:
        return _check_status_update(event), 0
    if type(event) is _ArtifactUpdateV03:
        return _check_artifact_update(event), 0
    return type(event) is not _TaskV03 or _is_valid_task(event), 0


def _check_status_update(update: _StatusUpdateV03) -> GateResult:
    status = update.status
    if not _is_valid_status(status, update.task_id, update.context_id):
        return False
    said, stamp = status.message, status.timestamp or ""
    if said is UNSET:
        is_bare = update.metadata is UNSET
        return StatusSummary(stamp, None, is_bare, is_plain=is_bare)
    texts = _part_texts(said.parts)
    named = (said.task_id or "", said.context_id or "")
    is_plain = update.metadata is UNSET and said.metadata is UNSET
    is_plain = is_plain and len(texts) == 1 and said.parts[0].metadata is UNSET
    return StatusSummary(stamp, b"".join(texts), False, named, is_plain) if texts else True


def _check_artifact_update(update: _ArtifactUpdateV03) -> GateResult:
    artifact = update.artifact
    texts, described = _part_texts(artifact.parts), artifact.description
    description = crc32(described.encode()) if described else 0
    return ArtifactSummary(artifact.artifact_id, artifact.name or "", description, "", texts) if texts else True


def _part_texts(parts: list[_Text | _Data]) -> list[bytes]:
    """Return the texts of parts; empty if one part is not text."""
    texts: list[bytes] = [part.text.encode() for part in parts if type(part) is _Text]
    return texts if len(texts) == len(parts) else []


def _check_send_result(made: _RpcSentV03) -> PayloadResult:
    return type(made.result) is not _TaskV03 or _is_valid_task(made.result), 0


RPC_EVENT: Check = make_checker(_RpcEventV03, _check_event)
RPC_SENT: Check = make_checker(_RpcSentV03, _check_send_result)
RPC_TASK: Check = make_checker(_RpcTaskV03, lambda made: (_is_valid_task(made.result), 0))
RPC_BY_ID: Check = make_checker(_RpcByIdV03, lambda _made: (True, 0))
RPC_SEND: Check = make_checker(_RpcSendV03, lambda made: (made.params.message.role == "user", 0))

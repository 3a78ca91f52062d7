"""Fast check of JSON of 0.3 in its protobuf form, used by REST (manual/protocol.md "Fields of 0.3")."""

from __future__ import annotations

from typing import Annotated, Literal
from zlib import crc32

from msgspec import UNSET, Meta, UnsetType

from a2a_proxy.rules.facts.partial_decode import ArtifactSummary, GateResult, StatusSummary
from a2a_proxy.rules.schema.fast.common import (
    DECODE_ERRORS,
    Check,
    Flag,
    FreeObject,
    Id,
    Length,
    MaybeId,
    MediaType,
    PayloadResult,
    StrictStruct,
    Text,
    has_matching_ids,
    is_utc,
    make_checker,
)

_State = Literal[
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELLED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
]


class _ProtoPartV03(StrictStruct):
    text: str
    metadata: FreeObject = UNSET


_Parts = Annotated[list[_ProtoPartV03], Meta(min_length=1)]


class _ProtoMessageV03(StrictStruct):
    message_id: Id
    content: _Parts
    role: Literal["ROLE_USER", "ROLE_AGENT"]
    context_id: MaybeId = UNSET
    task_id: MaybeId = UNSET
    metadata: FreeObject = UNSET


class _ProtoStatusV03(StrictStruct):
    state: _State
    timestamp: Text = UNSET
    message: _ProtoMessageV03 | UnsetType = UNSET


class _ProtoArtifactV03(StrictStruct):
    artifact_id: Id
    parts: _Parts
    name: Text = UNSET
    description: Text = UNSET
    metadata: FreeObject = UNSET


class _ProtoTaskV03(StrictStruct):
    id: Id
    context_id: Id
    status: _ProtoStatusV03
    artifacts: list[_ProtoArtifactV03] | UnsetType = UNSET
    history: list[_ProtoMessageV03] | UnsetType = UNSET
    metadata: FreeObject = UNSET


class _ProtoStatusUpdateV03(StrictStruct):
    task_id: Id
    context_id: Id
    status: _ProtoStatusV03
    final: Flag = UNSET
    metadata: FreeObject = UNSET


class _ProtoArtifactUpdateV03(StrictStruct):
    task_id: Id
    context_id: Id
    artifact: _ProtoArtifactV03
    append: Flag = UNSET
    last_chunk: Flag = UNSET
    metadata: FreeObject = UNSET


class _ProtoEventV03(StrictStruct):
    status_update: _ProtoStatusUpdateV03 | UnsetType = UNSET
    artifact_update: _ProtoArtifactUpdateV03 | UnsetType = UNSET
    task: _ProtoTaskV03 | UnsetType = UNSET
    message: _ProtoMessageV03 | UnsetType = UNSET


class _ProtoSentV03(StrictStruct):
    task: _ProtoTaskV03 | UnsetType = UNSET
    message: _ProtoMessageV03 | UnsetType = UNSET


class _ProtoConfigurationV03(StrictStruct):
    accepted_output_modes: list[MediaType] | UnsetType = UNSET
    history_length: Length = UNSET
    blocking: Flag = UNSET


class _ProtoSendV03(StrictStruct):
    message: _ProtoMessageV03
    configuration: _ProtoConfigurationV03 | UnsetType = UNSET
    metadata: FreeObject = UNSET


def _is_valid_status(status: _ProtoStatusV03, task_id: str, context_id: str) -> bool:
    said = status.message
    if not is_utc(status.timestamp):
        return False
    return said is UNSET or (said.role == "ROLE_AGENT" and has_matching_ids(said, task_id, context_id))


def _is_valid_task(task: _ProtoTaskV03) -> bool:
    if not _is_valid_status(task.status, task.id, task.context_id):
        return False
    return task.history is UNSET or all(has_matching_ids(each, task.id, task.context_id) for each in task.history)


def _check_send_result(sent: _ProtoSentV03 | _ProtoEventV03) -> PayloadResult:
    said = sent.message
    if sent.task is not UNSET:
        return said is UNSET and _is_valid_task(sent.task), 0
    return said is not UNSET and said.role == "ROLE_AGENT" and said.context_id is not UNSET, 0


def _check_event(event: _ProtoEventV03) -> PayloadResult:
    update, chunk = event.status_update, event.artifact_update
    if update is UNSET and chunk is UNSET:
        return _check_send_result(event)
    if event.task is not UNSET or event.message is not UNSET:
        return DECODE_ERRORS
    if update is UNSET:
        return chunk is not UNSET and _check_artifact_update(chunk), 0
    return chunk is UNSET and _check_status_update(update), 0


def _check_status_update(update: _ProtoStatusUpdateV03) -> GateResult:
    status = update.status
    if not _is_valid_status(status, update.task_id, update.context_id):
        return False
    said, stamp = status.message, status.timestamp or ""
    if said is UNSET:
        is_bare = update.metadata is UNSET
        return StatusSummary(stamp, None, is_bare, is_plain=is_bare)
    data = b"".join([part.text.encode() for part in said.content])
    is_plain = update.metadata is UNSET and said.metadata is UNSET
    is_plain = is_plain and len(said.content) == 1 and said.content[0].metadata is UNSET
    return StatusSummary(stamp, data, False, (said.task_id or "", said.context_id or ""), is_plain)


def _check_artifact_update(update: _ProtoArtifactUpdateV03) -> GateResult:
    artifact = update.artifact
    described = artifact.description
    description = crc32(described.encode()) if described else 0
    texts: list[bytes] = [part.text.encode() for part in artifact.parts]
    return ArtifactSummary(artifact.artifact_id, artifact.name or "", description, "", texts)


EVENT: Check = make_checker(_ProtoEventV03, _check_event)
SENT: Check = make_checker(_ProtoSentV03, _check_send_result)
TASK: Check = make_checker(_ProtoTaskV03, lambda made: (_is_valid_task(made), 0))
SEND: Check = make_checker(_ProtoSendV03, lambda made: (made.message.role == "ROLE_USER", 0))

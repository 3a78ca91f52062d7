"""Typed, partial JSON: only the members that a summary needs, for all dialects at once.

Every member may be absent or null. A member of an unexpected type is left to `json_summary`'s slow
path.
"""

import msgspec

UNREADABLE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions that a decoder raises on a peer's bytes: invalid JSON, another shape, invalid UTF-8,
nested too deeply."""

_NumberForm = int | str | None
"""An int64 in ProtoJSON: a decimal string or a number (Q-31)."""


class _JsonShape(msgspec.Struct, rename="camel", gc=False):
    """Base of the shapes. Unknown members are skipped without being built."""


class MessageShape(_JsonShape):
    """A message, or the message of a status."""

    message_id: str | None = None
    context_id: str | None = None
    task_id: str | None = None


class StatusShape(_JsonShape):
    """A status."""

    state: str | None = None
    message: MessageShape | None = None


class ArtifactShape(_JsonShape):
    """An artifact; 0.1 has the chunk flags and the `index` in it."""

    artifact_id: str | None = None
    index: int | None = None
    append: bool | None = None
    last_chunk: bool | None = None


class TaskShape(_JsonShape):
    """A wrapped task."""

    id: str | None = None
    context_id: str | None = None
    status: StatusShape | None = None
    generation: _NumberForm = None


class UpdateShape(_JsonShape):
    """A wrapped status or artifact update."""

    task_id: str | None = None
    context_id: str | None = None
    status: StatusShape | None = None
    artifact: ArtifactShape | None = None
    append: bool | None = None
    last_chunk: bool | None = None
    final: bool | None = None
    generation: _NumberForm = None
    message: MessageShape | None = None


class ResultShape(_JsonShape):
    """Any result or event of an agent: a wrapper (1.0), an object with `kind` (0.2, 0.3), or one
    without (0.1, vendor)."""

    task: TaskShape | None = None
    message: MessageShape | None = None
    status_update: UpdateShape | None = None
    artifact_update: UpdateShape | None = None
    message_update: UpdateShape | None = None
    kind: str | None = None
    id: str | None = None
    task_id: str | None = None
    context_id: str | None = None
    session_id: str | None = None
    message_id: str | None = None
    status: StatusShape | None = None
    final: bool | None = None
    artifact: ArtifactShape | None = None
    append: bool | None = None
    last_chunk: bool | None = None
    generation: _NumberForm = None
    artifacts: msgspec.Raw = msgspec.Raw()
    history: msgspec.Raw = msgspec.Raw()
    parts: msgspec.Raw = msgspec.Raw()


class ErrorShape(_JsonShape):
    """A JSON-RPC error."""

    code: int = 0
    message: str | None = None
    data: msgspec.Raw = msgspec.Raw()


class Envelope(_JsonShape):
    """A JSON-RPC response with a result of any of the shapes above."""

    jsonrpc: str | None = None
    id: msgspec.Raw = msgspec.Raw()
    result: ResultShape | None = None
    error: ErrorShape | None = None


class PushShape(_JsonShape):
    """A push configuration, nested in 0.x."""

    url: str | None = None


class ConfigurationShape(_JsonShape):
    """The configuration of a send."""

    if_generation_match: _NumberForm = None
    push_notification_config: PushShape | None = None
    task_push_notification_config: PushShape | None = None


class ParamsShape(_JsonShape):
    """The parameters of any call, in any dialect."""

    id: str | None = None
    name: str | None = None
    parent: str | None = None
    task_id: str | None = None
    context_id: str | None = None
    session_id: str | None = None
    tenant: str | None = None
    message: MessageShape | None = None
    request: MessageShape | None = None
    configuration: ConfigurationShape | None = None
    current_generation: _NumberForm = None
    url: str | None = None
    push_notification_config: PushShape | None = None
    push_notification: PushShape | None = None
    config: PushShape | None = None


decode_result = msgspec.json.Decoder(ResultShape).decode
decode_envelope = msgspec.json.Decoder(Envelope).decode
decode_params = msgspec.json.Decoder(ParamsShape).decode


def decode_untyped(data: bytes) -> object:
    """Return any JSON value, or None if the data cannot be read."""
    try:
        return msgspec.json.decode(data)
    except UNREADABLE_ERRORS:
        return None

"""Digests that identify one event on JSON-RPC, REST, gRPC and a webhook (manual/protocol.md
"Generation tracking").

A digest covers the content of the event in its 1.0 form, not its bytes, because bindings write
defaults, numbers and base64 differently. It costs a decoding, so it is computed only where events
are compared: if a task is numbered, or if several streams of it are open.
"""

import base64
from hashlib import blake2b
from typing import Any

import msgspec

from a2a_proxy.model.values import EVENT_WRAPPERS, EventKind
from a2a_proxy.rules.context import RuleContext

_DIGEST_SIZE = 8
"""Bytes of a digest; short, because a recording compares thousands of events, not billions."""
_UPDATE_EVENTS = frozenset({EventKind.STATUS, EventKind.ARTIFACT})


def update_digest(context: RuleContext) -> str:
    """Return the digest of the update in the frame; empty if it is not an update or its payload is
    truncated."""
    found = context.cache.get("digest")
    if found is None:
        found = context.cache["digest"] = _compute_digest(context)
    return str(found)


def artifacts_digest(context: RuleContext) -> str:
    """Return the digest of all artifacts of a snapshot, independent of their order; empty if it has
    none or is truncated.
    """
    if context.frame.truncated:
        return ""
    listed = context.object.get("artifacts")
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    whole = sorted(
        [_canonical_text(each.get("artifactId")), _sorted_parts(each.get("parts"))]
        for each in found
    )
    return _hash_value(whole) if whole else ""


def _compute_digest(context: RuleContext) -> str:
    frame = context.frame
    if frame.truncated or frame.event not in _UPDATE_EVENTS:
        return ""
    update = _canonical_update(context)
    if not update:
        return ""
    about = [int(frame.event), frame.task_id, frame.state]
    if frame.event is EventKind.ARTIFACT:
        artifact = _member_digests(update.get("artifact"))
        flags = [frame.append, frame.last_chunk]
        return _hash_value(
            [
                *about,
                _canonical_text(artifact.get("artifactId")),
                _sorted_parts(artifact.get("parts")),
                flags,
            ]
        )
    message = _member_digests(_member_digests(update.get("status")).get("message"))
    return _hash_value(
        [*about, _canonical_text(message.get("messageId")), _sorted_parts(message.get("parts"))]
    )


def _canonical_update(context: RuleContext) -> dict[str, Any]:
    """Return the update in its 1.0 form, without converting it if it already has that form (the
    usual case)."""
    if context.is_v1 and isinstance(body := context.body, dict):
        update = body.get(EVENT_WRAPPERS[context.frame.event])
        if isinstance(update, dict) and "taskId" in update:
            return update
    return context.object


def _hash_value(value: Any) -> str:
    return blake2b(
        msgspec.json.encode(value, order="deterministic"), digest_size=_DIGEST_SIZE
    ).hexdigest()


def _member_digests(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _canonical_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _sorted_parts(value: Any) -> list[str]:
    """Return each part as text, so that lists of parts can be ordered."""
    return (
        [_canonical_part(_member_digests(each)) for each in value]
        if isinstance(value, list)
        else []
    )


def _canonical_part(part: dict[str, Any]) -> str:
    said = [
        _canonical_text(part.get("text")),
        _canonical_base64(_canonical_text(part.get("raw"))),
        _canonical_text(part.get("url")),
        _plain_numbers(part["data"]) if "data" in part else None,
        _canonical_text(part.get("filename")),
        _canonical_text(part.get("mediaType")),
    ]
    return msgspec.json.encode(said, order="deterministic").decode()


def _canonical_base64(coded: str) -> str:
    """Return base64 in its canonical spelling: ProtoJSON allows the URL alphabet and missing
    padding."""
    if not coded:
        return ""
    standard = coded.translate(_STANDARD_ALPHABET).rstrip("=")
    try:
        return base64.b64encode(
            base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
        ).decode()
    except ValueError:  # also for characters that are not ASCII
        return coded


_STANDARD_ALPHABET = str.maketrans("-_", "+/")


def _plain_numbers(value: Any, depth: int = 64) -> Any:
    """Return a JSON value with its numbers as protobuf has them: 1 and 1.0 become equal."""
    if not depth:
        return None
    if isinstance(value, dict):
        return {name: _plain_numbers(item, depth - 1) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain_numbers(item, depth - 1) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

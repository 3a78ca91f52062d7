"""One event known again: the same digest on JSON-RPC, REST, gRPC and a webhook
(manual/protocol.md "Generation tracking").

Taken over what the event says, in its 1.0 form, not over its octets: bindings write defaults, numbers and base64
differently. Costs a decoding, so it is asked for only where something is compared: where a task is numbered, or where
several streams of it are open.
"""

from __future__ import annotations

import base64
import binascii
from hashlib import blake2b
from typing import Any

import msgspec

from a2a_proxy.model.frame import EventKind
from a2a_proxy.rules.context import RuleContext

_SIZE = 8
"""Octets of a digest: a recording compares thousands of events, not billions."""
_KEPT = frozenset({EventKind.STATUS, EventKind.ARTIFACT})


def digest(see: RuleContext) -> str:
    """The digest of the update that a frame carries; empty where it is none, or where its payload is not whole."""
    found = see.cache.get("digest")
    if found is None:
        found = see.cache["digest"] = _digest(see)
    return str(found)


def artifacts_digest(see: RuleContext) -> str:
    """The digest of all artifacts of a snapshot, in any order; empty where it has none, or is not whole."""
    if see.frame.truncated:
        return ""
    listed = see.object.get("artifacts")
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    whole = sorted([_text(each.get("artifactId")), _parts(each.get("parts"))] for each in found)
    return _hash(whole) if whole else ""


def _digest(see: RuleContext) -> str:
    frame = see.frame
    if frame.truncated or frame.event not in _KEPT:
        return ""
    update = _update(see)
    if not update:
        return ""
    about = [int(frame.event), frame.task_id, frame.state]
    if frame.event is EventKind.ARTIFACT:
        artifact = _members(update.get("artifact"))
        flags = [frame.append, frame.last_chunk]
        return _hash([*about, _text(artifact.get("artifactId")), _parts(artifact.get("parts")), flags])
    message = _members(_members(update.get("status")).get("message"))
    return _hash([*about, _text(message.get("messageId")), _parts(message.get("parts"))])


_NAMES = {EventKind.STATUS: "statusUpdate", EventKind.ARTIFACT: "artifactUpdate"}


def _update(see: RuleContext) -> dict[str, Any]:
    """The update in its 1.0 form; where it has that form, as nearly always, it need not be made."""
    if see.v1 and isinstance(body := see.body, dict):
        update = body.get(_NAMES[see.frame.event])
        if isinstance(update, dict) and "taskId" in update:
            return update
    return see.object


def _hash(value: Any) -> str:
    return blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=_SIZE).hexdigest()


def _members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _parts(value: Any) -> list[str]:
    """Each part as text, so that lists of them have an order."""
    return [_part(_members(each)) for each in value] if isinstance(value, list) else []


def _part(part: dict[str, Any]) -> str:
    said = [
        _text(part.get("text")),
        _octets(_text(part.get("raw"))),
        _text(part.get("url")),
        _plain(part["data"]) if "data" in part else None,
        _text(part.get("filename")),
        _text(part.get("mediaType")),
    ]
    return msgspec.json.encode(said, order="deterministic").decode()


def _octets(coded: str) -> str:
    """Base64 in its one canonical spelling: ProtoJSON allows the URL alphabet, and to leave out the padding."""
    if not coded:
        return ""
    standard = coded.translate(_STANDARD).rstrip("=")
    try:
        return base64.b64encode(base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)).decode()
    except binascii.Error:
        return coded


_STANDARD = str.maketrans("-_", "+/")


def _plain(value: Any, depth: int = 64) -> Any:
    """Any JSON with its numbers as protobuf has them: 1 and 1.0 are one."""
    if not depth:
        return None
    if isinstance(value, dict):
        return {name: _plain(item, depth - 1) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, depth - 1) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

"""Map from recorded identifiers to those of the drive: the live agent's own, and new ones for the client.

An identifier of the agent is learned from the answer that brings it. An identifier of the client is replaced if it is a
UUID, so that the same recording can be driven against the same agent twice; other names are sent unchanged.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.message import Message

from a2a_proxy.recording.difference.fields import OPAQUE, CanonicalFields
from a2a_proxy.recording.difference.ids import WORD_PATTERN

_UUID_PATTERN = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_NIL_PATTERN = re.compile(r"[0-]*|[f-]*", re.IGNORECASE)
_NEEDED_KINDS = frozenset({"message", "context", "task", "artifact", "config", "page"})
_AGENT_KINDS = frozenset({"context", "task", "config", "page"})
"""Kinds of identifiers that the agent creates and without which it cannot handle a request."""
_FIELDS = CanonicalFields()
_KINDS = ("task", "context", "message", "artifact", "config", "page")


class DriveIds:
    """Map from a recorded identifier to the live one."""

    def __init__(self, fresh: Callable[[], str] = lambda: str(uuid.uuid4())) -> None:
        self._live_ids: dict[str, str] = {}
        self._agent_ids: set[str] = set()
        """Identifiers that the recorded agent created."""
        self._makes_fresh = fresh

    def add_request(self, value: Any) -> None:
        """Register the identifiers of a recorded request, in the 1.0 form. Must run before sending, in recorded
        order."""
        for kind, name in iter_identifiers(value):
            if kind != "page" and name not in self._agent_ids and name not in self._live_ids:
                self._live_ids[name] = (
                    self._makes_fresh() if _UUID_PATTERN.fullmatch(name) and not _NIL_PATTERN.fullmatch(name) else name
                )

    def add_answer(self, value: Any) -> None:
        """Register the identifiers of a recorded answer."""
        self._agent_ids |= {
            name for kind, name in iter_identifiers(value) if kind in _AGENT_KINDS and name not in self._live_ids
        }

    def learn_answer(self, recorded: Any, live: Any) -> None:
        """Learn the live identifiers from an answer and the recorded answer it corresponds to."""
        if isinstance(recorded, dict) and isinstance(live, dict) and not recorded.keys() & live.keys():
            before, after = list(iter_identifiers(recorded)), list(iter_identifiers(live))
            for kind in _KINDS:
                mine = dict.fromkeys(name for each, name in before if each == kind)
                other = dict.fromkeys(name for each, name in after if each == kind)
                for one, two in zip(mine, other, strict=False):
                    self._live_ids.setdefault(one, two)
            return
        self._pair_values(recorded, live, "", None)

    def live_id(self, name: str) -> str:
        """Return the live identifier for a recorded one."""
        return self._live_ids.get(name, name)

    def rename_text(self, words: str) -> str:
        """Return a text with recorded identifiers replaced by live ones."""
        return self._live_ids.get(words) or WORD_PATTERN.sub(
            lambda found: self._live_ids.get(found[0], found[0]), words
        )

    def unknown_ids(self, value: Any) -> list[str]:
        """Return the identifiers of a request, in the 1.0 form, that the recorded agent created and the live one has
        not."""
        return [
            name
            for kind, name in iter_identifiers(value)
            if kind in _AGENT_KINDS and name in self._agent_ids and name not in self._live_ids
        ]

    def rename_json(self, value: Any) -> Any:
        """Return a JSON value with live identifiers."""
        return self._rename_member(value, "", None)

    def _rename_member(self, value: Any, name: str, holder: dict[str, Any] | None) -> Any:
        """Without a holder, as in opaque values of the peers, no name marks an identifier."""
        if isinstance(value, dict):
            inner = None if name in OPAQUE else value
            return {
                key: self._rename_member(item, key if inner is not None else name, inner) for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._rename_member(item, name, holder) for item in value]
        return (
            self._rename_string(value, bool(holder and identifier_kind(name, holder)))
            if isinstance(value, str)
            else value
        )

    def rename_protobuf(self, message: Message) -> None:
        """Replace the identifiers of a protobuf message in place."""
        for field, value in message.ListFields():
            named = field.json_name in _ID_NAMES
            if field.message_type is not None:
                self._submessages(field, value)
            elif field.type == field.TYPE_STRING and _is_list(value):
                value[:] = [self._rename_string(each, named) for each in value]
            elif field.type == field.TYPE_STRING:
                setattr(message, field.name, self._rename_string(value, named))

    def _submessages(self, field: Any, value: Any) -> None:
        if not field.message_type.GetOptions().map_entry:
            for each in value if _is_list(value) else (value,):
                self.rename_protobuf(each)
            return
        of_value = field.message_type.fields_by_name["value"]
        for key in list(value):
            if of_value.message_type is not None:
                self.rename_protobuf(value[key])
            elif of_value.type == of_value.TYPE_STRING:
                value[key] = self._rename_string(value[key], False)

    def _rename_string(self, words: str, named: bool) -> str:
        if named and words in self._live_ids:
            return self._live_ids[words]
        return self.rename_text(words) if len(words) >= 8 else words

    def _pair_values(self, recorded: Any, live: Any, name: str, holder: dict[str, Any] | None) -> None:
        if isinstance(recorded, dict) and isinstance(live, dict):
            for key in recorded.keys() & live.keys() - OPAQUE:
                self._pair_values(recorded[key], live[key], key, recorded)
        elif isinstance(recorded, list) and isinstance(live, list):
            for one, other in zip(recorded, live, strict=False):
                self._pair_values(one, other, name, holder)
        elif (
            isinstance(recorded, str) and isinstance(live, str) and recorded and live and identifier_kind(name, holder)
        ):
            self._live_ids.setdefault(recorded, live)


_ID_NAMES = frozenset(
    {"id", "messageId", "contextId", "taskId", "artifactId", "referenceTaskIds", "pageToken", "sessionId", "configId"}
)


def identifier_kind(name: str, holder: dict[str, Any] | None) -> str:
    """Return what a member of this name identifies, or an empty string if it is not an identifier to be mapped."""
    kind = _FIELDS.id_kind(name, holder)
    return kind if kind in _NEEDED_KINDS else "context" if name == "sessionId" else ""


def iter_identifiers(value: Any, name: str = "", holder: dict[str, Any] | None = None) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each identifier of a value in the 1.0 form, in order, except in opaque values of the
    peers."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in OPAQUE:
                yield from iter_identifiers(item, key, value)
    elif isinstance(value, list):
        for item in value:
            yield from iter_identifiers(item, name, holder)
    elif isinstance(value, str) and value and (kind := identifier_kind(name, holder)):
        yield kind, value


def _is_list(value: Any) -> bool:
    return not isinstance(value, (str, bytes, Message)) and hasattr(value, "append")

"""Identifiers of the recording and what stands for them now: the live agent's own, and fresh ones of the client.

A recorded identifier is learned from the answer that brought it. One that the recorded client made itself is replaced
if it is a UUID, so that the same recording can be driven at the same agent twice; other names are sent as they are.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.message import Message

from a2a_proxy.recording.difference.fields import OPAQUE, Fields
from a2a_proxy.recording.difference.ids import WORD

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_NIL = re.compile(r"[0-]*|[f-]*", re.IGNORECASE)
_WANTED = frozenset({"message", "context", "task", "artifact", "config", "page"})
_OF_AGENTS = frozenset({"context", "task", "config", "page"})
"""Kinds without which a request means nothing to the agent."""
_FIELDS = Fields()
_KINDS = ("task", "context", "message", "artifact", "config", "page")


class DriveIds:
    """Recorded identifier to the one of now."""

    def __init__(self, fresh: Callable[[], str] = lambda: str(uuid.uuid4())) -> None:
        self._now: dict[str, str] = {}
        self._theirs: set[str] = set()
        """Made by the recorded agent."""
        self._fresh = fresh

    def recorded_request(self, value: Any) -> None:
        """Take in a request of the recording, in the 1.0 form, before anything of it is sent; in recorded order."""
        for kind, name in identifiers(value):
            if kind != "page" and name not in self._theirs and name not in self._now:
                self._now[name] = self._fresh() if _UUID.fullmatch(name) and not _NIL.fullmatch(name) else name

    def recorded_answer(self, value: Any) -> None:
        """Take in an answer of the recording."""
        self._theirs |= {name for kind, name in identifiers(value) if kind in _OF_AGENTS and name not in self._now}

    def learn(self, recorded: Any, live: Any) -> None:
        """Two answers that stand for each other."""
        if isinstance(recorded, dict) and isinstance(live, dict) and not recorded.keys() & live.keys():
            before, after = list(identifiers(recorded)), list(identifiers(live))
            for kind in _KINDS:
                mine = dict.fromkeys(name for each, name in before if each == kind)
                other = dict.fromkeys(name for each, name in after if each == kind)
                for one, two in zip(mine, other, strict=False):
                    self._now.setdefault(one, two)
            return
        self._pair(recorded, live, "", None)

    def of(self, name: str) -> str:
        """What stands for an identifier now."""
        return self._now.get(name, name)

    def text(self, words: str) -> str:
        """A text with the identifiers of now in the place of recorded ones."""
        return self._now.get(words) or WORD.sub(lambda found: self._now.get(found[0], found[0]), words)

    def unknown(self, value: Any) -> list[str]:
        """Identifiers in a request, in the 1.0 form, which the recorded agent made and the live one has not."""
        return [
            name
            for kind, name in identifiers(value)
            if kind in _OF_AGENTS and name in self._theirs and name not in self._now
        ]

    def json(self, value: Any) -> Any:
        """A JSON value with the identifiers of now."""
        return self._json(value, "", None)

    def _json(self, value: Any, name: str, holder: dict[str, Any] | None) -> Any:
        """Without a holder, as in what is the peers' own, no name makes an identifier."""
        if isinstance(value, dict):
            inner = None if name in OPAQUE else value
            return {key: self._json(item, key if inner is not None else name, inner) for key, item in value.items()}
        if isinstance(value, list):
            return [self._json(item, name, holder) for item in value]
        return self._string(value, bool(holder and kind_of(name, holder))) if isinstance(value, str) else value

    def protobuf(self, message: Message) -> None:
        """The same in a protobuf message, in its place."""
        for field, value in message.ListFields():
            named = field.json_name in _ID_NAMES
            if field.message_type is not None:
                self._messages(field, value)
            elif field.type == field.TYPE_STRING and _is_list(value):
                value[:] = [self._string(each, named) for each in value]
            elif field.type == field.TYPE_STRING:
                setattr(message, field.name, self._string(value, named))

    def _messages(self, field: Any, value: Any) -> None:
        if not field.message_type.GetOptions().map_entry:
            for each in value if _is_list(value) else (value,):
                self.protobuf(each)
            return
        of_value = field.message_type.fields_by_name["value"]
        for key in list(value):
            if of_value.message_type is not None:
                self.protobuf(value[key])
            elif of_value.type == of_value.TYPE_STRING:
                value[key] = self._string(value[key], False)

    def _string(self, words: str, named: bool) -> str:
        if named and words in self._now:
            return self._now[words]
        return self.text(words) if len(words) >= 8 else words

    def _pair(self, recorded: Any, live: Any, name: str, holder: dict[str, Any] | None) -> None:
        if isinstance(recorded, dict) and isinstance(live, dict):
            for key in recorded.keys() & live.keys() - OPAQUE:
                self._pair(recorded[key], live[key], key, recorded)
        elif isinstance(recorded, list) and isinstance(live, list):
            for one, other in zip(recorded, live, strict=False):
                self._pair(one, other, name, holder)
        elif isinstance(recorded, str) and isinstance(live, str) and recorded and live and kind_of(name, holder):
            self._now.setdefault(recorded, live)


_ID_NAMES = frozenset(
    {"id", "messageId", "contextId", "taskId", "artifactId", "referenceTaskIds", "pageToken", "sessionId", "configId"}
)


def kind_of(name: str, holder: dict[str, Any] | None) -> str:
    """What a member of this name identifies, if it is something that a map of identifiers holds."""
    kind = _FIELDS.id_kind(name, holder)
    return kind if kind in _WANTED else "context" if name == "sessionId" else ""


def identifiers(value: Any, name: str = "", holder: dict[str, Any] | None = None) -> Iterator[tuple[str, str]]:
    """All of a value in the 1.0 form, with their kinds, in order. What is the peers' own is not looked into."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in OPAQUE:
                yield from identifiers(item, key, value)
    elif isinstance(value, list):
        for item in value:
            yield from identifiers(item, name, holder)
    elif isinstance(value, str) and value and (kind := kind_of(name, holder)):
        yield kind, value


def _is_list(value: Any) -> bool:
    return not isinstance(value, (str, bytes, Message)) and hasattr(value, "append")

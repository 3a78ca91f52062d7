"""Map from recorded identifiers to those of the drive: the live agent's own, and new ones for the
client.

An identifier of the agent is learned from the answer that brings it. An identifier of the client is
replaced if it is a UUID, so that the same recording can be driven against the same agent twice;
other names are sent unchanged.
"""

import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any

from a2a_proxy.recording.difference.fields import CanonicalFields, Path
from a2a_proxy.recording.difference.ids import LEFT, MIN_TEXT_ID_LENGTH, PairedIds, iter_identifiers

_UUID_PATTERN = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_NIL_PATTERN = re.compile(r"[0-]*|[f-]*", re.IGNORECASE)
_AGENT_KINDS = frozenset({"context", "task", "config", "page"})
"""Kinds of identifiers that the agent creates and without which it cannot handle a request."""
_CLIENT_VALUES = frozenset({"url", "token"})
"""Values of push configurations, which only the client sets; they are sent as recorded."""
_KIND_BY_OLD_NAME = {"sessionId": "context", "configId": "config"}
"""Kinds of members that dialects before 1.0 have."""


class _RequestFields(CanonicalFields, frozen=True):
    """Members of requests in any dialect."""

    def id_kind(self, name: str, holder: dict[str, object] | None) -> str:
        """Return the kind of an identifier to be mapped, or an empty string."""
        kind = CanonicalFields.id_kind(self, name, holder)
        return "" if kind in _CLIENT_VALUES else kind or _KIND_BY_OLD_NAME.get(name, "")


class DriveIds(PairedIds):
    """Left is the recording, right the drive. Several recorded identifiers may have one live
    identifier."""

    fields = _RequestFields()

    def __init__(self, make_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> None:
        super().__init__()
        self._agent_ids: set[str] = set()
        """Identifiers that the recorded agent created."""
        self._client_ids: dict[str, str] = {}
        """Live identifiers by recorded ones that the client created."""
        self._make_id = make_id

    def add_request(self, value: Any) -> None:
        """Register the identifiers of a recorded request, in the 1.0 form. Must run before sending,
        in recorded order."""
        for _, kind, name in iter_identifiers(value, self.fields):
            if kind == "page" or name in self._agent_ids:
                continue
            if name not in self._client_ids:
                self._client_ids[name] = self._make_id() if self._is_replaced(name) else name
            self._set_pair(kind, name, self._client_ids[name])

    def _is_replaced(self, name: str) -> bool:
        """Whether an identifier of the client gets a new one."""
        return bool(_UUID_PATTERN.fullmatch(name)) and not _NIL_PATTERN.fullmatch(name)

    def add_answer(self, value: Any) -> None:
        """Register the identifiers of a recorded answer."""
        found = (
            name for _, kind, name in iter_identifiers(value, self.fields) if kind in _AGENT_KINDS
        )
        self._agent_ids.update(name for name in found if name not in self._client_ids)

    def learn_answer(self, recorded: Any, live: Any) -> None:
        """Learn the live identifiers from an answer and the recorded answer it corresponds to.

        Those at the same path are partners. In answers of different kinds, those of one kind are,
        in their order.
        """
        before, after = (list(iter_identifiers(value, self.fields)) for value in (recorded, live))
        if (
            isinstance(recorded, dict)
            and isinstance(live, dict)
            and not recorded.keys() & live.keys()
        ):
            before, after = _number_by_kind(before), _number_by_kind(after)
        live_ids = {path: name for path, _, name in after}
        for path, kind, name in before:
            if path in live_ids and self.find_partner(LEFT, kind, name) is None:
                self._set_pair(kind, name, live_ids[path])

    def unknown_ids(self, value: Any) -> list[str]:
        """Return the identifiers of a request, in the 1.0 form, that the recorded agent created and
        the live one has not."""
        return [
            name
            for _, kind, name in iter_identifiers(value, self.fields)
            if kind in _AGENT_KINDS
            and name in self._agent_ids
            and self.find_partner(LEFT, kind, name) is None
        ]

    def _is_text_id(self, kind: str, left: str) -> bool:  # noqa: ARG002  # all kinds alike
        """Whether an identifier is replaced in texts: a word anywhere, any other as a whole
        text."""
        return len(left) >= MIN_TEXT_ID_LENGTH


class SendIds(DriveIds):
    """The identifiers of one call that is sent again: only the recorded message ids are replaced,
    because the agent knows the tasks and contexts that the client named."""

    def __init__(
        self, message_ids: Collection[str], make_id: Callable[[], str] = lambda: str(uuid.uuid4())
    ) -> None:
        super().__init__(make_id)
        self._message_ids = message_ids

    def _is_replaced(self, name: str) -> bool:
        return name in self._message_ids


def _number_by_kind(found: list[tuple[Path, str, str]]) -> list[tuple[Path, str, str]]:
    """Return identifiers, each once, with their kind and their number in it instead of the path."""
    names: dict[str, dict[str, None]] = defaultdict(dict)
    for _, kind, name in found:
        names[kind].setdefault(name)
    return [
        ((kind, number), kind, name)
        for kind, each in names.items()
        for number, name in enumerate(each)
    ]

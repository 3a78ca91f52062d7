"""One-to-one map between recorded identifiers and the identifiers of the replay, in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.recording.difference.fields import AMBIGUOUS, OPAQUE, CanonicalFields
from a2a_proxy.recording.difference.ids import LEFT, RIGHT, WORD_PATTERN, PairedIds
from a2a_proxy.recording.difference.reduced import MAX_DEPTH
from a2a_proxy.replay.core.script import RecordedCall, ScriptSide

_ANSWER_FIELDS = CanonicalFields()
_OPAQUE_FIELDS = ("url", "token")
"""Fields of a push configuration that only the client sets."""


class IdMap(PairedIds):
    """Left is the recording, right the replay. A trial is a layer over the player's map until its match is certain."""

    def __init__(self, parent: IdMap | None = None, minted: frozenset[tuple[str, str]] = frozenset()) -> None:
        super().__init__()
        self._parent = parent
        self._minted = minted
        """Kinds and identifiers created by the agent. A client cannot know another identifier in their
        place."""
        self._live_ids: dict[tuple[str, str], str] = {}
        self._recorded_ids: dict[tuple[str, str], str] = {}
        self._text_renames: dict[str, str] = {}

    def make_trial(self) -> IdMap:
        """Return a map that reads through to this one and learns on its own."""
        return IdMap(self, self._minted)

    def adopt_trial(self, trial: IdMap) -> None:
        """Keep the pairs that a trial has learned."""
        for (kind, then), now in trial._live_ids.items():
            self.pair(kind, then, now)

    def replace_pairs(self, other: IdMap) -> None:
        """Replace a recorded call by another one: left in `other` are its identifiers,
        right.

        The identifiers of the new call now stand for the live ones that the replaced call had. If the replaced call is
        played later after all, its agent uses the identifiers of the other call.
        """
        for (kind, then), before in other._live_ids.items():
            if then == before:
                continue
            now = self.live_id(kind, before) or before
            if (kind, before) in self._minted:
                self._set_pair(kind, before, self.live_id(kind, then) or then)
            else:
                self._live_ids.pop((kind, before), None)
            self._set_pair(kind, then, now)

    def pair(self, kind: str, left: str, right: str) -> bool:
        """Whether the two stand for each other. Two identifiers that are both new are paired."""
        known, other = self.live_id(kind, left), self.recorded_id(kind, right)
        if known is not None or other is not None:
            return known == right and other == left
        if left != right and (kind, left) in self._minted:
            return False
        self._set_pair(kind, left, right)
        return True

    def _set_pair(self, kind: str, recorded: str, now: str) -> None:
        self._live_ids[kind, recorded], self._recorded_ids[kind, now] = now, recorded
        if (
            kind not in _OPAQUE_FIELDS
            and WORD_PATTERN.fullmatch(recorded)
            and (recorded != now or recorded in self._text_renames)
        ):
            self._text_renames[recorded] = now

    def may_be_task(self, recorded: str, now: str) -> bool:
        """Whether a live task may be this recorded one, as far as is known."""
        known = self.live_id("task", recorded)
        if known is None and self.recorded_id("task", now) is None:
            return recorded == now or ("task", recorded) not in self._minted
        return known == now

    def live_id(self, kind: str, recorded: str) -> str | None:
        """Return the live identifier for a recorded one, or None if it is new."""
        found = self._live_ids.get((kind, recorded))
        return self._parent.live_id(kind, recorded) if found is None and self._parent is not None else found

    def recorded_id(self, kind: str, now: str) -> str | None:
        """Return the recorded identifier for a live one, or None if it is new."""
        found = self._recorded_ids.get((kind, now))
        return self._parent.recorded_id(kind, now) if found is None and self._parent is not None else found

    def number(self, side: int, kind: str, identifier: str) -> int:
        """Return 1 if the identifier is known, else 0."""
        return int((self.live_id if side == LEFT else self.recorded_id)(kind, identifier) is not None)

    def neutral(self, side: int, text: str) -> str:
        """Return a recorded text with the live identifiers; a live text is returned unchanged."""
        return text if side == RIGHT else self.rename_text(text)

    def rename_text(self, text: str) -> str:
        """Return a recorded text with the live identifiers."""
        words = self._renamed_texts()
        return WORD_PATTERN.sub(lambda found: words.get(found[0], found[0]), text) if words else text

    def _renamed_texts(self) -> dict[str, str]:
        if self._parent is None:
            return self._text_renames
        under = self._parent._renamed_texts()
        return {**under, **self._text_renames} if self._text_renames else under

    def rename_value(self, recorded: Any) -> Any:
        """Return a recorded message as it is sent now. Identifiers that are new are sent as recorded."""
        return self._rename_member(recorded, "", None, False, 0)

    def _rename_member(self, value: Any, name: str, holder: dict[str, Any] | None, opaque: bool, depth: int) -> Any:
        if depth > MAX_DEPTH:
            return value
        if isinstance(value, dict):
            inner = opaque or name in OPAQUE
            return {key: self._rename_member(item, key, value, inner, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self._rename_member(item, name, holder, opaque, depth + 1) for item in value]
        if not isinstance(value, str) or not value:
            return value
        kind = "" if opaque else _identifier_kind(name, holder)
        if not kind:
            return self.rename_text(value)
        self.pair(kind, value, value)
        return self.live_id(kind, value) or value


def agent_minted_ids(calls: tuple[RecordedCall, ...]) -> frozenset[tuple[str, str]]:
    """Return the identifiers that the agent of a recording sent before any client did."""
    spoken = [(call.began, ScriptSide.CLIENT, call.request) for call in calls]
    spoken += [(call.began + line.at, line.side, line.value) for call in calls for line in call.lines]
    known: dict[ScriptSide, set[tuple[str, str]]] = {ScriptSide.CLIENT: set(), ScriptSide.AGENT: set()}
    for _, side, value in sorted(spoken, key=lambda each: each[0]):
        other = known[ScriptSide.AGENT if side is ScriptSide.CLIENT else ScriptSide.CLIENT]
        known[side].update(each for each in _identifiers_in(value) if each not in other)
    return frozenset(known[ScriptSide.AGENT])


def _identifiers_in(
    value: Any, name: str = "", holder: dict[str, Any] | None = None, depth: int = 0
) -> Iterator[tuple[str, str]]:
    """Yield the kind and text of each identifier in a message."""
    if depth > MAX_DEPTH or name in OPAQUE:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _identifiers_in(item, key, value, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _identifiers_in(item, name, holder, depth + 1)
    elif isinstance(value, str) and value and (kind := _identifier_kind(name, holder)):
        yield kind, value


def _identifier_kind(name: str, holder: dict[str, Any] | None) -> str:
    return _ANSWER_FIELDS.id_kind(name, holder if name in AMBIGUOUS else None)

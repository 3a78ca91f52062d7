"""Recorded identifiers and those that stand for them now: both ways, each for one alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.recording.difference.fields import AMBIGUOUS, OPAQUE, Fields
from a2a_proxy.recording.difference.ids import LEFT, RIGHT, WORD, PairedIds
from a2a_proxy.recording.difference.reduced import DEPTH
from a2a_proxy.replay.core.script import RecordedCall, ScriptSide

_ANSWER = Fields()
_SPECIAL = ("url", "token")
"""Of a push configuration; the client alone makes them."""


class IdMap(PairedIds):
    """Left is the recording, right is now. A trial lies over the map of the player until its match is certain."""

    def __init__(self, under: IdMap | None = None, minted: frozenset[tuple[str, str]] = frozenset()) -> None:
        super().__init__()
        self._under = under
        self._minted = minted
        """Kind and identifier of those that the agent made: no client can know another one in their place."""
        self._now: dict[tuple[str, str], str] = {}
        self._then: dict[tuple[str, str], str] = {}
        self._texts: dict[str, str] = {}

    def trial(self) -> IdMap:
        """A map that knows what this one knows, and learns for itself."""
        return IdMap(self, self._minted)

    def adopt(self, trial: IdMap) -> None:
        """What a trial has learned holds."""
        for (kind, then), now in trial._now.items():
            self.pair(kind, then, now)

    def turn(self, other: IdMap) -> None:
        """Another call stands in the place of one: its identifiers, left in `other`, are now what those of the first
        one, right in it, have been until now. Where the first one plays after all, its agent has those of the other."""
        for (kind, then), before in other._now.items():
            if then == before:
                continue
            now = self.now(kind, before) or before
            if (kind, before) in self._minted:
                self._set(kind, before, self.now(kind, then) or then)
            else:
                self._now.pop((kind, before), None)
            self._set(kind, then, now)

    def pair(self, kind: str, left: str, right: str) -> bool:
        """Whether the two stand for each other; two that nobody has seen yet do from now on."""
        known, other = self.now(kind, left), self.then(kind, right)
        if known is not None or other is not None:
            return known == right and other == left
        if left != right and (kind, left) in self._minted:
            return False
        self._set(kind, left, right)
        return True

    def _set(self, kind: str, recorded: str, now: str) -> None:
        self._now[kind, recorded], self._then[kind, now] = now, recorded
        if kind not in _SPECIAL and WORD.fullmatch(recorded) and (recorded != now or recorded in self._texts):
            self._texts[recorded] = now

    def may(self, recorded: str, now: str) -> bool:
        """Whether a task of now may be this recorded one, as far as is known."""
        known = self.now("task", recorded)
        if known is None and self.then("task", now) is None:
            return recorded == now or ("task", recorded) not in self._minted
        return known == now

    def now(self, kind: str, recorded: str) -> str | None:
        """What stands for a recorded identifier; None where nobody has met it."""
        found = self._now.get((kind, recorded))
        return self._under.now(kind, recorded) if found is None and self._under is not None else found

    def then(self, kind: str, now: str) -> str | None:
        """The recorded identifier that this one stands for."""
        found = self._then.get((kind, now))
        return self._under.then(kind, now) if found is None and self._under is not None else found

    def number(self, side: int, kind: str, identifier: str) -> int:
        """Not 0 where the identifier is known."""
        return int((self.now if side == LEFT else self.then)(kind, identifier) is not None)

    def neutral(self, side: int, text: str) -> str:
        """A text of the recording as it reads now; one of now as it is."""
        return text if side == RIGHT else self.text(text)

    def text(self, text: str) -> str:
        """A recorded text with the identifiers of now."""
        words = self._renamed()
        return WORD.sub(lambda found: words.get(found[0], found[0]), text) if words else text

    def _renamed(self) -> dict[str, str]:
        if self._under is None:
            return self._texts
        under = self._under._renamed()
        return {**under, **self._texts} if self._texts else under

    def value(self, recorded: Any) -> Any:
        """A recorded message as it is sent now. Identifiers that nobody has met are handed out as they were."""
        return self._of(recorded, "", None, False, 0)

    def _of(self, value: Any, name: str, holder: dict[str, Any] | None, opaque: bool, depth: int) -> Any:
        if depth > DEPTH:
            return value
        if isinstance(value, dict):
            inner = opaque or name in OPAQUE
            return {key: self._of(item, key, value, inner, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self._of(item, name, holder, opaque, depth + 1) for item in value]
        if not isinstance(value, str) or not value:
            return value
        kind = "" if opaque else _kind(name, holder)
        if not kind:
            return self.text(value)
        self.pair(kind, value, value)
        return self.now(kind, value) or value


def minted(calls: tuple[RecordedCall, ...]) -> frozenset[tuple[str, str]]:
    """Identifiers of a recording that its agent said before any client did."""
    spoken = [(call.began, ScriptSide.CLIENT, call.request) for call in calls]
    spoken += [(call.began + line.at, line.side, line.value) for call in calls for line in call.lines]
    known: dict[ScriptSide, set[tuple[str, str]]] = {ScriptSide.CLIENT: set(), ScriptSide.AGENT: set()}
    for _, side, value in sorted(spoken, key=lambda each: each[0]):
        other = known[ScriptSide.AGENT if side is ScriptSide.CLIENT else ScriptSide.CLIENT]
        known[side].update(each for each in _named(value) if each not in other)
    return frozenset(known[ScriptSide.AGENT])


def _named(
    value: Any, name: str = "", holder: dict[str, Any] | None = None, depth: int = 0
) -> Iterator[tuple[str, str]]:
    """Kind and text of each identifier in a message."""
    if depth > DEPTH or name in OPAQUE:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _named(item, key, value, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _named(item, name, holder, depth + 1)
    elif isinstance(value, str) and value and (kind := _kind(name, holder)):
        yield kind, value


def _kind(name: str, holder: dict[str, Any] | None) -> str:
    return _ANSWER.id_kind(name, holder if name in AMBIGUOUS else None)

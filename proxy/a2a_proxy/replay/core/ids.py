"""Map between recorded identifiers and those of the replay, with trials, and the identifiers that
an agent created."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable

from a2a_proxy.recording.difference.ids import LEFT, RIGHT, PairedIds, iter_identifiers
from a2a_proxy.replay.core.masks import mask_text
from a2a_proxy.replay.core.script import RecordedCall, ScriptSide

_PUSH_CONFIG_KINDS = ("url", "token")
"""Values of push configurations, which clients choose freely; a text with the same word does not
mean them."""
_ECHO = re.compile(r"[0-9A-Za-z_-]{6,}")
"""A masked value that is replaced in answers; a shorter one may be a word."""


class ReplayIds(PairedIds):
    """Left is the recording, right the replay. A trial is a layer over the player's map until its
    match is certain."""

    def __init__(
        self,
        minted: frozenset[tuple[str, str]] = frozenset(),
        parent: ReplayIds | None = None,
        *,
        masked: bool = False,
    ) -> None:
        """`masked`: texts that are equal after masking are equal."""
        super().__init__()
        self.masked = masked
        self._echoes: dict[str, str] = {}
        """Live values by the masked values that were recorded in their place."""
        self._minted = minted
        """Kinds and identifiers created by the agent. A client cannot know another identifier in
        their place."""
        self._learned_ids = self._partners[LEFT]
        """Live identifiers by kind and recorded identifier, without those of the parent."""
        if parent is not None:
            (left, right), (words, others) = self._partners, self._text_ids
            self._partners = (
                ChainMap(left, parent._partners[LEFT]),
                ChainMap(right, parent._partners[RIGHT]),
            )
            self._text_ids = (
                ChainMap(words, parent._text_ids[LEFT]),
                ChainMap(others, parent._text_ids[RIGHT]),
            )

    def make_trial(self, *, masked: bool = False) -> ReplayIds:
        """Return a map that reads through to this one and learns on its own."""
        return ReplayIds(self._minted, self, masked=masked)

    def adopt_trial(self, trial: ReplayIds) -> None:
        """Keep the pairs that a trial has learned."""
        for (kind, recorded), live in trial._learned_ids.items():
            self.pair_ids(kind, recorded, live)

    def replace_pairs(self, other: ReplayIds) -> None:
        """Replace a recorded call by another one: left in `other` are its identifiers,
        right.

        The identifiers of the new call now stand for the live ones that the replaced call had. If
        the replaced call is played later after all, its agent uses the identifiers of the other
        call.
        """
        self._echoes.update(
            (new, self._echoes.get(replaced, replaced)) for new, replaced in other._echoes.items()
        )
        for (kind, new), replaced in other._learned_ids.items():
            if new == replaced:
                continue
            live = self.find_partner(LEFT, kind, replaced) or replaced
            if (kind, replaced) in self._minted:
                self._set_pair(kind, replaced, self.find_partner(LEFT, kind, new) or new)
            else:
                self._learned_ids.pop((kind, replaced), None)
            self._set_pair(kind, new, live)

    def pair_ids(self, kind: str, left: str, right: str) -> bool:
        """Whether the two stand for each other. Two identifiers that are both new are paired if a
        client may."""
        if (
            left != right
            and (kind, left) in self._minted
            and self.find_partner(LEFT, kind, left) is None
        ):
            return False
        return super().pair_ids(kind, left, right)

    def may_be_task(self, recorded: str, live: str) -> bool:
        """Whether a live task may be this recorded one, as far as is known."""
        known = self.find_partner(LEFT, "task", recorded)
        if known is None and self.find_partner(RIGHT, "task", live) is None:
            return recorded == live or ("task", recorded) not in self._minted
        return known == live

    def neutralize_text(self, side: int, text: str) -> str:
        """Return a text of this side in which both identifiers of a pair, and all masked values,
        are the same."""
        neutral = self.neutralize_ids(side, text)
        return mask_text(neutral) if self.masked else neutral

    def neutralize_ids(self, side: int, text: str) -> str:
        """Return a text of this side in which both identifiers of a pair are the same."""
        return super().neutralize_text(side, text)

    def add_echoes(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Replace recorded values by live ones in answers from now on, because a masked request had
        these pairs."""
        self._echoes.update(
            (recorded, live) for recorded, live in pairs if _ECHO.fullmatch(recorded)
        )

    def rename_text(self, text: str) -> str:
        """Return a recorded text with the identifiers, and the masked values, of the replay."""
        renamed = super().rename_text(text)
        return (
            _ECHO.sub(lambda found: self._echoes.get(found[0], found[0]), renamed)
            if self._echoes
            else renamed
        )

    def _rename_identifier(self, kind: str, left: str) -> str:
        """Rename an identifier; a new one is sent as recorded from now on."""
        self.pair_ids(kind, left, left)
        return self.find_partner(LEFT, kind, left) or left

    def _set_pair(self, kind: str, left: str, right: str) -> None:
        """Set a pair. An identifier that is the same on both sides is also known in texts, so that
        no mask hides it."""
        super()._set_pair(kind, left, right)
        if self._is_text_id(kind, left):
            words, others = self._text_ids
            words[left] = others[right] = right

    def _is_text_id(self, kind: str, left: str) -> bool:
        return kind not in _PUSH_CONFIG_KINDS and super()._is_text_id(kind, left)


def agent_minted_ids(calls: tuple[RecordedCall, ...]) -> frozenset[tuple[str, str]]:
    """Return kind and text of the identifiers that the agent of a recording sent before any client
    did."""
    messages = [(call.began, ScriptSide.CLIENT, call.request) for call in calls]
    messages += [
        (call.began + line.at, line.side, line.value) for call in calls for line in call.lines
    ]
    known: dict[ScriptSide, set[tuple[str, str]]] = {
        ScriptSide.CLIENT: set(),
        ScriptSide.AGENT: set(),
    }
    for _, side, value in sorted(messages, key=lambda each: each[0]):
        other = known[ScriptSide.AGENT if side is ScriptSide.CLIENT else ScriptSide.CLIENT]
        found = ((kind, name) for _, kind, name in iter_identifiers(value, ReplayIds.fields))
        known[side].update(each for each in found if each not in other)
    return frozenset(known[ScriptSide.AGENT])

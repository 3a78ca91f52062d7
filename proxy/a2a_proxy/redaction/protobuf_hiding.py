"""Protobuf messages and the places that a policy names in them: what stands there is hidden, or spared."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from a2a_proxy.redaction.labels import is_label
from a2a_proxy.redaction.payload_paths import place
from a2a_proxy.redaction.protobuf_walk import FieldDescription, MessageWalk, Named, Replace

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor


def hide(
    data: bytes, shape: Descriptor | None, places: re.Pattern[str], label: Callable[[bytes], bytes], *, cut: bool
) -> tuple[bytes, list[str]]:
    """The message with texts, bytes and the numbers of Struct at these places replaced, and where that was.

    Other numbers stay: a field of a number cannot hold a label. Raises Malformed.
    """
    return _Hiding(places, label).run(data, shape, cut=cut)


def walk_sparing(
    data: bytes, shape: Descriptor | None, replace: Replace, spared: re.Pattern[str], *, cut: bool
) -> tuple[bytes, list[str]]:
    """As `protobuf.walk`; what stands at a spared place stays. Raises Malformed."""
    return _Sparing(replace, spared).run(data, shape, cut=cut)


class _Sparing(MessageWalk):
    """Leaves what stands at some places."""

    def __init__(self, replace: Replace, spared: re.Pattern[str]) -> None:
        super().__init__(replace)
        self._spared = spared

    def field(
        self, data: bytes, field: FieldDescription | None, path: str, named: Named, cut: bool, depth: int
    ) -> bytes | None:
        """As `Walk.field`."""
        if self._spared.match(place(path)):
            return None
        return super().field(data, field, path, named, cut, depth)


class _Hiding(MessageWalk):
    """Replaces what stands at some places, whatever it is."""

    def __init__(self, places: re.Pattern[str], label: Callable[[bytes], bytes]) -> None:
        super().__init__(self._hide)
        self._places = places
        self._label = label
        self._at = ""
        """Where the field is that is looked at."""

    def key(self, *_: object) -> None:
        """Names stay."""

    def field(
        self, data: bytes, field: FieldDescription | None, path: str, named: Named, cut: bool, depth: int
    ) -> bytes | None:
        """As `Walk.field`."""
        self._at = path
        return super().field(data, field, path, named, cut, depth)

    def number(self, text: bytes, path: str, _named: Named) -> bytes | None:
        """As `Walk.number`."""
        return self._label(text) if self._places.match(place(path)) else None

    def _hide(self, data: bytes, _name: str | None, _cut: bool) -> bytes | None:
        if not data or is_label(data) or not self._places.match(place(self._at)):
            return None
        return self._label(data)

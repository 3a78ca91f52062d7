"""Protobuf messages and the places that a policy names in them: what stands there is hidden, or spared."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from a2a_proxy.redaction.hiding import number_text
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.redaction.paths import place
from a2a_proxy.redaction.protobuf import Field, Replace, Walk, varint

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_VALUE: Final = "google.protobuf.Value"
_NUMBER: Final = b"\x11"
"""Tag of its `number_value`, a double."""
_TEXT: Final = b"\x1a"
"""Tag of its `string_value`."""


def hide(
    data: bytes, shape: Descriptor | None, places: re.Pattern[str], label: Callable[[bytes], bytes], *, cut: bool
) -> tuple[bytes, list[str]]:
    """The message with texts, octets and the numbers of Struct at these places replaced, and where that was.

    Other numbers stay: a field of a number cannot hold a label. Raises Malformed.
    """
    return _Hiding(places, label).run(data, shape, cut=cut)


def walk_sparing(
    data: bytes, shape: Descriptor | None, replace: Replace, spared: re.Pattern[str], *, cut: bool
) -> tuple[bytes, list[str]]:
    """As `protobuf.walk`; what stands at a spared place stays. Raises Malformed."""
    return _Sparing(replace, spared).run(data, shape, cut=cut)


class _Sparing(Walk):
    """Leaves what stands at some places."""

    def __init__(self, replace: Replace, spared: re.Pattern[str]) -> None:
        super().__init__(replace)
        self._spared = spared

    def field(
        self, data: bytes, field: Field | None, path: str, name: str | None, cut: bool, depth: int
    ) -> bytes | None:
        """As `Walk.field`."""
        if self._spared.match(place(path)):
            return None
        return super().field(data, field, path, name, cut, depth)


class _Hiding(Walk):
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
        self, data: bytes, field: Field | None, path: str, name: str | None, cut: bool, depth: int
    ) -> bytes | None:
        """As `Walk.field`; a number of Struct becomes a text."""
        self._at = path
        if field is None or field.message is None or field.message.full_name != _VALUE or data[:1] != _NUMBER:
            return super().field(data, field, path, name, cut, depth)
        if len(data) != 9 or not self._places.match(place(path)):
            return None
        text = self._label(number_text(struct.unpack("<d", data[1:])[0]))
        self.told.add(path.lstrip("."))
        return _TEXT + varint(len(text)) + text

    def _hide(self, data: bytes, _name: str | None, _cut: bool) -> bytes | None:
        if not data or is_label(data) or not self._places.match(place(self._at)):
            return None
        return self._label(data)

"""Replace, or keep, the values of protobuf messages at the places that a policy names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from a2a_proxy.redaction.labels import is_label
from a2a_proxy.redaction.payload_paths import canonicalize_place
from a2a_proxy.redaction.protobuf_walk import FieldDescription, MessageWalk, Named, Replace

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor


def hide_protobuf_values(
    data: bytes,
    shape: Descriptor | None,
    places: re.Pattern[str],
    label: Callable[[bytes], bytes],
    *,
    cut: bool,
) -> tuple[bytes, list[str]]:
    """Return the message with strings, bytes and the numbers of Structs at these places replaced,
    and their paths.

    Other numbers stay, because a numeric field cannot hold a label. Raises Malformed if the bytes
    are not a message.
    """
    return _Hiding(places, label).run(data, shape, cut=cut)


def walk_sparing(
    data: bytes, shape: Descriptor | None, replace: Replace, spared: re.Pattern[str], *, cut: bool
) -> tuple[bytes, list[str]]:
    """Walk a message like `protobuf_walk.redact_message`, but keep the values at spared places.
    Raises Malformed."""
    return _Sparing(replace, spared).run(data, shape, cut=cut)


class _Sparing(MessageWalk):
    """A walk that keeps the values at some places."""

    def __init__(self, replace: Replace, spared: re.Pattern[str]) -> None:
        super().__init__(replace)
        self._spared = spared

    def redact_field(
        self,
        data: bytes,
        field: FieldDescription | None,
        path: str,
        named: Named,
        cut: bool,
        depth: int,
    ) -> bytes | None:
        """Return the value of a field with secrets replaced, or None if it is at a spared place."""
        if self._spared.match(canonicalize_place(path)):
            return None
        return super().redact_field(data, field, path, named, cut, depth)


class _Hiding(MessageWalk):
    """A walk that replaces every value at some places."""

    def __init__(self, places: re.Pattern[str], label: Callable[[bytes], bytes]) -> None:
        super().__init__(self._hide_value)
        self._places = places
        self._label = label
        self._at = ""
        """Path of the current field."""

    def redact_key(self, *_: object) -> None:
        """Keep the keys of maps."""

    def redact_field(
        self,
        data: bytes,
        field: FieldDescription | None,
        path: str,
        named: Named,
        cut: bool,
        depth: int,
    ) -> bytes | None:
        """Return the value of a field with the values at the places replaced, or None if it
        stays."""
        self._at = path
        return super().redact_field(data, field, path, named, cut, depth)

    def redact_number(self, text: bytes, path: str, _named: Named) -> bytes | None:
        """Return the label of a number at one of the places."""
        return self._label(text) if self._places.match(canonicalize_place(path)) else None

    def _hide_value(self, data: bytes, _name: str | None, _cut: bool) -> bytes | None:
        if not data or is_label(data) or not self._places.match(canonicalize_place(self._at)):
            return None
        return self._label(data)

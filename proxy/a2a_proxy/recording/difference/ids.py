"""Pairs of identifiers of two runs, and values of one run with the identifiers of the other."""

import re
from collections.abc import Iterator, MutableMapping
from typing import Any, ClassVar

from google.protobuf.message import Message

from a2a_proxy.recording.difference.fields import MAX_DEPTH, OPAQUE, CanonicalFields, Path

MIN_TEXT_ID_LENGTH = 8
"""Minimum number of characters of an identifier that is searched for in texts; a shorter one may be
a word."""
WORD_PATTERN = re.compile(rf"[0-9A-Za-z_-]{{{MIN_TEXT_ID_LENGTH},}}")
"""An identifier in a text."""
_LABEL_PATTERN = re.compile(r"redacted-[0-9a-f]{12}")
"""The label with which redaction replaces a credential."""
_MAX_SEARCHED_CHARS = 65_536
"""Maximum characters of a text that is searched for identifiers."""

LEFT, RIGHT = 0, 1


class PairedIds:
    """Pairs of a left and a right identifier of one kind, added in the order of comparison; the
    first pair stays.

    A comparison has a run on each side. In a replay or a drive, left is the recording and right the
    live run.
    """

    fields: ClassVar[CanonicalFields] = CanonicalFields()
    """The members of renamed messages that are identifiers."""

    def __init__(self) -> None:
        self._partners: tuple[
            MutableMapping[tuple[str, str], str], MutableMapping[tuple[str, str], str]
        ] = ({}, {})
        """Of each side: partner by kind and identifier."""
        self._text_ids: tuple[MutableMapping[str, str], MutableMapping[str, str]] = ({}, {})
        """Of each side: right identifier of the pair, by the identifier as texts contain it."""

    def pair_ids(self, kind: str, left: str, right: str) -> bool:
        """Whether the two identifiers are partners. Two identifiers without partners are paired."""
        known, other = self.find_partner(LEFT, kind, left), self.find_partner(RIGHT, kind, right)
        if known is not None or other is not None:
            return known == right and other == left
        self._set_pair(kind, left, right)
        return True

    def find_partner(self, side: int, kind: str, identifier: str) -> str | None:
        """Return the partner of an identifier of this side, or None."""
        return self._partners[side].get((kind, identifier))

    def neutralize_id(self, side: int, kind: str, identifier: str) -> str:
        """Return a text that is the same for both identifiers of a pair; empty for an identifier
        without partner."""
        partner = self.find_partner(side, kind, identifier)
        return "" if partner is None else partner if side == LEFT else identifier

    def neutralize_text(self, side: int, text: str) -> str:
        """Return a text of this side in which both identifiers of a pair are the same."""
        words = self._text_ids[side]
        if not words or len(text) > _MAX_SEARCHED_CHARS:
            return text
        return WORD_PATTERN.sub(
            lambda found: f"\0{words[found[0]]}" if found[0] in words else found[0], text
        )

    def rename_text(self, text: str) -> str:
        """Return a left text with the right identifiers."""
        words = self._text_ids[LEFT]
        return words.get(text) or WORD_PATTERN.sub(
            lambda found: words.get(found[0], found[0]), text
        )

    def rename_json(self, value: Any) -> Any:
        """Return a left JSON value with the right identifiers, down to a depth of `MAX_DEPTH`."""
        return self._rename_member(value, "", None, 0)

    def rename_protobuf(self, message: Message) -> None:
        """Replace the left identifiers in a protobuf message by the right ones, in place."""
        members = message.ListFields()
        holder: dict[str, object] = {field.json_name: value for field, value in members}
        for field, value in members:
            if field.message_type is not None:
                self._rename_submessages(field, value)
            elif field.type == field.TYPE_STRING:
                kind = self.fields.id_kind(field.json_name, holder)
                if _is_list(value):
                    value[:] = [self._rename_string(kind, each) for each in value]
                else:
                    setattr(message, field.name, self._rename_string(kind, value))

    def _rename_submessages(self, field: Any, value: Any) -> None:
        if not field.message_type.GetOptions().map_entry:
            for each in value if _is_list(value) else (value,):
                self.rename_protobuf(each)
            return
        of_value = field.message_type.fields_by_name["value"]
        for key in list(value):
            if of_value.message_type is not None:
                self.rename_protobuf(value[key])
            elif of_value.type == of_value.TYPE_STRING:
                value[key] = self._rename_string("", value[key])

    def _rename_member(
        self, value: Any, name: str, holder: dict[str, Any] | None, depth: int
    ) -> Any:
        """Rename a value; without a holder, as in opaque values of the peers, no name marks an
        identifier."""
        if depth > MAX_DEPTH:
            return value
        if isinstance(value, dict):
            if name in OPAQUE:
                return {
                    key: self._rename_member(item, name, None, depth + 1)
                    for key, item in value.items()
                }
            return {
                key: self._rename_member(item, key, value, depth + 1) for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._rename_member(item, name, holder, depth + 1) for item in value]
        if not isinstance(value, str):
            return value
        return self._rename_string(
            self.fields.id_kind(name, holder) if holder is not None else "", value
        )

    def _rename_string(self, kind: str, text: str) -> str:
        return self._rename_identifier(kind, text) if kind and text else self.rename_text(text)

    def _rename_identifier(self, kind: str, left: str) -> str:
        return self.find_partner(LEFT, kind, left) or self.rename_text(left)

    def _set_pair(self, kind: str, left: str, right: str) -> None:
        self._partners[LEFT][kind, left], self._partners[RIGHT][kind, right] = right, left
        words, others = self._text_ids
        if (left != right or left in words) and self._is_text_id(kind, left):
            words[left] = others[right] = right

    def _is_text_id(self, kind: str, left: str) -> bool:  # noqa: ARG002  # a replay excludes kinds
        """Whether an identifier is replaced in texts."""
        return WORD_PATTERN.fullmatch(left) is not None


def iter_identifiers(
    value: Any,
    fields: CanonicalFields,
    name: str = "",
    holder: dict[str, Any] | None = None,
    path: Path = (),
) -> Iterator[tuple[Path, str, str]]:
    """Yield path, kind and text of each identifier of a value, in order, except in opaque values of
    the peers."""
    if len(path) > MAX_DEPTH or name in OPAQUE:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from iter_identifiers(item, fields, key, value, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from iter_identifiers(item, fields, name, holder, (*path, index))
    elif isinstance(value, str) and value and (kind := fields.id_kind(name, holder)):
        yield path, kind, value


def neutralize_labels(text: str) -> str:
    """Return a text in which all labels of credentials are equal."""
    return _LABEL_PATTERN.sub("redacted", text) if "redacted-" in text else text


def _is_list(value: Any) -> bool:
    return not isinstance(value, (str, bytes, Message)) and hasattr(value, "append")

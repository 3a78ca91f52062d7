"""The field table as read from the annotations of a Struct."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Annotated

import msgspec

from a2a_proxy.model.fields import (
    Encoding,
    Ident,
    PeerWord,
    Row,
    Time,
    fields_of,
    redacted_names,
)
from a2a_proxy.model.values import ArtifactState, Connection, Exchange, Finding, Frame, Task


class _Colour(IntEnum):
    RED = 1


class _Shade(StrEnum):
    DARK = "dark"


class _Stored(msgspec.Struct):
    began: Time
    name: Annotated[PeerWord, Row("title", json=None, label="name")]
    ident: Ident = ""
    count: int = 0
    colour: _Colour = _Colour.RED
    shade: _Shade = _Shade.DARK
    word: str = ""
    places: tuple[int, ...] = ()
    counters: dict[str, int] = {}


def test_a_row_is_what_the_annotations_of_a_field_say() -> None:
    fields = {field.name: field for field in fields_of(_Stored)}
    assert [field.encoding for field in fields.values()] == [
        Encoding.TIME,
        Encoding.WORD,
        Encoding.IDENT,
        Encoding.NUMBER,
        Encoding.NUMBER,
        Encoding.WORD,
        Encoding.WORD,
        Encoding.JSON,
        Encoding.JSON,
    ]
    assert fields["began"].default is msgspec.NODEFAULT
    assert fields["counters"].default == {}
    name = fields["name"]
    assert (name.type, name.column, name.row.json, name.row.label) == (str, "title", None, "name")
    assert fields["ident"].column == fields["ident"].key == "ident"


def test_a_row_with_a_label_keeps_that_its_text_is_redacted() -> None:
    assert redacted_names(_Stored) == ("name", "ident")


def test_every_id_and_text_of_a_peer_is_redacted() -> None:
    """Only the words and lists that this program chooses are not."""
    made = {"operation", "http_version", "half_close", "live_payload", "kind", "rule"}
    made |= {"confidence", "schema", "binding", "dialect"}
    elsewhere = {"framing"}  # the redactor knows its header lines
    for kind in (Frame, Exchange, Connection, Finding, Task, ArtifactState):
        texts = {
            field.name
            for field in fields_of(kind)
            if isinstance(field.type, type) and issubclass(field.type, str)
        }
        assert texts - made - elsewhere == set(redacted_names(kind)), kind

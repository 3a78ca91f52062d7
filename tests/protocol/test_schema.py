from __future__ import annotations

import pytest

from a2a_proxy.model.values import Dialect
from a2a_proxy.protocol.schema import (
    decoder_for,
    is_protobuf,
    schema_of,
    schema_set_of,
    split_schema,
)


@pytest.mark.parametrize(
    ("line", "name", "schema"),
    [
        ("1.0", "Task", "lf.a2a.v1.Task"),
        ("0.3", "Task", "a2a.v1.Task"),
        ("live-1975", "LiveRequest", "lf.a2a.v1.LiveRequest@live-1975"),
        ("live-2153", "StreamRequest", "lf.a2a.v1.StreamRequest@live-2153"),
    ],
)
def test_the_schema_name_has_dialect_and_message(line: str, name: str, schema: str) -> None:
    """The schema says line and message, also where two lines share a package."""
    assert schema_of(line, name) == schema
    assert split_schema(schema) == (line, schema.partition("@")[0])
    assert decoder_for(schema).parse(b"") is not None


def test_other_packages_keep_their_names() -> None:
    """Messages of other packages keep their names; unknown ones are refused."""
    assert schema_of("1.0", "google.protobuf.Empty") == "google.protobuf.Empty"
    assert (
        decoder_for("google.protobuf.Empty").summarise(
            decoder_for("google.protobuf.Empty").parse(b"")
        )[1]
        == ""
    )
    assert not is_protobuf("json")
    assert [schema_set_of(dialect) for dialect in (Dialect.V1_1, Dialect.V0_2)] == ["1.0", "0.3"]
    with pytest.raises(KeyError):
        decoder_for("lf.a2a.v1.NoSuch")

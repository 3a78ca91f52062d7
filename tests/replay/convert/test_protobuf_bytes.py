"""Values without a protobuf form are an error."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proto import RenderError, parse, to_dict
from a2a_proxy.model.values import Dialect
from a2a_proxy.replay.convert.protobuf_bytes import encode_answer


def nested(levels: int) -> dict[str, Any]:
    """Return an answer of an agent whose part has a JSON value of so many objects, one in the
    other."""
    data: Any = 1
    for _ in range(levels):
        data = {"a": data}
    return {"message": {"parts": [{"data": data}]}}


def test_the_deepest_value_that_peers_decode_is_encoded() -> None:
    """Decoders of protobuf accept 100 messages, one in the other; an object is three of them."""
    data = encode_answer(nested(32), "SendMessage", Dialect.V1_0)
    assert to_dict(parse("1.0", "SendMessageResponse", data)) == nested(32)


@pytest.mark.parametrize("levels", [33, 49, 60, 120, 480, 950])
def test_values_nested_too_deeply_for_protobuf_are_an_error(levels: int) -> None:
    """Whoever reads JSON may have read it all the same: 1,000 levels are allowed there."""
    with pytest.raises(RenderError):
        encode_answer(nested(levels), "SendMessage", Dialect.V1_0)

"""Values without a protobuf form are an error."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proto import RenderError
from a2a_proxy.model.exchange import Dialect
from a2a_proxy.replay.convert.protobuf_bytes import encode_answer


@pytest.mark.parametrize("levels", [60, 120, 480, 950])
def test_values_nested_too_deeply_for_protobuf_are_an_error(levels: int) -> None:
    """Whoever reads JSON may have read it all the same: 1,000 levels are allowed there."""
    data: Any = 1
    for _ in range(levels):
        data = {"a": data}
    with pytest.raises(RenderError):
        encode_answer({"message": {"parts": [{"data": data}]}}, "SendMessage", Dialect.V1_0)

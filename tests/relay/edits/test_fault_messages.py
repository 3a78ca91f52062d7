"""Generations in gRPC messages, as faults change them."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proto import message_class
from a2a_proxy.relay.edits.fault_messages import PREFIX_SIZE, GrpcEvents

PATH = "/lf.a2a.v1.A2AService/SendStreamingMessage"
RESPONSE: Any = message_class("1.0", "lf.a2a.v1.StreamResponse")
LARGEST = (1 << 63) - 1


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [(3, 2, 5), (3, -1, 2), (3, -9, 0), (LARGEST - 1, 1, LARGEST), (LARGEST, 999_999_999, LARGEST)],
)
def test_a_generation_stays_in_its_range(before: int, change: int, after: int) -> None:
    event = RESPONSE()
    event.task.generation = before
    payload = event.SerializeToString()
    changed = GrpcEvents(PATH, b"identity").change_generation(
        b"\0" + len(payload).to_bytes(4) + payload, change
    )
    assert changed is not None
    assert RESPONSE.FromString(changed[PREFIX_SIZE:]).task.generation == after

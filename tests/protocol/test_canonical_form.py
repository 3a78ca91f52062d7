"""The form in which payloads of all bindings are compared."""

from __future__ import annotations

from a2a_proxy.model.values import Binding, Dialect, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.canonical_form import canonical_payload


def frame(kind: FrameKind, payload: bytes) -> Frame:
    return Frame(1, 1, 1, Direction.TO_AGENT, kind, 1, 1, 0, len(payload), payload, schema="json")


def call(binding: Binding) -> Exchange:
    return Exchange(
        id=1,
        connection=1,
        stream=1,
        binding=binding,
        dialect=Dialect.V1_0,
        operation="GetTask",
        method="GET",
        target="/tasks/t7?historyLength=3",
        started=1,
    )


def test_members_in_a_rest_target_belong_to_the_request() -> None:
    assert canonical_payload(frame(FrameKind.REQUEST, b"{}"), call(Binding.REST)) == {
        "id": "t7",
        "historyLength": 3,
    }


def test_members_in_a_target_belong_to_nothing_else() -> None:
    answer = frame(FrameKind.RESPONSE, b'{"contextId": "c"}')
    assert "historyLength" not in canonical_payload(answer, call(Binding.REST))
    assert "historyLength" not in canonical_payload(
        frame(FrameKind.REQUEST, b"{}"), call(Binding.JSONRPC)
    )

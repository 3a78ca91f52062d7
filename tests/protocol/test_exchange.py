from __future__ import annotations

import msgspec
import pytest

from a2a_proxy.model.values import Binding, Exchange
from a2a_proxy.protocol.exchange import ExchangeState


def test_a_snapshot_has_the_facts_and_no_state_of_the_decoder() -> None:
    state = ExchangeState(1, 2, 3, Binding.GRPC, 4, status=200, agent="a", tenant="t", seq=5)
    expected = Exchange(1, 2, 3, Binding.GRPC, 4, status=200, agent="a")
    assert state.snapshot() == expected
    state.status = 500
    assert state.snapshot() == msgspec.structs.replace(expected, status=500)


def test_closes_once() -> None:
    """The first side to end it is kept; responses of the proxy count as refused."""
    exchange = ExchangeState(1, 1, 1, Binding.REST, 1)
    exchange.close(5, "client gone")
    exchange.close(6, "agent gone")
    ours = ExchangeState(2, 1, 2, Binding.REST, 1, ours=True)
    ours.close(7, "complete")

    assert (exchange.closed, exchange.how) == (5, "client gone")
    assert ours.how == "refused"


@pytest.mark.parametrize(
    ("operation", "expected"), [("GetTask", 5), ("CancelTask", None), ("SendMessage", None)]
)
def test_only_get_task_waits_for_a_generation(operation: str, expected: int | None) -> None:
    exchange = ExchangeState(1, 1, 1, Binding.REST, 1, operation=operation)
    exchange.set_expected_generations(5, 4)
    assert (exchange.current_generation, exchange.generation_match) == (expected, 4)

"""When an open exchange gets a status line."""

from __future__ import annotations

from a2a_proxy.model.values import Binding, Exchange
from a2a_proxy.recorder.open_exchanges import LIVE_AFTER, MAX_REPORTED, OpenExchanges

SECOND = LIVE_AFTER


def exchange(events: int = 0, closed: int = 0, number: int = 1) -> Exchange:
    return Exchange(number, 1, 1, Binding.GRPC, started=0, events=events, closed=closed)


def test_a_short_call_gets_no_live_line() -> None:
    """It ends within a second."""
    live = OpenExchanges()
    live.update_exchange(exchange(), "agent")
    assert not list(live.take_due(SECOND - 1))
    live.update_exchange(exchange(closed=5), "agent")
    assert not list(live.take_due(SECOND * 9))


def test_a_silent_call_gets_one_live_line_and_later_ones_after_pauses() -> None:
    """The last event before a silence is reported too."""
    live = OpenExchanges()
    live.update_exchange(exchange(1), "agent")
    assert [each.events for each, _ in live.take_due(SECOND)] == [1]
    assert not list(live.take_due(SECOND * 9))
    live.update_exchange(exchange(2), "agent")
    assert [each.events for each, _ in live.take_due(SECOND * 9)] == [2]
    live.update_exchange(exchange(3), "agent")
    live.update_exchange(exchange(4), "agent")
    assert not list(live.take_due(SECOND * 14 - 1))
    assert list(live.take_due(SECOND * 14)) == [(exchange(4), "agent")]


def test_the_pauses_grow() -> None:
    """A stream that never ends and never rests: after 1, 2, 5, 10, 30 and then each 60 seconds."""
    live = OpenExchanges()
    told = []
    for tenth in range(2300):
        live.update_exchange(exchange(tenth), "agent")
        told += [tenth / 10 for _ in live.take_due(tenth * SECOND // 10)]
    assert told == [1, 3, 8, 18, 48, 108, 168, 228]


def test_only_open_exchanges_are_kept() -> None:
    """However long a session is."""
    live = OpenExchanges()
    for number in range(1000):
        live.update_exchange(exchange(number=number), "agent")
        live.update_exchange(exchange(number=number, closed=1), "agent")
    assert not live._open


def test_an_end_is_reported_once() -> None:
    """Of an exchange that changes after its end; of very many, the oldest are forgotten."""
    live = OpenExchanges()
    assert [live.mark_ended(exchange(closed=closed)) for closed in (0, 5, 5)] == [
        False,
        True,
        False,
    ]
    for number in range(2, 2000):
        assert live.mark_ended(exchange(number=number, closed=9))
    assert not live.mark_ended(exchange(number=1999, closed=9))
    assert len(live._ended) == MAX_REPORTED

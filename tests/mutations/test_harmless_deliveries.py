"""Changes of webhook deliveries that break nothing. No rule flags them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from a2a_proxy.rules.run import repeat_limit
from mutations.breaks_deliveries_push import SDK, SECOND, delivered, deliveries
from mutations.breaks_push import AWAY
from support_mutations import MS, Talk, Want, judge

HARMLESS: list[Callable[[Talk], None]] = []


def harmless(change: Callable[[Talk], None]) -> Callable[[Talk], None]:
    """Register a change."""
    HARMLESS.append(change)
    return change


@harmless
def the_receiver_is_overloaded_for_a_while(talk: Talk) -> None:
    """Each attempt comes later than the one before it."""
    call = deliveries(talk)[-1]
    for pause in (1, 2, 4):
        again = talk.add(call, after=call, pause=pause * SECOND)
        call.status = 503
        call = again


@harmless
def the_receiver_asks_for_credentials_first(talk: Talk) -> None:
    """The agent posts the event again, with the same credentials."""
    call = deliveries(talk)[-1]
    talk.add(call, after=call, pause=20 * MS)
    call.status = 401
    call.reply_headers = [[b"WWW-Authenticate", b"Bearer"]]


@harmless
def the_receiver_answers_with_a_body(talk: Talk) -> None:
    """202, with JSON that is not of A2A."""
    for call in deliveries(talk):
        call.status = 202


@harmless
def all_deliveries_are_late(talk: Talk) -> None:
    """By twenty seconds, and after the end of the stream."""
    for call in deliveries(talk):
        call.started += 20 * SECOND
        call.answered = call.ended = call.started
        call.requests[0].at = call.started


@harmless
def the_type_has_a_character_set(talk: Talk) -> None:
    """And is in capitals."""
    for call in deliveries(talk):
        call.set("Content-Type", "Application/A2A+JSON; charset=utf-8")


@harmless
def the_target_is_a_whole_url(talk: Talk) -> None:
    """As through a forward proxy."""
    for call in deliveries(talk):
        call.target = AWAY.replace("https", "http")


@harmless
def a_gateway_has_replaced_the_host(talk: Talk) -> None:
    """The proxy is behind it."""
    for call in deliveries(talk):
        call.set("Host", "hooks.internal:8443")


@harmless
def some_events_are_not_delivered(talk: Talk) -> None:
    """All but the first and the last."""
    for call in deliveries(talk)[1:-1]:
        talk.exchanges.remove(call)


@pytest.fixture(autouse=True)
def _every_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeat_limit, "MAX_PER_EXCHANGE", 10**9)
    monkeypatch.setattr(repeat_limit, "MAX_PER_KIND", 10**9)


@pytest.mark.parametrize("change", HARMLESS)
@pytest.mark.parametrize("sample", SDK)
def test_a_harmless_change_of_deliveries_is_not_flagged(
    sample: str, change: Callable[[Talk], None]
) -> None:
    def change_it(talk: Talk) -> Iterator[Want]:
        change(talk)
        yield from ()

    assert judge(sample, change_it, delivered).unexpected == []

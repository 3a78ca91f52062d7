"""Whatever is lost, doubled or swapped before it reaches the proxy is found, on every binding and
in every interleaving of two streams; on a stream to which nothing happened nothing is found."""

from __future__ import annotations

import re

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.model.values import Finding, Severity
from support_generations import Case, Stream, cases

FIRST, SECOND = 1, 2
"""Exchanges in the order of their requests."""
FAMILIES = ("A2A-GEN-", "A2A-STREAM-")


def _serious(found: list[Finding], exchange: int) -> list[str]:
    """Findings about one stream, in words; the draft's hole about progress updates is
    information."""
    return [
        f"{each.rule}: {each.summary}"
        for each in found
        if each.exchange == exchange
        and each.rule.startswith(FAMILIES)
        and each.severity > Severity.INFO
    ]


def _rules(found: list[Finding], exchange: int) -> set[str]:
    return {
        each.rule for each in found if each.exchange == exchange and each.severity > Severity.INFO
    }


def _stream(case: Case, exchange: int) -> Stream:
    return case.first if exchange == FIRST else case.second


def _with(case: Case, exchange: int, stream: Stream) -> Case:
    return msgspec.structs.replace(case, **{"first" if exchange == FIRST else "second": stream})


@given(case=cases())
def test_nothing_is_found_where_nothing_is_wrong(case: Case) -> None:
    found = case.run()
    assert not _serious(found, FIRST)
    assert not _serious(found, SECOND)
    info = {each.rule for each in found if each.rule.startswith(FAMILIES)}
    assert info <= ({"A2A-GEN-002"} if case.repeats else set())


@given(case=cases(), exchange=st.sampled_from([FIRST, SECOND]), data=st.data())
def test_every_event_that_is_lost_is_found(case: Case, exchange: int, data: st.DataObject) -> None:
    stream = _stream(case, exchange)
    events = stream.events
    # Where progress updates repeat a number, they stand in for the event before them: nobody can
    # know.
    alone = [*(each.counts for each in events[1:]), True]
    choices = [index for index, each in enumerate(events) if index and each.counts and alone[index]]
    lost = data.draw(st.sampled_from(choices))
    found = _with(case, exchange, stream.without(lost)).run()
    if lost == len(events) - 1:
        assert "A2A-STREAM-007" in _rules(found, exchange)
    else:
        number = str(events[lost].number)
        gaps = [each for each in found if each.rule == "A2A-GEN-001" and each.exchange == exchange]
        assert [each.summary for each in gaps if re.search(rf"generation {number}\b", each.summary)]
    assert not _serious(found, FIRST + SECOND - exchange)


@given(case=cases(), exchange=st.sampled_from([FIRST, SECOND]), data=st.data())
def test_every_event_that_comes_twice_is_found(
    case: Case, exchange: int, data: st.DataObject
) -> None:
    stream = _stream(case, exchange)
    events = stream.events
    twice = data.draw(st.sampled_from(range(1, len(events))))
    found = _with(case, exchange, stream.with_twice(twice)).run()
    assert "A2A-GEN-002" in _rules(found, exchange)
    assert not _serious(found, FIRST + SECOND - exchange)


@given(case=cases(), exchange=st.sampled_from([FIRST, SECOND]), data=st.data())
def test_two_events_in_the_wrong_order_are_found(
    case: Case, exchange: int, data: st.DataObject
) -> None:
    stream = _stream(case, exchange)
    events = stream.events
    pairs = [at for at in range(1, len(events) - 1) if events[at].counts and events[at + 1].counts]
    if not pairs:
        return
    at = data.draw(st.sampled_from(pairs))
    found = _with(case, exchange, stream.with_swapped(at)).run()
    assert "A2A-GEN-003" in _rules(found, exchange)
    assert not _serious(found, FIRST + SECOND - exchange)

from __future__ import annotations

import datetime
import ssl

import pytest

from a2a_proxy.certificates import contexts
from a2a_proxy.certificates.authority import Authority
from a2a_proxy.certificates.contexts import IssuedContexts

NOW = datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
HTTP = ("http/1.1", "h2")


class Clock:
    now = NOW

    def __call__(self) -> datetime.datetime:
        return self.now


def test_one_context_for_each_name_and_choice_of_protocols() -> None:
    """It is prepared once, when it is made."""
    prepared: list[ssl.SSLContext] = []
    issued = IssuedContexts(Authority.create("machine", NOW), prepared.append, Clock())
    assert issued.find_context("a", HTTP) is None
    first = issued.make_context("a", HTTP)
    assert issued.find_context("a", HTTP) is issued.make_context("a", HTTP) is first
    others = [
        issued.make_context("b", HTTP),
        issued.make_context("a", ("h2",)),
        issued.make_context("a", ()),
    ]
    assert len({id(each.context) for each in (first, *others)}) == 4
    assert prepared == [each.context for each in (first, *others)]


def test_the_least_recently_used_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "MAX_CONTEXTS", 2)
    issued = IssuedContexts(Authority.create("machine", NOW), clock=Clock())
    for name in ("a", "b", "a", "c"):
        issued.make_context(name, HTTP)
    assert [issued.find_context(name, HTTP) is None for name in ("a", "b", "c")] == [
        False,
        True,
        False,
    ]


def test_a_certificate_is_replaced_before_it_ends() -> None:
    """A proxy may run for years. In the last days of the authority a certificate is kept for a
    day."""
    clock = Clock()
    issued = IssuedContexts(Authority.create("machine", NOW), clock=clock)
    issued.make_context("a", HTTP)
    clock.now = NOW + 59 * DAY
    assert issued.find_context("a", HTTP) is not None
    clock.now += DAY
    assert issued.find_context("a", HTTP) is None
    clock.now = NOW + 720 * DAY
    issued.make_context("a", HTTP)
    assert issued.find_context("a", HTTP) is not None
    clock.now += 2 * DAY
    assert issued.find_context("a", HTTP) is None

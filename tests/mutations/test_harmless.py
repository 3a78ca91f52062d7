"""Changes that break nothing: equivalent framing, gateways and other clients. No rule flags
them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from a2a_proxy.rules.run import repeat_limit
from mutations.pick import JSONRPC, pick, refused, stream
from support_mutations import Talk, Want, judge
from support_thin import thin

JSON = ("sdk-1.x-jsonrpc", "sdk-0.3-jsonrpc", "dialect-0.2")
HTTP = (*JSON, "sdk-1.x-rest", "sdk-0.3-rest", "js-three-bindings", "js-to-0.3", "demo")
CALLS = (*JSON, "sdk-1.x-rest", "sdk-0.3-rest")
EVERY = (*HTTP, "sdk-1.x-grpc", "sdk-0.3-grpc")
SECOND = 1_000_000_000

HARMLESS: list[tuple[str, Callable[[Talk], None]]] = []


def harmless(*samples: str) -> Callable[[Callable[[Talk], None]], Callable[[Talk], None]]:
    """Register a change for each of these samples."""

    def add(change: Callable[[Talk], None]) -> Callable[[Talk], None]:
        HARMLESS.extend((sample, change) for sample in samples)
        return change

    return add


def _framed(talk: Talk, how: Callable[[str], str]) -> None:
    for each in stream(talk).answers:
        each.framing = how(each.framing)


@harmless(*HTTP)
def lines_end_in_lf(talk: Talk) -> None:
    _framed(talk, lambda text: text.replace("\r\n", "\n"))


@harmless(*HTTP)
def a_comment_in_every_event(talk: Talk) -> None:
    _framed(talk, lambda text: ": still here\n" + text)


@harmless("sdk-1.x-jsonrpc", "sdk-1.x-rest", "js-three-bindings")
def the_data_of_an_event_is_indented(talk: Talk) -> None:
    event = stream(talk).answers[3]
    lines = json.dumps(event.value, indent=1).split("\n")
    event.wire = b"".join(b"data: " + line.encode() + b"\n" for line in lines) + b"\n"


@harmless(*HTTP)
def every_event_is_named_message(talk: Talk) -> None:
    _framed(talk, lambda text: "event: message\n" + text)


@harmless(*HTTP)
def every_event_has_an_id(talk: Talk) -> None:
    for number, each in enumerate(stream(talk).answers):
        each.framing = f"id: {number}\nretry: 3000\n" + each.framing


@harmless(*HTTP)
def no_space_after_the_colon(talk: Talk) -> None:
    _framed(talk, lambda text: text.replace("data: ", "data:"))


@harmless(*EVERY)
def the_agent_takes_its_time(talk: Talk) -> None:
    stream(talk).shift(2, 3 * SECOND)


@harmless(*CALLS, "sdk-1.x-grpc", "sdk-0.3-grpc")
def the_client_leaves_a_stream(talk: Talk) -> None:
    """A moment before its end; that is A2A-END-023's only where it never comes back."""
    call = stream(talk)
    del call.answers[4:]
    call.finish = "leave"


@harmless(*CALLS, "sdk-1.x-grpc")
def the_client_leaves_a_call(talk: Talk) -> None:
    call = pick(talk, "GetTask")
    call.status, call.answers, call.finish = 0, [], "leave"


@harmless(*CALLS)
def a_gateway_has_no_agent(talk: Talk) -> None:
    call = pick(talk, "GetTask")
    call.status, call.answers[0].data = 502, b"<html>bad gateway</html>"
    call.set("content-type", "text/html", reply=True)


@harmless(*CALLS)
def a_gateway_answers_in_json(talk: Talk) -> None:
    call = pick(talk, "SendMessage")
    call.status, call.answers[0].data = 500, b'{"detail":"Internal Server Error"}'


@harmless(*CALLS)
def a_server_has_no_such_page(talk: Talk) -> None:
    call = refused(talk)
    call.status, call.answers[0].data = 404, b"<html>not found</html>"
    call.set("content-type", "text/html", reply=True)


@harmless(*CALLS)
def a_server_does_not_know_a_page_of_a_task_that_is_there(talk: Talk) -> None:
    call = pick(talk, "GetTask")
    call.status, call.answers[0].data = 404, b"<html>not found</html>"
    call.set("content-type", "text/html", reply=True)


@harmless("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-0.3-rest", "dialect-0.2")
def a_call_without_credentials_is_redirected(talk: Talk) -> None:
    call = pick(talk, "GetTask")
    call.status, call.answers = 307, []
    call.set("location", "/elsewhere/", reply=True)


@harmless(*CALLS)
def too_many_calls_with_a_hint(talk: Talk) -> None:
    call = pick(talk, "GetTask")
    call.status, call.answers = 429, []
    call.set("retry-after", "5", reply=True)
    call.set("content-type", None, reply=True)


@harmless(*JSON)
def the_character_set_is_named(talk: Talk) -> None:
    call = pick(talk, "SendMessage", JSONRPC)
    call.set("content-type", "application/json; charset=UTF-8")
    call.set("content-type", "application/json; charset=utf-8", reply=True)


@harmless(*JSON)
def members_in_another_order(talk: Talk) -> None:
    call = pick(talk, "GetTask", JSONRPC)
    for each in (*call.requests, *call.answers):
        each.put(dict(sorted(each.value.items(), reverse=True)))


@harmless(*JSON)
def space_around_the_json(talk: Talk) -> None:
    call = pick(talk, "GetTask", JSONRPC)
    for each in (*call.requests, *call.answers):
        each.data = b"\n " + each.data + b"\r\n"


@harmless(*JSON)
def escapes_in_place_of_letters(talk: Talk) -> None:
    """`\\u` for what need not be escaped, a surrogate without its other half."""
    answer = pick(talk, "GetTask", JSONRPC).answers[0]
    answer.data = answer.data.replace(b"forty-two", b"\\u0066\\ud800")


@pytest.fixture(autouse=True)
def _every_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeat_limit, "MAX_PER_EXCHANGE", 10**9)
    monkeypatch.setattr(repeat_limit, "MAX_PER_KIND", 10**9)


@pytest.mark.parametrize(
    "case", thin(HARMLESS, 3), ids=lambda case: f"{case[1].__name__}-{case[0]}"
)
def test_a_harmless_change_is_not_flagged(case: tuple[str, Callable[[Talk], None]]) -> None:
    """Nothing that the untouched conversation does not have. CI tries every change on some of its
    samples."""
    sample, change = case

    def changed(talk: Talk) -> Iterator[Want]:
        change(talk)
        yield from ()

    assert judge(sample, changed).unexpected == []

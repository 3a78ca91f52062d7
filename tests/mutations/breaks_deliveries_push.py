"""Webhook deliveries of a stream's events: wrong in one place."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.breaks_push import AWAY
from support_mutations import MS, Ex, Msg, Talk, Want, mutation

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
SECOND = 1000 * MS
CONFIG = {
    "url": AWAY,
    "token": "t0ken-of-this-hook",
    "authentication": {"scheme": "Bearer", "credentials": "cr3dentials-of-this-hook"},
}


def deliveries(talk: Talk) -> list[Ex]:
    """Return the deliveries in their order."""
    return [each for each in talk.exchanges if each.target == "/hook"]


def delivered(talk: Talk) -> None:
    """The first stream of several events has a push configuration, and each of its events is
    delivered."""
    stream = next(
        each
        for each in talk.exchanges
        if each.operation == "SendStreamingMessage" and len(each.answers) > 3
    )
    stream.requests[0].edit(
        lambda asked: asked.setdefault("configuration", {}).update(
            taskPushNotificationConfig=CONFIG
        )
    )
    pattern = next(each for each in talk.exchanges if each.method == "GET" and not each.requests)
    for number, event in enumerate(stream.answers, 1):
        made = talk.add(pattern, after=stream)
        made.method, made.target, made.authority = "POST", "/hook", "client.example.com"
        made.upstream, made.status, made.answers = "https://client.example.com", 200, []
        made.headers = [
            [b"Host", b"client.example.com"],
            [b"Content-Type", b"application/a2a+json"],
            [b"X-A2A-Notification-Token", CONFIG["token"].encode()],  # type: ignore[attr-defined]
            [b"Authorization", b"Bearer cr3dentials-of-this-hook"],
        ]
        made.reply_headers = []
        made.started = event.at + number * MS
        made.answered = made.ended = made.started + MS // 10
        made.requests = [Msg(b"", made.started, "json")]
        value = event.value
        made.requests[0].put(value.get("result", value))
    talk.length += 800 * SECOND


def of_kind(talk: Talk, name: str) -> Ex:
    """Return the first delivery of one kind of event."""
    return next(each for each in deliveries(talk) if name in each.requests[0].value)


@mutation(*SDK, prepare=delivered)
def a_delivery_has_no_credentials(talk: Talk) -> Iterator[Want]:
    """The others have them."""
    call = deliveries(talk)[1]
    call.set("Authorization", None)
    yield Want("A2A-PUSH-005", call, call.requests[0])


@mutation(*SDK, prepare=delivered)
def the_first_delivery_has_other_credentials(talk: Talk) -> Iterator[Want]:
    """It may come before the task is known."""
    call = deliveries(talk)[0]
    call.set("Authorization", "Bearer cr3dentials-of-another-hook")
    yield Want("A2A-PUSH-005", call, call.requests[0])


@mutation(*SDK, prepare=delivered)
def a_delivery_has_another_token(talk: Talk) -> Iterator[Want]:
    """The others have that of the configuration."""
    call = deliveries(talk)[1]
    call.set("X-A2A-Notification-Token", "t0ken-of-another-hook")
    yield Want("A2A-PUSH-006", call, call.requests[0])


@mutation(*SDK, prepare=delivered)
def a_delivery_is_a_bare_task(talk: Talk) -> Iterator[Want]:
    """As agents of 0.3 send it."""
    call = of_kind(talk, "task")
    call.requests[0].put(call.requests[0].value["task"])
    yield Want("A2A-PUSH-007", call, call.requests[0])


@mutation(*SDK, prepare=delivered)
def a_delivery_is_no_json_by_its_type(talk: Talk) -> Iterator[Want]:
    """The body is JSON."""
    call = deliveries(talk)[1]
    call.set("Content-Type", "text/plain")
    yield Want("A2A-PUSH-008", call, call.requests[0])


@mutation(*SDK, prepare=delivered)
def the_receiver_refuses_a_delivery(talk: Talk) -> Iterator[Want]:
    """The agent does not try again."""
    call = deliveries(talk)[1]
    call.status = 503
    yield Want("A2A-PUSH-010", call)


@mutation(*SDK, prepare=delivered)
def the_second_attempt_fails_too(talk: Talk) -> Iterator[Want]:
    """Only the last attempt is judged."""
    call = deliveries(talk)[-1]
    call.status = 503
    yield Want("A2A-PUSH-010", talk.add(call, after=call, pause=SECOND))


@mutation(*SDK, prepare=delivered)
def the_end_is_delivered_first(talk: Talk) -> Iterator[Want]:
    """Only the last event has a terminal state."""
    first, last = deliveries(talk)[0], deliveries(talk)[-1]
    body, end = first.requests[0].value, last.requests[0].value
    first.requests[0].put(end)
    last.requests[0].put(body)
    for call in deliveries(talk)[1:]:
        yield Want("A2A-PUSH-012", call, call.requests[0])


@mutation(*SDK, prepare=delivered)
def an_event_is_delivered_twice(talk: Talk) -> Iterator[Want]:
    """Both are acknowledged."""
    call = deliveries(talk)[-1]
    again = talk.add(call, after=call, pause=SECOND)
    yield Want("A2A-PUSH-013", again, again.requests[0])


@mutation(*SDK, prepare=delivered)
def an_event_is_delivered_again_much_later(talk: Talk) -> Iterator[Want]:
    """An attacker may have recorded it."""
    call = deliveries(talk)[-1]
    again = talk.add(call, after=call, pause=700 * SECOND)
    yield Want("A2A-PUSH-013", again, again.requests[0])
    yield Want("A2A-PUSH-019", again, again.requests[0])


@mutation(*SDK, prepare=delivered)
def a_delivery_comes_from_elsewhere(talk: Talk) -> Iterator[Want]:
    """From an address that the agent has not used."""
    call = deliveries(talk)[-1]
    call.client = "192.0.2.7"
    yield Want("A2A-PUSH-019", call, call.requests[0])


@mutation(*SDK, prepare=delivered)
def an_event_is_delivered_elsewhere(talk: Talk) -> Iterator[Want]:
    """To a URL that no configuration has."""
    call = deliveries(talk)[1]
    call.target = "/another-hook"
    yield Want("A2A-PUSH-009", call, call.requests[0])


@mutation(*SDK, prepare=delivered)
def the_end_is_not_delivered(talk: Talk) -> Iterator[Want]:
    """The events before it are."""
    calls = deliveries(talk)
    talk.exchanges.remove(calls[-1])
    yield Want("A2A-PUSH-011", calls[0])

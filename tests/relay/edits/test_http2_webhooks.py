"""URLs of webhooks over gRPC: replaced in requests, set back in answers, with consistent windows in
both directions (`h2` as both peers)."""

from __future__ import annotations

import contextlib
import gzip
from typing import Any

import pytest
from h2.events import DataReceived, StreamEnded, TrailersReceived
from h2.settings import SettingCodes
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proto import message_class
from a2a_proxy.relay.edits.edit import EditFact, EditPlan, PushConfig
from a2a_proxy.relay.edits.http2_messages import MAX_WATCHED_CALLS
from support_http2_pair import (
    DOWN,
    RESPONSE,
    TRAILERS,
    UP,
    Cut,
    Pair,
    message,
    replayed,
    request,
    single,
    whole,
)

OURS = "http://127.0.0.1:9100/" + "ab" * 16
SHORT, LONG = "http://client.example/hook", "http://client.example/" + "hook" * 100
AGENT = b"agent.example:8443"
NAMED = PushConfig("t", "1")
WINDOW = 65_535
FAILED = [*RESPONSE, (b"grpc-status", b"5")]
GATEWAY = [(b":status", b"503"), (b"content-type", b"text/html")]


class Urls:
    """Replaces a client's URL, and keeps what happens to it."""

    def __init__(self, hook: str = SHORT) -> None:
        self.hook = hook
        self.log: list[tuple[str, object]] = []

    def replace_url(self, url: str, config: PushConfig) -> str | None:
        self.log.append(("replace", config))
        return OURS if url == self.hook else None

    def restore_url(self, url: str, config: PushConfig) -> str | None:
        self.log.append(("restore", config))
        return self.hook if url == OURS else None

    def keep_request(self, url: str, request: bytes) -> None:
        raise AssertionError(url)

    def discard_url(self, url: str) -> None:
        self.log.append(("discard", url))

    def forget_config(self, config: PushConfig) -> None:
        self.log.append(("forget", config))


class Calls(Pair):
    """gRPC calls; the agent grants the bytes that it gets."""

    def __init__(self, urls: Urls, cut: Cut = whole, authority: bytes | None = None) -> None:
        self.plan = EditPlan(authority=authority, listen="127.0.0.1:9000", webhooks=urls)
        self.agent_consumes = True
        super().__init__(self.plan, cut)
        self.move()

    def take(self, sent: list[Any]) -> None:
        for item in sent:
            super().take([item])
            if item.direction is UP and self.agent_consumes:
                self.consume_requests()

    def consume_requests(self) -> None:
        for event in self.agent_events:
            if isinstance(event, DataReceived) and event.flow_controlled_length:
                self.agent.increment_flow_control_window(event.flow_controlled_length)
                with contextlib.suppress(Exception):  # the stream may already be closed
                    self.agent.increment_flow_control_window(
                        event.flow_controlled_length, event.stream_id
                    )
                event.flow_controlled_length = 0

    def call(self, stream: int, method: str, data: bytes, **more: Any) -> None:
        path = f"/lf.a2a.v1.A2AService/{method}".encode()
        self.client.send_headers(stream, request(path))
        self.client.send_data(stream, data, end_stream=True, **more)
        self.move()

    def asked(self, stream: int) -> bytes:
        """Return the data of a stream that the agent has received."""
        events = [
            e for e in self.agent_events if isinstance(e, DataReceived) and e.stream_id == stream
        ]
        return b"".join(event.data for event in events)

    def has_ended(self, stream: int) -> bool:
        """Return whether the agent got the end of the request."""
        return any(
            isinstance(event, StreamEnded) and event.stream_id == stream
            for event in self.agent_events
        )

    def request_windows(self) -> tuple[int, int]:
        """Return the connection's window for the client's bytes, at the agent and at the client."""
        return self.agent.inbound_flow_control_window, self.client.outbound_flow_control_window

    def facts(self, kind: str) -> list[EditFact]:
        return [fact for fact in self.editor.take_edits() if fact.kind == kind]

    def reasons(self) -> list[str]:
        return [fact.detail["reason"] for fact in self.facts("untouched")]


def send(url: str, text: str = "hello") -> bytes:
    made = message_class("1.0", "SendMessageRequest")()
    made.message.message_id = "m"
    made.message.parts.add().text = text
    config = made.configuration.task_push_notification_config
    config.url, config.id, config.token = url, "1", url
    config.token = "word"
    return bytes(made.SerializeToString())


def config(url: str) -> bytes:
    return bytes(
        message_class("1.0", "TaskPushNotificationConfig")(
            task_id="t", id="1", url=url
        ).SerializeToString()
    )


def page(*urls: str) -> bytes:
    made = message_class("1.0", "ListTaskPushNotificationConfigsResponse")()
    for url in urls:
        made.configs.add(task_id="t", id="1", url=url)
    return bytes(made.SerializeToString())


@pytest.mark.parametrize("cut", [whole, single])
@pytest.mark.parametrize("authority", [None, AGENT])
@pytest.mark.parametrize("hook", [SHORT, LONG])
def test_a_message_with_a_configuration(hook: str, authority: bytes | None, cut: Cut) -> None:
    """The windows are consistent whether the URL gets longer or shorter, call after call."""
    urls = Urls(hook)
    pair = Calls(urls, cut, authority)
    for stream in range(1, 41, 2):
        pair.call(stream, "SendStreamingMessage", message(send(hook)))
        assert pair.asked(stream) == message(send(OURS))
        assert pair.has_ended(stream)
        pair.answer(stream, send(OURS))
        pair.move()
        assert pair.got(stream) == message(send(OURS))
    assert urls.log == [("replace", PushConfig("", "1"))] * 20
    assert pair.request_windows() == (WINDOW, WINDOW)
    assert pair.windows() == (WINDOW, WINDOW)
    (first, *_) = facts = pair.facts("webhook")
    lengths = {"length_before": 5 + len(send(hook)), "length_after": 5 + len(send(OURS))}
    assert (first.direction, first.detail, len(facts)) == (
        UP,
        {"urls": [[hook, OURS]], **lengths},
        20,
    )
    assert pair.editor.deadline is None
    for other in (whole, single):
        assert replayed(pair.log, pair.plan, other) == {
            d: bytes(data) for d, data in pair.sent.items()
        }


@pytest.mark.parametrize("cut", [whole, single])
@pytest.mark.parametrize("hook", [SHORT, LONG])
def test_a_configuration_is_created_and_read(hook: str, cut: Cut) -> None:
    urls = Urls(hook)
    pair = Calls(urls, cut)
    pair.call(1, "CreateTaskPushNotificationConfig", message(config(hook)))
    assert pair.asked(1) == message(config(OURS))
    pair.answer(1, config(OURS))
    pair.move()
    assert pair.got(1) == message(config(hook))
    pair.call(3, "ListTaskPushNotificationConfigs", message(b""))
    pair.answer(3, page(OURS, "http://x", OURS))
    pair.move()
    assert pair.got(3) == message(page(hook, "http://x", hook))
    pair.call(5, "GetTaskPushNotificationConfig", message(b""))
    pair.answer(5, config("http://x"))
    pair.move()
    assert pair.got(5) == message(config("http://x"))
    assert urls.log[:2] == [("replace", NAMED), ("restore", NAMED)]
    assert pair.windows() == pair.request_windows() == (WINDOW, WINDOW)
    assert pair.reasons() == []


def test_a_deleted_and_a_refused_configuration_are_forgotten() -> None:
    """An agent that refuses sends no message."""
    urls = Urls()
    pair = Calls(urls)
    delete = message_class("1.0", "DeleteTaskPushNotificationConfigRequest")(
        task_id="t", id="1"
    ).SerializeToString()
    for stream, method, payload in (
        (1, "CreateTaskPushNotificationConfig", config(SHORT)),
        (3, "DeleteTaskPushNotificationConfig", delete),
    ):
        pair.call(stream, method, message(payload))
        pair.agent.send_headers(stream, FAILED, end_stream=True)
        pair.move()
    assert urls.log == [("replace", NAMED), ("discard", OURS)]
    pair.call(5, "DeleteTaskPushNotificationConfig", message(delete))
    pair.answer(5, b"")
    pair.move()
    assert urls.log[2:] == [("forget", NAMED)]
    assert pair.asked(5) == message(delete)


@pytest.mark.parametrize("cut", [whole, single])
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
def test_a_refused_send_is_forgotten(method: str, cut: Cut) -> None:
    """Over and over, so that the header blocks are known."""
    urls = Urls()
    pair = Calls(urls, cut)
    for stream in range(1, 13, 4):
        pair.call(stream, method, message(send(SHORT)))
        pair.agent.send_headers(stream, FAILED, end_stream=True)
        pair.move()
        assert urls.log[-1] == ("discard", OURS)
        pair.call(stream + 2, method, message(send(SHORT)))
        pair.agent.send_headers(stream + 2, RESPONSE)
        pair.agent.send_headers(stream + 2, [(b"grpc-status", b"13")], end_stream=True)
        pair.move()
    assert [what for what, _ in urls.log] == ["replace", "discard"] * 6
    pair.call(13, "CreateTaskPushNotificationConfig", message(config(SHORT)))
    pair.call(15, method, message(send(SHORT)))
    for stream in (13, 15):
        pair.agent.send_headers(stream, GATEWAY)
        pair.agent.send_data(stream, b"<p>no", end_stream=True)
        pair.move()
        assert pair.got(stream) == b"<p>no"
    assert [what for what, _ in urls.log[12:]] == ["replace", "replace", "discard", "discard"]
    assert pair.windows() == pair.request_windows() == (WINDOW, WINDOW)
    assert len(pair.reasons()) == 1


@pytest.mark.parametrize("cut", [whole, single])
def test_an_accepted_send_is_kept(cut: Cut) -> None:
    """A stream that fails after an event, one without events, and a call that the client gives
    up."""
    urls = Urls()
    pair = Calls(urls, cut)
    pair.client.increment_flow_control_window(1000)
    for stream in (1, 3, 5, 7):
        pair.call(stream, "SendStreamingMessage", message(send(SHORT)))
    pair.client.increment_flow_control_window(100_000, 1)
    pair.move()
    pair.agent.send_headers(1, RESPONSE)
    for size in (16_000, 16_000, 16_000, 16_000):
        pair.agent.send_data(1, bytes(size))
        pair.move()
    pair.agent.send_headers(1, [(b"grpc-status", b"13")], end_stream=True)
    pair.agent.send_headers(3, RESPONSE)
    pair.agent.send_headers(3, [(b"grpc-status", b"0")], end_stream=True)
    pair.client.reset_stream(5)
    pair.move()
    pair.agent.reset_stream(7)
    pair.move()
    assert pair.got(1) == bytes(64_000)
    assert [what for what, _ in urls.log] == ["replace"] * 4
    assert pair.reasons() == []
    assert not pair.facts("ended")


def test_a_compressed_request_is_sent_uncompressed() -> None:
    pair = Calls(Urls())
    pair.call(1, "SendMessage", message(gzip.compress(send(SHORT), mtime=0), 1))
    pair.call(3, "SendMessage", message(gzip.compress(send("http://x"), mtime=0), 1))
    assert pair.asked(1) == message(send(OURS))
    assert pair.asked(3) == message(gzip.compress(send("http://x"), mtime=0), 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            message(send(SHORT, "x" * 70_000)),
            f"message of {len(send(SHORT, 'x' * 70_000))} bytes, limit 65536",
        ),
        (message(send(SHORT)) * 2, "more than one message"),
        (message(b"no gzip", 1), "unknown compression"),
        (message(send(SHORT))[:-1], "incomplete message"),
    ],
)
@pytest.mark.parametrize("cut", [whole, single])
def test_requests_that_are_not_edited_are_unchanged(data: bytes, reason: str, cut: Cut) -> None:
    pair = Calls(Urls(), cut)
    pair.client.send_headers(1, request(b"/lf.a2a.v1.A2AService/SendMessage"))
    size = 16_384
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    for piece in pieces:
        pair.client.send_data(1, piece, end_stream=piece is pieces[-1])
        pair.move()
    assert pair.asked(1) == data
    assert pair.has_ended(1)
    assert pair.reasons() == [reason]
    assert pair.request_windows() == (WINDOW, WINDOW)


def test_a_slow_request_is_released_after_a_second() -> None:
    pair = Calls(Urls())
    data = message(send(SHORT))
    pair.client.send_headers(1, request(b"/lf.a2a.v1.A2AService/SendMessage"))
    pair.client.send_data(1, data[:-1])
    pair.move()
    pair.tick(0.9)
    assert pair.asked(1) == b""
    pair.tick(0.2)
    assert pair.asked(1) == data[:-1]
    assert pair.reasons() == ["not complete, or larger than the agent's window, after 1 s"]
    pair.client.send_data(1, data[-1:], end_stream=True)
    pair.move()
    assert pair.asked(1) == data
    assert pair.editor.deadline is None
    assert pair.request_windows() == (WINDOW, WINDOW)


def test_a_longer_request_waits_for_the_agent_s_window() -> None:
    """Other calls go on, and the client's request is released as it was if the window does not grow
    in time."""
    for grows in (True, False):
        urls = Urls()
        pair = Calls(urls)
        pair.agent_consumes = False
        data, longer = message(send(SHORT)), message(send(OURS))
        pair.agent.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: len(data)})
        pair.move()
        pair.call(1, "SendMessage", data)
        assert pair.asked(1) == b""
        pair.call(3, "GetTask", message(b"other"))
        assert pair.asked(3) == message(b"other")
        if grows:
            pair.agent.increment_flow_control_window(len(longer) - len(data), 1)
            pair.move()
            assert pair.asked(1) == longer
        else:
            pair.tick(1.0)
            assert pair.asked(1) == data
        assert [what for what, _ in urls.log] == ["replace"] + ["discard"] * (not grows)
        assert pair.has_ended(1)
        pair.consume_requests()
        pair.move()
        assert pair.request_windows() == (WINDOW, WINDOW)


@pytest.mark.parametrize("who", ["client resets", "agent resets", "client ends", "agent ends"])
def test_resets_and_ends_release_a_held_request(who: str) -> None:
    pair = Calls(Urls())
    data = message(send(SHORT))
    pair.client.send_headers(1, request(b"/lf.a2a.v1.A2AService/SendMessage"))
    pair.client.send_data(1, data[:-1])
    pair.move()
    if who == "client resets":
        pair.client.reset_stream(1)
    elif who == "agent resets":
        pair.agent.reset_stream(1)
    else:
        pair.take(pair.editor.feed_eof(UP if who == "client ends" else DOWN, pair.now))
    pair.move()
    assert data[:-1] in bytes(pair.sent[UP])
    assert pair.editor.deadline is None
    assert len(pair.reasons()) == 1
    if "resets" in who:
        pair.call(3, "SendMessage", data)
        assert pair.asked(3) == message(send(OURS))


def test_trailers_of_a_request_follow_its_data() -> None:
    """GRPC clients send none, but HTTP/2 has them."""
    for authority in (None, AGENT):
        pair = Calls(Urls(), authority=authority)
        data = message(send(SHORT))
        pair.client.send_headers(1, request(b"/lf.a2a.v1.A2AService/SendMessage"))
        pair.client.send_data(1, data[:-1])
        pair.client.send_headers(1, [(b"x-a", b"1")], end_stream=True)
        pair.move()
        assert pair.asked(1) == data[:-1]
        (trailers,) = [event for event in pair.agent_events if isinstance(event, TrailersReceived)]
        assert trailers.headers == [(b"x-a", b"1")]


def test_the_number_of_watched_calls_is_bounded() -> None:
    """Further ones pass unchanged, and a line says so."""
    pair = Calls(Urls())
    pair.agent.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 1000})
    pair.move()
    streams = range(1, 2 * MAX_WATCHED_CALLS + 3, 2)
    for stream in streams:
        pair.client.send_headers(stream, request(b"/lf.a2a.v1.A2AService/SendMessage"))
    pair.move()
    for stream in (streams[0], streams[-1]):
        pair.client.send_data(stream, message(send(SHORT)), end_stream=True)
    pair.move()
    assert pair.asked(streams[0]) == message(send(OURS))
    assert pair.asked(streams[-1]) == message(send(SHORT))
    assert pair.reasons() == ["there are too many calls at the same time"]


def test_a_broken_direction_releases_what_is_held() -> None:
    pair = Calls(Urls())
    data = message(send(SHORT))[:-1]
    pair.client.send_headers(1, request(b"/lf.a2a.v1.A2AService/SendMessage"))
    pair.client.send_data(1, data)
    pair.move()
    sent = pair.editor.feed(UP, b"\x00\x00\x04\x01\x04\x00\x00\x00\x05\xff\xff\xff\xff", pair.now)
    assert data in b"".join(item.data for item in sent if item.direction is UP)
    assert not pair.editor.is_active


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["send", "create", "other", "grant", "settings", "reset", "tick"]),
        st.integers(0, 3000),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(ACTIONS, st.sampled_from([SHORT, LONG]), st.sampled_from([None, AGENT]))
def test_no_sequence_of_calls_breaks_a_connection(
    actions: list[tuple[str, int]], hook: str, authority: Any
) -> None:
    """Any mix of calls, windows and resets: no peer sees a violation, and in the end the windows
    are equal."""
    pair = Calls(Urls(hook), authority=authority)
    stream = -1
    for action, number in actions:
        pair.agent_consumes = number % 3 > 0
        if action in ("send", "create", "other"):
            stream += 2
            method, payload = {
                "send": ("SendMessage", send(hook, "x" * number)),
                "create": ("CreateTaskPushNotificationConfig", config(hook)),
                "other": ("GetTask", bytes(number)),
            }[action]
            path = f"/lf.a2a.v1.A2AService/{method}".encode()
            if len(payload) + 5 > min(pair.client.outbound_flow_control_window, 16_384):
                continue
            pair.client.send_headers(stream, request(path))
            if len(payload) + 5 > pair.client.local_flow_control_window(stream):
                continue
            pair.client.send_data(stream, message(payload), end_stream=True)
            pair.move()
            if number % 2 and pair.has_ended(stream):
                pair.answer(stream, config(OURS))
        elif action == "grant":
            pair.consume_requests()
        elif action == "settings":
            pair.agent.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 20 + number * 20})
        elif action == "reset" and stream > 0:
            with contextlib.suppress(Exception):  # it may have ended
                (pair.client if number % 2 else pair.agent).reset_stream(stream)
        elif action == "tick":
            pair.tick(1.1)
        pair.move()
    pair.agent_consumes = True
    pair.consume_requests()
    pair.move()
    pair.tick(1.1)
    pair.consume_requests()
    pair.move()
    assert pair.request_windows() == (WINDOW, WINDOW)
    assert not [fact for fact in pair.editor.take_edits() if fact.kind == "ended"]


def test_the_trailers_are_those_of_the_agent() -> None:
    pair = Calls(Urls())
    pair.call(1, "CreateTaskPushNotificationConfig", message(config(SHORT)))
    pair.answer(1, config(OURS))
    pair.move()
    trailers = [event for event in pair.client_events if isinstance(event, TrailersReceived)]
    assert [event.headers for event in trailers] == [TRAILERS]

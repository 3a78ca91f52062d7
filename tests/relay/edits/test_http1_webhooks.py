"""URLs of webhooks on HTTP/1.1: replaced in requests, set back in answers, all else byte for byte,
for every split."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.edits.edit import EditPlan, PushConfig
from a2a_proxy.relay.edits.http1 import MAX_RESPONSE_BYTES, Http1Editor
from support_http1 import conversations
from support_wire import pieces_of

C, S = Direction.TO_AGENT, Direction.TO_CLIENT
Steps = list[tuple[Direction, bytes]]
HOOK, OURS = "http://client.example/hook", "http://127.0.0.1:9100/" + "ab" * 16
TRACEPARENT = random.Random(7).getrandbits


class Urls:
    """Replaces one URL, and keeps what happens to it."""

    def __init__(self) -> None:
        self.log: list[tuple[str, object]] = []
        self.kept: tuple[str, bytes] | None = None

    def replace_url(self, url: str, config: PushConfig) -> str | None:
        self.log.append(("replace", config))
        return OURS if url == HOOK else None

    def restore_url(self, url: str, config: PushConfig) -> str | None:
        self.log.append(("restore", config))
        return HOOK if url == OURS else None

    def keep_request(self, url: str, request: bytes) -> None:
        self.kept = (url, request)

    def discard_url(self, url: str) -> None:
        self.log.append(("discard", url))

    def forget_config(self, config: PushConfig) -> None:
        self.log.append(("forget", config))


class Played:
    """What an editor made of a conversation; `log` is what happened to the URLs."""

    def __init__(self, steps: Steps, size: int = 0, cut: int = 0, **more: Any) -> None:
        urls = Urls()
        self.editor = Http1Editor(EditPlan(webhooks=urls, **more))
        self.out = [b"", b""]
        self.kinds: list[tuple[str, object]] = []
        for direction, data in steps:
            if not data:
                sent = self.editor.feed_eof(direction, 0.0)
            for piece in (
                pieces_of(data, range(0, len(data), size) if size else [cut] if cut else ())
                if data
                else ()
            ):
                sent = self.editor.feed(direction, piece, 0.0)
                self.take(sent)
                sent = []
            self.take(sent)
        self.log, self.kept = urls.log, urls.kept

    def take(self, sent: list[Any]) -> None:
        for part in sent:
            self.out[part.direction] += part.data
        self.kinds += [(fact.kind, fact.detail.get("reason")) for fact in self.editor.take_edits()]


def play(*steps: tuple[Direction, bytes], **more: Any) -> Played:
    """Played whole; in every other split the same bytes come out."""
    whole = Played(list(steps), **more)
    splits = [{"size": size} for size in (1, 2, 7)]
    splits += [{"cut": cut} for cut in range(1, min(600, max(len(data) for _, data in steps)))]
    for split in splits:
        again = Played(list(steps), **split, **more)
        assert (again.out, again.kinds, again.log) == (whole.out, whole.kinds, whole.log), split
    return whole


def post(body: bytes, target: bytes = b"/", *fields: bytes) -> bytes:
    head = [
        b"POST %s HTTP/1.1" % target,
        b"Host: a",
        b"content-LENGTH: %d" % len(body),
        b"X-A: 1",
        *fields,
    ]
    return b"\r\n".join([*head, b"", body])


def answer(body: bytes, status: bytes = b"200 OK", *fields: bytes) -> bytes:
    return b"\r\n".join(
        [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), b"Date: x", *fields, b"", body]
    )


def rpc(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def result(value: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}).encode()


CONFIG = {"id": "1", "url": HOOK, "token": "word"}
CREATE = rpc("CreateTaskPushNotificationConfig", taskId="t", **CONFIG)
SEND = rpc(
    "SendMessage",
    message={"parts": [{"url": HOOK}]},
    configuration={"taskPushNotificationConfig": CONFIG},
)
MADE = result({"taskId": "t", **CONFIG})
NAMED = PushConfig("t", "1")


def ours(data: bytes) -> bytes:
    """Return a body with the proxy's URL in the configuration."""
    return json.dumps(swap(json.loads(data))).encode()


def swap(value: Any) -> Any:
    if isinstance(value, list):
        return [swap(each) for each in value]
    if isinstance(value, dict):
        found = {name: swap(each) for name, each in value.items()}
        return found | {"url": OURS} if "token" in found else found
    return value


def test_a_configuration_is_created_over_jsonrpc() -> None:
    """The head keeps its fields, in their order and spelling, with other lengths."""
    played = play((C, post(CREATE)), (S, answer(ours(MADE), b"200 OK", b'ETag: "x"')))
    assert played.out == [post(ours(CREATE)), answer(MADE, b"200 OK", b'ETag: "x"')]
    assert played.kinds == [("webhook", None), ("webhook", None)]
    assert played.kept == (OURS, post(CREATE))
    assert played.log == [("replace", NAMED), ("restore", NAMED)]


def test_a_configuration_comes_with_a_message() -> None:
    """The answer is not held, and the URL in a part stays."""
    events = answer(b'data: {"url":"' + OURS.encode() + b'"}\n\n')
    played = play((C, post(SEND)), (S, events))
    assert played.out == [post(ours(SEND)), events]
    assert ours(SEND).count(HOOK.encode()) == 1


@pytest.mark.parametrize(
    ("method", "target", "body", "reply", "log"),
    [
        (
            b"POST",
            b"/v1/tasks/t/pushNotificationConfigs",
            CONFIG,
            CONFIG,
            [("replace", NAMED), ("restore", NAMED)],
        ),
        (b"GET", b"/tasks/t/pushNotificationConfigs/1", None, CONFIG, [("restore", NAMED)]),
        (
            b"GET",
            b"/tasks/t/pushNotificationConfigs",
            None,
            {"configs": [CONFIG]},
            [("restore", NAMED)],
        ),
    ],
)
def test_rest(method: bytes, target: bytes, body: Any, reply: Any, log: Any) -> None:
    sent = (
        post(json.dumps(body).encode(), target)
        if body
        else b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % target
    )
    assert sent.startswith(method)
    told = json.dumps(reply).encode()
    played = play((C, sent), (S, answer(ours(told), b"201 Created")))
    assert played.out[S] == answer(told, b"201 Created")
    assert played.out[C] == (post(ours(json.dumps(body).encode()), target) if body else sent)
    assert played.log == log


@pytest.mark.parametrize(
    ("request_", "reply", "log"),
    [
        (
            rpc("DeleteTaskPushNotificationConfig", taskId="t", id="1"),
            answer(result({})),
            [("forget", NAMED)],
        ),
        (
            rpc("tasks/pushNotificationConfig/delete", id="t", pushNotificationConfigId="1"),
            answer(result(None)),
            [("forget", NAMED)],
        ),
        (
            rpc("DeleteTaskPushNotificationConfig", taskId="t", id="1"),
            answer(b'{"error":{"code":-1}}'),
            [],
        ),
        (CREATE, answer(b'{"error":{"code":-1}}'), [("replace", NAMED), ("discard", OURS)]),
        (CREATE, answer(b"", b"500 Oops"), [("replace", NAMED), ("discard", OURS)]),
        (
            SEND,
            answer(b"no", b"401 Unauthorized"),
            [("replace", PushConfig("", "1")), ("discard", OURS)],
        ),
    ],
)
def test_what_the_agent_answers_decides(request_: bytes, reply: bytes, log: Any) -> None:
    """A configuration that was deleted is forgotten, and a URL that the agent refused."""
    played = play((C, post(request_)), (S, reply))
    assert played.out[S] == reply
    assert played.log == log


@pytest.mark.parametrize(
    ("status", "log"), [(b"204 No Content", [("forget", NAMED)]), (b"404 Not Found", [])]
)
def test_deletion_over_rest(status: bytes, log: Any) -> None:
    sent = b"DELETE /tasks/t/pushNotificationConfigs/1 HTTP/1.1\r\nHost: a\r\n\r\n"
    reply = b"HTTP/1.1 %s\r\n%s\r\n" % (
        status,
        b"" if status.startswith(b"204") else b"Content-Length: 0\r\n",
    )
    played = play((C, sent), (S, reply))
    assert (played.out, played.log) == ([sent, reply], log)


def test_chunks_and_trailers() -> None:
    """A chunked request stays one, with its trailers; a chunked or packed answer gets a length."""
    head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    sent = head + b"5;a=1\r\n%s\r\n%x\r\n%s\r\n0\r\nX-B: 2\r\n\r\n" % (
        CREATE[:5],
        len(CREATE) - 5,
        CREATE[5:],
    )
    packed = gzip.compress(ours(MADE), mtime=0)
    reply = (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
    )
    played = play((C, sent), (S, reply % (len(packed), packed)))
    body = ours(CREATE)
    assert played.out[C] == head + b"%x\r\n%s\r\n0\r\nX-B: 2\r\n\r\n" % (len(body), body)
    assert played.out[S] == b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(MADE), MADE)


def test_pipelined_requests() -> None:
    """Each answer belongs to its request."""
    get = b"GET /tasks/t/pushNotificationConfigs/1 HTTP/1.1\r\nHost: a\r\n\r\n"
    other = post(b'{"method":"GetTask"}')
    reply = answer(b'{"url":"' + OURS.encode() + b'"}')
    config = json.dumps(CONFIG).encode()
    played = play(
        (C, other + get + post(CREATE)), (S, reply + answer(ours(config)) + answer(ours(MADE)))
    )
    assert played.out == [other + get + post(ours(CREATE)), reply + answer(config) + answer(MADE)]


def test_host_and_traceparent_are_edited_too() -> None:
    """Also in a request that repeats the previous one except for its body."""
    plain = post(b'{"method":"GetTask"' + b" " * (len(CREATE) - 20) + b"}")
    assert len(plain) == len(post(CREATE))
    played = Played([(C, plain), (C, post(CREATE))], authority=b"agent.example", trace=TRACEPARENT)
    assert played.out[C].count(b"Host: agent.example\r\n") == 2
    assert played.out[C].count(b"traceparent: 00-") == 2
    assert ours(CREATE) in played.out[C]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (post(b" " * MAX_RESPONSE_BYTES + CREATE), "it is larger than 1 MiB"),
        (post(CREATE, b"/", b"Expect: 100-continue"), "its client waits for 100 Continue"),
        (post(b'{"pushNotificationConfig":[' + b"1," * 60_000 + b"1]}"), "it has too many members"),
        (
            post(CREATE, b"/tasks/t/pushNotificationConfigs", b"Content-Encoding: br"),
            "its content coding is not supported",
        ),
    ],
)
def test_requests_that_cannot_be_held(sent: bytes, reason: str) -> None:
    for size in (0, 100_000):
        played = Played([(C, sent)], size)
        assert played.out[C] == sent
        assert played.kinds == [("untouched", reason)]


def test_a_slow_request_is_released_after_a_second() -> None:
    editor = Http1Editor(EditPlan(webhooks=Urls()))
    data = post(CREATE)
    assert editor.feed(C, data[:-1], 5.0) == []
    assert editor.deadline == 6.0
    assert editor.tick(5.9) == []
    (part,) = editor.tick(6.0)
    assert (part.direction, part.data) == (C, data[:-1])
    assert [fact.detail for fact in editor.take_edits()] == [
        {"reason": "it took more than 1 s", "what": "webhook"}
    ]
    assert editor.deadline is None
    assert editor.feed(C, data[-1:], 7.0)[0].data == data[-1:]
    assert editor.feed(S, answer(ours(MADE)), 7.0)[0].data == answer(ours(MADE))


def test_a_slow_answer_is_released_after_a_second() -> None:
    editor = Http1Editor(EditPlan(webhooks=Urls()))
    editor.feed(C, post(CREATE), 5.0)
    editor.take_edits()
    reply = answer(ours(MADE))
    assert editor.feed(S, reply[:-1], 5.0) == []
    (part,) = editor.tick(6.0)
    assert (part.direction, part.data) == (S, reply[:-1])
    assert [fact.detail for fact in editor.take_edits()] == [
        {"reason": "it took more than 1 s", "what": "webhook"}
    ]


def test_an_early_answer_to_a_held_request() -> None:
    """An agent that answers before it has the request does not confuse the editor."""
    editor = Http1Editor(EditPlan(webhooks=Urls()))
    editor.feed(C, post(CREATE)[:-1], 0.0)
    reply = b"HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n"
    assert editor.feed(S, reply, 0.0)[0].data == reply
    assert editor.feed(C, post(CREATE)[-1:], 0.0)[0].data == post(ours(CREATE))


def test_an_incomplete_request_is_released_with_the_end() -> None:
    played = play((C, post(CREATE)[:-1]), (C, b""))
    assert played.out[C] == post(CREATE)[:-1]
    assert played.kinds == [("untouched", "it ended too early")]


@given(conversations())
def test_other_traffic_stays_byte_for_byte(calls: list[tuple[bytes, bytes, bytes]]) -> None:
    """Whatever else passes on the connection."""
    steps = [step for _, request, response in calls for step in ((C, request), (S, response))]
    played = Played(steps)
    for direction in Direction:
        assert played.out[direction] == b"".join(data for each, data in steps if each is direction)


@given(st.binary(max_size=200), st.binary(max_size=200), st.integers(1, 50))
def test_other_bytes_stay_too(to_agent: bytes, to_client: bytes, size: int) -> None:
    played = Played([(C, to_agent), (S, to_client), (C, b""), (S, b"")], size)
    assert played.out == [to_agent, to_client]

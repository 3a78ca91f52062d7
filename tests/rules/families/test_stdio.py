"""The rules about stdio agents, beyond their examples: variants, near misses, both sides and
framings."""

from __future__ import annotations

import pytest

from a2a_proxy.model.values import Severity
from a2a_proxy.rules.examples.conversation import fetch_card, json_text
from a2a_proxy.rules.examples.objects import card, reply, send, snapshot, status, task
from a2a_proxy.rules.examples.pipe import (
    DOWN,
    HEADER_BLOCK,
    PLAIN_HEADER_BLOCK,
    UP,
    VERSIONED_HEADER_BLOCK,
    PipeAction,
    close_input,
    close_output,
    exit_agent,
    pipe_bytes,
    pipe_call,
    pipe_message,
    pipe_pause,
    pipe_response,
    pipe_script,
)
from a2a_proxy.rules.examples.script import Script
from support_rules import findings

_GET = pipe_call("GetTask", {"id": "t1"})
_HANDSHAKE = pipe_message(
    DOWN, {"type": "handshake", "sessionId": "s1", "supportedVariants": ["a2a/v1"]}
)
_EXITED = "012 WARNING the agent exited with code 3 while GetTask (id 1) was open"
_SHELL = "017 WARNING the command contains `{}`, which a shell would execute"
_QUESTION = status("INPUT_REQUIRED", second=1, message=reply("which?", taskId="t1"))


def told(script: Script, *, only: str = "A2A-STDIO") -> list[str]:
    """What the rules of this family say: number, severity, summary."""
    found = [each for each in findings(script) if each.rule.startswith(only)]
    return [f"{each.rule[-3:]} {each.severity.name} {each.summary}" for each in found]


def numbers(script: Script) -> list[str]:
    """Which rules of this family speak."""
    return sorted({each[:3] for each in told(script)})


def asked(head: str) -> Script:
    """A call with this header block."""
    return pipe_script(pipe_call("tasks/get", {"id": "t1"}, head=head), pipe_response(task()))


def answered(head: str) -> Script:
    """An answer with this header block."""
    return pipe_script(_GET, pipe_response(task(), head=head))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("Content-Length: {size}\r\n\r\n", ["002 ERROR the {}'s message has no Content-Type"]),
        ("Content-Type: application/json\r\n\r\n",
         ["001 ERROR the {}'s message has no Content-Length"]),
        ("content-length:{size}\r\nCONTENT-TYPE:application/a2a+json\r\n\r\n", []),
        (
            (
                "Content-Type: application/vscode-jsonrpc; charset=UTF8\r\n"
                "Content-Length: 00{size}\r\n\r\n"
            ),
            [],
        ),
        (f"{HEADER_BLOCK}\n", ["003 ERROR 1 of "]),
        (
            "Content-Length: {size}\nContent-Type: application/json\n\n",
            ["003 ERROR 3 of 3 lines of the {}'s header block"],
        ),
        (f"{HEADER_BLOCK}Content-Length: 5\r\n\r\n", ["004"]),
        ("Content-Length: many\r\nContent-Type: application/json\r\n\r\n",
         ["004 ERROR Content-Length is many"]),
        ("Content-Length: 5\r\nContent-Type: application/json\r\n\r\n",
         ["004 ERROR Content-Length is 5"]),
        ("Content-Length: {size}\r\nContent-Type: text/html\r\n\r\n",
         ["006 WARNING Content-Type is text/html"]),
        (
            'Content-Length: {size}\r\nContent-Type: application/json; charset="latin1"\r\n\r\n',
            ["006 WARNING the charset of Content-Type is latin1"],
        ),
        (f"{HEADER_BLOCK}X-A2A-Extensions: https://x\r\ntracestate: a=1\r\n\r\n", []),
        (f"{HEADER_BLOCK}Foo: 1\r\nBar: 2\r\n\r\n", []),
    ],
)  # fmt: skip
def test_header_blocks_of_either_side(head: str, expected: list[str]) -> None:
    """Of requests and of answers."""
    for script, side in ((asked(head), "client"), (answered(head), "agent")):
        found = told(script)
        assert len(found) == len(expected), found
        assert all(
            one.startswith(other.format(side)) for one, other in zip(found, expected, strict=True)
        ), found


def test_header_blocks_of_messages_without_a_call() -> None:
    """They count as other fields; an unknown field is not reported."""
    block = "Content-Length: {size}\nFoo: 1\n\n"
    script = pipe_script(
        pipe_message(DOWN, {"type": "handshake"}, block),
        pipe_message(UP, {"type": "handshakeAck"}, PLAIN_HEADER_BLOCK),
        _GET,
        pipe_response(task()),
    )
    assert numbers(script) == ["002", "003", "007"]


def test_a_type_is_optional_after_a_handshake() -> None:
    """A variant says so; the handshake is told once."""
    script = pipe_script(
        _HANDSHAKE, _HANDSHAKE, _GET, pipe_response(task(), head="Content-Length: {size}\r\n\r\n")
    )
    assert told(script) == [
        "007 INFO the agent begins with a handshake: a variant of the stdio proposal",
        "002 WARNING the agent's message has no Content-Type",
    ]
    first = pipe_message(
        DOWN, {"type": "handshake", "sessionId": "s1"}, "Content-Length: {size}\r\n\r\n"
    )
    assert (
        told(pipe_script(first, _GET, pipe_response(task())))[0]
        == "002 WARNING the agent's message has no Content-Type"
    )


def test_how_a_length_is_wrong() -> None:
    """Characters counted, cut short, and neither where the message itself broke off."""
    text = json_text({"jsonrpc": "2.0", "id": 1, "result": task(metadata={"x": "é"})})
    size = len(text)
    assert told(
        pipe_script(_GET, pipe_bytes(DOWN, PLAIN_HEADER_BLOCK.format(size=size) + text))
    ) == [
        (
            f"004 ERROR Content-Length is {size}, but the "
            f"content has {size + 1} bytes ({size} characters)"
        )
    ]
    cut = pipe_bytes(DOWN, PLAIN_HEADER_BLOCK.format(size=90) + '{"a":"')
    assert told(pipe_script(_GET, cut, pipe_response(task()))) == [
        "004 ERROR Content-Length is 90, but after 6 bytes the content is not a JSON value"
    ]
    broken = pipe_bytes(DOWN, PLAIN_HEADER_BLOCK.format(size=90) + '{"a":"')
    assert told(pipe_script(_GET, pipe_response(task()), broken, close_output(), exit_agent())) == [
        "012 ERROR the agent's output ends inside a message, after 6 bytes"
    ]


@pytest.mark.parametrize("content", ['{"jsonrpc":"2.0","id":1,"result":', ""])
def test_a_correct_length_of_invalid_json_is_not_flagged_as_a_length(content: str) -> None:
    """All the bytes came, and are no JSON: before another message, and at the end."""
    size = len(content)
    half = pipe_bytes(DOWN, PLAIN_HEADER_BLOCK.format(size=size) + content)
    found = [
        (
            f"004 ERROR Content-Length is {size}, but after "
            f"{size} bytes the content is not a JSON value"
        )
    ]
    assert told(pipe_script(_GET, half, pipe_response(task()))) == found
    asked_half = pipe_bytes(UP, PLAIN_HEADER_BLOCK.format(size=size) + content)
    assert told(pipe_script(_GET, pipe_response(task()), asked_half)) == found


def test_invalid_utf_8_is_flagged() -> None:
    """Its call is known, for its id can be read; the text cannot."""
    head, tail = b'{"jsonrpc":"2.0","id":1,"', b'":{"id":"t1","metadata":{"x":"\xff\xfe"}}}'
    answer = head + b"result" + tail
    found = told(
        pipe_script(
            _GET, pipe_bytes(DOWN, PLAIN_HEADER_BLOCK.format(size=len(answer)).encode() + answer)
        )
    )
    assert found == [
        f"007 ERROR the agent's message is not valid JSON from byte {answer.index(0xFF)} on"
    ]
    call = head + b'method":"GetTask","params' + tail
    found = told(
        pipe_script(
            pipe_bytes(UP, VERSIONED_HEADER_BLOCK.format(size=len(call)).encode() + call),
            pipe_response(task()),
        )
    )
    assert found == [
        f"007 ERROR the client's message is not valid JSON from byte {call.index(0xFF)} on"
    ]


def test_a_length_with_the_line_end_of_print_is_right() -> None:
    """Blanks around JSON are JSON."""
    text = json_text({"jsonrpc": "2.0", "id": 1, "result": task()}) + "\n"
    assert not told(
        pipe_script(_GET, pipe_bytes(DOWN, PLAIN_HEADER_BLOCK.format(size=len(text)) + text))
    )


def test_consecutive_stray_lines_are_reported_once() -> None:
    """A stack trace of many lines; another one later is another one."""
    trace = pipe_bytes(DOWN, "Traceback:\n  File x\nError: no\n")
    script = pipe_script(trace, _GET, pipe_response(task()), trace, pipe_bytes(UP, "hm\n"))
    assert told(script) == [
        '005 WARNING bytes outside of messages on stdout: "Traceback:"',
        '005 WARNING bytes outside of messages on stdout: "Traceback:"',
        '005 WARNING bytes outside of messages on stdin: "hm"',
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[]", "an array; expected a JSON-RPC message"),
        ("5", "a number; expected a JSON-RPC message"),
        (
            '{"a":1}',
            "an object that is neither a request nor a response; expected a JSON-RPC message",
        ),
        ("hello", "not valid JSON"),
    ],
)
def test_contents_that_are_no_messages_are_flagged(content: str, expected: str) -> None:
    """Of both sides."""
    for direction, side in ((UP, "client"), (DOWN, "agent")):
        odd = pipe_bytes(direction, PLAIN_HEADER_BLOCK.format(size=len(content)) + content)
        assert told(pipe_script(odd, _GET, pipe_response(task()))) == [
            f"007 ERROR the content of the {side}'s message is {expected}"
        ]


@pytest.mark.parametrize("content", ["[]", '{"a":1}', "hello"])
def test_a_content_that_is_no_message_is_shown(content: str) -> None:
    """The finding is about no call: its beginning identifies the message."""
    odd = pipe_bytes(DOWN, PLAIN_HEADER_BLOCK.format(size=len(content)) + content)
    (found,) = findings(pipe_script(odd, _GET, pipe_response(task())))
    assert found.evidence["value"] == content


def test_a_message_without_jsonrpc() -> None:
    """It is read all the same."""
    script = pipe_script(
        pipe_call("GetTask", {"id": "t1"}, envelope={"jsonrpc": None}), pipe_response(task())
    )
    assert told(script) == ["007 ERROR the client's message has no member `jsonrpc`"]


def test_newline_delimited_on_both_sides() -> None:
    """Once for each; blank lines between are no foreign bytes. There is no place for a version."""

    def line(direction: object, value: object) -> PipeAction:
        return pipe_bytes(UP if direction is UP else DOWN, json_text(value) + "\n\n")

    call = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t1"}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": task()}
    script = pipe_script(*[line(UP, call), line(DOWN, answer)] * 2)
    assert numbers(script) == ["014"]
    assert len(told(script)) == 2


def test_ids() -> None:
    """1 and "1" are two; null may answer what could not be read; an id is free when its call is
    over."""
    assert told(pipe_script(_GET, pipe_response(task(), id="1"), pipe_response(task()))) == [
        '008 ERROR the response has id "1", which no request has used'
    ]
    unreadable = pipe_response(error={"code": -32700, "message": "parse error"}, id=None)
    odd = pipe_bytes(UP, PLAIN_HEADER_BLOCK.format(size=5) + "hello")
    assert numbers(pipe_script(odd, unreadable, _GET, pipe_response(task()))) == ["007"]
    assert not told(pipe_script(_GET, pipe_response(task()), _GET, pipe_response(task())))


def test_a_reused_id_is_blamed_on_the_client() -> None:
    """The agent answers both calls, as it should."""
    assert numbers(pipe_script(_GET, _GET, pipe_response(task()), pipe_response(task()))) == ["009"]


def test_a_stream_may_rest() -> None:
    """After a question the stream ends or continues; its id may be reused."""
    stream, question = pipe_call("SendStreamingMessage", send()), pipe_response(_QUESTION)
    answer = send("that", id="m2", taskId="t1", contextId="c1")
    goes_on = pipe_script(
        stream, pipe_response(snapshot()), question, pipe_response(status("COMPLETED", second=2))
    )
    again = pipe_script(
        stream,
        pipe_response(snapshot()),
        question,
        pipe_call("SendMessage", answer),
        pipe_response(snapshot("COMPLETED", second=2)),
    )
    exits = pipe_script(stream, pipe_response(snapshot()), question, close_output(), exit_agent())
    assert [numbers(each) for each in (goes_on, again, exits)] == [[], [], []]


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ((close_output(), exit_agent(3)), [_EXITED]),
        ((close_input(), close_output(), exit_agent(0)), []),
        ((close_input(), close_output(), exit_agent(3)), [_EXITED]),
    ],
)  # fmt: skip
def test_an_exit_with_an_open_call_is_flagged(
    end: tuple[PipeAction, ...], expected: list[str]
) -> None:
    """Unless its client wanted it to."""
    assert told(pipe_script(_GET, *end)) == expected


def test_a_request_of_the_agent_is_flagged() -> None:
    """A request of its own."""
    script = pipe_script(
        pipe_message(DOWN, {"jsonrpc": "2.0", "id": 5, "method": "roots/list"}),
        _GET,
        pipe_response(task()),
    )
    assert told(script) == ["013 INFO the agent sends the request (id 5) `roots/list`"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"url": "npx run a", "transport": "stdio"}, []),
        ({"url": "stdio:///bin/a?x&y", "transport": "STDIO"}, []),
        ({"url": "A=1 npx run a", "transport": "stdio"}, []),
        (
            {"url": "http://x", "transport": "stdio"},
            ["017 WARNING the interface is stdio, but http://x is a URL, not a command"],
        ),
        ({"url": "", "transport": "stdio"},
         ["017 WARNING the interface is stdio, but its `url` is missing"]),
        ({"url": "K=$(cat f) a", "transport": "stdio"}, [_SHELL.format("$(")]),
        ({"url": "a; rm -r x", "transport": "stdio"}, [_SHELL.format(";")]),
        ({"url": "http://localhost:8000/;x|y", "transport": "JSONRPC"}, []),
    ],
)  # fmt: skip
def test_commands_of_cards(entry: dict[str, str], expected: list[str]) -> None:
    """In the additional interfaces of 0.3."""
    old = {
        "protocolVersion": "0.3.0",
        "url": "http://localhost:8000/",
        "preferredTransport": "JSONRPC",
    }
    assert (
        told(fetch_card(card(supportedInterfaces=None) | old | {"additionalInterfaces": [entry]}))
        == expected
    )


def test_cards_received_over_the_pipe_are_judged() -> None:
    """The extended one."""
    odd = card() | {"url": "https://x", "preferredTransport": "stdio"}
    script = pipe_script(pipe_call("GetExtendedAgentCard"), pipe_response(odd))
    assert told(script) == [
        "017 WARNING the interface is stdio, but https://x is a URL, not a command"
    ]


def test_grace() -> None:
    """An agent that ends within it, or whose client has not gone, is none that outlives it."""
    assert not told(
        pipe_script(
            _GET,
            pipe_response(task()),
            close_input(),
            pipe_pause(4.9),
            close_output(),
            exit_agent(),
        )
    )
    assert not told(
        pipe_script(_GET, pipe_response(task()), pipe_pause(9), close_output(), exit_agent())
    )
    late = pipe_script(
        _GET, pipe_response(task()), close_input(), pipe_pause(5.5), close_output(), exit_agent()
    )
    (found,) = [each for each in findings(late) if each.rule == "A2A-STDIO-018"]
    assert (found.connection, found.exchange) == (1, 0)


def test_0_3_needs_no_version() -> None:
    """The field is of 1.0."""
    params = {
        "message": {
            "kind": "message",
            "messageId": "m1",
            "role": "user",
            "parts": [{"kind": "text", "text": "x"}],
        }
    }
    done = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}}
    assert not told(
        pipe_script(pipe_call("message/send", params, head=PLAIN_HEADER_BLOCK), pipe_response(done))
    )
    assert (
        told(
            pipe_script(
                pipe_call("SendMessage", send(), head=VERSIONED_HEADER_BLOCK),
                pipe_response(snapshot("COMPLETED")),
            )
        )
        == []
    )


STREAM = (
    pipe_call("SendStreamingMessage", send(), id=7),
    pipe_response(snapshot(), id=7),
    pipe_response(status("COMPLETED", second=1), id=7),
)
ONE_CALL = (pipe_call("GetTask", {"id": "t1"}, id=7), pipe_response(task(), id=7))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((*STREAM, pipe_response(status("WORKING", second=2), id=7)), {"A2A-STDIO-010 #1"}),
        (
            (*STREAM, pipe_response(status("FAILED", second=2), id=7)),
            {"A2A-STDIO-010 #1", "A2A-STATE-001 #1"},
        ),
        ((*STREAM, pipe_response(status("COMPLETED", second=1), id=7)), {"A2A-STDIO-010 #1"}),
        ((*ONE_CALL, pipe_response(task(), id=7)), {"A2A-STDIO-011 #1"}),
        ((*ONE_CALL, *ONE_CALL, pipe_response(task(), id=7)), {"A2A-STDIO-011 #2"}),
    ],
)
def test_a_late_response_is_reported_in_its_call(
    steps: tuple[PipeAction, ...], expected: set[str]
) -> None:
    found = findings(pipe_script(*steps))
    assert {
        f"{each.rule} #{each.exchange}" for each in found if each.severity is Severity.ERROR
    } == expected

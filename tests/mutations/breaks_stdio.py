"""Broken pipes to stdio agents: framing, output, ids, ends."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mutations.pick import change, refused
from support_mutations import DOWN, MS, UP, ChunkKind, Ex, Loose, Msg, Talk, Want, mutation

SAMPLE = "stdio"
HEAD = b"Content-Length: %d\r\nContent-Type: application/json\r\n\r\n%s"


def _frame(msg: Msg, before: str, after: str) -> Msg:
    """Change the header block."""
    assert before in msg.framing
    msg.framing = msg.framing.replace(before, after)
    return msg


def _answer(talk: Talk) -> tuple[Ex, Msg]:
    """Return a unary call and its answer."""
    call = talk.first("GetTask")
    return call, call.answers[0]


def _stream(talk: Talk) -> Ex:
    """Return the stream with artifacts."""
    return max(talk.all("SendStreamingMessage"), key=lambda each: len(each.answers))


def _beside(talk: Talk, call: Ex, data: bytes, side: int = DOWN) -> None:
    """Insert bytes on the pipe before a call."""
    talk.loose.append(Loose(call.started - 1, DOWN if side == DOWN else UP, data))


def _said(talk: Talk, call: Ex, value: object) -> None:
    """Insert a message of the agent before a call."""
    content = json.dumps(value).encode()
    _beside(talk, call, HEAD % (len(content), content))


def _die(talk: Talk, at: int, code: int) -> None:
    """End the agent's process: nothing follows."""
    for each in talk.exchanges:
        each.answers = [msg for msg in each.answers if msg.at < at]
    talk.exchanges = [each for each in talk.exchanges if each.started < at]
    talk.loose = [each for each in talk.loose if each.at < at]
    talk.loose.append(Loose(at, DOWN, b"", ChunkKind.EOF))
    talk.loose.append(Loose(at + MS, DOWN, b'{"code":%d}' % code, ChunkKind.EXITED))


# --- header blocks


@mutation(SAMPLE)
def the_length_is_missing(talk: Talk) -> Iterator[Want]:
    """Of an answer."""
    call, answer = _answer(talk)
    yield Want("A2A-STDIO-001", call, _frame(answer, "Content-Length: \1\r\n", ""))


@mutation(SAMPLE)
def the_type_is_missing(talk: Talk) -> Iterator[Want]:
    """Of a request."""
    call, _ = _answer(talk)
    yield Want(
        "A2A-STDIO-002", call, _frame(call.requests[0], "Content-Type: application/json\r\n", "")
    )


@mutation(SAMPLE)
def lines_end_with_lf(talk: Talk) -> Iterator[Want]:
    """All lines of a block."""
    call, answer = _answer(talk)
    yield Want("A2A-STDIO-003", call, _frame(answer, "\r\n", "\n"))


@mutation(SAMPLE)
def characters_are_counted(talk: Talk) -> Iterator[Want]:
    """The length counts characters, and the text has umlauts."""
    call = talk.first("SendMessage")
    said = call.requests[0]
    yield Want("A2A-STDIO-004", call, _frame(said, "\1", str(len(said.data.decode()))))


@mutation(SAMPLE)
def the_length_is_too_large(talk: Talk) -> Iterator[Want]:
    """A reader that believes it treats the next header block as content."""
    call, answer = _answer(talk)
    yield Want("A2A-STDIO-004", call, _frame(answer, "\1", str(len(answer.data) + 30)))


@mutation(SAMPLE)
def the_length_is_a_word(talk: Talk) -> Iterator[Want]:
    """The value is not a number."""
    call, answer = _answer(talk)
    yield Want("A2A-STDIO-004", call, _frame(answer, "\1", "all of it"))


@mutation(SAMPLE)
def the_type_is_text(talk: Talk) -> Iterator[Want]:
    """Not JSON."""
    call, answer = _answer(talk)
    yield Want("A2A-STDIO-006", call, _frame(answer, "application/json", "text/plain"))


@mutation(SAMPLE)
def the_charset_is_latin_1(talk: Talk) -> Iterator[Want]:
    """JSON is UTF-8."""
    call, answer = _answer(talk)
    yield Want(
        "A2A-STDIO-006",
        call,
        _frame(answer, "application/json", "application/json; charset=iso-8859-1"),
    )


@mutation(SAMPLE)
def the_version_is_missing(talk: Talk) -> Iterator[Want]:
    """Of one request."""
    call, _ = _answer(talk)
    yield Want("A2A-STDIO-019", call, _frame(call.requests[0], "A2A-Version: 1.0\r\n", ""))
    yield Want("A2A-VER-001", call)


# --- what stands on the pipe


@mutation(SAMPLE)
def a_banner_on_stdout(talk: Talk) -> Iterator[Want]:
    """Before the first message."""
    _beside(talk, talk.exchanges[0], b"Story teller 1.0\nlistening on stdin\n")
    yield Want("A2A-STDIO-005")


@mutation(SAMPLE)
def a_stack_trace_between_messages(talk: Talk) -> Iterator[Want]:
    """Several lines in a row are one finding."""
    _beside(
        talk,
        talk.exchanges[3],
        b"Traceback (most recent call last):\n  File story.py\nKeyError: 'x'\n",
    )
    yield Want("A2A-STDIO-005")


@mutation(SAMPLE)
def bytes_without_a_line_end_between_messages(talk: Talk) -> Iterator[Want]:
    """The next header block begins on the same line."""
    _beside(talk, talk.exchanges[3], b"\x00\xff...")
    yield Want("A2A-STDIO-005")


@mutation(SAMPLE)
def an_array_as_a_message(talk: Talk) -> Iterator[Want]:
    """Of one response."""
    _said(talk, talk.exchanges[3], [{"jsonrpc": "2.0", "id": 77, "result": {}}])
    yield Want("A2A-STDIO-007")


@mutation(SAMPLE)
def a_handshake(talk: Talk) -> Iterator[Want]:
    """A variant."""
    _said(
        talk,
        talk.exchanges[0],
        {"type": "handshake", "sessionId": "s", "supportedVariants": ["a2a/v1"]},
    )
    yield Want("A2A-STDIO-007")


@mutation(SAMPLE)
def an_answer_without_jsonrpc(talk: Talk) -> Iterator[Want]:
    """It has its id and its result."""
    call, answer = _answer(talk)
    change(answer, lambda body: body.pop("jsonrpc"))
    yield Want("A2A-STDIO-007", call, answer)
    yield Want("A2A-RPC-002", call, answer)


@mutation(SAMPLE)
def the_agent_writes_lines(talk: Talk) -> Iterator[Want]:
    """All its messages; reported once."""
    for call in talk.exchanges:
        for each in call.answers:
            each.framing = "\0\n"
    first = talk.exchanges[0]
    yield Want("A2A-STDIO-014", first, first.answers[0])


@mutation(SAMPLE)
def the_agent_asks_something(talk: Talk) -> Iterator[Want]:
    """A request of its own."""
    _said(talk, talk.exchanges[3], {"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
    yield Want("A2A-STDIO-013")


# --- ids and ends


@mutation(SAMPLE)
def a_response_to_nobody(talk: Talk) -> Iterator[Want]:
    """No request had its id."""
    _said(talk, talk.exchanges[3], {"jsonrpc": "2.0", "id": 4711, "result": {}})
    yield Want("A2A-STDIO-008")


@mutation(SAMPLE)
def the_id_comes_back_as_a_string(talk: Talk) -> Iterator[Want]:
    """The call stays without an answer."""
    call = refused(talk)
    change(call.answers[0], lambda body: body.update(id=str(body["id"])))
    yield Want("A2A-STDIO-008")


@mutation(SAMPLE)
def an_event_after_the_end(talk: Talk) -> Iterator[Want]:
    """The last event is sent again."""
    call = _stream(talk)
    call.answers.append(call.answers[-1].again())
    yield Want("A2A-STDIO-010", call)


@mutation(SAMPLE)
def two_responses(talk: Talk) -> Iterator[Want]:
    """To a unary call."""
    call, answer = _answer(talk)
    call.answers.append(answer.again())
    yield Want("A2A-STDIO-011", call)


@mutation(SAMPLE)
def the_agent_dies_in_mid_stream(talk: Talk) -> Iterator[Want]:
    """It exits with code 1 while only the stream is open."""
    call = _stream(talk)
    _die(talk, call.answers[2].at, 1)
    yield Want("A2A-STDIO-012", call)


@mutation(SAMPLE)
def the_agent_dies_in_mid_message(talk: Talk) -> Iterator[Want]:
    """The pipe ends after half of an event."""
    call = _stream(talk)
    last = call.answers[2]
    half = HEAD % (len(last.data), last.data[:-9])
    _die(talk, last.at, 1)
    talk.loose.insert(-2, Loose(last.at, DOWN, half))
    yield Want("A2A-STDIO-012", call)
    yield Want("A2A-STDIO-012")


@mutation(SAMPLE)
def the_card_has_a_url_for_a_command(talk: Talk) -> Iterator[Want]:
    """In the stdio interface."""
    call = talk.exchanges[0]

    def into(body: dict[str, dict[str, list[dict[str, str]]]]) -> None:
        body["result"]["supportedInterfaces"][1]["url"] = "https://example.com/agent"

    change(call.answers[0], into)
    yield Want("A2A-STDIO-017", call, call.answers[0])


@mutation(SAMPLE)
def the_card_has_a_shell_for_a_command(talk: Talk) -> Iterator[Want]:
    """A secret is read from a file."""
    call = talk.exchanges[0]

    def into(body: dict[str, dict[str, list[dict[str, str]]]]) -> None:
        body["result"]["supportedInterfaces"][1]["url"] = "A=$(cat file) python3 story.py"

    change(call.answers[0], into)
    yield Want("A2A-STDIO-017", call, call.answers[0])


@mutation(SAMPLE)
def the_agent_stays(talk: Talk) -> Iterator[Want]:
    """It ends six seconds after its stdin was closed."""
    for each in talk.loose:
        if each.direction is DOWN and each.kind in (ChunkKind.EOF, ChunkKind.EXITED):
            each.at += 6000 * MS
    yield Want("A2A-STDIO-018")

"""Facts about a frame and its exchange as lines, for the Headers and the Facts tab. Free of control
characters."""

from collections.abc import Iterator

from a2a_inspect.data.source import ExchangeStream
from a2a_proxy.model.event import state_label
from a2a_proxy.model.fields import fields_of
from a2a_proxy.model.values import Connection, EventKind, Exchange, Frame
from a2a_proxy.model.wire import Direction, Headers
from a2a_proxy.present import generations, text
from a2a_proxy.present.tls import describe_other_host, describe_tls
from a2a_proxy.protocol.text import make_visible

_NAME_CELLS = 18
"""Cells of a fact's name."""

Fact = tuple[str, object]


def header_lines(exchange: Exchange) -> list[str]:
    """Return request line and headers, status and headers, and trailers; names as sent."""
    version = f" HTTP/{exchange.http_version}" if exchange.http_version else ""
    method = exchange.method if exchange.method.isupper() else "POST"
    lines = ["REQUEST", f"{method} {make_visible(exchange.target)}{version}".rstrip()]
    if exchange.authority:
        lines.append(f"authority: {make_visible(exchange.authority)}")
    lines += _field_lines(exchange.request_headers)
    lines += ["", "RESPONSE"]
    lines += [f"status {status} (informational)" for status in exchange.informational]
    lines += [
        f"status {exchange.status}"
        if exchange.status
        else "none yet"
        if not exchange.closed
        else "none"
    ]
    lines += _field_lines(exchange.response_headers)
    if exchange.trailers:
        lines += ["", "TRAILERS", *_field_lines(exchange.trailers)]
    return lines


def _field_lines(headers: Headers) -> list[str]:
    return [f"{_visible_bytes(name)}: {_visible_bytes(value)}" for name, value in headers]


def _visible_bytes(value: bytes) -> str:
    return make_visible(value.decode("utf-8", "backslashreplace"))


def fact_lines(stream: ExchangeStream, frame: Frame | None) -> list[str]:
    """Return all other facts; unknown and empty ones are left out."""
    exchange = stream.row.exchange
    lines: list[str] = []
    if frame is not None:
        lines += section_lines("Frame", _frame_facts(frame, exchange))
    lines += section_lines("Exchange", _exchange_facts(stream))
    if stream.connection is not None:
        lines += section_lines("Connection", _connection_facts(stream.connection))
    return lines


def extension_lines(frame: Frame, exchange: Exchange) -> list[str]:
    """Return the known extensions in a frame, each with its place and content; nothing if there are
    none."""
    from a2a_proxy.protocol.decoded import find_frame_extensions

    uses = find_frame_extensions(frame, exchange)
    return (
        section_lines(
            "Extensions", ((use.name, f"{use.place}  {use.words}".rstrip()) for use in uses)
        )
        if uses
        else []
    )


def section_lines(title: str, facts: Iterator[Fact]) -> list[str]:
    """Return a title and its facts, without empty ones."""
    shown_facts = [
        (name, str(value)) for name, value in facts if value not in (None, "", 0, b"", ())
    ]
    return [
        title.upper(),
        *(f"{name:{_NAME_CELLS}}{make_visible(value)}" for name, value in shown_facts),
        "",
    ]


def _frame_facts(frame: Frame, exchange: Exchange) -> Iterator[Fact]:
    sender = "client to agent" if frame.direction is Direction.TO_AGENT else "agent to client"
    yield "number", f"{frame.seq} of the exchange, {sender}"
    yield (
        "kind",
        frame.kind.name.lower()
        + (f", {frame.event.name.lower()}" if frame.event is not EventKind.NONE else ""),
    )
    yield "first byte", format_time_of_exchange(frame.began, exchange)
    yield "last byte", format_time_of_exchange(frame.at, exchange)
    if (
        frame.direction is Direction.TO_CLIENT
        and exchange.request_ended
        and not exchange.live_payload
    ):
        after = frame.at - exchange.request_ended
        yield (
            "after the request",
            f"+{text.format_duration(after)}" if after >= 0 else f"no: {text.EARLY_ANSWER}",
        )
    yield (
        "span",
        (
            f"bytes {frame.start} to {frame.end} of this direction, {frame.end - frame.start} with "
            f"framing"
        ),
    )
    kept_words = (
        f", the first {text.format_count(len(frame.payload), 'byte')} kept"
        if frame.truncated
        else ""
    )
    yield "payload", text.format_count(frame.size, "byte") + kept_words
    yield "sha-256", frame.sha256.hex()
    yield "decoded as", frame.schema
    sized = frame.framing.replace("\1", str(frame.size))
    yield "framing", sized.replace("\0", "…").replace("\r\n", "␍␊").replace("\n", "␊")
    yield "task", frame.task_id
    yield "context", frame.context_id
    yield "message", frame.message_id
    yield "artifact", frame.artifact_id
    yield "state", state_label(frame.state)
    yield "generation", frame.generation
    yield (
        "marks",
        ", ".join(name for name in ("append", "last_chunk", "final") if getattr(frame, name)),
    )
    yield "rpc id", frame.rpc_id
    yield "error code", frame.error_code
    yield "note", frame.note
    yield "created by", "the proxy, not the peer" if frame.ours else ""
    yield "redacted", ", ".join(frame.redacted)


def _exchange_facts(stream: ExchangeStream) -> Iterator[Fact]:
    from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES
    from a2a_proxy.protocol.extensions.registry import name_uris

    exchange = stream.row.exchange
    yield "number", f"{exchange.id} of session {stream.row.session}"
    yield (
        "outcome",
        ", ".join(
            word for word in (text.outcome_label(exchange), text.end_reason(exchange)) if word
        ),
    )
    yield "operation", text.exchange_title(exchange)
    yield "binding", text.binding_and_dialect(exchange)
    for field in fields_of(Exchange):
        if field.row.label:
            yield field.row.label, getattr(exchange, field.name)
    yield "extensions", name_uris(exchange.extensions) if exchange.extensions else ""
    yield "started", text.format_utc(exchange.started)
    for name in ("request_ended", "response_started", "first_event", "last_event", "closed"):
        at = getattr(exchange, name)
        yield name.replace("_", " "), format_time_of_exchange(at, exchange) if at else ""
    status = exchange.grpc_status
    yield (
        "grpc status",
        f"{status} {GRPC_STATUS_NAMES[status]}" if 0 <= status < len(GRPC_STATUS_NAMES) else "",
    )
    yield "messages", f"{exchange.requests} to the agent, {exchange.events} to the client"
    yield (
        "bytes",
        f"{exchange.bytes_to_agent} to the agent, {exchange.bytes_to_client} to the client",
    )
    yield "asks", generations.requested_generations(exchange)
    yield "generations", stream.generations
    yield "states", " > ".join(exchange.states)
    yield (
        "host",
        describe_other_host(exchange, stream.connection) if stream.connection is not None else "",
    )
    if stream.connection is not None and exchange.agent != stream.connection.upstream:
        yield "agent", exchange.agent
    for signature in exchange.card_signatures:
        yield "card", signature.describe()
    yield "redacted", ", ".join(exchange.redacted)


def _process_words(connection: Connection) -> str:
    """Return `planner (pid 71), listens on 8001, 8002`, or an empty text if the process is
    unknown."""
    process = connection.client_process
    if process is None:
        return ""
    ports = ", ".join(map(str, process.ports))
    return f"{process.label}, listens on {ports}" if ports else process.label


def _connection_facts(connection: Connection) -> Iterator[Fact]:
    yield "number", f"{connection.id}, {connection.kind}"
    yield "client", connection.client
    yield "client's process", _process_words(connection)
    yield "listens", connection.listen
    yield from describe_tls(connection)
    yield (
        "upstream",
        " at ".join(dict.fromkeys(word for word in (connection.upstream, connection.peer) if word)),
    )
    yield "opened", text.format_utc(connection.opened)
    yield (
        "closed",
        f"{text.format_utc(connection.closed)}, {connection.how}"
        if connection.closed
        else "still open",
    )
    yield (
        "bytes",
        f"{connection.bytes_to_agent} to the agent, {connection.bytes_to_client} to the client",
    )
    yield (
        "not captured",
        text.format_count(connection.lost_bytes, "byte") if connection.lost_bytes else "",
    )
    yield "counters", ", ".join(f"{name} {count}" for name, count in connection.counters.items())


def format_time_of_exchange(at: int, exchange: Exchange) -> str:
    """Return a time, and the duration from the exchange's first byte to it."""
    return f"{text.format_utc(at)}, +{text.format_duration(max(at - exchange.started, 0))}"


def paint_fields(line: str) -> list[tuple[int, str]]:
    """Paint `name: value` of a header."""
    name = line.find(": ")
    return [(0, "text--name"), (name + 1, "")] if name > 0 else [(0, "text--title")]


def paint_facts(line: str) -> list[tuple[int, str]]:
    """Paint `name   value` of a fact."""
    return [(0, "text--title")] if line.isupper() else [(0, "text--dim"), (_NAME_CELLS, "")]


def paint_artifact(line: str) -> list[tuple[int, str]]:
    """Paint a fact of an artifact, or an indented line of its content."""
    return (
        [(0, "")]
        if line.startswith("  ") and not line[:_NAME_CELLS].isspace()
        else paint_facts(line)
    )

"""The generated tables of manual/protocol.md. `python tests/support_protocol_page.py` writes them
into the page.

The page marks each table with `<!-- table: NAME -->` and `<!-- end of table -->`; `tests/house`
compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from a2a_proto import SCHEMA_SETS, SchemaSet, detect_live, pool
from a2a_proto.shapes.protobuf_shapes import make_grammar
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.protocol.dialect import dialect_of_request, dialect_of_result, dialect_of_version
from a2a_proxy.protocol.errors import (
    GENERATION_MISMATCH,
    GRPC_STATUS_NAMES,
    RPC_REASONS,
    RPC_REASONS_0_1,
)
from a2a_proxy.protocol.exchange import LIFE, Life, LifeEvent
from a2a_proxy.protocol.json_shapes import decode_result
from a2a_proxy.protocol.operations import (
    GRPC_METHODS,
    JSONRPC_METHODS,
    OPERATIONS,
    ResponseKind,
    message_names,
)
from a2a_proxy.protocol.rest_path import CONFIG_METHODS, CONFIGS_METHODS, PATHS, VERBS
from a2a_proxy.protocol.schema import schema_set_of
from a2a_proxy.protocol.stream_life import PIPE_LIFE, PipeEvent, PipeLife
from a2a_proxy.protocol.summary import STATE_NUMBERS
from a2a_proxy.rules.families.err.table import ERROR_TABLE
from a2a_proxy.rules.families.gen.values import MISMATCH_CODES
from a2a_proxy.rules.families.stream.course import COURSE, Course, CourseEvent
from a2a_proxy.rules.state.transitions import NEW, UNKNOWN, change_of

PAGE = Path(__file__).parents[1] / "proxy/a2a_proxy/manual/protocol.md"

_MARKED = re.compile(r"(<!-- table: ([\w .-]+) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)

_RESULTS = {
    ResponseKind.SEND: "Task or Message",
    ResponseKind.STREAM: "stream of events",
    ResponseKind.TASK: "Task",
    ResponseKind.TASKS: "list of tasks",
    ResponseKind.PUSH_CONFIG: "push configuration",
    ResponseKind.PUSH_CONFIGS: "list of push configurations",
    ResponseKind.CARD: "agent card",
    ResponseKind.EMPTY: "nothing",
}

_REQUEST_BODIES = (
    '{"message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}',
    '{"message":{"messageId":"m","role":"user","parts":[{"type":"text","text":"hi"}]}}',
    '{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"hi"}]}}',
    '{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}',
    '{"id":"t"}',
)
_RESULT_BODIES = (
    ("", '{"task":{"id":"t"}}'),
    ("", '{"statusUpdate":{"taskId":"t"}}'),
    ("", '{"kind":"status-update","taskId":"t"}'),
    ("", '{"id":"t","sessionId":"s"}'),
    ("tasks/sendSubscribe", '{"id":"t","status":{"state":"working"},"final":false}'),
    ("message/stream", '{"id":"t","status":{"state":"working"}}'),
    ("", '{"id":"t","status":{"state":"working"}}'),
)

_LIVE_SAMPLES = (
    ("client", "a message that reconnects", "12 08 0A 01 6D 1A 01 74 20 01"),
    ("client", "a request in a LiveRequest", "0A 07 12 05 0A 01 6D 20 01"),
    ("client", "an artifact", "1A 0B 0A 01 74 12 01 63 1A 03 0A 01 61"),
    ("agent", "a Task", "0A 03 0A 01 74"),
    ("agent", "a Task in a LiveResponse", "0A 05 0A 03 0A 01 74"),
    ("agent", "a message update", "2A 03 0A 01 74"),
)

_SCALARS = {
    1: "double",
    3: "int64",
    4: "uint64",
    5: "int32",
    8: "bool",
    9: "string",
    12: "bytes",
    13: "uint32",
}


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell or "-" for cell in cells) + " |"


def _head(*cells: str) -> Iterator[str]:
    yield _row(*cells)
    yield "|" + "---|" * len(cells)


def _code(words: list[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _named(dialect: Dialect) -> str:
    return f"`{dialect.value}`" if dialect.value else "not decided"


def _with_dialect(methods: tuple[tuple[str, Dialect], ...]) -> str:
    return ", ".join(
        f"`{name}`" + (f" ({dialect.value})" if dialect.value else "") for name, dialect in methods
    )


def _rest() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for (method, segment), operation in PATHS.items():
        prefix = "agent/" if segment == "authenticatedExtendedCard" else ""
        found.setdefault(operation, []).append(f"{method} /{prefix}{segment}")
    found["GetExtendedAgentCard"].append("GET /v1/card")
    found["GetTask"] = ["GET /tasks/{id}"]
    for verb, (operation, methods) in VERBS.items():
        found.setdefault(operation, []).extend(
            f"{method} /tasks/{{id}}:{verb}" for method in methods
        )
    for path, table in (("", CONFIGS_METHODS), ("/{configId}", CONFIG_METHODS)):
        for method, operation in table.items():
            found.setdefault(operation, []).append(
                f"{method} /tasks/{{id}}/pushNotificationConfigs{path}"
            )
    return found


def operations() -> Iterator[str]:
    """Yield operation x dialect x binding."""
    rest = _rest()
    yield from _head(
        "operation", "JSON-RPC before 1.0", "gRPC in `a2a.v1`", "REST, after any prefix", "result"
    )
    for each in OPERATIONS:
        old, grpc = _with_dialect(each.rpc_v0), _with_dialect(each.grpc_v0)
        yield _row(f"`{each.name}`", old, grpc, _code(rest[each.name]), _RESULTS[each.answer])


def payloads() -> Iterator[str]:
    """Yield operation -> protobuf messages, also of the older package if its names differ."""
    yield from _head("operation", "request and response in `lf.a2a.v1`", "in 0.3")
    for each in OPERATIONS:
        new = message_names(each, Dialect.V1_0)
        old = message_names(each, Dialect.V0_3)
        known = Dialect.V0_3 in {dialect for _, dialect in each.grpc_v0}
        cell = "-" if not known else "the same" if old == new else _code(list(old))
        yield _row(f"`{each.name}`", _code(list(new)), cell)


def errors() -> Iterator[str]:
    """Yield A2A's errors: reason, JSON-RPC code, gRPC status, HTTP status."""
    yield from _head(
        "reason", "JSON-RPC", "gRPC", "HTTP", "gRPC in 1.0.0", "HTTP in 1.0.0", "the code in 0.1"
    )
    for reason, row in ERROR_TABLE.items():
        old_grpc = f"`{row.old_grpc}`" if row.old_grpc else "the same"
        old_http = str(row.old_http) if row.old_http else "the same"
        yield _row(
            f"`{reason}`",
            *_codes(row.code, row.grpc, row.http),
            old_grpc,
            old_http,
            _in_0_1(row.code),
        )
    mismatch = [
        MISMATCH_CODES[binding] for binding in (Binding.JSONRPC, Binding.GRPC, Binding.REST)
    ]
    codes = _codes(mismatch[0], GRPC_STATUS_NAMES[mismatch[1]], mismatch[2])
    yield _row(f"`{GENERATION_MISMATCH}` (1.1)", *codes, "", "", _in_0_1(mismatch[0]))
    others = (
        {*RPC_REASONS, *RPC_REASONS_0_1}
        - {row.code for row in ERROR_TABLE.values()}
        - {mismatch[0]}
    )
    for code in sorted(others, reverse=True):
        yield _row(
            f"`{RPC_REASONS[code]}`" if code in RPC_REASONS else "",
            str(code),
            "",
            "",
            "",
            "",
            _in_0_1(code),
        )


def _codes(rpc: int, grpc: str, http: int) -> tuple[str, str, str]:
    return str(rpc), f"`{grpc}`", str(http)


def _in_0_1(code: int) -> str:
    return (
        "the same"
        if RPC_REASONS_0_1[code] == RPC_REASONS.get(code)
        else f"`{RPC_REASONS_0_1[code]}`"
    )


def dialects() -> Iterator[str]:
    """Yield the proof of each dialect, and the descriptors that decode it."""
    yield from _head(
        "dialect",
        "JSON-RPC methods that only it has",
        "gRPC methods that only it has",
        "`A2A-Version`",
        "descriptors",
    )
    versions = {
        f"{major}.{minor}": dialect_of_version(f"{major}.{minor}")
        for major in (0, 1)
        for minor in range(4)
    }
    for dialect in Dialect:
        if dialect is Dialect.UNKNOWN:
            continue
        rpc = [method for method, (_, proof) in JSONRPC_METHODS.items() if proof is dialect]
        grpc = [
            path.rpartition("/")[2] for path, (_, proof) in GRPC_METHODS.items() if proof is dialect
        ]
        if dialect is Dialect.V1_0:
            cells = ["the 1.0 names", "every method of `lf.a2a.v1.A2AService`"]
        else:
            cells = [_code(rpc), _code(grpc)]
        said = [version for version, meant in versions.items() if meant is dialect]
        descriptors = (
            "" if dialect in (Dialect.V0_1, Dialect.VENDOR) else f"`{schema_set_of(dialect)}`"
        )
        yield _row(f"`{dialect.value}`", *cells, _code(said), descriptors)


def evidence() -> Iterator[str]:
    """Yield the evidence of bodies, in the order of the code that decides."""
    yield from _head("body", "as", "shows")
    for body in _REQUEST_BODIES:
        yield _row(f"`{body}`", "parameters of a call", _named(dialect_of_request(body.encode())))
    for method, body in _RESULT_BODIES:
        place = f"result of `{method}`" if method else "result or event"
        yield _row(
            f"`{body}`", place, _named(dialect_of_result(decode_result(body.encode()), method))
        )


def live() -> Iterator[str]:
    """Yield the first messages of live streams, and the proposal that they show."""
    yield from _head("first message of", "is", "bytes", "payload")
    for side, what, sample in _LIVE_SAMPLES:
        data = bytes.fromhex(sample)
        payload = detect_live(data, None) if side == "client" else detect_live(None, data)
        yield _row(side, what, f"`{sample}`", f"`{payload}`")


def states() -> Iterator[str]:
    """Yield the task states with all accepted spellings and their class."""
    yield from _head("number", "1.0", "also read as", "class")
    for state in TaskState:
        name = f"TASK_STATE_{state.name}"
        others = [
            spelling
            for spelling, number in STATE_NUMBERS.items()
            if number == state and spelling != name
        ]
        kind = (
            "terminal"
            if state.terminal
            else "interrupted"
            if state.interrupted
            else "active"
            if state
            else "never sent"
        )
        yield _row(str(int(state)), f"`{name}`", _code(others), kind)


def life() -> Iterator[str]:
    """Life of an exchange with an HTTP stream: the next state and what the event means."""
    yield from _machine(LIFE, Life, LifeEvent)


def pipe_life() -> Iterator[str]:
    """Life of a call on a pipe."""
    yield from _machine(PIPE_LIFE, PipeLife, PipeEvent)


def course() -> Iterator[str]:
    """The end of a stream, as rules judge it."""
    yield from _machine(COURSE, Course, CourseEvent)


def _machine(
    table: Mapping[Any, Any], states: Iterable[str], events: Iterable[str]
) -> Iterator[str]:
    """State x event; a dash is an event that cannot happen."""
    known = [state for state in states if any(state == before for before, _ in table)]
    yield from _head("event, in state", *known)
    for event in events:
        steps = [table.get((state, event), ("", "")) for state in known]
        cells = [
            meaning if after == state else f"{meaning} -> {after}" if after else ""
            for state, (after, meaning) in zip(known, steps, strict=True)
        ]
        yield _row(event, *cells)


def transitions() -> Iterator[str]:
    """State before x state shown."""
    named = [*TaskState, UNKNOWN]
    columns = [state for state in named if state]
    yield from _head("from, to", *(_state_name(state) for state in columns))
    for before in named:
        cells = [str(change_of(before, state)) for state in columns]
        yield _row("new" if before == NEW else _state_name(before), *cells)


def _state_name(state: TaskState) -> str:
    return "unknown number" if state == UNKNOWN else state.name


def fields(line: SchemaSet, base: SchemaSet | None = None) -> Iterator[str]:
    """Yield the messages of a version; with `base` only those that differ from the message of that
    name there."""
    known = _messages(base) if base else {}
    binary = (
        make_grammar(line, True).shapes if line in get_args(SchemaSet) and line != "rpc" else {}
    )
    yield from _head("message", "fields")
    for name, message in sorted(_messages(line).items()):
        required = binary[name].required if name in binary else frozenset()
        text = _fields(message, required)
        if name not in known or text != _fields(known[name], required):
            yield _row(f"`{name}`", text or "none")


def _messages(line: SchemaSet) -> dict[str, Any]:
    package = SCHEMA_SETS[line].package
    found: dict[str, Any] = {}
    for file in _files(line):
        if file.package == package:
            found |= dict(file.message_types_by_name)
    for each in list(found.values()):
        nested = {
            f"{each.name}.{inner.name}": inner
            for inner in each.nested_types
            if not inner.GetOptions().map_entry
        }
        found |= nested
    return found


def _files(line: SchemaSet) -> list[Any]:
    """Return the file with the main messages of a version, and the files that it imports."""
    made = pool(line)
    todo, found = [made.FindFileByName(SCHEMA_SETS[line].proto)], {}
    while todo:
        file = todo.pop()
        found[file.name] = file
        todo += [each for each in file.dependencies if each.name not in found]
    return list(found.values())


def _fields(message: Any, required: frozenset[str]) -> str:
    alternatives = {
        field.name
        for group in message.oneofs
        if not group.name.startswith("_")
        for field in group.fields
    }
    words = []
    for field in sorted(message.fields, key=lambda field: field.number):
        marks = (
            " R"
            if field.json_name in required
            else " optional"
            if field.has_presence and _singular(field)
            else ""
        )
        marks = marks or (" one-of" if field.name in alternatives else "")
        words.append(f"{field.number} `{field.name}` {_type(field)}{marks}")
    return "; ".join(words)


def _singular(field: Any) -> bool:
    """Return whether a field is an explicit `optional` scalar."""
    group = field.containing_oneof
    return group is not None and group.name.startswith("_")


def _type(field: Any) -> str:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return f"map of {_type(inner.fields_by_name['value'])}"
    name = (
        inner.name
        if inner is not None
        else field.enum_type.name
        if field.enum_type
        else _SCALARS[field.type]
    )
    return f"list of {name}" if field.is_repeated else name


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "operations": operations,
    "payloads": payloads,
    "errors": errors,
    "dialects": dialects,
    "evidence": evidence,
    "live": live,
    "states": states,
    "transitions": transitions,
    "life": life,
    "pipe life": pipe_life,
    "course": course,
    "fields 1.0": lambda: fields("1.0"),
    "fields 0.3": lambda: fields("0.3"),
    "fields live-1975": lambda: fields("live-1975", "1.0"),
    "fields live-2153": lambda: fields("live-2153", "1.0"),
}


def tables_in(page: str) -> dict[str, str]:
    """Return the marked tables of a page, by name."""
    return {found[2]: found[3].strip() for found in _MARKED.finditer(page)}


def rendered(name: str) -> str:
    """Return a table as the page must have it."""
    return "\n".join(TABLES[name]())


def main() -> None:
    """Write every table into the page."""
    page = PAGE.read_text("utf-8")
    PAGE.write_text(
        _MARKED.sub(lambda found: f"{found[1]}\n{rendered(found[2])}\n\n{found[4]}", page), "utf-8"
    )


if __name__ == "__main__":
    main()

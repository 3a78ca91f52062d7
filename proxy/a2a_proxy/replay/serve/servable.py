"""Which calls of a script can be served on which binding, and why the others cannot. Performs no
I/O."""

from collections.abc import Iterator

import msgspec

from a2a_proto import RenderError
from a2a_proxy.model.values import JSONRPC_BINDINGS, Binding, Dialect
from a2a_proxy.protocol.operations import OPERATION_BY_NAME
from a2a_proxy.replay.convert.protobuf_bytes import encode_answer
from a2a_proxy.replay.convert.requests import grpc_path, rpc_method
from a2a_proxy.replay.core.script import (
    LIVE_OPERATIONS,
    LineKind,
    RecordedCall,
    ReplayScript,
    ScriptLine,
    ScriptSide,
)

SERVED_BINDINGS = (Binding.JSONRPC, Binding.REST, Binding.GRPC)
"""Bindings that one port serves."""
BREAK_KINDS = (LineKind.RESET, LineKind.CUT)
_RPC_ONLY_DIALECTS = frozenset({Dialect.V0_1, Dialect.VENDOR})


class UnservableCalls(msgspec.Struct, frozen=True):
    """Calls that a binding cannot serve, and the reason."""

    binding: Binding | None
    """None: no binding at all."""
    places: tuple[str, ...]
    reason: str


def find_unservable(
    script: ReplayScript, bindings: tuple[Binding, ...] = SERVED_BINDINGS
) -> list[UnservableCalls]:
    """Return all calls that cannot be served, grouped by binding and reason."""
    found: dict[tuple[Binding | None, str], list[str]] = {}
    for one in script.unservable:
        found.setdefault((None, one.reason), []).append(one.place)
    for call in (*script.cards, *script.calls):
        if call.refusal:
            found.setdefault((None, call.refusal), []).append(call.place)
    for binding in bindings:
        for call in script.calls:
            reason = "" if call.refusal else unservable_reason(call, binding)
            if reason:
                found.setdefault((binding, reason), []).append(call.place)
    return [
        UnservableCalls(binding, tuple(places), reason)
        for (binding, reason), places in found.items()
    ]


class BindingSupport:
    """Reasons by call and binding, computed once."""

    def __init__(self) -> None:
        self._reasons: dict[tuple[int, Binding], tuple[RecordedCall, str]] = {}
        """Keyed by identity, because hashing a call would hash all its payloads for each client."""

    def unservable_reason(self, call: RecordedCall, binding: Binding) -> str:
        """Return why a call cannot be served on a binding, or an empty string if it can."""
        key = (id(call), binding)
        if key not in self._reasons:
            self._reasons[key] = (call, unservable_reason(call, binding))
        return self._reasons[key][1]


def unservable_reason(call: RecordedCall, binding: Binding) -> str:
    """Return why a call cannot be served on a binding, or an empty string if it can."""
    if call.operation not in OPERATION_BY_NAME:
        return (
            ""
            if binding is call.binding
            else "it is not an A2A operation, and is served only on its recorded binding"
        )
    if call.operation in LIVE_OPERATIONS and binding is not call.binding:
        return "a live stream is served only on its recorded binding"
    if call.dialect in _RPC_ONLY_DIALECTS and binding in (Binding.REST, Binding.GRPC):
        return f"{call.dialect} has no {binding}"
    if binding in JSONRPC_BINDINGS and not _has_rpc_method(call):
        return f"{call.operation} is not a method of JSON-RPC {call.dialect}"
    if (
        binding is Binding.STDIO
        and binding is not call.binding
        and any(line.what in BREAK_KINDS for line in _answer_kind(call))
    ):
        return "a pipe cannot break off one call"
    return _grpc_obstacle(call) if binding is Binding.GRPC else _framing_obstacle(call, binding)


def _has_rpc_method(call: RecordedCall) -> bool:
    try:
        rpc_method(call.operation, call.dialect)
    except LookupError:
        return False
    return True


def _grpc_obstacle(call: RecordedCall) -> str:
    try:
        grpc_path(call.operation, call.dialect)
    except LookupError:
        return f"{call.operation} is not a method of gRPC {call.dialect}"
    for line in _answer_kind(call):
        if line.what is LineKind.RESET:
            return f"a gRPC server cannot send a reset of its own ({line.note or 'reset'})"
        if line.what is LineKind.CUT:
            return f"a gRPC server cannot break off without a status ({line.note or 'cut'})"
        if line.what is LineKind.END and call.binding is Binding.GRPC and line.status < 0:
            return "a gRPC server cannot end a call without a status"
        if line.what is not LineKind.MESSAGE:
            continue
        if not isinstance(line.value, dict):
            if call.binding is Binding.GRPC:
                continue  # sent as recorded
            return "an answer is not JSON"
        schema = line.schema if call.binding is Binding.GRPC else ""
        try:
            encode_answer(line.value, call.operation, call.dialect, schema)
        except RenderError as wrong:
            return f"an answer has no protobuf form: {wrong}"
    return ""


def _framing_obstacle(call: RecordedCall, binding: Binding) -> str:
    if binding is call.binding:
        return ""
    broken = any(
        line.what is LineKind.MESSAGE and not isinstance(line.value, (dict, list))
        for line in _answer_kind(call)
    )
    return (
        "an answer could not be read, and is served only on its recorded binding" if broken else ""
    )


def _answer_kind(call: RecordedCall) -> Iterator[ScriptLine]:
    return (line for line in call.lines if line.side is ScriptSide.AGENT)

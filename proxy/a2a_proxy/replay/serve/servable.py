"""What of a script can be served on which binding, and why not the rest. Does no I/O."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from a2a_proto import RenderError
from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.protocol.operations import BY_NAME
from a2a_proxy.replay.convert.protobuf_bytes import answer_octets
from a2a_proxy.replay.convert.requests import grpc_path, rpc_method
from a2a_proxy.replay.core.script import LIVE, LineKind, RecordedCall, ReplayScript, ScriptLine, ScriptSide

SERVED = (Binding.JSONRPC, Binding.REST, Binding.GRPC)
"""What one port carries."""
BREAKS = (LineKind.RESET, LineKind.CUT)
_ONLY_RPC = frozenset({Dialect.V0_1, Dialect.VENDOR})


class UnservableCalls(msgspec.Struct, frozen=True):
    """Calls that a binding does not have, and why."""

    binding: Binding | None
    """None: no binding at all."""
    places: tuple[str, ...]
    reason: str


def gaps(script: ReplayScript, bindings: tuple[Binding, ...] = SERVED) -> list[UnservableCalls]:
    """All of them, those with one reason together."""
    found: dict[tuple[Binding | None, str], list[str]] = {}
    for one in script.unservable:
        found.setdefault((None, one.reason), []).append(one.place)
    for binding in bindings:
        for call in script.calls:
            reason = why_not(call, binding)
            if reason:
                found.setdefault((binding, reason), []).append(call.place)
    return [UnservableCalls(binding, tuple(places), reason) for (binding, reason), places in found.items()]


class BindingSupport:
    """Which calls go out on which binding, found out once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Binding], tuple[RecordedCall, str]] = {}
        """By identity: a call holds all its payloads, which are not to be hashed for each client."""

    def why_not(self, call: RecordedCall, binding: Binding) -> str:
        """Why a call cannot be served on a binding; empty where it can."""
        key = (id(call), binding)
        if key not in self._known:
            self._known[key] = (call, why_not(call, binding))
        return self._known[key][1]


def why_not(call: RecordedCall, binding: Binding) -> str:
    """Why a call cannot be served on a binding; empty where it can."""
    if call.operation not in BY_NAME:
        return "" if binding is call.binding else "it is no operation of A2A, and is served where it was recorded only"
    if call.operation in LIVE and binding is not call.binding:
        return "a live stream is served where it was recorded only"
    if call.dialect in _ONLY_RPC and binding in (Binding.REST, Binding.GRPC):
        return f"{call.dialect} has no {binding}"
    if binding in (Binding.JSONRPC, Binding.STDIO) and not _named(call):
        return f"{call.operation} is no method of JSON-RPC {call.dialect}"
    if binding is Binding.STDIO and binding is not call.binding and any(line.what in BREAKS for line in _answers(call)):
        return "a pipe cannot break off one call"
    return _no_grpc(call) if binding is Binding.GRPC else _no_frames(call, binding)


def _named(call: RecordedCall) -> bool:
    try:
        rpc_method(call.operation, call.dialect)
    except LookupError:
        return False
    return True


def _no_grpc(call: RecordedCall) -> str:
    try:
        grpc_path(call.operation, call.dialect)
    except LookupError:
        return f"{call.operation} is no method of gRPC {call.dialect}"
    for line in _answers(call):
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
                continue  # as it was
            return "an answer is no JSON"
        schema = line.schema if call.binding is Binding.GRPC else ""
        try:
            answer_octets(line.value, call.operation, call.dialect, schema)
        except RenderError as wrong:
            return f"an answer has no protobuf form: {wrong}"
    return ""


def _no_frames(call: RecordedCall, binding: Binding) -> str:
    if binding is call.binding:
        return ""
    broken = any(line.what is LineKind.MESSAGE and not isinstance(line.value, (dict, list)) for line in _answers(call))
    return "an answer could not be read, and is served where it was recorded only" if broken else ""


def _answers(call: RecordedCall) -> Iterator[ScriptLine]:
    return (line for line in call.lines if line.side is ScriptSide.AGENT)
